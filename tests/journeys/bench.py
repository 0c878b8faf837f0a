"""The tool bench: a server in the test that decides the results of a journey's tools.

The tools run inside the daemon (`tests/journeys/bench_tools.py`) and ask this server; so the test
counts every run, can hold one in the middle, and knows of each run even when the daemon is killed.
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
    """The run raises: kind `failed` is the contract's error, any other a fault in the tool."""

    kind: str
    text: str


@dataclass(eq=False, kw_only=True)
class Holds:
    """The run waits until it is released, then returns `text`."""

    text: str = "held, then done"
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the runs continue."""
        self._released.set()

    async def reached(self) -> None:
        """Wait until a run is held."""
        await self._reached.wait()

    async def stand(self) -> None:
        """Hold a run; called by the bench."""
        self._reached.set()
        await self._released.wait()


Reply = Returns | Raises | Holds


@dataclass(eq=False, kw_only=True)
class Run:
    """One run of a tool.

    Attributes:
        ended: The bench answered it, or its connection was closed.
    """

    tool: str
    what: str
    arguments: Json
    ended: bool = False


class Bench(CuttingServer):
    """The server; without a planned reply a tool returns its name and argument.

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
        """Plan the replies to the next runs of a tool, in order."""
        self._plans.setdefault(tool, deque()).extend(replies)

    def ran(self, tool: str = "") -> list[str]:
        """Return the argument `what` of each run, of one tool or all."""
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
                    await _hold(reply, reader)
                    answer = {"text": reply.text}
            writer.write(line(answer))
            await writer.drain()
        finally:
            run.ended = True


async def _hold(reply: Holds, reader: asyncio.StreamReader) -> None:
    """Hold a run until it is released, or until the tool disconnects."""

    async def disconnected() -> None:
        with suppress(OSError):
            await reader.read(1)

    async with asyncio.TaskGroup() as group:
        release_wait = group.create_task(reply.stand())
        disconnect_wait = group.create_task(disconnected())
        release_wait.add_done_callback(lambda _: disconnect_wait.cancel())
        disconnect_wait.add_done_callback(lambda _: release_wait.cancel())
