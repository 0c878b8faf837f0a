"""Rows of the outbox come back as they were written."""

import pytest

from tests.unit.delivery.rig import HERE, TURN, card, outcome
from zeroclaw.codec import encode
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import (
    OUTBOX,
    DraftRemainder,
    Item,
    Second,
    TextPost,
    Uncertainty,
    looked_up,
)
from zeroclaw.envelope import Address, MessageRef
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Put
from zeroclaw.value import replace

WHERE = Address(channel="chat", account="bot", chat="c", thread="t", direct=True)
REF = MessageRef(address=WHERE, message="m0")
FINAL = TextPost(address=WHERE, text="täxt", turn=TURN, refs=(REF,), reply_to="m")
FILE = rows.FilePost(
    address=WHERE, name="a.txt", media_type="text/plain", digest="d", size_bytes=3, turn=TURN
)
ASK = rows.ApprovalCard(address=WHERE, card=card(), approvals=("a1",))


def put(item: Item) -> Put:
    match item:
        case TextPost():
            return rows.outbox_row(
                "k",
                rows.TextPost(
                    turn=TURN, address=WHERE, text=item.text, refs=item.refs, reply_to=item.reply_to
                ),
                HERE,
            )
        case rows.FilePost():
            return rows.outbox_row("k", item, HERE)
        case rows.ApprovalCard():
            return rows.outbox_row(
                "k",
                rows.ApprovalCard(address=WHERE, card=item.card, approvals=item.approvals),
                HERE,
            )
        case rows.Settle():
            return rows.outbox_row("k", item, HERE)


@pytest.mark.parametrize("item", [FINAL, FILE, ASK, rows.Settle(ref=REF, outcome=outcome())])
def test_a_row_reads_back_as_its_item(item: Item) -> None:
    """Where it goes is indexed, so that one address is served in order."""
    written = put(item)
    assert (written.state, written.place) == ("pending", WHERE.key())
    assert OUTBOX.of(rows.stored(written, 1)) == item


@pytest.mark.parametrize("item", [FINAL, replace(FILE, ref=REF), replace(ASK, ref=REF)])
def test_every_row_tells_the_messages_that_carry_it(item: Item) -> None:
    """By which another's is not taken for a message that was lost."""
    assert rows.messages(item) == (REF,)


def test_a_row_that_was_not_sent_is_carried_by_nothing() -> None:
    """Nor does a card that ended say where it stands: that is what its question is to find."""
    assert rows.messages(FILE) == rows.messages(ASK) == ()
    assert rows.messages(rows.Settle(ref=REF, outcome=outcome())) == ()


def test_keys_of_a_final_go_on_where_its_draft_stopped() -> None:
    """Messages that are gone are counted, so that no key is used twice (P1)."""
    assert rows.part_key("k", FINAL) == f"{TURN}:1"
    assert rows.first_key("k", FINAL) == f"{TURN}:0"
    left = DraftRemainder(refs=(REF,), uncertainty=Uncertainty(may_stand=True), posted=3)
    assert rows.part_key("k", rows.with_draft(FINAL, left)) == f"{TURN}:3"
    assert rows.with_draft(FINAL, DraftRemainder(refs=(REF,), posted=1)) == FINAL


def test_a_final_takes_over_every_message_of_its_draft() -> None:
    """Those that it knew already as well, or they would stand beside it (P1)."""
    other = replace(REF, message="other")
    assert rows.with_draft(FINAL, DraftRemainder(refs=(other,))).refs == (other, REF)


def test_a_send_of_the_final_is_later_than_one_of_its_draft() -> None:
    """The row may be read again after a conflict, and is joined with its draft once more (P1)."""
    sent = replace(FINAL, uncertainty=Uncertainty(may_stand=True, mark="9"))
    draft = DraftRemainder(refs=(REF,), uncertainty=Uncertainty(may_stand=True, mark="7"))
    assert rows.with_draft(sent, draft).uncertainty == sent.uncertainty
    assert rows.with_draft(FINAL, draft).uncertainty == draft.uncertainty


def test_a_draft_whose_messages_are_all_gone_has_begun() -> None:
    """Its keys are used; under one of them a platform would show no new message (P1)."""
    assert DraftRemainder(posted=1).is_begun
    assert not DraftRemainder(posted=0).is_begun


def test_a_note_is_keyed_by_its_row() -> None:
    """It has no draft."""
    note = TextPost(address=WHERE, text="text", done=2)
    assert rows.part_key("k", note) == "k:2"
    assert rows.first_key("k", note) == "k:0"


@pytest.mark.parametrize("item", [FINAL, FILE, ASK])
def test_a_row_of_a_release_that_knew_nothing_of_lateness_is_read(item: Item) -> None:
    """A message that waits when the daemon is updated is sent by the newer one (P1)."""
    written = put(item)
    older = written.body.replace(b',"late":false,"second":null', b"")
    assert len(older) < len(written.body)
    assert OUTBOX.of(replace(rows.stored(written, 1), body=older)) == item


SENT = pytest.mark.parametrize("item", [FINAL, FILE, ASK], ids=["text", "file", "card"])
SECOND = Second(ref=MessageRef(address=WHERE, message="m2"), since="7")


def test_a_lookup_goes_on_where_the_last_one_ended() -> None:
    """For the first message; once there is a second, up to that one (P1)."""
    first = looked_up(Uncertainty(mark="3"), "5")
    assert first == Uncertainty(mark="5")
    second = looked_up(replace(first, second=SECOND), "9")
    assert second == Uncertainty(mark="5", second=replace(SECOND, since="9"))


@SENT
def test_a_row_that_holds_its_uncertainty_as_four_fields_is_read(
    item: TextPost | rows.FilePost | rows.ApprovalCard,
) -> None:
    """Rows outlive a release: a send that an older daemon had begun is looked up (P1)."""
    known = Uncertainty(may_stand=True, mark="3", late=True, second=SECOND)
    body = rows.OUTBOX.codec.encode(replace(item, uncertainty=known))
    new = b'"uncertainty":' + encode(known)
    old = b'"uncertain":true,"mark":"3","late":true,"second":' + encode(SECOND)
    assert body.count(new) == 1
    assert rows.OUTBOX.codec.decode(body.replace(new, old)) == replace(item, uncertainty=known)


def test_a_row_that_nothing_has_written_is_refused() -> None:
    for body in (b'{"is":"_Said","item":{"is":"Text","more":1}}', b'{"is":"_Said","item":"x"}'):
        with pytest.raises(StoreUnusable):
            rows.OUTBOX.codec.decode(body)
