"""The row of a turn: where it answers, and the messages of its draft so far."""

from collections.abc import Callable

from zeroclaw.conversation.inbox import Item
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OPEN_STATES, OUTBOX, Left, Text
from zeroclaw.envelope import Address, ConversationId, MessageRef, TurnId
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
    scan,
    transact,
)
from zeroclaw.table import Age, Ages, Column, Table, Whose, Words, json_codec
from zeroclaw.value import Value, replace


class TurnRow(Value):
    """What a restart needs beside the journal.

    Attributes:
        item: What the turn answers.
        refs: The draft's messages, as far as they are known.
        sending: From where to look for one more, whose send was begun; empty for none.
        final: The key of the outbox row that carries the answer, empty before the end.
        usage: Of the whole turn, once it is over; before that the journal knows it.
        model: That was asked, empty before the end.
        micros: What it cost, in millionths of a US dollar; None where the price is not known.
    """

    turn: TurnId
    item: Item
    refs: tuple[MessageRef, ...] = ()
    sending: str = ""
    final: str = ""
    usage: Usage = NO_USAGE
    model: str = ""
    micros: int | None = None

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
    owner="conversation",
    codec=json_codec(TurnRow),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Ages(age=Age.MESSAGES, ended=frozenset({"closed"})),
    words=Words.WRITER,
    whose=lambda row: Whose(person=TURNS.of(row).item.principal.id),
    busy=frozenset({"open"}),
)


def turn_put(
    row: TurnRow, conversation: ConversationId, *, closed: bool = False, expect: int | None = None
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
    found = scan(rows, TURNS.where(state="open"))
    return tuple([ref async for row in found for ref in TURNS.of(row).refs])


TRIES = 8
"""Times that a turn's row is written anew because another writer came in between."""


async def read_turn(store: Rows, turn: TurnId) -> tuple[TurnRow, int, str]:
    """Return a turn's row, its version and its state.

    Raises:
        LookupError: There is none; a fault of ours.
    """
    stored = await store.get(RowKind.TURN, turn)
    if stored is None:
        message = f"the turn `{turn}` has no row"
        raise LookupError(message)
    return TURNS.of(stored), stored.version, stored.state


async def learn(store: Store, fence: Fence, turn: TurnId, ref: MessageRef) -> None:
    """Record a message that the draft has posted.

    Raises:
        Conflict: Other writers kept changing the row.
        Fenced: A newer lease has the conversation.
    """
    await _change(store, fence, turn, DurablePoint.REF_KNOWN, lambda row: row.with_ref(ref))


async def sending(store: Store, fence: Fence, turn: TurnId, mark: str) -> None:
    """Record that the draft begins to post a message, or that it did not arrive.

    Args:
        store: Where the turn's row is.
        fence: Of the turn's conversation.
        turn: Whose draft it is.
        mark: From where to look for the message; empty when it did not arrive.

    Raises:
        Conflict: Other writers kept changing the row.
        Fenced: A newer lease has the conversation.
    """
    await _change(
        store, fence, turn, DurablePoint.HOUSEKEEPING, lambda row: replace(row, sending=mark)
    )


async def _change(
    store: Store,
    fence: Fence,
    turn: TurnId,
    point: DurablePoint,
    change: Callable[[TurnRow], TurnRow],
) -> None:
    async def plan(reads: Reads) -> tuple[Commit, None]:
        row, version, state = await read_turn(reads, turn)
        changed, whose = change(row), fence.conversation
        put = turn_put(changed, whose, closed=state == "closed", expect=version)
        writes: tuple[Write, ...] = (put, *await _final(reads, changed))
        return Commit(point=point, conversation=whose, fence=fence, writes=writes), None

    await transact(store, plan, tries=TRIES)


async def _final(store: Rows, turn: TurnRow) -> tuple[Write, ...]:
    """Return the write that tells the final of its draft, none before there is one."""
    row = await store.get(RowKind.OUTBOX, turn.final) if turn.final else None
    if row is None or row.state not in OPEN_STATES or not isinstance(item := OUTBOX.of(row), Text):
        return ()
    # The outbox does not deliver it before the draft is closed, so this alone is known of what was lost.
    known = rows.with_draft(item, Left(refs=turn.refs))
    lost = replace(known, uncertainty=rows.lost_from(turn.sending))
    return (rows.changed(row, lost, "sending" if row.state == "sending" else "pending"),)
