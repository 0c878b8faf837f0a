"""The instants at which a daemon can be killed, counted in one place.

A commit about to be made, a commit made, a call to the platform begun or answered: the daemon
(`tests/faults/killed_daemon.py`) tells of each and stands still. A piece of the model's answer, a
tool that began: the test tells of those itself. Who is asked at each instant decides whether the
daemon dies there, by a SIGKILL, or goes on. What each conversation is in the middle of is followed
too, so that a kill can be counted where it hit.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, Self, cast

Phase = Literal["streaming", "confirming", "executing", "delivering"]
PHASES: tuple[Phase, ...] = ("streaming", "confirming", "executing", "delivering")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One of them.

    Attributes:
        what: `commit`, `call`, `model` or `tool`.
        name: The durable point, or the call.
        when: `before`, then `after` or `failed`; `during` for what the test sees by itself.
        where: The conversation of a commit, the chat of a call.
    """

    what: str
    name: str
    when: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.when} {self.what} {self.name} {self.where}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The rows that a commit put: kind, key, state."""

    rows: tuple[tuple[str, str, str], ...] = ()


@dataclass(eq=False, kw_only=True)
class Progress:
    """What is under way now, as far as commits tell."""

    streams: int = 0
    asked: set[str] = field(default_factory=set[str])
    running: Counter[str] = field(default_factory=Counter[str])
    finals: set[str] = field(default_factory=set[str])

    @property
    def phases(self) -> frozenset[Phase]:
        """What some conversation is in the middle of."""
        found: dict[Phase, bool] = {
            "streaming": self.streams > 0,
            "confirming": bool(self.asked),
            "executing": any(self.running.values()),
            "delivering": bool(self.finals),
        }
        return frozenset(phase for phase, holds in found.items() if holds)

    def take(self, instant: Instant, changed: Changed) -> None:
        """Follow a commit that was made."""
        for kind, key, state in changed.rows:
            if kind == "approval":
                self.asked = self.asked | {key} if state == "pending" else self.asked - {key}
            if kind == "outbox" and state in ("delivered", "refused"):
                self.finals.discard(key)
        match instant.name:
            case "call_started":
                self.running[instant.where] += 1
            case "call_finished":
                self.running[instant.where] = max(0, self.running[instant.where] - 1)
            case "finished":
                self.running[instant.where] = 0
                outbox = (row for row in changed.rows if row[0] == "outbox")
                # The turn's end puts its final first; what it settles comes after.
                self.finals.update(key for _, key, _ in list(outbox)[:1])
            case _:
                pass


class Instants:
    """Where the daemon asks.

    Attributes:
        kill: Kills the daemon and returns when it is dead; set before the daemon starts.
        ends_at: Asked at each instant whether it is the last one; None lets all pass.
        last: Where the daemon was killed, None while it lives.
        phases: What was under way then.
        seen: All instants of this life.
        begun: How many commits and calls of this life have not come to their end.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each instant."""
        self._changed = changed
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._closed = asyncio.Event()
        self.port = 0
        self.kill: Callable[[], Awaitable[None]] | None = None
        self.ends_at: Callable[[Instant], bool] | None = None
        self.last: Instant | None = None
        self.phases: frozenset[Phase] = frozenset()
        self.progress = Progress()
        self.seen: list[Instant] = []
        self.begun = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task, writer in self._open.items():
            writer.transport.abort()
            task.cancel()
        while self._open:
            await self._closed.wait()
        await self._server.wait_closed()

    def begin(self, *, asked: Iterable[str] = (), finals: Iterable[str] = ()) -> None:
        """Begin another life with what the store says is under way."""
        self.last = None
        self.phases = frozenset()
        self.progress = Progress(
            streams=self.progress.streams, asked=set(asked), finals=set(finals)
        )
        self.seen = []
        self.begun = 0

    async def passed(self, instant: Instant, changed: Changed | None = None) -> bool:
        """Let an instant pass, or end the daemon there and return false."""
        if self.last is not None:
            return False
        self.seen.append(instant)
        self.begun += {"before": 1, "after": -1, "failed": -1}.get(instant.when, 0)
        if instant.what == "commit" and instant.when == "after" and changed is not None:
            self.progress.take(instant, changed)
        if self.ends_at is not None and self.ends_at(instant):
            self.last, self.phases = instant, self.progress.phases
            assert self.kill is not None
            await self.kill()
            self._changed()
            return False
        self._changed()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while said := await reader.readline():
                instant, changed = _read(said)
                if not await self.passed(instant, changed):
                    return
                writer.write(b".")
        except (ConnectionError, asyncio.CancelledError):
            # A cancelled connection is how this closes; a raising one would be reported.
            return
        finally:
            writer.close()
            del self._open[task]
            self._closed.set()


def _read(said: bytes) -> tuple[Instant, Changed]:
    told = cast("dict[str, object]", json.loads(said))
    instant = Instant(
        what=str(told["what"]),
        name=str(told["name"]),
        when=str(told["when"]),
        where=str(told["where"]),
    )
    rows = cast("list[tuple[str, str, str]]", told.get("rows", []))
    return instant, Changed(rows=tuple((kind, key, state) for kind, key, state in rows))


def nth(what: str, name: str, when: str, number: int = 1) -> Callable[[Instant], bool]:
    """Return what ends the daemon at the n-th instant of a kind."""
    left = number

    def ends(instant: Instant) -> bool:
        nonlocal left
        if (instant.what, instant.name, instant.when) != (what, name, when):
            return False
        left -= 1
        return left == 0

    return ends


def nth_within(
    progress: Callable[[], frozenset[Phase]], phase: Phase | None, number: int
) -> Callable[[Instant], bool]:
    """Return what ends the daemon at the n-th instant of a phase; None for any instant."""
    left = number

    def ends(instant: Instant) -> bool:
        nonlocal left
        left -= phase is None or phase in progress()
        return left == 0

    return ends
