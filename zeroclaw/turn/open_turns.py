"""The row of a turn: where it answers, and the messages of its draft so far."""

from zeroclaw.envelope import Address, ConversationId, MessageRef, TurnId
from zeroclaw.store import Put, Row, RowKind, Rows, find_all
from zeroclaw.table import Age, Ages, Column, Table, Whose, Words, json_codec
from zeroclaw.turn.inbox import Item
from zeroclaw.value import Value, replace


class TurnRow(Value):
    """What a restart needs beside the journal.

    Attributes:
        item: What the turn answers.
        refs: The draft's messages, as far as they are known.
        sending: From where to look for one more, whose send was begun; empty for none.
        final: The key of the outbox row that carries the answer, empty before the end.
    """

    turn: TurnId
    item: Item
    refs: tuple[MessageRef, ...] = ()
    sending: str = ""
    final: str = ""

    @property
    def address(self) -> Address:
        """Where the turn answers."""
        return self.item.address

    @property
    def reply_to(self) -> str:
        """The message that the answer shows itself as a reply to; in private that is clear."""
        return "" if self.address.direct else self.item.message

    def with_ref(self, ref: MessageRef) -> "TurnRow":
        """Return the row with one more message of the draft, which was being sent."""
        refs = self.refs if ref in self.refs else (*self.refs, ref)
        return replace(self, refs=refs, sending="")


TURNS = Table(
    kind=RowKind.TURN,
    owner="turn",
    codec=json_codec(TurnRow),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Ages(age=Age.MESSAGES, ended=frozenset({"closed"})),
    words=Words.WRITER,
    whose=lambda row: Whose(person=turn_of(row).item.principal.id),
    busy=frozenset({"open"}),
)


def turn_put(
    row: TurnRow,
    conversation: ConversationId,
    *,
    closed: bool = False,
    expect: int | None = None,
) -> Put:
    """Return the write that records a turn's row; `expect` as in `Put`."""
    return TURNS.put(
        row.turn,
        row,
        conversation=conversation,
        state="closed" if closed else "open",
        place=row.address.key(),
        expect=expect,
    )


async def open_drafts(rows: Rows) -> tuple[MessageRef, ...]:
    """Return the messages of all turns that are not over, as far as they are recorded."""
    found = find_all(rows, RowKind.TURN, state="open")
    return tuple([ref async for row in found for ref in turn_of(row).refs])


def turn_of(row: Row) -> TurnRow:
    """Read a turn's row."""
    return TURNS.of(row)
