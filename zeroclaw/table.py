"""Tables: the declaration of each kind of row, made by the room that owns it.

A table declares the codec of a row's value, the columns that rows are selected by, how long rows
stay, whose data they hold, and the blobs that they refer to. Retention, export and erasure walk
these declarations (`retention/tables.py` lists them all). So a room that stores a new kind of row
declares its lifetime here, and no other room needs to read its bytes.

    HALTS = Table(
        kind=RowKind.SWITCH,
        codec=json_codec(Halt),
        columns=frozenset({Column.STATE}),
        keeps=Stays(until="an operator resumes"),
    )

    HALTS.put(KEY, halt, state="on")          the write; see `transact` for what it depends on
    await HALTS.get(rows, KEY)                the value, None if there is no row
    async for halt in HALTS.all(rows, state="on"): ...
    rows.select(HALTS.where(state="on"))      the rows themselves, with version, state and key
"""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypedDict, TypeVar, Unpack, cast

from zeroclaw.codec import decode, encode
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.store import Delete, Put, Query, Row, RowKind, Rows, readable, scan
from zeroclaw.value import Value, replace

T = TypeVar("T")
U = TypeVar("U")


class Codec(Value, Generic[T]):
    """Encodes and decodes a table's values; decoding raises `RecordUnreadable`."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


def json_codec(of: type[T]) -> Codec[T]:
    """Return the codec of a class, or of a union of classes; see `codec.py`."""
    return Codec(encode=encode, decode=lambda body: decode(of, body))


class Column(StrEnum):
    """An indexed column that rows are selected by; rows can always be found by key."""

    CONVERSATION = "conversation"
    STATE = "state"
    PLACE = "place"
    DUE_AT = "due_at"


class Age(StrEnum):
    """The configured retention age that applies to a row."""

    MESSAGES = "messages"
    APPROVALS = "approvals"


class Ages(Value):
    """Rows are deleted once they have ended and are older than a configured age.

    Attributes:
        age: The configured age.
        ended: The states in which a row may be deleted; empty for any.
        at: Returns when a row's age begins, None for a row that has not ended. If not set, the time
            in the row's key, a ULID, counts.
        sooner: Returns a second age that may end this row earlier, None for none.
    """

    age: Age
    ended: frozenset[str] = frozenset()
    at: Callable[[Row], datetime | None] | None = None
    sooner: Callable[[Row], Age | None] | None = None


class UntilDue(Value):
    """Rows are deleted once they are past their own `due_at`."""


class Stays(Value):
    """Rows stay until their room deletes them or they are erased.

    Attributes:
        until: The end, in words for readers of the declaration.
    """

    until: str


Keeps = Ages | UntilDue | Stays


class Owner(Value):
    """The person that a row belongs to, or the turn or approvals that it came from, if any."""

    person: str = ""
    turn: str = ""
    approvals: frozenset[str] = frozenset()


class Columns(TypedDict, total=False):
    """The columns of a row; they mean the same as in `Put`."""

    conversation: ConversationId | None
    state: str
    place: str
    due_at: datetime | None


class Filters(TypedDict, total=False):
    """The filters of `Table.where`; they mean the same as in `Query`."""

    conversation: ConversationId | None
    state: str | None
    place: str | None
    due_before: datetime | None
    after: str
    newest_first: bool
    limit: int


class Declaration(Value):
    """A table without the type of its values.

    Attributes:
        kind: The frozen tag of its rows.
        columns: The columns, besides the key, that its rows are selected by.
        keeps: How long rows stay.
        owner: Returns the one participant of a conversation whose data a row holds. None for a
            table whose rows hold no person's data, or that of all participants: these are erased
            with the whole conversation alone.
        person: Returns the `Principal.id` of the one person that a row belongs to, whichever
            conversation it was made in; empty for a row that belongs to no single person. None if
            no row does.
        blobs: Returns the digests of the blobs that a row refers to.
        busy: The states that mean work in progress in the row's conversation; retention and erasure
            wait for it to end.
    """

    kind: RowKind
    columns: frozenset[Column]
    keeps: Keeps
    owner: Callable[[Row], Owner] | None = None
    person: Callable[[Row], str] | None = None
    blobs: Callable[[Row], tuple[str, ...]] | None = None
    busy: frozenset[str] = frozenset()

    def where(self, **filters: Unpack[Filters]) -> Query:
        """Return a query for rows of this table."""
        return Query(kind=self.kind, **filters)

    def delete(self, key: str) -> Delete:
        """Return the write that deletes a row."""
        return Delete(kind=self.kind, key=key)


class Table(Declaration, Generic[T]):
    """The rows of one kind, with typed values.

    Attributes:
        codec: Encodes and decodes a value.
    """

    codec: Codec[T]

    def holding(self, codec: Codec[U]) -> "Table[U]":
        """Return this table with another codec, for rows of a different shape such as a counter."""
        return cast("Table[U]", replace(self, codec=codec))

    def put(self, key: str, value: T, **columns: Unpack[Columns]) -> Put:
        """Return the write that inserts or replaces a row."""
        return Put(kind=self.kind, key=key, body=self.codec.encode(value), **columns)

    def of(self, row: Row | Put) -> T:
        """Return the value of a row, or of a write.

        Raises:
            RecordUnreadable: The body is not one of this table's.
        """
        return self.codec.decode(row.body)

    async def get(self, rows: Rows, key: str) -> T | None:
        """Return one value, None if there is no such row."""
        row = await rows.get(self.kind, key)
        return None if row is None else self.of(row)

    async def find(self, rows: Rows, key: str) -> T | None:
        """Return one value, None if there is no such row, or it is damaged."""
        with suppress(RecordUnreadable):
            return await self.get(rows, key)
        return None

    async def need(self, rows: Rows, key: str) -> T:
        """Return the value of a row that is always there.

        Raises:
            LookupError: There is no such row, which is a bug.
        """
        found = await self.get(rows, key)
        if found is None:
            message = f"the {self.kind} `{key}` has no row"
            raise LookupError(message)
        return found

    async def all(self, rows: Rows, **filters: Unpack[Filters]) -> AsyncIterator[T]:
        """Yield the value of every row that matches, however many there are."""
        async for row in scan(rows, self.where(**filters)):
            yield self.of(row)

    def readable(self, rows: Rows, **filters: Unpack[Filters]) -> AsyncIterator[T]:
        """Yield the value of every row that matches and can be read; see `store.readable`."""
        return readable(rows, self.where(**filters), self.of)
