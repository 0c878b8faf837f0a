"""The terminal channel under the contract suite: the real control socket, and a client without a screen."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from channels._local import CAPABILITIES, LocalSettings
from channels.terminal.adapter import STREAM, TerminalChannel
from tests.contract.channel_suite import Adapter, Standing
from tests.contract.web_harness import local_card
from tests.fakes.bare_context import NoMount, bare_context, no_log
from tests.fakes.manual_clock import ManualClock
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
from zeroclaw.host.control import Control, Lines, Serve, connect
from zeroclaw.value import replace

CAPABLE = replace(CAPABILITIES, min_edit_interval_s=0.05)
OPERATOR = Address(channel="terminal", account="local", chat="operator", direct=True)

Line = Mapping[str, object]


class OnSocket(NoMount):
    """The mount of a daemon that has a control socket and no local listener."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def stream(self, name: str, serve: Serve) -> None:
        self._control.stream(name, serve)


async def empty_transcript(address: Address, after: str) -> tuple[TranscriptItem, ...]:
    await asyncio.sleep(0)
    assert (address, after) == (OPERATOR, "")
    return ()


def terminal_context(control: Control) -> ChannelContext:
    return bare_context(
        "terminal", LocalSettings(), mount=OnSocket(control), transcript=empty_transcript
    )


@asynccontextmanager
async def control_socket(directory: Path) -> AsyncGenerator[Control]:
    """A serving socket."""
    control = Control(directory, log=no_log)
    up = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(control.serve(up.set))
        await up.wait()
        try:
            yield control
        finally:
            task.cancel()


@dataclass(kw_only=True)
class TerminalHarness:
    """One client that attaches whenever a daemon is running."""

    directory: Path
    context: ChannelContext
    clock: ManualClock
    channel: Channel = field(init=False)
    lines: Lines = field(init=False)
    address: Address = OPERATOR
    person: str = "operator"
    items: dict[str, Line] = field(default_factory=dict[str, Line])
    events: list[str] = field(default_factory=list[str])
    delivered: list[str] = field(default_factory=list[str])
    _written: list[Line] = field(default_factory=list[Line])
    _barriers: int = 0

    def make(self) -> Channel:
        self.channel = TerminalChannel(self.context)
        return self.channel

    def door(self, admit: Admit) -> Admit:
        return admit

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None]:
        await self._come()
        try:
            yield
        finally:
            await self.lines.aclose()

    async def _come(self) -> None:
        self.lines = await connect(self.directory)
        await self.lines.send({"open": STREAM})
        await self.lines.send({"type": "hello", "after": ""})
        await self.hear_until("live")

    async def turn_to(self, name: str) -> None:
        raise NotImplementedError

    async def gather(self) -> str:
        raise NotImplementedError

    async def cut(self) -> None:
        await self.lines.aclose()
        await self._come()

    def keep_limits(self) -> Callable[[], int]:
        raise NotImplementedError

    async def hear_until(self, kind: str, key: str = "") -> Line | None:
        """Read until a line of a type (about an id); None at the end of the connection."""
        while (line := await self.lines.receive()) is not None:
            self._take(line)
            if line["type"] == kind and key in {"", line.get("id")}:
                return line
        return None

    def _take(self, line: Line) -> None:
        self.events.append(str(line["type"]))
        if line["type"] == "item" and line["kind"] != "person":
            self.items[str(line["id"])] = line
        elif line["type"] == "gone":
            self.items.pop(str(line["id"]), None)

    async def say(self, text: str) -> bool:
        return await self._write({"type": "say", "text": text})

    async def redeliver(self) -> bool:
        return await self._deliver(self._written[-1])

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        raise NotImplementedError

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        pressed = {"approval": approval, "choice": choice, "reason": reason, "card": ref.message}
        return await self._write({"type": "press", **pressed})

    def toasts(self) -> Sequence[str]:
        return self.delivered

    async def messages(self) -> tuple[Standing, ...]:
        self._barriers += 1
        barrier = f"barrier-{self._barriers}"
        await self.channel.delete(MessageRef(address=self.address, message=barrier))
        await self.hear_until("gone", barrier)
        return tuple(map(_standing, self.items.values()))

    async def sees_typing(self) -> bool:
        await self.messages()
        return "typing" in self.events

    async def tools_seen(self) -> tuple[str, ...]:
        return ()

    async def sees_preview(self) -> str:
        return ""

    async def _write(self, line: Line) -> bool:
        self._written.append({**line, "id": f"made-by-client-{len(self._written)}"})
        return await self._deliver(self._written[-1])

    async def _deliver(self, line: Line) -> bool:
        try:
            await self.lines.send(line)
        except ConnectionError:
            return False  # the client writes it again when it is connected
        while (answer := await self.lines.receive()) is not None:
            self._take(answer)
            if answer["type"] in {"received", "refused"} and answer["id"] == line["id"]:
                self.delivered += filter(None, [str(answer.get("toast", ""))])
                return answer["type"] == "received"
        return False


def _standing(item: Line) -> Standing:
    """Read an item as a client shows it."""
    if item["kind"] != "card":
        receipts = cast("list[str]", item.get("receipts", []))
        return Standing(text=str(item["text"]), receipts=tuple(receipts))
    return local_card(item)


@asynccontextmanager
async def terminal_platform(directory: Path) -> AsyncGenerator[TerminalHarness]:
    async with control_socket(directory) as control:
        context = terminal_context(control)
        clock = cast("ManualClock", context.clock)
        yield TerminalHarness(directory=directory, context=context, clock=clock)


TERMINAL = Adapter(
    name="terminal",
    capabilities=CAPABLE,
    platform=terminal_platform,
    carries_files=False,
    is_local=True,
)
