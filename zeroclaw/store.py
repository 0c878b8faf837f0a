"""The contract of the store: rows, logs and blobs, written by one call, all or nothing.

A store knows no meaning: it speaks rows with a version and a few indexed columns, append-only
logs, blobs, and claims (dedup keys). Codecs live with the rooms that own the bodies, in the tables
that they declare (`table.py`). Reads are small Protocols; the only way to write is `commit`, and a
write that depends on what is stored goes through `transact`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from datetime import datetime
from enum import StrEnum
from types import coroutine
from typing import Protocol, TypeVar

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Conflict
from zeroclaw.value import Value, replace

T = TypeVar("T")


class DurablePoint(StrEnum):
    """Where a cut may fall between two commits; each commit is labelled with one.

    The kill tests walk this list. `HOUSEKEEPING` is everything that no promise hangs on.
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


UNFENCED = frozenset({DurablePoint.ADMITTED, DurablePoint.ANSWERED})
"""What may be committed to a conversation without holding it: the inbox, and an answer."""


class RowKind(StrEnum):
    """What a row is; its owner is the room that holds the codec."""

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
    """What an append-only log holds."""

    JOURNAL = "journal"
    AUDIT = "audit"


class Row(Value):
    """A stored row.

    Attributes:
        kind: What it is.
        key: Unique within the kind; ULIDs, so that keys sort by time.
        version: 1 when first put, one more with each put.
        body: The owner's encoding.
        conversation: Indexed; None for the daemon's own.
        state: Indexed; the owner's word for where the row stands.
        place: Indexed; an address key, of a note whose it is, of an attachment the item that it came
            with, of a workspace its real path; empty for none.
        due_at: Indexed; when something must happen to it, None for never. UTC, kept to the
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
    """Claim dedup keys; the whole commit fails with `AlreadyClaimed` when one is taken.

    Attributes:
        keys: Each unique per account for as long as the platform may redeliver.
        until: When the claim may be forgotten, UTC.
    """

    keys: tuple[str, ...]
    until: datetime


class Put(Value):
    """Insert or replace a row.

    Attributes:
        expect: The version the row must have, 0 for "does not exist", None for any; otherwise
            the whole commit fails with `Conflict`.
    """

    kind: RowKind
    key: str
    body: bytes
    conversation: ConversationId | None = None
    state: str = ""
    place: str = ""
    due_at: datetime | None = None
    expect: int | None = None


class Delete(Value):
    """Remove a row; one that is gone already is no error."""

    kind: RowKind
    key: str


class Expect(Value):
    """Fail the whole commit with `Conflict` unless the row is at this version (0: absent)."""

    kind: RowKind
    key: str
    version: int


class Append(Value):
    """Append to a log; sequence numbers of a stream start at 1 and have no gaps.

    What `Trim` removes is missing at the beginning only, and its numbers are not used again.

    Attributes:
        stream: Whose log, usually a conversation id.
        after: The sequence number that must be the last one, None for any; otherwise the whole
            commit fails with `Conflict`.
    """

    log: LogKind
    stream: str
    body: bytes
    after: int | None = None


class PutBlob(Value):
    """Keep bytes under the SHA-256 of themselves, in hex; putting them again makes them new.

    Larger than the store's cap, or named by another digest than its own, fails the whole commit
    with `StoreRefused`.
    """

    digest: str
    body: bytes


class Trim(Value):
    """Remove the oldest entries of a stream; those that stay keep their sequence numbers.

    Attributes:
        before: The first sequence number that stays. A stream that loses all its entries is gone,
            and begins at 1 when it is appended to again.
    """

    log: LogKind
    stream: str
    before: int


class DropBlob(Value):
    """Remove a blob; one that is gone already is no error.

    Attributes:
        put_before: Only if it was last put before this instant, so that one that was put again
            since somebody looked stays; None for whenever it was put.
    """

    digest: str
    put_before: datetime | None = None


Write = Claim | Put | Delete | Expect | Append | PutBlob | Trim | DropBlob


class Fence(Value, weakref=True):
    """Proof that the holder has the conversation; newer ones make it worthless.

    Held weakly by those who only look whether it is held: once a conversation's fence is let go,
    nothing is left of it in memory.

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
"""Rows or entries read at once where all are wanted."""
STEP_BYTES, LEAST_BYTES = 65_536, 2_048
"""Of rows or entries until others are let in, in about a millisecond; and what a short one counts."""


class Query(Value):
    """Which rows of a kind are wanted; every filter that is given must fit.

    Attributes:
        kind: What the rows are.
        conversation: Only rows of it; None for any.
        state: Only rows in this state.
        place: Only rows with this `Row.place`.
        due_before: Only rows due before this instant.
        after: Only rows whose keys sort after this one (before it, newest first).
        newest_first: Reverse the order, which is that of the keys.
        limit: At most this many.
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
        """Return one row, None when there is none."""
        ...

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return the rows that a query wants, in the order of their keys."""
        ...

    async def count(self, query: Query) -> int:
        """Return how many rows fit a query, whatever its limit and its place in the order."""
        ...


@coroutine
def _others_first() -> Generator[None]:
    """Go to the end of the queue: `asyncio.sleep(0)`, which pure rooms may not reach through here."""
    yield


class Pace:
    """Lets others in while one reads much, so that nobody waits for a whole page of it (P9)."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._read_bytes = 0

    async def step(self, size_bytes: int) -> None:
        """Take note of what is about to be decoded; others come first when it has become much."""
        self._read_bytes += max(size_bytes, LEAST_BYTES)
        if self._read_bytes > STEP_BYTES:
            self._read_bytes = 0
            await _others_first()


async def scan(rows: Rows, query: Query) -> AsyncIterator[Row]:
    """Yield every row that a query wants, however many there are, page by page."""
    query, pace = replace(query, limit=PAGE), Pace()
    while page := await rows.select(query):
        for row in page:
            await pace.step(len(row.body))
            yield row
        query = replace(query, after=page[-1].key)


class Logs(Protocol):
    """Reads of append-only logs."""

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Return entries in order of sequence, those after `after`."""
        ...

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Return the newest entry, None for an empty stream."""
        ...

    async def streams(self, log: LogKind, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """Return the names of all streams that hold an entry, sorted.

        With `last`, only so many of the last, those `before` a name where one is given.
        """
        ...


async def read_all(logs: Logs, log: LogKind, stream: str) -> AsyncIterator[LogEntry]:
    """Yield every entry of a stream, in order, however many there are."""
    after, pace = 0, Pace()
    while page := await logs.read(log, stream, after=after, limit=PAGE):
        for entry in page:
            await pace.step(len(entry.body))
            yield entry
        after = page[-1].sequence


class Blobs(Protocol):
    """Reads of blobs."""

    async def blob(self, digest: str) -> bytes | None:
        """Return the bytes, None when they were never kept or are gone."""
        ...

    async def blobs(
        self, *, put_before: datetime, after: str = "", limit: int = 1000
    ) -> tuple[str, ...]:
        """Return the digests of blobs last put before an instant, sorted, those after `after`."""
        ...


class Kept(Rows, Logs, Protocol):
    """Reads of rows and logs."""


class Store(Kept, Blobs, Protocol):
    """Durable memory; `commit` is the only way to write."""

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; durable against power loss when it returns.

        Cancelling the caller leaves the commit either whole or undone, never half.

        Raises:
            AlreadyClaimed: A dedup key was taken.
            Conflict: A row or log was not as expected.
            Fenced: The fence is missing, another scope's, or no longer the newest.
            StoreRefused: A value can't be stored, for example half a character in a key.
            StoreUnusable: The disk is full, or the file can't be written.
        """
        ...

    async def lease(self, conversation: ConversationId) -> Fence:
        """Take the conversation; every older fence of it stops working."""
        ...

    async def size_bytes(self) -> int:
        """Return how much disk the store takes."""
        ...

    async def used_bytes(self) -> int:
        """Return how much of it holds something; the rest is used before the disk is asked."""
        ...

    async def aclose(self) -> None:
        """Finish what is queued, then close; safe twice."""
        ...


# --- transactions ---------------------------------------------------------------------------------


class Reads:
    """The rows that one plan reads; a commit of the plan holds only while they stay as they were.

    It is a `Rows`: whatever reads rows reads them here as well.

    Attributes:
        unguarded: The store itself, for logs and blobs, and for rows whose change does not matter:
            what is read there is not looked at again when the plan is committed.
    """

    def __init__(self, store: Store) -> None:
        """Read from a store."""
        self.unguarded = store
        self._versions: dict[tuple[RowKind, str], int] = {}

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Return one row, see `Rows.get`; that it is absent is noted too."""
        row = await self.unguarded.get(kind, key)
        self._versions.setdefault((kind, key), 0 if row is None else row.version)
        return row

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return rows, see `Rows.select`.

        One that is added later, and that the query would have found, is not noticed: a plan
        that depends on that reads and writes one row which all who add such rows write too.
        """
        rows = await self.unguarded.select(query)
        for row in rows:
            self._versions.setdefault((row.kind, row.key), row.version)
        return rows

    async def count(self, query: Query) -> int:
        """Return how many rows fit, see `Rows.count`; nothing is noted of them."""
        return await self.unguarded.count(query)

    def guarded(self, commit: Commit) -> Commit:
        """Return a commit that fails with `Conflict` when a row that was read has changed."""
        given = {
            (write.kind, write.key)
            for write in commit.writes
            if isinstance(write, Expect) or (isinstance(write, Put) and write.expect is not None)
        }
        expected = tuple(
            Expect(kind=kind, key=key, version=version)
            for (kind, key), version in self._versions.items()
            if (kind, key) not in given
        )
        return replace(commit, writes=(*expected, *commit.writes))


Plan = Callable[[Reads], Awaitable[tuple[Commit | None, T]]]
"""Reads what it needs, and returns what to write and what that comes to.

It is called again when a row that it read has changed before its commit, so it has no effect of its
own: no message, no wake-up, nothing kept between two calls. Whoever calls `transact` has those,
afterwards. None in place of a commit writes nothing.
"""

TRIES = 8
"""Times that a plan is made; others were first each time before."""


async def transact(store: Store, plan: Plan[T], *, tries: int = TRIES) -> T:
    """Commit what a plan comes to, planned anew as long as other writers change what it read.

        async def rename(reads: Reads) -> tuple[Commit | None, bool]:
            person = await PEOPLE.get(reads, key)
            if person is None:
                return None, False
            put = PEOPLE.put(key, replace(person, display=name))
            return Commit(point=DurablePoint.HOUSEKEEPING, writes=(put,)), True

        was_there = await transact(store, rename)

    Args:
        store: Where the plan reads and writes.
        plan: Called at least once; see `Plan`.
        tries: How often the plan is made.

    Returns:
        What the plan that was committed came to.

    Raises:
        Conflict: Others were first each time.
        AlreadyClaimed: See `Store.commit`; so `Fenced`, `StoreRefused` and `StoreUnusable`.
    """
    conflict: Conflict | None = None
    for _ in range(tries):
        reads = Reads(store)
        commit, result = await plan(reads)
        if commit is None:
            return result
        try:
            await store.commit(reads.guarded(commit))
        except Conflict as error:
            conflict = error
        else:
            return result
    message = f"others kept changing what this depends on, {tries} times: try again"
    raise Conflict(message) from conflict
