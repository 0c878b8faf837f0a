"""The open conversation in memory: its fence, its history, the head of its audit.

Every write of a turn goes through `commit`, one at a time, so the journal in memory equals the
journal on disk. A session that failed to write is dropped and opened again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from zeroclaw.clock import Clock
from zeroclaw.context.composer import RequestRecord
from zeroclaw.envelope import CheckedReceipt, ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate import audit
from zeroclaw.store import (
    Append,
    Commit,
    DurablePoint,
    Fence,
    LogEntry,
    LogKind,
    Logs,
    Reads,
    Store,
    Write,
    read_all,
    retried,
)
from zeroclaw.turn import entries
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.journal import AT_ONCE, History, extend, fold, fold_end
from zeroclaw.turn.signals import Event
from zeroclaw.value import Struct, Value, field, replace

T = TypeVar("T")
MAX_KEPT = 64
"""Conversations whose history stays in memory between messages."""
MAX_KEPT_BYTES = 4 * 1024 * 1024
"""Limit of their journals together; the newest stays whatever its length, so that a long
conversation is not read again for each message."""
KEPT_S = 600.0
"""Seconds that a session stays in memory; a person who returns later waits for one read."""
READ_AT_ONCE = (256, 1_024, 4_096)
"""Entries to read from a journal's end; the next number if too few, and finally all of them."""
MAX_READ = 4
"""Journals that are read side by side; each takes many times the memory of its history."""
LOOK_S = 60.0
"""Seconds between two removals of sessions that have stayed too long."""


class Leases:
    """Leases each conversation once, for as long as this process holds its fence.

    A conversation whose fence was lost, or released by every holder, is leased again.
    """

    def __init__(self, store: Store) -> None:
        """Start with no lease."""
        self._store = store
        self._fences: WeakValueDictionary[ConversationId, Fence] = WeakValueDictionary()
        self._locks: WeakValueDictionary[ConversationId, asyncio.Lock] = WeakValueDictionary()

    async def fence_of(self, conversation: ConversationId) -> Fence:
        """Return the fence, leasing the conversation if this process doesn't hold it.

        Concurrent callers wait for the one that leases: a second lease would invalidate the first,
        and the first holder would think the conversation lost.
        """
        async with self._locks.setdefault(conversation, asyncio.Lock()):
            fence = self._fences.get(conversation)
            if fence is None:
                fence = await self._store.lease(conversation)
                self._fences[conversation] = fence
        return fence

    def mark_lost(self, conversation: ConversationId) -> None:
        """Forget a fence; the next lease waits for its last commit, or bars it."""
        self._fences.pop(conversation, None)


class Transition(Value):
    """Events, and the commit that precedes them.

    Attributes:
        events: Events for the machine, in order; empty if there are only writes.
        point: The durable point of the commit; None for no commit of its own. The writes then wait
            for the next commit, since no effect that a kill could repeat happens before it.
        journal: Entries of the journal.
        audited: Entries of the audit.
        writes: All other writes.
        plan: Makes the transition if it depends on stored rows, as in `store.Plan`; then no other
            field is set. It may return an empty one if another writer was first and has reported
            the same. If its writes depend on these rows, it has a commit of its own.
    """

    events: tuple[Event, ...] = ()
    point: DurablePoint | None = None
    journal: tuple[Entry, ...] = ()
    audited: tuple[audit.Entry, ...] = ()
    writes: tuple[Write, ...] = ()
    plan: Callable[[Reads], Awaitable["Transition"]] | None = None

    def then(self, later: "Transition") -> "Transition":
        """Return this and a later transition as one, with the commit of the later one."""
        return replace(
            later,
            events=(*self.events, *later.events),
            journal=(*self.journal, *later.journal),
            audited=(*self.audited, *later.audited),
            writes=(*self.writes, *later.writes),
        )


NOTHING = Transition()
Tell = Callable[[Transition], Awaitable[None]]
"""Passes a transition to its turn; may wait while the turn is busy."""


class ConversationSession(Struct, eq=False):
    """One conversation, held by one task; see `open_session`.

    Attributes:
        fence: The proof of holding; others that write for this conversation need it.
        history: The fold of its journal, including entries that wait for the next commit.
        first: The journal's first number, if it has entries.
        audit_is_longer: The audit has receipts that are missing from the history, because their
            entries were removed or summarised; cleared by the reader of the audit.
        journal_bytes: Size of the entries that the history was made from.
        verdicts: The receipts checked so far, by their text.
        recorded: Those of them that are known only from the audit.
        requests: The record of its requests to the model.
        is_next: Its messages may be answered now: the conversation before `/new` has been.
    """

    store: Store
    fence: Fence
    history: History
    audit_head: str
    first: int | None = None
    audit_is_longer: bool = False
    journal_bytes: int = 0
    verdicts: dict[str, CheckedReceipt | None] = field(
        default_factory=dict[str, CheckedReceipt | None]
    )
    recorded: set[str] = field(default_factory=set[str])
    requests: RequestRecord = field(default_factory=RequestRecord)
    is_next: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _uncommitted: Transition = NOTHING

    @property
    def conversation(self) -> ConversationId:
        """The conversation of this session."""
        return self.fence.conversation

    async def is_whole(self) -> bool:
        """Tell whether the journal still begins at the same entry: retention removes the oldest."""
        return self.first == _number(await _first(self.store, self.conversation))

    async def commit(self, transition: Transition, reads: Reads | None = None) -> None:
        """Write a transition, then add its entries to the history.

        The commit begins with the transitions that waited for it. `reads` are the reads of the plan.

        Raises:
            Fenced: A newer lease holds the conversation.
            Conflict: A row was not as expected; nothing was written.
            StoreUnusable: Nothing was written.
        """
        if not (transition.point or transition.journal or transition.audited or transition.writes):
            return  # an answer's text arrives in hundreds of pieces
        # The lock covers only the store's write: chain and journal have one order, and the next
        # writer needs this one's outcome.
        async with self._lock:
            merged = self._uncommitted.then(transition)
            if transition.point is None:
                self._uncommitted = merged
                self._extend(transition)
                return
            head = self.audit_head
            bodies = [entries.encode(entry) for entry in merged.journal]
            appended: list[Write] = [
                Append(log=LogKind.JOURNAL, stream=self.conversation, body=body) for body in bodies
            ]
            for entry in merged.audited:
                body, head = audit.link(head, entry)
                appended.append(Append(log=LogKind.AUDIT, stream=self.conversation, body=body))
            commit = Commit(
                point=transition.point,
                conversation=self.conversation,
                fence=self.fence,
                writes=(*appended, *merged.writes),
            )
            await self.store.commit(commit if reads is None else reads.guarded(commit))
            self._uncommitted = NOTHING
            self.audit_head = head
            self.journal_bytes += sum(map(len, bodies))
            if bodies and self.first is None:
                self.first = 1
            self._extend(transition)

    def _extend(self, transition: Transition) -> None:
        for entry in transition.journal:
            self.history = extend(self.history, entry)

    async def transact(self, transition: Transition) -> Transition:
        """Plan and commit a transition, again as long as other writers were first.

        Returns:
            The transition that was committed.

        Raises:
            Conflict: Other writers were first each time, or it has no plan.
            Fenced: As for `commit`; likewise `StoreUnusable`.
        """
        if (plan := transition.plan) is None:
            await self.commit(transition)
            return transition

        async def attempt(reads: Reads) -> Transition:
            planned = await plan(reads)
            await self.commit(planned, reads)
            return planned

        return await retried(self.store, attempt)


class SessionCache(Struct, eq=False):
    """Idle sessions, so that the next message needs no read; the oldest are dropped first."""

    store: Store
    leases: Leases
    clock: Clock
    _idle: OrderedDict[ConversationId, tuple[ConversationSession, float]] = field(
        default_factory=OrderedDict[ConversationId, tuple[ConversationSession, float]]
    )
    _reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_READ))

    async def take(self, conversation: ConversationId) -> ConversationSession:
        """Return the session of a conversation; read it unless the cached one is still valid."""
        cached, _ = self._idle.pop(conversation, (None, 0.0))
        # Only the holder of the fence appends, so with the same fence nothing is missing. But
        # entries that retention has removed must not be sent to a model again.
        if (
            cached is not None
            and cached.fence == await self.leases.fence_of(conversation)
            and await cached.is_whole()
        ):
            return cached
        async with self._reading:
            return await open_session(self.store, self.leases, conversation)

    def leave(self, session: ConversationSession) -> None:
        """Keep a session without a running turn or a failed write."""
        self._idle[session.conversation] = (session, self.clock.monotonic())
        self._clear()

    async def keep(self) -> None:
        """Drop sessions whose people have not come back, until cancelled."""
        while True:
            await self.clock.sleep(LOOK_S)
            self._clear()

    def _clear(self) -> None:
        latest = self.clock.monotonic() - KEPT_S
        size_bytes = sum(session.journal_bytes for session, _ in self._idle.values())
        for conversation, (session, left_at) in list(self._idle.items()):
            is_full = len(self._idle) > MAX_KEPT or size_bytes > MAX_KEPT_BYTES
            if left_at > latest and not (is_full and len(self._idle) > 1):
                return
            del self._idle[conversation]
            size_bytes -= session.journal_bytes


async def open_session(
    store: Store, leases: Leases, conversation: ConversationId
) -> ConversationSession:
    """Lease a conversation and read its history."""
    fence = await leases.fence_of(conversation)
    # Read first: if retention removes entries in between, the session is read again next time.
    first = await _first(store, conversation)
    history, size_bytes = await _read_history(store, conversation)
    newest = await store.last(LogKind.AUDIT, conversation)
    head = audit.head_after(newest)
    # Only the audit has the receipts of results that a summary has replaced.
    longer = newest is not None and (
        bool(history.summary) or await _is_longer(store, conversation, first)
    )
    number = _number(first)
    return ConversationSession(
        store, fence, history, head, number, audit_is_longer=longer, journal_bytes=size_bytes
    )


async def _is_longer(store: Store, conversation: ConversationId, first: LogEntry | None) -> bool:
    """Tell whether the audit reaches further back than the journal's first entry."""
    oldest = await store.read(LogKind.AUDIT, conversation, limit=1)
    if not oldest or first is None:
        return bool(oldest)
    try:
        return audit.read(oldest[0].body).at < entries.decode(first.body).at
    except RecordUnreadable:
        return True  # the reader of the audit meets the same error


async def _first(store: Store, conversation: ConversationId) -> LogEntry | None:
    entry = await store.read(LogKind.JOURNAL, conversation, limit=1)
    return entry[0] if entry else None


def _number(entry: LogEntry | None) -> int | None:
    return None if entry is None else entry.sequence


async def read_history(store: Logs, conversation: str, *, whole: bool = False) -> History:
    """Read the history from a conversation's journal; needs no lease and blocks no writer.

    Args:
        store: The store of the journal.
        conversation: The conversation.
        whole: Return all of its messages, as if there were no summary.
    """
    if not whole:
        return (await _read_history(store, conversation))[0]
    journal, _ = await _read_journal(store, conversation)
    without: list[Entry] = [entry for entry in journal if not isinstance(entry, entries.Compacted)]
    return await _fold(fold, without)


async def _read_history(store: Logs, conversation: str) -> tuple[History, int]:
    """Read the journal from its end, as far back as the newest summary needs."""
    newest = await store.last(LogKind.JOURNAL, conversation)
    last = 0 if newest is None else newest.sequence
    for count in READ_AT_ONCE if last > READ_AT_ONCE[0] else ():
        journal, size_bytes = await _read_journal(store, conversation, after=last - count)
        history = await _fold(fold_end, journal)
        if history is not None:
            return history, size_bytes
    journal, size_bytes = await _read_journal(store, conversation)
    return await _fold(fold, journal), size_bytes


async def _read_journal(
    store: Logs, conversation: str, *, after: int = 0
) -> tuple[list[Entry], int]:
    """Return the entries of a journal with larger numbers than `after`, and their size in bytes."""
    journal, size_bytes = list[Entry](), 0
    async for logged in read_all(store, LogKind.JOURNAL, conversation, after=after):
        size_bytes += len(logged.body)
        journal.append(entries.decode(logged.body))
    return journal, size_bytes


async def _fold(work: Callable[[list[Entry]], T], journal: list[Entry]) -> T:
    """Fold a journal; a long one in a thread, so that others do not wait (P9)."""
    return await asyncio.to_thread(work, journal) if len(journal) > AT_ONCE else work(journal)
