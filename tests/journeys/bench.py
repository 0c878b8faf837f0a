"""The workbench: a server in the test that says what the tools of a journey return.

The tools run inside the daemon (`tests/journeys/bench_tools.py`) and ask here; so the test counts
every run, holds one in the middle, and a run that began is known even when the daemon is killed.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from zeroclaw_test_platform.wire import Json, is_object, line, read, text_of

from tests.fakes.tcp_server import CuttingServer
from zeroclaw.value import Value


class Returns(Value):
    """The run returns a text."""

    text: str
    is_error: bool = False


class Raises(Value):
    """The run raises: `failed` is the contract's error, anything else a fault in the tool."""

    kind: str
    text: str


@dataclass(eq=False, kw_only=True)
class Holds:
    """The run stands until it is released, then returns `text`."""

    text: str = "held, then done"
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _at: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the runs go on."""
        self._open.set()

    async def reached(self) -> None:
        """Wait until a run stands here."""
        await self._at.wait()

    async def stand(self) -> None:
        """Hold a run; for the bench."""
        self._at.set()
        await self._open.wait()


Reply = Returns | Raises | Holds


@dataclass(eq=False, kw_only=True)
class Run:
    """One run of a tool.

    Attributes:
        ended: It was answered, or its connection went away.
    """

    tool: str
    what: str
    arguments: Json
    ended: bool = False


class Bench(CuttingServer):
    """The server; without a plan a tool returns what it was asked for.

    Attributes:
        runs: Every run that began, in order.
    """

    line_bytes = 128 * 1024 * 1024

    def __init__(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a run begins or ends."""
        self._changed = changed
        self._plans: dict[str, deque[Reply]] = {}
        self.runs: list[Run] = []

    def will(self, tool: str, *replies: Reply) -> None:
        """Say what the next runs of a tool come to, in order."""
        self._plans.setdefault(tool, deque()).extend(replies)

    def ran(self, tool: str = "") -> list[str]:
        """Return what was asked of a tool, run by run."""
        return [run.what for run in self.runs if tool in ("", run.tool)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read(reader)
            if request is not None:
                await self._run(request, reader, writer)
        finally:
            self._changed()

    async def _run(
        self, request: Json, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        arguments = request.get("arguments")
        assert is_object(arguments)
        tool, what = text_of(request, "tool"), text_of(arguments, "what")
        run = Run(tool=tool, what=what, arguments=arguments)
        self.runs.append(run)
        self._changed()
        planned = self._plans.get(tool)
        reply = planned.popleft() if planned else Returns(text=f"{tool}: {what}")
        try:
            match reply:
                case Returns():
                    answer = {"text": reply.text, "is_error": reply.is_error}
                case Raises():
                    answer = {"raise": reply.kind, "text": reply.text}
                case Holds():
                    await _held(reply, reader)
                    answer = {"text": reply.text}
            writer.write(line(answer))
            await writer.drain()
        finally:
            run.ended = True


async def _held(reply: Holds, reader: asyncio.StreamReader) -> None:
    """Stand until released or until the tool has gone away."""

    async def gone() -> None:
        with suppress(OSError):
            await reader.read(1)

    async with asyncio.TaskGroup() as group:
        standing = group.create_task(reply.stand())
        going = group.create_task(gone())
        standing.add_done_callback(lambda _: going.cancel())
        going.add_done_callback(lambda _: standing.cancel())
