"""The row of a turn: its item, and the messages of its draft so far."""

from zeroclaw.conversation.inbox import Item
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OPEN_STATES, OUTBOX, TextPost
from zeroclaw.envelope import Address, MessageRef, TurnId
from zeroclaw.message import NO_USAGE, Usage
from zeroclaw.store import (
    Commit,
    DurablePoint,
    Fence,
    Put,
    Reads,
    RowKind,
    Rows,
    Store,
    Write,
    transact,
)
from zeroclaw.table import Age, Ages, Column, Owner, Table, json_codec
from zeroclaw.value import Value, replace


class TurnRow(Value):
    """The state of a turn that a restart needs besides the journal.

    Attributes:
        item: The item that the turn answers.
        refs: The draft's recorded messages.
        sending: The mark for looking up a message whose send has begun; empty for none.
        final: The key of the outbox row with the answer, empty before the end.
        usage: The usage of the whole turn once it has ended; before that it is in the journal.
        model: The model that was called, empty before the end.
        micros: The cost in millionths of a US dollar; None if the price is unknown.
        wrote: As in `TurnOpened`.
    """

    turn: TurnId
    item: Item
    refs: tuple[MessageRef, ...] = ()
    sending: str = ""
    final: str = ""
    usage: Usage = NO_USAGE
    model: str = ""
    micros: int | None = None
    wrote: str = ""

    @property
    def address(self) -> Address:
        """The chat of the answer."""
        return self.item.address

    @property
    def reply_to(self) -> str:
        """The message that the answer is shown as a reply to; empty in a direct chat."""
        return "" if self.address.direct else self.item.message


TURNS = Table(
    kind=RowKind.TURN,
    codec=json_codec(TurnRow),
    columns=frozenset({Column.CONVERSATION, Column.STATE}),
    keeps=Ages(age=Age.MESSAGES, ended=frozenset({"closed"})),
    owner=lambda row: Owner(person=TURNS.of(row).item.principal.id, turn=row.key),
    busy=frozenset({"open"}),
)


def turn_put(row: TurnRow) -> Put:
    """Return the write that records a turn's row, closed once it has an answer."""
    conversation, state = row.item.conversation, "closed" if row.final else "open"
    return TURNS.put(row.turn, row, conversation=conversation, state=state)


async def open_drafts(source: Rows) -> tuple[MessageRef, ...]:
    """Return the recorded draft messages of all turns that have not ended."""
    turns = TURNS.readable(source, state="open")
    return tuple([ref async for turn in turns for ref in turn.refs])


async def record_send(store: Store, fence: Fence, turn: TurnId, message: MessageRef | str) -> None:
    """Record a message that the turn's draft posts.

    Args:
        store: The store with the turn's row.
        fence: The fence of the turn's conversation.
        turn: The turn that the draft belongs to.
        message: Before the post the mark for looking the message up; then the message, or an empty
            mark if the post failed.

    Raises:
        Conflict: Other writers kept changing the row.
        Fenced: Another holder has since leased the conversation.
    """

    async def plan(reads: Reads) -> tuple[Commit, None]:
        row, conversation = await TURNS.need(reads, turn), fence.conversation
        if isinstance(message, str):
            changed, point = replace(row, sending=message), DurablePoint.HOUSEKEEPING
        else:
            refs = row.refs if message in row.refs else (*row.refs, message)
            changed, point = replace(row, refs=refs, sending=""), DurablePoint.REF_KNOWN
        writes = (turn_put(changed), *await _final(reads, changed))
        return Commit(point=point, conversation=conversation, fence=fence, writes=writes), None

    await transact(store, plan)


async def _final(store: Rows, turn: TurnRow) -> tuple[Write, ...]:
    """Return the write that updates the outbox row of the answer; none before there is one."""
    row = await store.get(RowKind.OUTBOX, turn.final) if turn.final else None
    item = OUTBOX.of(row) if row and row.state in OPEN_STATES else None
    if row is None or not isinstance(item, TextPost):
        return ()
    # The outbox waits for the draft to close, so only the draft knows of an uncertain send.
    lost = rows.Uncertainty(may_stand=bool(turn.sending), mark=turn.sending)
    updated = replace(item, refs=turn.refs, uncertainty=lost)
    return (rows.changed(row, updated, "sending" if row.state == "sending" else "pending"),)
