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
from typing import Literal, cast

from tests.fakes.tcp_server import CuttingServer
from zeroclaw.value import Value

Phase = Literal["streaming", "confirming", "executing", "delivering"]
SENDS = ("send", "ask")
PHASES: tuple[Phase, ...] = ("streaming", "confirming", "executing", "delivering")


class Instant(Value):
    """One of them.

    Attributes:
        what: `commit`, `call`, `model`, `tool`, or `api` for a call as the platform sees it.
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


class Put(Value):
    """A row that a commit put; `place` is an address key, empty for none."""

    kind: str
    key: str
    state: str
    place: str


@dataclass(eq=False, kw_only=True)
class Progress:
    """What is under way now, as far as commits and calls tell.

    Attributes:
        streams: Answers that the model is writing.
        asked: Questions that wait.
        running: Calls that run, by conversation.
        finals: Answers on their way.
        begun: Sends and cards that the platform has not answered, by chat.
        answered: Those that it has, and that are not recorded, by chat.
        chats: Where the conversations are, by their messages.
    """

    streams: int = 0
    asked: set[str] = field(default_factory=set[str])
    running: Counter[str] = field(default_factory=Counter[str])
    finals: set[str] = field(default_factory=set[str])
    begun: Counter[str] = field(default_factory=Counter[str])
    answered: Counter[str] = field(default_factory=Counter[str])
    chats: dict[str, str] = field(default_factory=dict[str, str])

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

    @property
    def unrecorded(self) -> int:
        """How many sends and cards nothing tells of yet."""
        return self.begun.total() + self.answered.total()

    def take(self, instant: Instant, rows: tuple[Put, ...]) -> None:
        """Follow what a commit made durable, or what a call began."""
        # Before the commit too: the daemon may be killed before it tells that this one is durable.
        for row in rows:
            if row.kind == "inbox" and row.place:
                self.chats[instant.where] = row.place
        match instant.what, instant.when:
            case "call", "before" if instant.name in SENDS:
                self.begun[instant.where] += 1
            case "call", "after" if instant.name in SENDS:
                self.begun[instant.where] -= 1
                self.answered[instant.where] += 1
            case "call", "failed" if instant.name in SENDS:
                self.begun[instant.where] -= 1
            case "commit", "after":
                self._committed(instant, rows)
            case _:
                pass

    def _committed(self, instant: Instant, rows: tuple[Put, ...]) -> None:
        for row in rows:
            if row.kind == "approval":
                waits = row.state == "pending"
                self.asked = self.asked | {row.key} if waits else self.asked - {row.key}
            ended = row.kind == "outbox" and row.state in ("delivered", "refused")
            if ended:
                self.finals.discard(row.key)
            # A card's first commit puts its send, which waits; another records it.
            if ended or (row.kind in ("outbox", "turn") and instant.name == "ref_known"):
                place = row.place if row.kind == "outbox" else self.chats[instant.where]
                chat = place.split("/")[2]
                self.answered[chat] = max(0, self.answered[chat] - 1)
        match instant.name:
            case "call_started":
                self.running[instant.where] += 1
            case "call_finished":
                self.running[instant.where] = max(0, self.running[instant.where] - 1)
            case "finished":
                self.running[instant.where] = 0
                # The turn's end puts its final first; what it settles comes after.
                self.finals.update([row.key for row in rows if row.kind == "outbox"][:1])
            case _:
                pass


class Instants(CuttingServer):
    """Where the daemon asks.

    Attributes:
        kill: Kills the daemon and returns when it is dead; set before the daemon starts.
        ends_at: Asked at each instant whether it is the last one; None lets all pass.
        last: Where the daemon was killed, None while it lives.
        phases: What was under way then.
        unrecorded: How many sends were begun and not recorded when it was killed, in all its lives.
        seen: All instants of this life.
        begun: How many commits and calls of this life have not come to their end.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each instant."""
        self._changed = changed
        self.kill: Callable[[], Awaitable[None]] | None = None
        self.ends_at: Callable[[Instant], bool] | None = None
        self.last: Instant | None = None
        self.phases: frozenset[Phase] = frozenset()
        self.progress = Progress()
        self.seen: list[Instant] = []
        self.begun = 0
        self.unrecorded = 0

    def begin(self, *, asked: Iterable[str] = (), finals: Iterable[str] = ()) -> None:
        """Begin another life with what the store says is under way."""
        self.last = None
        self.phases = frozenset()
        self.progress = Progress(
            streams=self.progress.streams,
            asked=set(asked),
            finals=set(finals),
            chats=self.progress.chats,
        )
        self.seen = []
        self.begun = 0

    async def passed(self, instant: Instant, rows: tuple[Put, ...] = ()) -> bool:
        """Let an instant pass, or end the daemon there and return false."""
        if self.last is not None:
            return False
        self.seen.append(instant)
        self.begun += {"before": 1, "after": -1, "failed": -1}.get(instant.when, 0)
        self.progress.take(instant, rows)
        if self.ends_at is not None and self.ends_at(instant):
            self.last, self.phases = instant, self.progress.phases
            self.unrecorded += self.progress.unrecorded
            assert self.kill is not None
            await self.kill()
            self._changed()
            return False
        self._changed()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (said := await reader.readline()).endswith(b"\n"):
            if not await self.passed(*_read(said)):
                return
            writer.write(b".")


def _read(said: bytes) -> tuple[Instant, tuple[Put, ...]]:
    told = cast("dict[str, object]", json.loads(said))
    instant = Instant(
        what=str(told["what"]),
        name=str(told["name"]),
        when=str(told["when"]),
        where=str(told["where"]),
    )
    rows = cast("list[tuple[str, str, str, str]]", told.get("rows", []))
    return instant, tuple(
        Put(kind=kind, key=key, state=state, place=place) for kind, key, state, place in rows
    )


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


def later(
    first: Callable[[Instant], bool], then: Callable[[Instant], bool]
) -> Callable[[Instant], bool]:
    """Return what ends the daemon by `then`, which sees only what comes after `first`."""
    is_later = False

    def ends(instant: Instant) -> bool:
        nonlocal is_later
        if is_later:
            return then(instant)
        is_later = first(instant)
        return False

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
