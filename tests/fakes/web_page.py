"""A web page without a browser: logs in, follows the stream of a web channel, posts as app.js does."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import httpx

from zeroclaw.host.local_listener import Listener
from zeroclaw.sse import SseEvent, SseState, feed

Shown = dict[str, object]


@asynccontextmanager
async def visiting(
    listener: Listener, *, logged_in: bool = True
) -> AsyncGenerator[httpx.AsyncClient]:
    """Open a client of the listener with the headers of a page of the same origin.

    Its addresses begin below the secret path. It waits for answers without a limit: a test that holds
    one answer back does much else meanwhile, which takes seconds on a busy machine.
    """
    async with httpx.AsyncClient(
        base_url=listener.url,
        headers={"sec-fetch-site": "same-origin"},
        timeout=None,
        trust_env=False,
    ) as client:
        if logged_in:
            answer = await client.get(listener.new_login_url("/"))
            assert answer.status_code == 200
        yield client


@asynccontextmanager
async def following(client: httpx.AsyncClient, name: str = "web") -> AsyncGenerator["Stream"]:
    """Open a stream of a channel's page."""
    async with client.stream("GET", f"/{name}/events") as answer:
        assert answer.status_code == 200
        pieces = cast("AsyncGenerator[bytes]", answer.aiter_bytes())
        async with aclosing(pieces) as chunks:
            yield Stream(chunks=chunks)
    # httpx nests six generators, and leaves it to the loop to close the inner ones.
    await asyncio.sleep(0)
    while left := [task for task in asyncio.all_tasks() if _closes_a_generator(task)]:
        await asyncio.wait(left)
        await asyncio.sleep(0)


def _closes_a_generator(task: asyncio.Task[object]) -> bool:
    return type(task.get_coro()).__name__ == "async_generator_athrow"


@dataclass(kw_only=True)
class Stream:
    """The events that a page has received.

    Attributes:
        items: The items in the chat, by id, in order.
        names: The names of all events so far.
        pings: The number of pings, which are not events of the chat.
    """

    chunks: AsyncIterator[bytes]
    items: dict[str, Shown] = field(default_factory=dict[str, Shown])
    names: list[str] = field(default_factory=list[str])
    pings: int = 0
    _state: SseState = field(default_factory=SseState)
    _ready: list[SseEvent] = field(default_factory=list[SseEvent])

    async def hear(self) -> tuple[str, Mapping[str, object]]:
        """Wait for the next event and apply it; raises StopAsyncIteration at the end."""
        while not self._ready:
            await self.read()
        event = self._ready.pop(0)
        data = cast("dict[str, object]", json.loads(event.data))
        self.names.append(event.name)
        match event.name:
            case "snapshot":
                items = cast("list[Shown]", data["items"])
                self.items = {str(item["id"]): item for item in items}
            case "item":
                self.items[str(data["id"])] = data
            case "gone":
                self.items.pop(str(data["id"]), None)
            case _:
                pass
        return event.name, data

    async def read(self) -> None:
        """Wait for the next bytes."""
        chunk = await anext(self.chunks)
        self._state, events = feed(self._state, chunk)
        self.pings += sum(event.name == "ping" for event in events)
        self._ready.extend(event for event in events if event.name != "ping")

    async def hear_until(self, name: str, **fields: object) -> Mapping[str, object]:
        """Wait for an event of this name with these fields; return its data."""
        while True:
            event_name, data = await self.hear()
            if event_name == name and fields.items() <= data.items():
                return data

    def texts(self) -> list[object]:
        """Return the texts of the items, in order."""
        return [item["text"] for item in self.items.values()]
