"""The web page and the terminal: one person each, who is the operator of the machine.

Both keep what they have written until the daemon says that it is stored, and write it again when they
come back; that is theirs to do, as for a browser's page and `zeroclaw chat`.
"""

import asyncio
import itertools
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.fakes.web_page import Stream
from tests.soak.place import Place, Room, Tables, Trouble
from zeroclaw.cli.chat.connection import Link
from zeroclaw.errors import NeedsOperator
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import request

AGAIN_S = 0.1
WAIT_S = 5.0
UNREADABLE = 422
Item = Mapping[str, object]


@dataclass(eq=False, kw_only=True)
class Writer:
    """A `Line`."""

    on: "_Local"
    name: str
    chat: Room
    is_own: bool = True
    may_ask: bool = False  # who asks is an operator, and would be asked where they are

    async def says(self, text: str) -> object:
        return self.on.say(text)


@dataclass(eq=False, kw_only=True)
class _Local(Place):
    """The common part of both."""

    chance: random.Random
    called = ""
    items: dict[str, Item] = field(default_factory=dict[str, Item])
    has_heard: bool = False

    async def open(
        self, stack: AsyncExitStack, group: asyncio.TaskGroup, people: int, directory: Path
    ) -> Tables:
        self._data = directory / "data"
        self._clock = SystemClock()
        self._room = Room(self.name)
        self.lines = [Writer(on=self, name=self.called, chat=self._room)]
        self._following: asyncio.Task[None] | None = None
        self._group = group
        await self._cut()
        stack.callback(self._stop)
        return Tables(channel={"enabled": True}, secrets={})

    def say(self, text: str) -> object:
        """Write."""
        raise NotImplementedError

    @property
    def is_connected(self) -> bool:
        return self.has_heard

    async def look(self) -> None:
        shown = [item for item in self.items.values() if item["kind"] != "person"]
        self._room.stand([str(item.get("text", "")) for item in shown])

    def troubles(self) -> Mapping[str, Trouble]:
        return {"pages and terminals closed": self._cut, "repeats": self._again}

    async def _cut(self) -> None:
        """Close what is open, and open it anew."""
        self._stop()
        self._following = self._group.create_task(self._follow())

    def _stop(self) -> None:
        if self._following is not None:
            self._following.cancel()

    async def _again(self) -> None:
        """Write something once more, under its id."""
        raise NotImplementedError

    async def _follow(self) -> None:
        raise NotImplementedError


@dataclass(eq=False, kw_only=True)
class OnTheWeb(_Local):
    """The page, without a browser."""

    name, called = "web", "w0"
    sent: dict[str, str] = field(default_factory=dict[str, str])
    unsent: dict[str, str] = field(default_factory=dict[str, str])

    def say(self, text: str) -> object:
        key = f"page-{len(self.sent):08}"
        self.sent[key] = self.unsent[key] = text
        return key

    async def _again(self) -> None:
        if self.sent:
            key = self.chance.choice([*self.sent])
            self.unsent[key] = self.sent[key]

    async def _follow(self) -> None:
        while True:
            with suppress(NeedsOperator, OSError, httpx.HTTPError):
                link = str((await request(self._data, {"call": "status"}))["login_url"])
                await self._visit(link)
            await self._clock.sleep(AGAIN_S)

    async def _visit(self, link: str) -> None:
        base = link.partition("?")[0].rstrip("/")
        async with httpx.AsyncClient(
            headers={"sec-fetch-site": "same-origin"}, timeout=WAIT_S, trust_env=False
        ) as client:
            await client.get(link)
            endless = httpx.Timeout(WAIT_S, read=None)
            async with client.stream("GET", f"{base}/events", timeout=endless) as answer:
                answer.raise_for_status()
                stream = Stream(chunks=answer.aiter_bytes())
                hearing = self._group.create_task(self._hear(stream))
                try:
                    while not hearing.done():
                        await self._send_all(client, base)
                        await self._clock.sleep(AGAIN_S)
                finally:
                    hearing.cancel()

    async def _hear(self, stream: Stream) -> None:
        with suppress(httpx.HTTPError, StopAsyncIteration):
            while True:
                name, data = await stream.hear()
                if name == "gone":
                    self.items.pop(str(data["id"]), None)
                self.items |= stream.items
                self.has_heard = True

    async def _send_all(self, client: httpx.AsyncClient, base: str) -> None:
        for key, text in [*self.unsent.items()]:
            answer = await client.post(f"{base}/messages", json={"id": key, "text": text})
            assert answer.status_code != UNREADABLE, answer.text
            if answer.is_success:
                self.unsent.pop(key, None)


@dataclass(eq=False, kw_only=True)
class OnTheTerminal(_Local):
    """What `zeroclaw chat` has below its screen."""

    name, called = "terminal", "c0"
    sent: dict[str, Item] = field(default_factory=dict[str, Item])
    _link: Link | None = None

    def _opened(self) -> Link:
        if self._link is None:
            numbers = itertools.count()
            self._link = Link(
                self._data, clock=self._clock, token=lambda: f"terminal-{next(numbers)}"
            )
        return self._link

    def say(self, text: str) -> object:
        link = self._opened()
        key = link.say(text)
        self.sent[key] = link.pending[key]
        return key

    async def _again(self) -> None:
        """A pending message is written with the next connection."""
        if self.sent:
            key = self.chance.choice([*self.sent])
            self._opened().pending[key] = self.sent[key]
            await self._cut()

    async def _follow(self) -> None:
        while True:
            try:
                await self._opened().run(self._heard, lambda: None)
            except* (NeedsOperator, OSError):
                await self._clock.sleep(AGAIN_S)

    def _heard(self, line: Item) -> None:
        self.has_heard = self.has_heard or line["type"] == "live"
        if line["type"] == "item":
            self.items[str(line["id"])] = line
        elif line["type"] == "gone":
            self.items.pop(str(line["id"]), None)
