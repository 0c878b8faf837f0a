"""A card is shown, its approvals learn where, and it shows how each ended."""

import pytest

from tests.fakes.scripted_calls import Lost
from tests.unit.delivery.rig import (
    CAPABILITIES,
    HERE,
    PLAIN_SENDS,
    Rig,
    card,
    outcome,
    platform,
    running,
)
from zeroclaw.channel import Capabilities
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard, Settle, outbox_row
from zeroclaw.errors import ChannelRejected, ChannelUnavailable, Conflict, DeliveryUnknown
from zeroclaw.store import Commit, DurablePoint, Put, RowKind
from zeroclaw.value import replace


def asking(rig: Rig) -> Put:
    return outbox_row(
        rig.ids.ulid(),
        ApprovalCard(
            address=rig.channel.address("approver", direct=True), card=card(), approvals=("a1",)
        ),
        HERE,
    )


@pytest.mark.parametrize("capabilities", [CAPABILITIES, PLAIN_SENDS])
async def test_a_card_is_shown_and_its_approvals_learn_where(capabilities: Capabilities) -> None:
    """In one commit, with whatever the approvals add (S2-10)."""
    async with running(platform(capabilities)) as rig:
        rig.channel.will("ask", ChannelUnavailable("no route"), Lost())
        put = asking(rig)
        rig.hooks.add = (Put(kind=RowKind.APPROVAL, key="a1", body=b"with its ref"),)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        row = await rig.row(put)
        item = OUTBOX.of(row)
        assert isinstance(item, ApprovalCard)
        assert (row.state, rig.store.points()[-1]) == ("delivered", DurablePoint.ASKED)
        assert rig.hooks.asked_refs == [item.ref]
        assert await rig.store.get(RowKind.APPROVAL, "a1") is not None


async def test_what_the_approvals_add_is_asked_for_again_when_it_conflicts() -> None:
    """Somebody pressed the card before its ref was recorded."""
    async with running(platform()) as rig:
        put = asking(rig)
        conflicts = 2

        def conflict(found: Commit) -> None:
            nonlocal conflicts
            if found.point is DurablePoint.ASKED and conflicts:
                conflicts -= 1
                message = "the approval was answered"
                raise Conflict(message)

        rig.store.before = conflict
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert len(rig.hooks.asked_refs) == 3
        assert len(rig.channel.called("ask")) == 1


async def test_a_refused_card_is_told() -> None:
    """Nobody waits for an approver who never saw it (P10)."""
    async with running(platform()) as rig:
        rig.channel.will("ask", ChannelRejected("blocked by the user"))
        put = asking(rig)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert rig.hooks.reasons == ["blocked by the user"]


async def test_every_message_of_a_card_shows_how_it_ended() -> None:
    """P5; a lost answer is repeated, a deleted card needs nothing."""
    async with running(platform()) as rig:
        asked = asking(rig)
        await rig.commit(asked)
        await rig.outbox.ended(asked.key)
        item = OUTBOX.of(await rig.row(asked))
        assert isinstance(item, ApprovalCard)
        assert item.ref is not None
        gone = replace(item.ref, message="deleted")
        puts = [
            outbox_row(rig.ids.ulid(), Settle(ref=ref, outcome=outcome()), HERE)
            for ref in (item.ref, gone)
        ]
        rig.channel.will("settle", DeliveryUnknown("no answer"))
        await rig.commit(*puts)
        for put in puts:
            await rig.outbox.ended(put.key)
        (shown,) = rig.channel.standing(item.ref.address)
        assert shown.outcome == outcome()
        assert rig.store.points()[-2:] == [DurablePoint.SETTLED] * 2
