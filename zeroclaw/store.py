"""The contract of the store: rows, logs and blobs, all written by one atomic call.

A store knows nothing about meaning. It handles rows with a version and a few indexed columns,
append-only logs, blobs, and claims (dedup keys). The codecs are in the rooms that own the bodies,
in the tables they declare (`table.py`). Reads are small Protocols. The only way to write is
`commit`; a write that depends on stored rows goes through `transact`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from types import coroutine
from typing import Protocol, TypeVar

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Conflict, RecordUnreadable
from zeroclaw.value import Value, replace

T = TypeVar("T")
Stored = TypeVar("Stored", "Row", bytes)


class DurablePoint(StrEnum):
    """The purpose of a commit; a crash can fall between any two of these points.

    The kill tests walk this list. `HOUSEKEEPING` covers every commit that no promise depends on.
    """

    ADMITTED = "admitted"
    FETCHED = "fetched"
    TURN_STARTED = "turn_started"
    GATED = "gated"
    ASKED = "asked"
    ANSWERED = "answered"
    SETTLED = "settled"
    CALL_STARTED = "call_started"
    CALL_FINISHED = "call_finished"
    STEERED = "steered"
    COMPACTED = "compacted"
    FINISHED = "finished"
    REF_KNOWN = "ref_known"
    DELIVERED = "delivered"
    REFUSED = "refused"
    HOUSEKEEPING = "housekeeping"


UNFENCED = frozenset({DurablePoint.ADMITTED, DurablePoint.ASKED, DurablePoint.ANSWERED})
"""Points that may be committed to a conversation without its lease: admissions, cards and answers."""


class RowKind(StrEnum):
    """The kind of a row; the room that declares its table owns it."""

    CONVERSATION = "conversation"
    ADDRESS = "address"
    INBOX = "inbox"
    TURN = "turn"
    OUTBOX = "outbox"
    ACTION = "action"
    APPROVAL = "approval"
    GRANT = "grant"
    PERSON = "person"
    STRANGER = "stranger"
    POSITION = "position"
    COUNTER = "counter"
    ALLOWANCE = "allowance"
    BUDGET = "budget"
    SWITCH = "switch"
    PROCESS = "process"
    NOTE = "note"
    RESULT = "result"
    ATTACHMENT = "attachment"
    FORGETTING = "forgetting"
    LANGUAGE = "language"
    WORKSPACE = "workspace"
    TITLE = "title"
    NOTICE = "notice"


class LogKind(StrEnum):
    """The kind of an append-only log."""

    JOURNAL = "journal"
    AUDIT = "audit"


class Row(Value):
    """A stored row.

    Attributes:
        kind: The kind of row.
        key: Unique within the kind; ULIDs, so that keys sort by time.
        version: 1 when first put, one more with each put.
        body: The value, in its owner's encoding.
        conversation: Indexed; None for the daemon's own.
        state: Indexed; the owner's name for the row's state.
        place: Indexed; an address key, or a note's owner, an attachment's inbox item, a workspace's
            real path; empty for none.
        due_at: Indexed; when something must happen to the row, None for never. UTC, to the
            microsecond.
    """

    kind: RowKind
    key: str
    version: int
    body: bytes
    conversation: ConversationId | None = None
    state: str = ""
    place: str = ""
    due_at: datetime | None = None


class Claim(Value):
    """Claim dedup keys; the whole commit fails with `AlreadyClaimed` if one is taken.

    Attributes:
        keys: Each unique per account for as long as the platform may redeliver.
        until: When the claim may be forgotten, UTC.
    """

    keys: tuple[str, ...]
    until: datetime


class Put(Value):
    """Insert or replace a row; add an `Expect` to the commit if its version matters."""

    kind: RowKind
    key: str
    body: bytes
    conversation: ConversationId | None = None
    state: str = ""
    place: str = ""
    due_at: datetime | None = None


class Delete(Value):
    """Delete a row; a missing row is no error."""

    kind: RowKind
    key: str


class Expect(Value):
    """Fail the whole commit with `Conflict` unless the row is at this version (0: absent)."""

    kind: RowKind
    key: str
    version: int


def unchanged(row: Row) -> Expect:
    """Return the write that fails the commit unless a row is as it was read."""
    return Expect(kind=row.kind, key=row.key, version=row.version)


class Append(Value):
    """Append to a log; sequence numbers of a stream start at 1 and have no gaps.

    `Trim` removes entries at the beginning only; their numbers are not reused.

    Attributes:
        stream: The log's owner, usually a conversation id.
        after: The sequence number that must be the last one, None for any; otherwise the whole
            commit fails with `Conflict`.
    """

    log: LogKind
    stream: str
    body: bytes
    after: int | None = None


LARGEST_BLOB_BYTES = 16 * 2**20


class PutBlob(Value):
    """Store bytes under their SHA-256 in hex; putting them again renews their put time.

    A blob that exceeds `LARGEST_BLOB_BYTES`, or whose digest is wrong, fails the whole commit with
    `StoreRefused`.
    """

    digest: str
    body: bytes


class Trim(Value):
    """Remove the oldest entries of a stream; the others keep their sequence numbers.

    Attributes:
        before: The first sequence number to keep. A stream that loses all its entries no longer
            exists; the next append starts at 1 again.
    """

    log: LogKind
    stream: str
    before: int


class DropBlob(Value):
    """Delete a blob; a missing blob is no error.

    Attributes:
        put_before: Delete only if it was last put before this instant, which spares a blob that was
            put again in the meantime; or if it was put in the future, because the clock was set
            back since. None to delete in any case.
    """

    digest: str
    put_before: datetime | None = None


Write = Claim | Put | Delete | Expect | Append | PutBlob | Trim | DropBlob


class Fence(Value, weakref=True):
    """Proof of a conversation's lease; a newer lease invalidates it.

    Code that only checks whether a fence is still in use keeps a weak reference, so that a released
    one leaves nothing behind in memory.

    Attributes:
        token: Grows with every lease of the conversation, across restarts too.
    """

    conversation: ConversationId
    token: int


class Commit(Value):
    """One all-or-nothing write in one scope.

    Attributes:
        point: What this commit makes durable.
        writes: Applied in order.
        fence: None only for `UNFENCED` points, and for the daemon's own scope.
        conversation: The scope; None for the daemon's own.
    """

    point: DurablePoint
    writes: tuple[Write, ...]
    conversation: ConversationId | None = None
    fence: Fence | None = None


class LogEntry(Value):
    """One entry of a log."""

    sequence: int
    body: bytes


PAGE = 1000
"""Rows or entries per read when reading all of them."""
STEP_BYTES, MIN_ROW_BYTES = 65_536, 2_048
"""Bytes to decode before yielding, about a millisecond; and the least that one row counts as."""


class Query(Value):
    """Selects rows of a kind; a row must pass every filter that is set.

    Attributes:
        kind: The kind of the rows.
        conversation: Only rows of this conversation; None for any.
        state: Only rows in this state.
        place: Only rows with this `Row.place`.
        due_before: Only rows due before this instant.
        after: Only rows with keys that sort after this one (with `newest_first`, before it).
        newest_first: Return rows in descending key order.
        limit: The maximum number of rows.
    """

    kind: RowKind
    conversation: ConversationId | None = None
    state: str | None = None
    place: str | None = None
    due_before: datetime | None = None
    after: str = ""
    newest_first: bool = False
    limit: int = PAGE


class Rows(Protocol):
    """Reads of rows; each sees all commits that returned before it began."""

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Return one row, None if there is none."""
        ...

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return the rows that match a query, in key order."""
        ...

    async def count(self, query: Query) -> int:
        """Return the number of rows that match a query, whatever its `limit` and `after`."""
        ...


@coroutine
def _yield_once() -> Generator[None]:
    """Yield to the event loop like `asyncio.sleep(0)`, which pure rooms may not import."""
    yield


class Pace:
    """Yields to other tasks during a long read, so that none waits for a whole page (P9)."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._read_bytes = 0

    async def step(self, size_bytes: int) -> None:
        """Count bytes that are about to be decoded; yield to other tasks when enough have added up."""
        self._read_bytes += max(size_bytes, MIN_ROW_BYTES)
        if self._read_bytes > STEP_BYTES:
            self._read_bytes = 0
            await _yield_once()


async def scan(rows: Rows, query: Query) -> AsyncIterator[Row]:
    """Yield every row that a query selects, however many there are, page by page."""
    query, pace = replace(query, limit=PAGE), Pace()
    while page := await rows.select(query):
        for row in page:
            await pace.step(len(row.body))
            yield row
        query = replace(query, after=page[-1].key)


async def readable(rows: Rows, query: Query, read: Callable[[Row], T]) -> AsyncIterator[T]:
    """Yield what `read` returns for each row of a query, without rows that it can't read.

    So a damaged row is only a problem of its own conversation.
    """
    async for row in scan(rows, query):
        for value in readable_of((row,), read):
            yield value


def readable_of(stored: Iterable[Stored], read: Callable[[Stored], T]) -> Iterator[T]:
    """Yield what `read` returns for each row, or body, that it can read; see `readable`."""
    for row in stored:
        with suppress(RecordUnreadable):
            yield read(row)


class Logs(Protocol):
    """Reads of append-only logs."""

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Return the entries after sequence number `after`, in order."""
        ...

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Return the newest entry, None for an empty stream."""
        ...

    async def streams(self, log: LogKind, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """Return the names of all streams that have an entry, sorted.

        With `last`, return only the last `last` names; of those that sort before `before`, if
        given.
        """
        ...


async def read_all(
    logs: Logs, log: LogKind, stream: str, *, after: int = 0
) -> AsyncIterator[LogEntry]:
    """Yield every entry of a stream with a larger number than `after`, in order."""
    pace = Pace()
    while page := await logs.read(log, stream, after=after, limit=PAGE):
        for entry in page:
            await pace.step(len(entry.body))
            yield entry
        after = page[-1].sequence


class ReadableStore(Rows, Logs, Protocol):
    """Reads of rows and logs."""


class Store(ReadableStore, Protocol):
    """Durable storage; `commit` is the only way to write."""

    async def blob(self, digest: str) -> bytes | None:
        """Return a blob's bytes, None if it was never stored or is deleted."""
        ...

    async def blobs(self, *, put_before: datetime, limit: int = 1000) -> tuple[str, ...]:
        """Return the digests of blobs last put before an instant, oldest first."""
        ...

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; durable against power loss when it returns.

        Cancelling the caller leaves the commit whole or undone, never partial.

        Raises:
            AlreadyClaimed: A dedup key was taken.
            Conflict: A row or log was not as expected.
            Fenced: The fence is missing, belongs to another scope, or is no longer the newest.
            StoreRefused: A value can't be stored, for example an unpaired surrogate in a key.
            StoreUnusable: The disk is full, or the file can't be written.
        """
        ...

    async def lease(self, conversation: ConversationId) -> Fence:
        """Lease the conversation; all its older fences stop working."""
        ...

    async def size_bytes(self) -> int:
        """Return how much disk space the store takes."""
        ...

    async def used_bytes(self) -> int:
        """Return how much of that is in use; the store fills the rest before it grows."""
        ...

    async def drop_copies(self, before: datetime) -> int:
        """Delete the store's copies of itself that are older than an instant; return how many.

        An upgrade makes one, with the content of its time. One that can't be deleted stays.
        """
        ...

    async def aclose(self) -> None:
        """Finish queued writes, then close; safe to call twice."""
        ...


# --- transactions ---------------------------------------------------------------------------------


class Reads:
    """The rows that a plan reads; its commit succeeds only if they have not changed.

    It is a `Rows`, so code that takes a `Rows` can read through it.

    Attributes:
        unguarded: The store itself, for logs, blobs, and rows that may change: the commit does not
            check these reads.
    """

    def __init__(self, store: Store) -> None:
        """Read from a store."""
        self.unguarded = store
        self._versions: dict[tuple[RowKind, str], int] = {}
        self._needed: set[tuple[RowKind, str]] = set()

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Return one row, see `Rows.get`; absence is guarded too."""
        row = await self.unguarded.get(kind, key)
        self._versions.setdefault((kind, key), 0 if row is None else row.version)
        self._needed.add((kind, key))
        return row

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return rows, see `Rows.select`; only those that the commit writes are guarded.

        So a plan may search many rows to change a few. A plan that depends on all of them, or on
        the absence of others, must read and write a row that every writer of such rows also writes.
        """
        rows = await self.unguarded.select(query)
        for row in rows:
            self._versions.setdefault((row.kind, row.key), row.version)
        return rows

    async def count(self, query: Query) -> int:
        """Return how many rows match, see `Rows.count`; guards none of them."""
        return await self.unguarded.count(query)

    def guarded(self, commit: Commit) -> Commit:
        """Return the commit with an `Expect` for every guarded row: `Conflict` if one has changed."""
        written = {(put.kind, put.key) for put in commit.writes if isinstance(put, Put | Delete)}
        expected = tuple(
            Expect(kind=kind, key=key, version=version)
            for (kind, key), version in self._versions.items()
            if (kind, key) in self._needed or (kind, key) in written
        )
        return replace(commit, writes=(*expected, *commit.writes))


Plan = Callable[[Reads], Awaitable[tuple[Commit | None, T]]]
"""Reads rows; returns a commit, and a result.

`transact` calls it again if a row that it read changed before the commit. So it must have no side
effects: no messages, no wake-ups, no state kept between calls. The caller of `transact` does these
afterwards. None instead of a commit writes nothing.
"""

TRIES = 8
"""How often a plan is tried when other writers are first."""


async def transact(store: Store, plan: Plan[T]) -> T:
    """Run a plan and commit its result; run it again if other writers changed rows that it read.

        async def rename(reads: Reads) -> tuple[Commit | None, bool]:
            person = await PEOPLE.get(reads, key)
            if person is None:
                return None, False
            put = PEOPLE.put(key, replace(person, display=name))
            return Commit(point=DurablePoint.HOUSEKEEPING, writes=(put,)), True

        was_there = await transact(store, rename)

    Args:
        store: The store to read from and write to.
        plan: Called at least once; see `Plan`.

    Returns:
        The result of the plan that was committed.

    Raises:
        Conflict: Other writers were first each time.
        AlreadyClaimed: See `Store.commit`; so `Fenced`, `StoreRefused` and `StoreUnusable`.
    """

    async def attempt(reads: Reads) -> T:
        commit, result = await plan(reads)
        if commit is not None:
            await store.commit(reads.guarded(commit))
        return result

    return await retried(store, attempt)


async def retried(store: Store, attempt: Callable[[Reads], Awaitable[T]]) -> T:
    """Attempt a write that depends on rows; again if another writer was first.

    Raises:
        Conflict: Other writers were first each time.
    """
    conflict: Conflict | None = None
    for _ in range(TRIES):
        try:
            return await attempt(Reads(store))
        except Conflict as error:
            conflict = error
    message = f"others kept changing what this depends on, {TRIES} times: try again"
    raise Conflict(message) from conflict
