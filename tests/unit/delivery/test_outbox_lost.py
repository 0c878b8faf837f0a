"""A message whose answer or whose record was lost is looked up, so that it does not stand twice."""

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.channel_suite import first
from tests.fakes.manual_clock import LoopClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import Call, CallName, Hang, Lost, ScriptedChannel
from tests.unit.delivery.cuts import split
from tests.unit.delivery.rig import (
    HERE,
    LONG,
    LOOKING,
    PLAIN_SENDS,
    Kill,
    Rig,
    card,
    commit,
    draft,
    final,
    never_recorded,
    note,
    noted,
    outcome,
    platform,
    posted,
    running,
    seen,
    turn_of,
)
from zeroclaw.channel import Budget
from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Markdown
from zeroclaw.delivery.draft import message_key
from zeroclaw.delivery.reconcile import MAX_LOST
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard, Settle, TextPost, Uncertainty, outbox_row
from zeroclaw.envelope import MessageRef
from zeroclaw.errors import ChannelUnavailable, DeliveryUnknown, RateLimited
from zeroclaw.store import Commit, DurablePoint, Put, Row
from zeroclaw.text import catalogue
from zeroclaw.value import replace

MARKED = "done" + catalogue.POSSIBLE_REPEAT.en


async def test_a_lost_answer_is_looked_for_and_the_message_found() -> None:
    """It is not sent again (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Lost())
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done"]
        assert [call.name for call in rig.channel.calls] == ["send", "lookup"]


async def test_a_send_that_did_not_arrive_is_repeated_without_a_mark() -> None:
    """Once it has a number it is known that there is no other, and until then it says so (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", DeliveryUnknown("cut before it was read"))
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done"]
        called = [(call.name, call.text) for call in rig.channel.calls if call.name != "lookup"]
        assert called == [("send", "done"), ("send", MARKED), ("edit", "done")]


@pytest.mark.parametrize("point", [DurablePoint.HOUSEKEEPING, DurablePoint.DELIVERED])
async def test_after_a_kill_between_a_send_and_its_record_it_is_looked_for(
    point: DurablePoint,
) -> None:
    """Whether it was killed before the send or after it (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    dead = asyncio.Event()

    def stop(found: Commit) -> None:
        if found.point is point:
            dead.set()
            raise asyncio.CancelledError

    async with running(channel, store=store) as rig:
        await noted(rig, "earlier")
        put = final(rig, "done")
        await commit(store, put)
        if point is DurablePoint.HOUSEKEEPING:
            store.after = stop
        else:
            store.before = stop
        rig.outbox.announce(put)
        await dead.wait()
    store.before = store.after = None
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["earlier", "done"]


def others_write(rig: Rig) -> None:
    """Let messages of others come before the next call, so that its number is further on."""

    async def once(_: object) -> None:
        rig.channel.before = None
        rig.channel.skip(3)

    rig.channel.before = once


async def test_where_ids_ran_ahead_the_second_message_is_deleted() -> None:
    """Its own id tells how far to look, and the first one is found after all (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.reach = 1
        others_write(rig)
        rig.channel.will("send", Lost())
        put = final(rig, "done")
        await rig.deliver(put)
        assert seen(rig.channel) == ["done"]
        (shown,) = rig.channel.standing(rig.channel.address())
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, TextPost)
        assert item.refs == (shown.ref,)
        assert rig.channel.called("delete")


async def test_a_repeat_stays_marked_where_the_lookup_fails_after_it() -> None:
    """For good (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", DeliveryUnknown("cut"))
        rig.channel.will("lookup", None, DeliveryUnknown("too far"))
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == [MARKED]


async def test_a_repeat_is_not_sent_a_third_time() -> None:
    """The second look may fail as well, and the second message may be hard to take away (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.reach = 1
        others_write(rig)
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", None, None, ChannelUnavailable("no route"))
        rig.channel.will("delete", ChannelUnavailable("no route"))
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done"]
        assert len(rig.channel.called("send")) == 2


async def test_the_lookup_waits_for_another_message_on_its_way() -> None:
    """The other message, whose id is unknown yet, would be taken for it and overwritten (P1)."""
    async with running(platform(LOOKING)) as rig:
        together: list[list[str]] = []

        handle = draft(rig)

        async def another_begins(call: Call) -> None:
            if call.name == "lookup":
                handle.show("the next answer")
                for _ in range(20):
                    await asyncio.sleep(0)
            together.append([call.name for call in rig.channel.in_flight])

        rig.channel.before = another_begins
        rig.channel.will("send", Lost())
        await rig.deliver(final(rig, "done"))
        await handle.at_rest()
        assert together == [["send"], ["lookup"], ["send"]]
        assert seen(rig.channel) == ["done", "the next answer"]


async def test_a_mark_that_is_known_too_late_hides_no_earlier_try() -> None:
    """A message sent before the lookup stands below it, so the repeat is marked (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.knows_marks = False

        async def learn(call: Call) -> None:
            rig.channel.knows_marks = len(rig.channel.called("send")) > 1

        rig.channel.before = learn
        slow = RateLimited("slow down", retry_after_s=1)
        rig.channel.will("send", Lost(), slow, slow)
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done", MARKED]


@pytest.mark.parametrize("fault", [RateLimited("slow down", retry_after_s=1), Lost()])
async def test_a_lone_message_loses_its_mark_through_failures(fault: RateLimited | Lost) -> None:
    """A refused wait or a lost answer leaves no lone answer marked (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", DeliveryUnknown("cut"))
        rig.channel.will("edit", fault)
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done"]
        assert len(rig.channel.called("edit")) == 2
        assert len(rig.channel.called("send")) == 2


async def test_a_second_message_whose_deletion_was_lost_is_not_recorded_as_the_answer() -> None:
    """The recorded message is the one that stands, to be changed later (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.reach = 1
        others_write(rig)
        rig.channel.will("send", Lost())
        rig.channel.will("delete", Lost())
        put = final(rig, "done")
        await rig.deliver(put)
        (shown,) = rig.channel.standing(rig.channel.address())
        assert _text_of(await rig.row(put)).refs == (shown.ref,)


async def test_where_the_lookup_fails_the_repeat_is_marked() -> None:
    """The window that the platform leaves (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", DeliveryUnknown("ids ran too far"))
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done", MARKED]


async def test_only_the_part_whose_answer_was_lost_says_that_it_may_be_a_repeat() -> None:
    """Those below it were sent once (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", Lost())
        await rig.deliver(final(rig, LONG))
        lost, *rest = split(LONG, rig.accounts["chat"].fits)
        assert seen(rig.channel) == [lost, lost + catalogue.POSSIBLE_REPEAT.en, *rest]


async def test_where_a_draft_can_no_longer_be_edited_the_final_takes_its_place() -> None:
    """No fragment of a draft stays beside its answer (P6)."""
    async with running(platform(replace(PLAIN_SENDS, can_edit=False))) as rig:
        await rig.deliver(final(rig, "done", refs=await posted(rig, "do", "ne")))
        assert seen(rig.channel) == ["done"]


async def test_without_a_mark_to_look_from_the_repeat_is_marked() -> None:
    async with running(platform(LOOKING)) as rig:
        rig.channel.knows_marks = False
        rig.channel.will("send", Lost())
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done", MARKED]
        assert rig.channel.called("lookup") == []


async def test_a_late_send_may_arrive_after_the_lookup_so_the_repeat_is_marked() -> None:
    """A platform that was slow may carry it out whenever it likes (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Hang())
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == [MARKED]


async def test_a_late_send_is_not_repeated_where_repeats_are_off() -> None:
    """A look that found nothing does not make it certain."""
    async with running(platform(replace(LOOKING, may_repeat=False))) as rig:
        rig.channel.will("send", Hang())
        put = final(rig, "done")
        await rig.deliver(put)
        assert [call.name for call in rig.channel.calls] == ["send", "lookup"]
        assert (await rig.row(put)).state == "refused"


async def test_a_look_that_fails_is_made_again_before_anything_is_sent() -> None:
    """However long the platform is away (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", *[ChannelUnavailable("no route")] * 20, Hang())
        await rig.deliver(final(rig, "done"))
        assert seen(rig.channel) == ["done"]
        assert len(rig.channel.called("send")) == 1


async def test_looks_are_paced_like_every_call_and_obey_a_wait() -> None:
    """The platform counts them (P6)."""
    limited = replace(LOOKING, chat_budget=Budget(per_s=0.1, burst=1))
    async with running(platform(limited)) as rig:
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", RateLimited("slow down", retry_after_s=30))
        await rig.deliver(final(rig, "done"))
        starts = [call.at for call in rig.channel.calls]
        assert starts[1] - starts[0] >= 10
        assert starts[2] - starts[1] >= 30
        assert seen(rig.channel) == ["done"]


async def test_each_part_of_a_long_text_is_found_as_itself() -> None:
    """Parts that stand are not looked at (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", None, Lost(), Lost())
        await rig.deliver(final(rig, LONG))
        assert seen(rig.channel) == list(split(LONG, rig.accounts["chat"].fits))


async def test_messages_that_are_known_are_not_taken_for_it() -> None:
    """Those of other rows, and those of drafts of an earlier process (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    known: list[MessageRef] = []
    async with running(channel, store=store) as rig:
        put = final(rig, "done")
        await commit(store, put)
        # A draft of another turn of that chat, and a note, both under keys that look the same.
        key = rows.part_key(put.key, _text(put))
        account = rig.accounts["chat"]
        for text in ("a draft", "a note"):
            await account.post(channel.address(), Markdown(text=text, key=key, draft=True))
        known += [shown.ref for shown in channel.standing(channel.address())]
        row = await rig.row(put)
        item = replace(_text(put), uncertainty=Uncertainty(mark="0"))
        await commit(store, rows.changed(row, item, "sending"))
        note_row = rows.changed(row, replace(item, refs=(known[1],)), "delivered")
        await commit(store, replace(note_row, key=rig.ids.ulid()))
    async with running(channel, store=store, open_drafts=(known[0],)) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["a draft", "a note", "done"]


def _text(put: Put) -> TextPost:
    return _text_of(rows.stored(put, 1))


def _text_of(row: Row) -> TextPost:
    item = OUTBOX.of(row)
    assert isinstance(item, TextPost)
    return item


# --- any order ------------------------------------------------------------------------------------

SENDS = st.sampled_from(["arrives", "lost", "cut", "away"])
LOOKS = st.sampled_from(["seen", "away", "limited"])


@pytest.mark.slow
@given(
    sends=st.lists(SENDS, max_size=6),
    lookups=st.lists(LOOKS, max_size=6),
    kills=st.lists(st.integers(1, 12), max_size=3),
    begun=st.booleans(),
)
async def test_each_text_stands_once_through_losses_and_kills(
    sends: list[str], lookups: list[str], kills: list[int], begun: bool
) -> None:
    """In order, whole, and unmarked: here every look can tell (P1, P2)."""
    store = MemoryStore()
    channel = ScriptedChannel(clock=LoopClock(), capabilities=LOOKING)
    channel.reach = 50
    channel.will("send", *map(_fault, sends))
    channel.will("lookup", *map(_fault, lookups))
    async with running(channel, store=store) as rig:
        puts = [final(rig, LONG, begun=begun), final(rig, "done"), note(rig, "after it")]
        await commit(store, puts[0], puts[1])
        await commit(store, puts[2])
    for at in kills:
        kill = Kill(store, at)
        async with running(channel, store=store) as rig:
            await rig.outbox.resume()
            await first(rig.outbox.ended(puts[2].key), kill.dead.wait())
        store.before = store.after = None
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        for put in puts:
            await rig.outbox.ended(put.key)
        parts = split(LONG, rig.accounts["chat"].fits)
        assert seen(channel) == [*parts, "done", "after it"]


# --- cards and drafts that were lost --------------------------------------------------------------

HOLDING = replace(PLAIN_SENDS, may_repeat=False)


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
        await rig.deliver(put)
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, ApprovalCard)
        assert rig.hooks.sent_refs == [item.ref]
        assert [call.name for call in rig.channel.calls] == ["ask", "lookup"]
        settled = outbox_row(
            rig.ids.ulid(), Settle(ref=rig.hooks.sent_refs[0], outcome=outcome()), HERE
        )
        await rig.deliver(settled)
        (shown,) = rig.channel.standing(rig.channel.address("approver", direct=True))
        assert shown.outcome == outcome()


async def test_a_card_that_was_pressed_before_its_send_was_recorded_is_not_sent_again() -> None:
    """The press tells where it is, and its approvals learn that too (P5)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        address = rig.channel.address("approver", direct=True)
        item = ApprovalCard(address=address, card=card(), approvals=("a1",))
        put = outbox_row(rig.ids.ulid(), item, HERE, state="sending")
        await commit(rig.store, put)
        rig.hooks.message = MessageRef(address=address, message="m1")
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        row = await rig.row(put)
        assert (row.state, OUTBOX.of(row)) == ("delivered", replace(item, ref=rig.hooks.message))
        assert rig.hooks.sent_refs == [rig.hooks.message]
        assert rig.channel.calls == []


async def test_a_lost_card_that_was_pressed_meanwhile_is_found_all_the_same() -> None:
    """How it ends waits to be shown on it, which makes it no other card (P5)."""
    async with running(platform(LOOKING)) as rig:
        address = rig.channel.address("approver", direct=True)
        put = outbox_row(
            rig.ids.ulid(), ApprovalCard(address=address, card=card(), approvals=("a1",)), HERE
        )

        async def press(call: Call) -> None:
            if call.name == "lookup":
                rig.channel.before = None
                (shown,) = rig.channel.standing(address)
                await rig.commit(
                    outbox_row(rig.ids.ulid(), Settle(ref=shown.ref, outcome=outcome()), HERE)
                )
                raise ChannelUnavailable("not now")

        rig.channel.before = press
        rig.channel.will("ask", Lost())
        await rig.deliver(put)
        assert len(rig.channel.standing(address)) == 1
        assert len(rig.channel.called("ask")) == 1


async def shown_as_draft(
    store: MemoryStore, channel: ScriptedChannel, drafted: str, answer: str
) -> Iterable[str]:
    """Let a draft lose its only answer, and its final come."""
    async with running(channel, store=store) as rig:
        put = final(rig, answer)
        handle = draft(rig, turn=turn_of(put.key), record=never_recorded)
        channel.will("send", Lost())
        handle.show(drafted)
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
        handle = draft(rig, turn=turn_of(put.key))
        channel.will("send", None, Lost())
        handle.show(LONG)
        await handle.at_rest()
        await commit(store, put)
        left = await handle.close()
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["done"]


# --- held -----------------------------------------------------------------------------------------


async def test_a_held_answer_is_neither_looked_up_nor_repeated_but_reported() -> None:
    """S2-19, as the operator chose."""
    async with running(platform(HOLDING)) as rig:
        rig.channel.will("send", Lost())
        put = final(rig, "done")
        await rig.deliver(put)
        assert seen(rig.channel) == ["done"]
        assert rig.hooks.reasons == ["the answer was lost, and it is not sent again"]
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, TextPost)
        assert item.uncertainty.may_stand


async def test_a_held_answer_is_not_repeated_after_a_kill_either() -> None:
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
    """Only a beginning may stand, and the answer itself was never sent."""
    shown = await shown_as_draft(MemoryStore(), platform(HOLDING), "do", "done")
    assert shown == ["do", MARKED]


# --- while a lost message is sent again, one stands unmarked at most ------------------------------

FURTHER_ON = 3
"""Messages of others, behind which the first one stands; a look that covers one misses it."""


def far() -> ScriptedChannel:
    """Return a platform where the first message stands further on than is looked at first."""
    channel = platform(LOOKING)
    channel.reach = 1
    channel.skip(1)
    return channel


async def run_until(
    channel: ScriptedChannel, store: MemoryStore, put: Put, name: CallName, number: int
) -> None:
    """Deliver, and kill the process as it makes its so many-th call of a name."""
    reached = asyncio.Event()

    async def stop(call: Call) -> None:
        if call.name == "send" and len(channel.called("send")) == 1:
            channel.skip(FURTHER_ON)
        if call.name == name and len(channel.called(name)) == number:
            reached.set()
            await asyncio.get_running_loop().create_future()

    channel.before = stop
    async with running(channel, store=store) as rig:
        rig.outbox.announce(put)
        await reached.wait()
    channel.before = None


async def go_on(channel: ScriptedChannel, store: MemoryStore, put: Put) -> None:
    """Deliver as the process after it."""
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)


async def a_final(store: MemoryStore) -> Put:
    async with running(platform(LOOKING), store=store) as rig:
        put = final(rig, "done")
        await commit(store, put)
        return put


async def comes_after_all(channel: ScriptedChannel, put: Put) -> None:
    """Let the platform carry out the first send, when all is over."""
    async with running(channel) as rig:
        key = message_key(turn_of(put.key), 0)
        await rig.accounts["chat"].post(channel.address(), Markdown(text="done", key=key))


@pytest.mark.parametrize(("name", "number"), [("lookup", 2), ("lookup", 3), ("delete", 1)])
async def test_after_a_kill_while_the_first_is_looked_for_again_the_second_is_taken_away(
    name: CallName, number: int
) -> None:
    """That there are two is on record, and where the second stands (P1)."""
    store, channel = MemoryStore(), far()
    put = await a_final(store)
    channel.will("send", Lost())
    await run_until(channel, store, put, name, number)
    assert seen(channel) == ["done", MARKED]
    await go_on(channel, store, put)
    assert seen(channel) == ["done"]


async def test_after_a_kill_before_a_lone_second_is_cleared_it_is_cleared() -> None:
    """It is no repeat, and says so no more (P1)."""
    store, channel = MemoryStore(), far()
    put = await a_final(store)
    channel.will("send", DeliveryUnknown("cut"))
    await run_until(channel, store, put, "edit", 1)
    assert seen(channel) == [MARKED]
    await go_on(channel, store, put)
    assert seen(channel) == ["done"]


@pytest.mark.parametrize("how", [Lost(), Hang()])
async def test_a_second_that_is_lost_as_well_says_that_it_may_be_a_repeat(how: Lost | Hang) -> None:
    """Nobody knows its id, and the first is found before it (P1)."""
    store, channel = MemoryStore(), far()
    put = await a_final(store)
    channel.will("send", Lost(), how)

    async def others_write(call: Call) -> None:
        channel.before = None
        channel.skip(FURTHER_ON)

    channel.before = others_write
    await go_on(channel, store, put)
    stand = seen(channel)
    assert stand.count("done") == 1
    assert len(stand) <= 2
    assert set(stand) <= {"done", MARKED}


async def test_that_a_message_may_come_late_outlives_the_process() -> None:
    """However long after the look it comes: the one that was sent again says so for good (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    put = await a_final(store)
    channel.will("send", Hang())
    await run_until(channel, store, put, "lookup", 1)
    await go_on(channel, store, put)
    assert seen(channel) == [MARKED]
    await comes_after_all(channel, put)
    assert seen(channel) == [MARKED, "done"]


async def test_a_repeat_stays_marked_while_the_first_send_may_arrive() -> None:
    """Looked for as it was sent, it is not mistaken for the first, which stands beside it (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    put = await a_final(store)
    channel.will("send", Hang(), Lost())
    await go_on(channel, store, put)
    await comes_after_all(channel, put)
    assert seen(channel) == [MARKED, "done"]


async def test_a_late_send_may_arrive_after_a_later_try_was_cut() -> None:
    """A try that ends at once says nothing of the one before it (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    put = await a_final(store)
    channel.will("send", Hang(), DeliveryUnknown("cut"))
    await go_on(channel, store, put)
    assert seen(channel) == [MARKED]


async def test_a_draft_that_may_come_late_leaves_no_answer_unmarked_beside_it() -> None:
    """It may show the whole answer by then (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Hang())
        put = final(rig, "done")
        handle = draft(rig, turn=turn_of(put.key), record=never_recorded)
        handle.show("done")
        left = await handle.close()
        await commit(rig.store, put)
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == [MARKED]


async def test_of_two_cards_one_is_left_though_a_person_pressed_one_before_the_restart() -> None:
    """The other would stand open for ever (P5)."""
    store, channel = MemoryStore(), far()
    address, reached = channel.address("approver", direct=True), asyncio.Event()

    async def stop(call: Call) -> None:
        if call.name == "ask" and len(channel.called("ask")) == 1:
            channel.skip(FURTHER_ON)
        if len(channel.called("lookup")) > 1:
            reached.set()
            await asyncio.get_running_loop().create_future()

    channel.will("ask", Lost())
    channel.before = stop
    async with running(channel, store=store) as rig:
        put = outbox_row(
            rig.ids.ulid(), ApprovalCard(address=address, card=card(), approvals=("a1",)), HERE
        )
        await rig.commit(put)
        await reached.wait()
    channel.before = None
    assert len(channel.standing(address)) == 2
    async with running(channel, store=store) as rig:
        rig.hooks.message = channel.standing(address)[1].ref
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        (left,) = channel.standing(address)
        assert rig.hooks.sent_refs == [left.ref]


# --- any order ------------------------------------------------------------------------------------

SENDINGS = st.sampled_from(["arrives", "lost", "cut", "away", "hangs"])
OTHERS = st.sampled_from(["arrives", "lost", "away", "limited", "too far"])


def _fault(kind: str) -> Exception | Lost | Hang | None:
    faults: dict[str, Exception | Lost | Hang] = {
        "lost": Lost(),
        "hangs": Hang(),
        "cut": DeliveryUnknown("cut before it was read"),
        "away": ChannelUnavailable("no route"),
        "limited": RateLimited("slow down", retry_after_s=5),
        "too far": DeliveryUnknown("it stands too far on"),
    }
    return faults.get(kind)


@pytest.mark.slow
@given(
    sends=st.lists(SENDINGS, max_size=MAX_LOST - 1),  # one more, and it is given up
    lookups=st.lists(OTHERS, max_size=5),
    changes=st.lists(OTHERS, max_size=4),
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    kills=st.lists(st.integers(1, 9), max_size=4),
)
async def test_at_most_one_message_stands_unmarked_and_none_is_missing(
    sends: list[str], lookups: list[str], changes: list[str], steps: list[int], kills: list[int]
) -> None:
    """Others write meanwhile, so that looks miss what stands further on (P1)."""
    store = MemoryStore()
    channel = ScriptedChannel(clock=LoopClock(), capabilities=LOOKING)
    channel.reach = 1
    channel.will("send", *map(_fault, sends))
    channel.will("lookup", *map(_fault, lookups))
    channel.will("edit", *map(_fault, changes))
    channel.will("delete", *map(_fault, changes))
    put = await a_final(store)

    async def others_write(_: Call) -> None:
        channel.skip(steps[len(channel.calls) % len(steps)])

    channel.before = others_write
    for at in kills:
        kill = Kill(store, at)
        async with running(channel, store=store) as rig:
            await rig.outbox.resume()
            await first(rig.outbox.ended(put.key), kill.dead.wait())
        store.before = store.after = None
    await go_on(channel, store, put)
    stand = seen(channel)
    assert stand.count("done") <= 1
    assert set(stand) <= {"done", MARKED}
    assert stand
