"""Cards and drafts that were lost are found as well, and where that is not wanted, held back."""

from collections.abc import Iterable

from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_calls import Call, Lost
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.outbox_rows import LONG, final, seen, turn_of
from tests.unit.delivery.rig import (
    HERE,
    LOOKING,
    PLAIN_SENDS,
    Kill,
    card,
    commit,
    outcome,
    platform,
    running,
)
from zeroclaw.delivery.live import NewDraft
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard, Settle, Text, outbox_row
from zeroclaw.envelope import MessageRef
from zeroclaw.errors import ChannelUnavailable
from zeroclaw.text import catalogue
from zeroclaw.value import replace

HOLDING = replace(PLAIN_SENDS, may_repeat=False)
MARKED = "done" + catalogue.POSSIBLE_REPEAT.en


async def test_a_lost_card_is_found_and_its_approvals_learn_where() -> None:
    """Nobody has two cards to press (P5)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("ask", Lost())
        put = outbox_row(
            rig.ids.ulid(),
            ApprovalCard(
                address=rig.channel.address("approver", direct=True), card=card(), approvals=("a1",)
            ),
            HERE,
        )
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, ApprovalCard)
        assert rig.hooks.asked_refs == [item.ref]
        assert [call.name for call in rig.channel.calls] == ["ask", "lookup"]
        settled = outbox_row(
            rig.ids.ulid(), Settle(ref=rig.hooks.asked_refs[0], outcome=outcome()), HERE
        )
        await rig.commit(settled)
        await rig.outbox.ended(settled.key)
        (shown,) = rig.channel.standing(rig.channel.address("approver", direct=True))
        assert shown.outcome == outcome()


async def test_a_lost_card_that_was_pressed_meanwhile_is_found_all_the_same() -> None:
    """How it ends waits to be shown on it, which makes it no other card (P5)."""
    async with running(platform(LOOKING)) as rig:
        there = rig.channel.address("approver", direct=True)
        put = outbox_row(
            rig.ids.ulid(), ApprovalCard(address=there, card=card(), approvals=("a1",)), HERE
        )

        async def press(call: Call) -> None:
            if call.name == "lookup":
                rig.channel.before = None
                (shown,) = rig.channel.standing(there)
                await rig.commit(
                    outbox_row(rig.ids.ulid(), Settle(ref=shown.ref, outcome=outcome()), HERE)
                )
                raise ChannelUnavailable("not now")

        rig.channel.before = press
        rig.channel.will("ask", Lost())
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert len(rig.channel.standing(there)) == 1
        assert len(rig.channel.called("ask")) == 1


async def shown_as_draft(
    store: MemoryStore, channel: ScriptedChannel, draft: str, answer: str
) -> Iterable[str]:
    """Let a draft lose its only answer, and its final come."""
    async with running(channel, store=store) as rig:
        put = final(rig, answer)

        async def on_ref(ref: MessageRef) -> None:
            raise AssertionError(ref)

        handle = rig.live.open(
            NewDraft(turn=turn_of(put.key), fence=1, address=channel.address(), on_ref=on_ref)
        )
        channel.will("send", Lost())
        handle.show(0, draft)
        await handle.at_rest()
        await commit(store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        return seen(channel)


async def test_the_final_takes_the_message_that_its_draft_has_lost() -> None:
    """The beginning of an answer is not left behind (P1, P6)."""
    assert await shown_as_draft(MemoryStore(), platform(LOOKING), "do", "done") == ["done"]


async def test_where_it_can_not_be_looked_for_the_final_says_that_it_may_be_a_repeat() -> None:
    shown = await shown_as_draft(MemoryStore(), platform(PLAIN_SENDS), "do", "done")
    assert shown == ["do", MARKED]


async def test_a_final_that_needs_fewer_messages_takes_the_lost_one_away() -> None:
    """Its draft had begun another message, and lost it (P6)."""
    store, channel = MemoryStore(), platform(LOOKING)
    async with running(channel, store=store) as rig:
        put = final(rig, "done")
        refs: list[MessageRef] = []

        async def on_ref(ref: MessageRef) -> None:
            refs.append(ref)

        handle = rig.live.open(
            NewDraft(turn=turn_of(put.key), fence=1, address=channel.address(), on_ref=on_ref)
        )
        channel.will("send", None, Lost())
        handle.show(0, LONG)
        await handle.at_rest()
        await commit(store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["done"]


# --- held -----------------------------------------------------------------------------------------


async def test_held_it_is_neither_looked_for_nor_repeated_and_the_operator_is_told() -> None:
    """S2-19, as the operator chose."""
    async with running(platform(HOLDING)) as rig:
        rig.channel.will("send", Lost())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert rig.hooks.reasons == ["the answer was lost, and it is not sent again"]
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, Text)
        assert item.uncertainty.may_stand


async def test_held_after_a_kill_it_is_not_repeated_either() -> None:
    store, channel = MemoryStore(), platform(HOLDING)
    async with running(channel, store=store) as rig:
        put = final(rig, "done")
        await commit(store, put)
        kill = Kill(store, 3)
        rig.outbox.announce(put)
        await kill.dead.wait()
    store.before = store.after = None
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["done"]
        assert (await rig.row(put)).state == "refused"


async def test_held_a_final_still_comes_after_a_draft_that_was_lost() -> None:
    """What may stand is a beginning, and the answer itself was never sent."""
    shown = await shown_as_draft(MemoryStore(), platform(HOLDING), "do", "done")
    assert shown == ["do", MARKED]
