"""The declaration of what is stored: one table for each kind of row, made by the room that owns it.

A table says how a row's value is written, by which columns it is found, how long it stays, whose
words it holds and which blobs it leads to. Retention, export and erasure walk the declarations
(`retention/tables.py` lists all of them), so a room that stores something new says here what is to
become of it, and no other room looks into its bytes.

    HALTS = Table(
        kind=RowKind.SWITCH,
        owner="inbound",
        codec=json_codec(Halt),
        columns=frozenset({Column.STATE}),
        keeps=Stays(until="it is turned off"),
        words=Words.NOBODY,
    )

    HALTS.put(KEY, halt, state="on")          the write; `expect=` is seldom needed, see `transact`
    await HALTS.get(rows, KEY)                the value, None without a row
    async for halt in HALTS.all(rows, state="on"): ...
    rows.select(HALTS.where(state="on"))      the rows themselves, with version, state and key
"""

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypedDict, TypeVar, Unpack

from zeroclaw.codec import decode, encode
from zeroclaw.envelope import ConversationId
from zeroclaw.store import Delete, Expect, Put, Query, Row, RowKind, Rows, scan
from zeroclaw.value import Value

T = TypeVar("T")
U = TypeVar("U")


class Codec(Value, Generic[T]):
    """How values of a table are written, and read back; reading raises `StoreUnusable`."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


def json_codec(of: type[T]) -> Codec[T]:
    """Return the codec of a class, or of a union of classes; see `codec.py`."""
    return Codec(encode=encode, decode=lambda body: decode(of, body))


class Column(StrEnum):
    """A column that rows are found by; every row is found by its key as well."""

    CONVERSATION = "conversation"
    STATE = "state"
    PLACE = "place"
    DUE_AT = "due_at"


class Age(StrEnum):
    """Which of the configured ages ends a row."""

    MESSAGES = "messages"
    APPROVALS = "approvals"


class Ages(Value):
    """Rows go when they have ended and are older than their age.

    Attributes:
        age: Which one.
        ended: The states of rows that may go; empty for any.
        at: When a row's age began, None for a row that has not ended; without it the row's key is
            a ULID, and its time counts.
        sooner: Another age that may end this row first, None for no other.
    """

    age: Age
    ended: frozenset[str] = frozenset()
    at: Callable[[Row], datetime | None] | None = None
    sooner: Callable[[Row], Age | None] | None = None


class UntilDue(Value):
    """Rows go once they are past due: they say themselves when they are over.

    Attributes:
        ended: The states of rows that may go; empty for any.
    """

    ended: frozenset[str] = frozenset()


class Stays(Value):
    """Rows stay until their room removes them, or they are erased.

    Attributes:
        until: When that is, for people who read the declaration.
    """

    until: str


Keeps = Ages | UntilDue | Stays


class Words(StrEnum):
    """Whose words or doings a row tells of.

    `NOBODY`: the daemon's own. `CONVERSATION`: of all who take part, so it goes when the whole
    conversation is erased. `WRITER`: of one of them; `Table.whose` says which. `PERSON`: a row
    about one person, under their id.
    """

    NOBODY = "nobody"
    CONVERSATION = "conversation"
    WRITER = "writer"
    PERSON = "person"


class Whose(Value):
    """The person whose row it is, or the turn that it came of; both empty for nobody in particular."""

    person: str = ""
    turn: str = ""


class Filters(TypedDict, total=False):
    """What `Table.where` filters by; the meaning is `Query`'s."""

    conversation: ConversationId | None
    state: str | None
    place: str | None
    due_before: datetime | None
    after: str
    newest_first: bool
    limit: int


class Declaration(Value):
    """What is known of a table without its values' class.

    Attributes:
        kind: The frozen tag of its rows.
        owner: The room that declares it, and alone reads and writes its bodies.
        columns: What its rows are found by, beside their keys.
        keeps: How long rows stay.
        words: Whose they are.
        whose: Tells whose a row of `Words.WRITER` is.
        own: Tells which person's alone a row is, by `Principal.id`, in whichever conversation it was
            made; empty for a row that is nobody's alone. None where no row is.
        blobs: Returns the digests of the blobs that a row leads to.
        busy: The states that say that something is under way in the row's conversation, in which
            retention and erasure wait.
    """

    kind: RowKind
    owner: str
    columns: frozenset[Column]
    keeps: Keeps
    words: Words
    whose: Callable[[Row], Whose] | None = None
    own: Callable[[Row], str] | None = None
    blobs: Callable[[Row], tuple[str, ...]] | None = None
    busy: frozenset[str] = frozenset()

    def where(self, **filters: Unpack[Filters]) -> Query:
        """Return the query for rows of this table."""
        return Query(kind=self.kind, **filters)

    def delete(self, key: str) -> Delete:
        """Return the write that removes a row."""
        return Delete(kind=self.kind, key=key)

    def expect(self, key: str, version: int) -> Expect:
        """Return the write that fails the commit unless the row is at this version (0: absent)."""
        return Expect(kind=self.kind, key=key, version=version)


class Table(Declaration, Generic[T]):
    """The rows of one kind, each with a value.

    Attributes:
        codec: How a value is written.
    """

    codec: Codec[T]

    def holding(self, codec: Codec[U]) -> "Table[U]":
        """Return this table for rows of another shape that share its kind, such as a count."""
        return Table(
            kind=self.kind,
            owner=self.owner,
            columns=self.columns,
            keeps=self.keeps,
            words=self.words,
            whose=self.whose,
            own=self.own,
            blobs=self.blobs,
            busy=self.busy,
            codec=codec,
        )

    def put(
        self,
        key: str,
        value: T,
        *,
        conversation: ConversationId | None = None,
        state: str = "",
        place: str = "",
        due_at: datetime | None = None,
        expect: int | None = None,
    ) -> Put:
        """Return the write that inserts or replaces a row; `expect` as in `Put`."""
        return Put(
            kind=self.kind,
            key=key,
            body=self.codec.encode(value),
            conversation=conversation,
            state=state,
            place=place,
            due_at=due_at,
            expect=expect,
        )

    def of(self, row: Row | Put) -> T:
        """Return the value of a row, or the one that is written there.

        Raises:
            StoreUnusable: Its body is none of this table's.
        """
        return self.codec.decode(row.body)

    async def get(self, rows: Rows, key: str) -> T | None:
        """Return one value, None when there is no such row."""
        row = await rows.get(self.kind, key)
        return None if row is None else self.of(row)

    async def read(self, rows: Rows, key: str) -> tuple[T | None, int]:
        """Return one value and its version; None and 0 when there is no such row."""
        row = await rows.get(self.kind, key)
        return (None, 0) if row is None else (self.of(row), row.version)

    async def all(self, rows: Rows, **filters: Unpack[Filters]) -> AsyncIterator[T]:
        """Yield the values of every row that fits, however many there are."""
        async for row in scan(rows, self.where(**filters)):
            yield self.of(row)
