"""What is uncertain about a row, and what is not any more."""

import pytest

from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.rig import TURN, platform
from tests.unit.delivery.rig import card as a_card
from tests.unit.delivery.rig import outcome as an_outcome
from zeroclaw.delivery import doubt
from zeroclaw.delivery.rows import Ask, File, Second, Settle, Text
from zeroclaw.envelope import MessageRef
from zeroclaw.value import replace

CHANNEL: ScriptedChannel = platform()
HERE = CHANNEL.address()
REF = MessageRef(address=HERE, message="m1")
SECOND = Second(ref=MessageRef(address=HERE, message="m2"), since="7")
TEXT = Text(address=HERE, text="done")
FILE = File(
    address=HERE, name="a.txt", media_type="text/plain", digest="d", size_bytes=1, turn=TURN
)
CARD = Ask(address=HERE, card=a_card(), approvals=())
ENDED = Settle(ref=REF, outcome=an_outcome())
SENT = pytest.mark.parametrize("item", [TEXT, FILE, CARD], ids=["text", "file", "card"])


@SENT
def test_after_a_loss_all_is_uncertain_until_it_is_certain(item: Text | File | Ask) -> None:
    """Nothing of it is left behind for the next message of the row (P1)."""
    lost = doubt.after_loss(replace(item, mark="3"), late=True)
    assert lost.uncertain
    assert doubt.is_late(lost)
    assert doubt.certain(replace(lost, second=SECOND)) == item


@SENT
def test_what_was_late_once_may_always_come(item: Text | File | Ask) -> None:
    """A later try that was cut says nothing of it (P1)."""
    late = doubt.after_loss(item, late=True)
    assert doubt.is_late(doubt.after_loss(late, late=False))
    assert not doubt.is_late(doubt.after_loss(item, late=False))


@SENT
def test_a_look_goes_on_where_the_last_one_ended(item: Text | File | Ask) -> None:
    """For the first message; once there is a second, up to that one (P1)."""
    first = doubt.looked(replace(item, mark="3"), "5")
    assert doubt.mark_of(first) == "5"
    second = doubt.looked(doubt.with_second(first, SECOND), "9")
    assert doubt.mark_of(second) == "5"
    assert doubt.second_of(second) == replace(SECOND, since="9")


def test_how_a_card_ended_is_never_uncertain() -> None:
    """It is an edit, which may be made again."""
    assert not doubt.is_late(ENDED)
    assert doubt.mark_of(ENDED) == ""
    assert doubt.second_of(ENDED) is None
    assert doubt.with_second(ENDED, SECOND) == doubt.looked(ENDED, "5") == ENDED
