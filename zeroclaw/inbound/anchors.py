"""The daemon's own audit chain: anchors of the conversations' chains, cuts, and decisions.

If a conversation's chain is shorter than its newest anchor, it has been tampered with. Retention
records a cut in the commit that makes it, so that the rest still verifies. A decision about the
daemon or a person is recorded with its row. Each append names the entry that it follows, because
any task may append; the second of two writers plans again.
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
    _anchored: dict[str, int] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def keep(self) -> None:
        """Anchor new heads every `EVERY_S`, until cancelled."""
        while True:
            await self.clock.sleep(EVERY_S)
            await self.anchor()

    async def anchor(self) -> None:
        """Anchor every head that moved since its last anchor, in one commit."""
        # Two calls at once would anchor the same heads twice.
        async with self._lock:
            notes: list[audit.Anchor] = []
            streams = await self.store.streams(LogKind.AUDIT)
            noted = await self._stored_anchors() if self._anchored is None else self._anchored
            # Without the chains that retention has removed entirely.
            self._anchored = anchored = {chain: noted[chain] for chain in streams if chain in noted}
            for stream in streams:
                last = await self.store.last(LogKind.AUDIT, stream)
                if stream == STREAM or last is None or anchored.get(stream) == last.sequence:
                    continue
                # Verification reports a damaged chain; the others are anchored all the same.
                with suppress(RecordUnreadable):
                    notes.append(self._note(audit.Anchor, stream, last))
            if notes:
                await self._write(*notes)
                anchored.update({note.conversation: note.sequence for note in notes})

    async def cut(self, stream: str, last: LogEntry, writes: tuple[Write, ...] = ()) -> None:
        """Remove a conversation's audit entries up to `last`, in one commit with `writes`."""
        async with self._lock:
            trim = Trim(log=LogKind.AUDIT, stream=stream, before=last.sequence + 1)
            note = self._note(audit.Cut, stream, last)
            await self._write(note, rest=(trim, *writes))

    async def cut_own(self, before: datetime) -> bool:
        """Remove entries of the daemon's own chain older than `before`; return whether any were."""
        async with self._lock:
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
            trim = Trim(log=LogKind.AUDIT, stream=STREAM, before=last.sequence + 1)
            await self._write(*needed, note, rest=(trim,))
            return True

    async def _write(self, *notes: audit.Anchor | audit.Cut, rest: tuple[Write, ...] = ()) -> None:
        """Append notes to the daemon's chain, in one commit with other writes."""

        async def planned(_reads: Reads) -> tuple[Commit, None]:
            writes = (*await _appended(self.store, notes), *rest)
            return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes), None

        await transact(self.store, planned)

    def _note(self, kind: type[N], stream: str, last: LogEntry) -> N:
        return kind(
            conversation=ConversationId(stream),
            sequence=last.sequence,
            head=audit.head_of(last.body),
            at=self.clock.now(),
        )

    async def _stored_anchors(self) -> dict[str, int]:
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
"""The audited decisions, by the kind and the state of their rows."""


async def add_audit(
    logs: Logs, writes: tuple[Write, ...], *, by: str, channel: str, at: datetime
) -> tuple[Write, ...]:
    """Return writes, with the audit entries of the decisions among them.

    Args:
        logs: The stored chains.
        writes: The writes to commit.
        by: The person who decided, as `Principal.id`.
        channel: The channel on which they did.
        at: When.
    """
    entries: list[audit.Entry] = []
    for write in writes:
        match write:
            case Put(kind=kind, state=state) if (kind, state) in _DECISIONS:
                decided = _DECISIONS[kind, state]
            case Delete(kind=RowKind.PERSON):
                decided = audit.Kind.PERSON_ADMITTED  # the configuration admits them again
            case _:
                continue
        person = f"{write.key} " if write.kind is RowKind.PERSON else ""
        entries.append(audit.Entry(kind=decided, at=at, by=by, detail=f"{person}in {channel}"))
    return (*writes, *await _appended(logs, entries))


async def _appended(logs: Logs, entries: Sequence[audit.Written]) -> tuple[Write, ...]:
    """Return the writes that append to the daemon's chain; they fail if another writer is first."""
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
"""The anchors and cuts of other chains in the daemon's chain, by their names."""
DAEMON_DAMAGED = audit.Broken(at=0, reason="the daemon's own chain can't be read")
"""The verdict on every other chain, because their anchors are in this one."""


async def _no_pause(_checked: int) -> None:
    """Do not pause: hashing in a thread already leaves time for other tasks."""


async def verify_streams(
    logs: Logs, streams: Sequence[str]
) -> tuple[audit.Intact | audit.Broken, ...]:
    """Verify several chains, and read the daemon's chain once for all of them."""
    marks = await _marks(logs, streams)
    return tuple([await verify_stream(logs, stream, marks=marks) for stream in streams])


async def verify_stream(
    logs: Logs,
    stream: str,
    pause: Callable[[int], Awaitable[None]] = _no_pause,
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
        marks: Marks that the caller has read; read again here if the verdict is bad.
    """
    verdict: audit.Intact | audit.Broken = DAEMON_DAMAGED
    for _ in range(TRIES):
        first = await logs.read(LogKind.AUDIT, stream, limit=1)
        # Read the anchors first: newer ones may be about entries that this check does not read.
        current = await _marks(logs, (stream,)) if marks is None else marks
        if current is None:
            return DAEMON_DAMAGED
        walk, after = audit.begin(current[stream], first[0].sequence - 1 if first else None), 0
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
    marks: Marks = {chain: [] for chain in chains}
    after = 0
    while page := await logs.read(LogKind.AUDIT, STREAM, after=after, limit=SLICE):
        after = page[-1].sequence
        try:
            found = await asyncio.to_thread(audit.marks_of, [entry.body for entry in page], marks)
        except RecordUnreadable:
            return None
        for mark in found:
            marks[mark.conversation].append(mark)
    return marks
