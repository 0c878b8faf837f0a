"""The web channel under the contract suite: the real listener, and a page without a browser."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httpx

from channels.web import CAPABILITIES, WebSettings
from channels.web.adapter import WebChannel
from tests.contract.channel_suite import Adapter, Standing
from tests.fakes.bare_context import NoMount, bare_context, no_log
from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from tests.fakes.web_page import Shown, Stream, following, visiting
from zeroclaw import (
    Address,
    Admit,
    ApprovalId,
    Channel,
    ChannelContext,
    Choice,
    MessageRef,
    TranscriptItem,
)
from zeroclaw.clock import Clock
from zeroclaw.config.model import ListenerSettings
from zeroclaw.host.local_listener import Listener
from zeroclaw.value import replace

OK = 200
CAPABLE = replace(CAPABILITIES, min_edit_interval_s=0.05)
OPERATOR = Address(channel="web", account="local", chat="operator", direct=True)


@dataclass(kw_only=True)
class Transcript:
    """The store's view of the chat.

    Attributes:
        fault: Raised in place of an answer.
        asked: Set by each read.
        held: While it is there and not set, a read has its answer and keeps it.
    """

    items: list[TranscriptItem] = field(default_factory=list[TranscriptItem])
    fault: Exception | None = None
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    holding: asyncio.Event | None = None

    async def __call__(self, address: Address, after: str) -> tuple[TranscriptItem, ...]:
        assert (address, after) == (OPERATOR, "")
        self.requested.set()
        items = tuple(self.items)
        if self.holding is not None:
            await self.holding.wait()
        if self.fault is not None:
            raise self.fault
        return items


class OnListener(NoMount):
    """The mount of a daemon that has a local listener and no control socket."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def web(self, prefix: str, application: object) -> str:
        return self._listener.web(prefix, application)


def web_context(
    listener: Listener, transcript: Transcript, clock: Clock, directory: Path
) -> ChannelContext:
    return bare_context(
        "web",
        WebSettings(),
        clock=clock,
        mount=OnListener(listener),
        transcript=transcript,
        directory=directory,
    )


@asynccontextmanager
async def local_listener(directory: Path, clock: Clock) -> AsyncGenerator[Listener]:
    """A serving listener on a free port."""
    listener = await asyncio.to_thread(
        Listener,
        ListenerSettings(port=0),
        sessions_at=directory / "sessions",
        clock=clock,
        ids=CountingIds(),
        log=no_log,
    )
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(listener.serve())
        try:
            yield listener
        finally:
            serving.cancel()


@dataclass(kw_only=True)
class WebHarness:
    """One page that is open whenever a daemon serves it."""

    listener: Listener
    context: ChannelContext
    clock: ManualClock
    channel: Channel = field(init=False)
    client: httpx.AsyncClient = field(init=False)
    stream: Stream = field(init=False)
    address: Address = OPERATOR
    person: str = "operator"
    _posts: list[tuple[str, Mapping[str, object]]] = field(
        default_factory=list[tuple[str, Mapping[str, object]]]
    )
    delivered: list[str] = field(default_factory=list[str])
    _barriers: int = 0
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def make(self) -> Channel:
        self.channel = WebChannel(self.context)
        return self.channel

    def door(self, admit: Admit) -> Admit:
        return admit

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None]:
        async with self._stack:
            await self._come()
            yield

    async def _come(self) -> None:
        self.client = await self._stack.enter_async_context(visiting(self.listener))
        self.stream = await self._stack.enter_async_context(following(self.client))
        await self.stream.hear_until("snapshot")

    async def turn_to(self, name: str) -> None:
        raise NotImplementedError

    async def gather(self) -> str:
        raise NotImplementedError

    async def cut(self) -> None:
        await self._stack.aclose()
        await self._come()

    def keep_limits(self) -> Callable[[], int]:
        raise NotImplementedError

    async def say(self, text: str) -> bool:
        return await self._post("messages", {"text": text})

    async def redeliver(self) -> bool:
        return await self._deliver(*self._posts[-1])

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        key = f"uploaded-{len(self._posts)}"
        response = await self.client.post(f"/web/files/{key}", content=content)
        assert response.status_code == 200, response.text
        claimed = {"id": key, "name": name, "type": "text/plain", "size": claimed_bytes}
        return await self._post("messages", {"text": "", "files": [claimed]})

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        body = {"approval": approval, "choice": choice, "reason": reason, "card": ref.message}
        return await self._post("answers", body)

    def toasts(self) -> Sequence[str]:
        return self.delivered

    async def messages(self) -> tuple[Standing, ...]:
        self._barriers += 1
        barrier = f"barrier-{self._barriers}"
        await self.channel.delete(MessageRef(address=self.address, message=barrier))
        await self.stream.hear_until("gone", id=barrier)
        return tuple(
            _standing(item) for item in self.stream.items.values() if item["kind"] != "person"
        )

    async def sees_typing(self) -> bool:
        await self.messages()
        return "typing" in self.stream.names

    async def tools_seen(self) -> tuple[str, ...]:
        return ()

    async def sees_preview(self) -> str:
        return ""

    async def _post(self, path: str, fields: Mapping[str, object]) -> bool:
        body = {"id": f"made-by-page-{len(self._posts)}", **fields}
        self._posts.append((path, body))
        return await self._deliver(path, body)

    async def _deliver(self, path: str, body: Mapping[str, object]) -> bool:
        try:
            answer = await self.client.post(f"/web/{path}", json=body)
        except httpx.HTTPError:
            return False  # the page tries again when it is connected
        if answer.status_code == OK:
            self.delivered += filter(None, [str(answer.json().get("toast", ""))])
        return answer.status_code == OK


def _standing(item: Shown) -> Standing:
    """Read an item as items.js and cards.js show it."""
    if item["kind"] != "card":
        sent = cast("dict[str, str | int]", item.get("sent", {}))
        file = (str(sent["name"]), int(sent["size"])) if sent else None
        receipts = cast("list[dict[str, str]]", item.get("receipts", []))
        lines = tuple(receipt["line"] for receipt in receipts)
        return Standing(text=str(item["text"]), file=file, receipts=lines)
    return local_card(item)


def local_card(item: Mapping[str, object]) -> Standing:
    """Read a card as the local channels send it."""
    card = cast("dict[str, object]", item["card"])
    calls = cast("list[dict[str, object]]", card["calls"])
    readable: list[str] = []
    for call in calls:
        ending = cast("dict[str, object] | None", call["ending"])
        readable += [str(call[name]) for name in ("number", "tool", "summary", "arguments", "why")]
        readable += [str(call["hash8"]), *(str(value) for value in (ending or {}).values())]
    still_open = [ApprovalId(str(call["approval"])) for call in calls if call["ending"] is None]
    return Standing(text=" ".join(readable), buttons=frozenset(still_open))


@asynccontextmanager
async def web_platform(directory: Path) -> AsyncGenerator[WebHarness]:
    clock = ManualClock()
    async with local_listener(directory, clock) as listener:
        folder = directory / "kept"
        folder.mkdir()
        context = web_context(listener, Transcript(), clock, folder)
        yield WebHarness(listener=listener, context=context, clock=clock)


WEB = Adapter(name="web", capabilities=CAPABLE, platform=web_platform, is_local=True)
