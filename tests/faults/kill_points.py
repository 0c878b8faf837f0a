"""The points at which a test can kill the daemon.

The daemon (`tests/faults/killed_daemon.py`) reports each commit and each call to the platform, before
and after, and waits. The test itself reports each piece of the model's answer and each tool that began.
At each point a condition of the test decides whether the daemon dies there, by SIGKILL, or continues.
The test also follows the phase of each conversation, so that kills can be counted per phase.
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


class KillPoint(Value):
    """One point at which the daemon can be killed.

    Attributes:
        what: `commit`, `call`, `model`, `tool`, or `api` for a call as the platform sees it.
        name: The durable point, or the call.
        when: `before`, then `after` or `failed`; `during` for points that the test reports.
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
    """The work in progress, according to commits and calls.

    Attributes:
        streams: Answers that the model is writing.
        approvals: The pending approval requests.
        running: The number of running calls, by conversation.
        finals: The outbox rows of answers that are being delivered.
        unfinished: The number of sends and cards without an answer of the platform, by chat.
        unrecorded_sends: The number of answered ones that are not recorded, by chat.
        chats: The address keys of conversations.
    """

    streams: int = 0
    approvals: set[str] = field(default_factory=set[str])
    running: Counter[str] = field(default_factory=Counter[str])
    finals: set[str] = field(default_factory=set[str])
    unfinished: Counter[str] = field(default_factory=Counter[str])
    unrecorded_sends: Counter[str] = field(default_factory=Counter[str])
    chats: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def phases(self) -> frozenset[Phase]:
        """The phases that some conversation is in."""
        found: dict[Phase, bool] = {
            "streaming": self.streams > 0,
            "confirming": bool(self.approvals),
            "executing": any(self.running.values()),
            "delivering": bool(self.finals),
        }
        return frozenset(phase for phase, is_reached in found.items() if is_reached)

    @property
    def unrecorded(self) -> int:
        """The number of sends and cards that are not on record yet."""
        return self.unfinished.total() + self.unrecorded_sends.total()

    def follow(self, point: KillPoint, rows: tuple[Put, ...]) -> None:
        """Update the progress by one commit or call."""
        # Before the commit too: the daemon may be killed before it reports that the commit is durable.
        for row in rows:
            if row.kind == "inbox" and row.place:
                self.chats[point.where] = row.place
        match point.what, point.when:
            case "call", "before" if point.name in SENDS:
                self.unfinished[point.where] += 1
            case "call", "after" if point.name in SENDS:
                self.unfinished[point.where] -= 1
                self.unrecorded_sends[point.where] += 1
            case "call", "failed" if point.name in SENDS:
                self.unfinished[point.where] -= 1
            case "commit", "after":
                self._committed(point, rows)
            case _:
                pass

    def _committed(self, point: KillPoint, rows: tuple[Put, ...]) -> None:
        for row in rows:
            if row.kind == "approval":
                waits = row.state == "pending"
                self.approvals = self.approvals | {row.key} if waits else self.approvals - {row.key}
            ended = row.kind == "outbox" and row.state in ("delivered", "refused")
            if ended:
                self.finals.discard(row.key)
            # A card's first commit puts its send, which waits; another records it.
            if ended or (row.kind in ("outbox", "turn") and point.name == "ref_known"):
                place = row.place if row.kind == "outbox" else self.chats[point.where]
                chat = place.split("/")[2]
                self.unrecorded_sends[chat] = max(0, self.unrecorded_sends[chat] - 1)
        match point.name:
            case "call_started":
                self.running[point.where] += 1
            case "call_finished":
                self.running[point.where] = max(0, self.running[point.where] - 1)
            case "finished":
                self.running[point.where] = 0
                # The turn's end puts its final first; what it settles comes after.
                self.finals.update([row.key for row in rows if row.kind == "outbox"][:1])
            case _:
                pass


class KillPoints(CuttingServer):
    """The server to which the daemon reports its kill points.

    Attributes:
        kill: Kills the daemon and returns when it is dead; set before the daemon starts.
        kills_at: Called at each point; true kills the daemon there. None never kills it.
        killed_at: The point at which the daemon was killed, None while it lives.
        phases: The phases at that point.
        unrecorded: The number of sends that kills left unrecorded, in all its lives.
        seen: All points of this life.
        unfinished: The number of commits and calls in progress in this life.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each point."""
        self._changed = changed
        self.kill: Callable[[], Awaitable[None]] | None = None
        self.kills_at: Callable[[KillPoint], bool] | None = None
        self.killed_at: KillPoint | None = None
        self.phases: frozenset[Phase] = frozenset()
        self.progress = Progress()
        self.seen: list[KillPoint] = []
        self.unfinished = 0
        self.unrecorded = 0

    def begin(self, *, approvals: Iterable[str] = (), finals: Iterable[str] = ()) -> None:
        """Begin another life with the pending work of the store."""
        self.killed_at = None
        self.phases = frozenset()
        self.progress = Progress(
            streams=self.progress.streams,
            approvals=set(approvals),
            finals=set(finals),
            chats=self.progress.chats,
        )
        self.seen = []
        self.unfinished = 0

    async def reach(self, point: KillPoint, rows: tuple[Put, ...] = ()) -> bool:
        """Let the daemon continue, or kill it and return false."""
        if self.killed_at is not None:
            return False
        self.seen.append(point)
        self.unfinished += {"before": 1, "after": -1, "failed": -1}.get(point.when, 0)
        self.progress.follow(point, rows)
        if self.kills_at is not None and self.kills_at(point):
            self.killed_at, self.phases = point, self.progress.phases
            self.unrecorded += self.progress.unrecorded
            assert self.kill is not None
            await self.kill()
            self._changed()
            return False
        self._changed()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (line := await reader.readline()).endswith(b"\n"):
            if not await self.reach(*_parse(line)):
                return
            writer.write(b".")


def _parse(line: bytes) -> tuple[KillPoint, tuple[Put, ...]]:
    fields = cast("dict[str, object]", json.loads(line))
    point = KillPoint(
        what=str(fields["what"]),
        name=str(fields["name"]),
        when=str(fields["when"]),
        where=str(fields["where"]),
    )
    rows = cast("list[tuple[str, str, str, str]]", fields.get("rows", []))
    return point, tuple(
        Put(kind=kind, key=key, state=state, place=place) for kind, key, state, place in rows
    )


def nth(what: str, name: str, when: str, number: int = 1) -> Callable[[KillPoint], bool]:
    """Return a condition that kills the daemon at the n-th point of a kind."""
    remaining = number

    def ends(point: KillPoint) -> bool:
        nonlocal remaining
        if (point.what, point.name, point.when) != (what, name, when):
            return False
        remaining -= 1
        return remaining == 0

    return ends


def later(
    first: Callable[[KillPoint], bool], then: Callable[[KillPoint], bool]
) -> Callable[[KillPoint], bool]:
    """Return a condition that asks `then` only at points after the one that `first` accepts."""
    is_later = False

    def ends(point: KillPoint) -> bool:
        nonlocal is_later
        if is_later:
            return then(point)
        is_later = first(point)
        return False

    return ends


def nth_within(
    progress: Callable[[], frozenset[Phase]], phase: Phase | None, number: int
) -> Callable[[KillPoint], bool]:
    """Return a condition that kills the daemon at the n-th point of a phase; None for any phase."""
    remaining = number

    def ends(point: KillPoint) -> bool:
        nonlocal remaining
        remaining -= phase is None or phase in progress()
        return remaining == 0

    return ends
