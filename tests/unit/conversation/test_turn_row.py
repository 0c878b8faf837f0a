"""Each message of a draft is recorded where a restart looks for it (§4, P6)."""

from dataclasses import dataclass

import pytest

from tests.fakes.memory_store import MemoryStore
from tests.unit.turn.parts import AT, SAM
from zeroclaw.codec import encode
from zeroclaw.conversation.inbox import Item, PersonMessage
from zeroclaw.conversation.turn_row import TURNS, TurnRow, record_send, turn_put
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import CERTAIN, OUTBOX, TextPost, Uncertainty, outbox_row
from zeroclaw.envelope import Address, ConversationId, ItemId, MessageRef, TurnId
from zeroclaw.errors import Conflict
from zeroclaw.gate import audit
from zeroclaw.store import Commit, DurablePoint, Row, RowKind
from zeroclaw.turn.journal import History
from zeroclaw.turn.session import ConversationSession, Transition
from zeroclaw.value import replace

CONVERSATION = ConversationId("c1")
TURN = TurnId("t1")
FINAL = "o1"
HERE = Address(channel="chat", account="bot", chat="ann", direct=True)
FIRST, SECOND = (MessageRef(address=HERE, message=message) for message in ("m1", "m2"))
ITEM = Item(
    id=ItemId("i1"),
    conversation=CONVERSATION,
    address=HERE,
    principal=SAM,
    content=PersonMessage(text="hi"),
    admitted_at=AT,
)
ROW = TurnRow(turn=TURN, item=ITEM, refs=(FIRST,))


@dataclass(frozen=True, kw_only=True)
class Held:
    """A conversation with a turn in it."""

    store: MemoryStore
    session: ConversationSession

    async def end(self) -> None:
        """End the turn, whose final begins with its first message."""
        await self.session.commit(
            Transition(
                point=DurablePoint.FINISHED,
                writes=(
                    outbox_row(
                        FINAL,
                        TextPost(turn=TURN, address=HERE, text="hello", refs=ROW.refs),
                        CONVERSATION,
                    ),
                    turn_put(replace(ROW, final=FINAL)),
                ),
            )
        )

    async def final(self) -> TextPost:
        """Return what the final's row says."""
        row = await self.store.get(RowKind.OUTBOX, FINAL)
        assert row is not None
        item = OUTBOX.of(row)
        assert isinstance(item, TextPost)
        return item


async def held() -> Held:
    """Open a turn that has shown one message."""
    store = MemoryStore()
    session = ConversationSession(store, await store.lease(CONVERSATION), History(), audit.GENESIS)
    await session.commit(Transition(point=DurablePoint.TURN_STARTED, writes=(turn_put(ROW),)))
    return Held(store=store, session=session)


async def test_a_message_of_an_open_turn_joins_its_row() -> None:
    turn = await held()
    await record_send(turn.store, turn.session.fence, TURN, SECOND)
    await record_send(turn.store, turn.session.fence, TURN, SECOND)
    (row,) = await turn.store.select(TURNS.where(state="open"))
    assert TURNS.of(row).refs == (FIRST, SECOND)


async def test_a_message_that_is_learned_after_the_end_joins_the_final() -> None:
    """The turn stays closed; a restart delivers the final onto that message too."""
    turn = await held()
    await turn.end()
    await record_send(turn.store, turn.session.fence, TURN, SECOND)
    (row,) = await turn.store.select(TURNS.where(state="closed"))
    assert TURNS.of(row).refs == (FIRST, SECOND)
    assert (await turn.final()).refs == (FIRST, SECOND)


async def test_a_send_that_begins_is_on_record_until_its_message_is_known() -> None:
    """Killed in between, a restart knows from where to look for it."""
    turn = await held()
    await record_send(turn.store, turn.session.fence, TURN, "17")
    row = await TURNS.need(turn.store, TURN)
    assert (row.refs, row.sending) == ((FIRST,), "17")
    await record_send(turn.store, turn.session.fence, TURN, SECOND)
    row = await TURNS.need(turn.store, TURN)
    assert (row.refs, row.sending) == ((FIRST, SECOND), "")


async def test_a_send_that_begins_as_the_turn_ends_is_looked_for_by_the_final() -> None:
    """Until its outcome is known: its message, or that there is none (P6)."""
    turn = await held()
    await turn.end()
    await record_send(turn.store, turn.session.fence, TURN, "17")
    final = await turn.final()
    assert final.uncertainty == Uncertainty(may_stand=True, mark="17")
    await record_send(turn.store, turn.session.fence, TURN, "")
    final = await turn.final()
    assert final.uncertainty == CERTAIN
    await record_send(turn.store, turn.session.fence, TURN, "18")
    await record_send(turn.store, turn.session.fence, TURN, SECOND)
    final = await turn.final()
    assert (final.refs, final.uncertainty) == ((FIRST, SECOND), CERTAIN)


async def test_a_final_that_is_delivered_is_left_alone() -> None:
    turn = await held()
    await turn.end()
    stored = await turn.store.get(RowKind.OUTBOX, FINAL)
    assert stored is not None
    delivered = rows.changed(stored, OUTBOX.of(stored), "delivered")
    await turn.session.commit(Transition(point=DurablePoint.DELIVERED, writes=(delivered,)))
    await record_send(turn.store, turn.session.fence, TURN, SECOND)
    assert (await turn.final()).refs == (FIRST,)


async def test_a_write_that_came_between_is_read_first() -> None:
    """The end and the message race: the second writer sees the first one's write."""
    turn = await held()
    left = 2

    def touch(_: Commit) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            turn.store.touch(RowKind.TURN)

    turn.store.before = touch
    await record_send(turn.store, turn.session.fence, TURN, SECOND)
    row = await TURNS.need(turn.store, TURN)
    assert row.refs == (FIRST, SECOND)


async def test_it_gives_up_when_another_writer_keeps_writing() -> None:
    turn = await held()
    turn.store.before = lambda _: turn.store.touch(RowKind.TURN)
    with pytest.raises(Conflict):
        await record_send(turn.store, turn.session.fence, TURN, SECOND)


async def test_a_turn_without_a_row_is_a_fault() -> None:
    with pytest.raises(LookupError, match="the turn `t2` has no row"):
        await TURNS.need(MemoryStore(), TurnId("t2"))


def test_a_turn_of_a_release_that_did_not_record_what_is_being_sent_goes_on() -> None:
    """A turn that is open when the daemon is updated is ended by the newer one (P1)."""
    body = encode(ROW)
    older = body.replace(b',"sending":""', b"")
    assert len(older) < len(body)
    row = Row(kind=RowKind.TURN, key=TURN, version=1, body=older)
    assert TURNS.of(row) == ROW
