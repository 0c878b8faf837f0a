"""The daemon's own audit chain: the heads of the conversations' chains, and what was decided.

If a conversation's chain is shorter than its newest anchor, a stranger cut it. A cut by retention
is recorded in the same commit, so that the rest still verifies. So is a decision about the daemon
or a person, with its row. Each append names the entry that it follows, because any task may write
one; a writer who was second plans again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from zeroclaw.clock import Clock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate import audit
from zeroclaw.store import (
    Append,
    Commit,
    Delete,
    DurablePoint,
    LogEntry,
    LogKind,
    Logs,
    Put,
    Reads,
    RowKind,
    Store,
    Trim,
    Write,
    read_all,
    transact,
)
from zeroclaw.value import Struct, field

N = TypeVar("N", audit.Anchor, audit.Cut)

STREAM = "daemon"
EVERY_S = 300.0


class Anchors(Struct, eq=False):
    """Maintains the daemon's chain; one for the whole daemon.

    The anchors of earlier processes are read when they are first needed.
    """

    store: Store
    clock: Clock
    _known: dict[str, int] | None = None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __len__(self) -> int:
        """Return how many chains have an anchor that this process knows."""
        return len(self._known or ())

    async def keep(self) -> None:
        """Anchor new heads from time to time, until cancelled."""
        while True:
            await self.clock.sleep(EVERY_S)
            await self.anchor()

    async def anchor(self) -> None:
        """Anchor every head that moved since the last time, in one commit."""
        # Two calls at once would both note the same heads.
        async with self._one_at_a_time:
            notes: list[audit.Anchor] = []
            streams = await self.store.streams(LogKind.AUDIT)
            noted = await self._noted() if self._known is None else self._known
            # Chains that retention removed entirely are forgotten here too.
            self._known = known = {one: noted[one] for one in streams if one in noted}
            for stream in streams:
                last = await self.store.last(LogKind.AUDIT, stream)
                if stream == STREAM or last is None or known.get(stream) == last.sequence:
                    continue
                # The check of a damaged chain shows it, and the others are anchored.
                with suppress(RecordUnreadable):
                    notes.append(self._note(audit.Anchor, stream, last))
            if notes:
                await self._write(*notes)
                known.update({note.conversation: note.sequence for note in notes})

    async def cut(self, stream: str, last: LogEntry, writes: tuple[Write, ...] = ()) -> None:
        """Remove a conversation's audit up to and including an entry; `writes` join the commit."""
        async with self._one_at_a_time:
            gone = Trim(log=LogKind.AUDIT, stream=stream, before=last.sequence + 1)
            note = self._note(audit.Cut, stream, last)
            await self._write(note, more=(gone, *writes))

    async def cut_own(self, before: datetime) -> bool:
        """Remove entries of the daemon's own chain older than `before`; return whether any were."""
        async with self._one_at_a_time:
            first = await self.store.read(LogKind.AUDIT, STREAM, limit=1)
            if not first or audit.read(first[0].body).at >= before:
                return False  # the usual case, without reading the rest of a long chain
            chain = [entry async for entry in read_all(self.store, LogKind.AUDIT, STREAM)]
            last = await asyncio.to_thread(audit.cut_point, chain, before)
            if last is None:
                return False
            needed = await asyncio.to_thread(
                audit.carried,
                [entry.body for entry in chain if entry.sequence <= last.sequence],
                [entry.body for entry in chain if entry.sequence > last.sequence],
                frozenset(await self.store.streams(LogKind.AUDIT)) - {STREAM},
            )
            note = self._note(audit.Cut, STREAM, last)
            gone = Trim(log=LogKind.AUDIT, stream=STREAM, before=last.sequence + 1)
            await self._write(*needed, note, more=(gone,))
            return True

    async def _write(self, *notes: audit.Anchor | audit.Cut, more: tuple[Write, ...] = ()) -> None:
        """Commit notes at the end of the daemon's chain, together with other writes."""

        async def planned(_reads: Reads) -> tuple[Commit, None]:
            writes = (*await _appended(self.store, notes), *more)
            return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes), None

        await transact(self.store, planned)

    def _note(self, kind: type[N], stream: str, last: LogEntry) -> N:
        return kind(
            conversation=ConversationId(stream),
            sequence=last.sequence,
            head=audit.head_of(last.body),
            at=self.clock.now(),
        )

    async def _noted(self) -> dict[str, int]:
        """Return the anchors of earlier processes, so that a start does not write them again."""
        found: dict[str, int] = {}
        async for entry in read_all(self.store, LogKind.AUDIT, STREAM):
            # Verification of the chain reports entries that can't be read.
            with suppress(RecordUnreadable):
                note = audit.read(entry.body)
                if isinstance(note, audit.Anchor):
                    found[note.conversation] = note.sequence
        return found


_DECISIONS = {
    (RowKind.SWITCH, "on"): audit.Kind.HALTED,
    (RowKind.SWITCH, "off"): audit.Kind.RESUMED,
    (RowKind.PERSON, "admitted"): audit.Kind.PERSON_ADMITTED,
    (RowKind.PERSON, "revoked"): audit.Kind.PERSON_REVOKED,
}
"""The decisions on record, by the kind and the state of their rows."""


async def on_record(
    logs: Logs, writes: tuple[Write, ...], *, by: str, channel: str, at: datetime
) -> tuple[Write, ...]:
    """Return writes, with the entries about the decisions that are among them.

    Args:
        logs: The stored chains.
        writes: What is about to be committed.
        by: Who decided, as `Principal.id`.
        channel: Where they did.
        at: When.
    """
    made: list[audit.Entry] = []
    for write in writes:
        match write:
            case Put(kind=kind, state=state) if (kind, state) in _DECISIONS:
                decided = _DECISIONS[kind, state]
            case Delete(kind=RowKind.PERSON):
                decided = audit.Kind.PERSON_ADMITTED  # the configuration lets them in again
            case _:
                continue
        whom = f"{write.key} " if write.kind is RowKind.PERSON else ""
        made.append(audit.Entry(kind=decided, at=at, by=by, detail=f"{whom}in {channel}"))
    return (*writes, *await _appended(logs, made))


async def _appended(logs: Logs, entries: Sequence[audit.Written]) -> tuple[Write, ...]:
    """Return the writes that append to the daemon's chain, unless another writer does so first."""
    if not entries:
        return ()
    last = await logs.last(LogKind.AUDIT, STREAM)
    after, head = 0 if last is None else last.sequence, audit.head_after(last)
    writes: list[Write] = []
    for number, entry in enumerate(entries, after):
        body, head = audit.link(head, entry)
        writes.append(Append(log=LogKind.AUDIT, stream=STREAM, body=body, after=number))
    return tuple(writes)


SLICE = 200
"""Entries hashed at once, which takes some 10 ms of CPU time."""
TRIES = 3
"""Attempts to check a chain whose oldest entries are pruned during the check."""
Marks = dict[str, list[audit.Anchor | audit.Cut]]
"""What the daemon's chain says of other chains, by their names."""
OWN_DAMAGED = audit.Broken(at=0, why="the daemon's own chain can't be read")
"""The result for every other chain, because their anchors are in this one."""


async def _go_on(_checked: int) -> None:
    """Pause no longer than the hashing in a thread does by itself."""


async def verify_streams(
    logs: Logs, streams: Sequence[str]
) -> tuple[audit.Intact | audit.Broken, ...]:
    """Verify several chains, and read the daemon's chain once for all of them."""
    marks = await _marks(logs, streams)
    return tuple([await verify_stream(logs, one, marks=marks) for one in streams])


async def verify_stream(
    logs: Logs,
    stream: str,
    pause: Callable[[int], Awaitable[None]] = _go_on,
    *,
    marks: Marks | None = None,
) -> audit.Intact | audit.Broken:
    """Verify a stored chain against the daemon's chain; `STREAM` for the daemon's own.

    It is read and hashed in slices, the hashing in a thread, so that a long chain does not delay
    answers (P9). Memory holds one slice and the state of `gate.audit.Walk`.

    Args:
        logs: The stored chains.
        stream: The chain.
        pause: Awaited between two slices, with the number of the last entry that was checked.
        marks: What the daemon's chain said of it a while ago; read now if they do not fit.
    """
    verdict: audit.Intact | audit.Broken = OWN_DAMAGED
    for _ in range(TRIES):
        first = await logs.read(LogKind.AUDIT, stream, limit=1)
        # Read the anchors first: later ones may be about entries that this check does not read.
        known = await _marks(logs, (stream,)) if marks is None else marks
        if known is None:
            return OWN_DAMAGED
        walk, after = audit.begin(known[stream], first[0].sequence - 1 if first else None), 0
        while page := await logs.read(LogKind.AUDIT, stream, after=after, limit=SLICE):
            after = page[-1].sequence
            await asyncio.to_thread(audit.take, walk, [entry.body for entry in page])
            if walk.broken or len(page) < SLICE:
                break
            await pause(after)
        verdict = audit.end(walk)
        now_first = await logs.read(LogKind.AUDIT, stream, limit=1)
        if isinstance(verdict, audit.Intact) or (now_first == first and marks is None):
            break
        marks = None
    return verdict


async def _marks(logs: Logs, chains: Sequence[str]) -> Marks | None:
    """Return the marks of chains in the daemon's chain; None if that can't be read."""
    marks: Marks = {one: [] for one in chains}
    after = 0
    while page := await logs.read(LogKind.AUDIT, STREAM, after=after, limit=SLICE):
        after = page[-1].sequence
        try:
            found = await asyncio.to_thread(audit.marks_of, [one.body for one in page], marks)
        except RecordUnreadable:
            return None
        for one in found:
            marks[one.conversation].append(one)
    return marks
