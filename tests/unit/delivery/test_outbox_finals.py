"""A final ends as exactly its text: it edits, sends, takes away, and falls back before it gives up."""

import pytest

from tests.unit.delivery.outbox_rows import (
    LONG,
    PARTS,
    delivery_points,
    final,
    note,
    posted,
    seen,
    turn_of,
)
from tests.unit.delivery.rig import PLAIN_SENDS, commit, platform, running
from zeroclaw.delivery.account import Markdown
from zeroclaw.delivery.draft import CONTINUED_ABOVE, message_key
from zeroclaw.delivery.rows import DraftRemainder, Uncertainty
from zeroclaw.errors import ChannelRejected, ChannelUnavailable
from zeroclaw.store import DurablePoint
from zeroclaw.text import catalogue

LOST = Uncertainty(may_stand=True)


async def test_a_long_final_edits_what_is_there_and_sends_the_rest() -> None:
    """Each result is committed before the next call (S2-20)."""
    async with running(platform()) as rig:
        put = final(rig, LONG, refs=await posted(rig, "one"))
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == PARTS
        known = [DurablePoint.REF_KNOWN] * 2
        assert delivery_points(rig) == [*known, DurablePoint.DELIVERED]
        assert [call.name for call in rig.channel.calls] == ["edit", "send", "send"]


async def test_a_message_that_can_no_longer_be_deleted_says_so() -> None:
    """Some platforms delete young messages only; a message already gone is no trouble."""
    async with running(platform()) as rig:
        refs = await posted(rig, "a", "b", "c", "d")
        rig.channel.will("delete", ChannelRejected("too old"), ChannelRejected("?", gone=True))
        rig.channel.will("edit", None, ChannelUnavailable("no route"))
        rig.channel.will("delete", ChannelUnavailable("no route"), ChannelRejected("too old"))
        put = final(rig, "x", refs=refs)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel)[:2] == ["x", CONTINUED_ABOVE]


async def test_what_the_draft_learned_late_is_used() -> None:
    """A message that came into being after the turn's last commit is edited too (P6)."""
    async with running(platform()) as rig:
        refs = await posted(rig, "dra")
        put = final(rig, "drawn")
        await commit(rig.store, put)
        rig.outbox.announce(put, DraftRemainder(refs=refs))
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["drawn"]
        assert delivery_points(rig) == [DurablePoint.REF_KNOWN, DurablePoint.DELIVERED]


async def test_a_lost_draft_makes_the_final_a_possible_repeat() -> None:
    """The person is told that it may stand there twice (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        put = final(rig, "done")
        await commit(rig.store, put)
        rig.outbox.announce(put, DraftRemainder(uncertainty=LOST))
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done" + catalogue.POSSIBLE_REPEAT.en]


@pytest.mark.parametrize(
    ("draft", "text", "left"),
    [
        pytest.param("dra", "drawn", ["drawn"], id="its first"),
        pytest.param("one", LONG, PARTS, id="one of many"),
    ],
)
async def test_a_lost_message_of_the_draft_is_found_by_its_key(
    draft: str, text: str, left: list[str]
) -> None:
    """Where the platform knows our keys no fragment stays (P1)."""
    async with running(platform()) as rig:
        put = final(rig, text)
        to, turn = rig.channel.address(), turn_of(put.key)
        await rig.accounts["chat"].post(
            to, Markdown(text=draft, key=message_key(turn, 0), draft=True)
        )
        await commit(rig.store, put)
        rig.outbox.announce(put, DraftRemainder(uncertainty=LOST))
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == left


async def test_a_lost_message_that_the_final_does_not_need_is_taken_away() -> None:
    """Found by its key, and counted from the messages that the draft posted (P1)."""
    async with running(platform()) as rig:
        put = final(rig, "short")
        to, turn, account = rig.channel.address(), turn_of(put.key), rig.accounts["chat"]
        for number, text in enumerate(["a", "deleted", "lost"]):
            await account.post(to, Markdown(text=text, key=message_key(turn, number), draft=True))
        first, deleted, _ = (shown.ref for shown in rig.channel.standing(to))
        rig.channel.lose(deleted)
        await commit(rig.store, put)
        rig.outbox.announce(put, DraftRemainder(refs=(first,), uncertainty=LOST, posted=2))
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["short"]


async def test_nobody_is_told_of_a_refused_quiet_note() -> None:
    """So telling the operator can't go round in circles."""
    async with running(platform()) as rig:
        rig.channel.will("send", ChannelRejected("blocked"))
        put = note(rig, "a final was refused", quiet=True)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert ((await rig.row(put)).state, rig.hooks.reasons) == ("refused", [])
