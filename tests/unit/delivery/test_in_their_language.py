"""Delivery writes its own words in the language of the message's reader."""

from tests.fakes.scripted_channel import Lost
from tests.unit.delivery.rig import CAPABILITIES, PLAIN_SENDS, platform, posted, running, seen
from zeroclaw.delivery.live import NewDraft
from zeroclaw.delivery.rows import TextPost, outbox_row
from zeroclaw.envelope import ConversationId, TurnId
from zeroclaw.errors import ChannelUnavailable
from zeroclaw.value import replace

KEEPS = replace(CAPABILITIES, can_delete=False)
"""A platform that deletes nothing."""
TURN = TurnId("turn")


async def nothing(_: object) -> None:
    """Nobody has to know where a message stands."""


async def test_a_draft_that_became_shorter_says_where_its_text_went() -> None:
    """In the middle of an answer, and again after its end (P6)."""
    async with running(platform(KEEPS)) as rig:
        address = rig.channel.address()
        handle = rig.live.open(NewDraft(turn=TURN, address=address, record=nothing, language="de"))
        handle.show("one " * 20)
        await rig.clock.sleep(1)
        handle.show("short")
        await rig.clock.sleep(1)
        await handle.close()
        assert seen(rig.channel) == ["short", "(steht schon oben)"]


async def test_a_final_says_so_where_a_message_is_no_longer_needed() -> None:
    async with running(platform(KEEPS)) as rig:
        put = outbox_row(
            rig.ids.ulid(),
            TextPost(
                turn=TURN,
                address=rig.channel.address(),
                text="kurz",
                refs=await posted(rig, "a", "b"),
                language="de",
            ),
            ConversationId("here"),
        )
        await rig.deliver(put)
        assert seen(rig.channel) == ["kurz", "(steht schon oben)"]


async def test_a_message_that_may_stand_twice_says_so() -> None:
    """P1, in German too."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", Lost(), ChannelUnavailable("no route"))
        key, address = rig.ids.ulid(), rig.channel.address()
        put = outbox_row(key, TextPost(address=address, text="gut", language="de"))
        await rig.deliver(put)
        assert seen(rig.channel) == ["gut", "gut\n\n(evtl. doppelt)"]
