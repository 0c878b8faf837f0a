"""A message whose answer or whose record was lost is looked for, so that it does not stand twice."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import LoopClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_calls import Call, Hang, Lost
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.outbox_rows import LONG, final, note, noted, seen
from tests.unit.delivery.rig import LOOKING, TURN, Kill, Rig, commit, platform, running
from zeroclaw.channel import Budget
from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Markdown
from zeroclaw.delivery.live import NewDraft
from zeroclaw.delivery.rows import OUTBOX, Text, Uncertainty
from zeroclaw.delivery.split import split
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
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert [call.name for call in rig.channel.calls] == ["send", "lookup"]


async def test_one_that_did_not_arrive_is_sent_again_without_a_word_of_repeats() -> None:
    """Once it has a number it is known that there is no other, and until then it says so (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", DeliveryUnknown("cut before it was read"))
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
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


async def test_where_the_ids_ran_further_the_second_one_is_taken_away() -> None:
    """Its own id tells how far to look, and the first one is found after all (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.reach = 1
        others_write(rig)
        rig.channel.will("send", Lost())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        (shown,) = rig.channel.standing(rig.channel.address())
        item = OUTBOX.of(await rig.row(put))
        assert isinstance(item, Text)
        assert item.refs == (shown.ref,)
        assert rig.channel.called("delete")


async def test_one_that_was_sent_again_says_so_where_it_can_not_be_told_after_it() -> None:
    """For good (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", DeliveryUnknown("cut"))
        rig.channel.will("lookup", None, DeliveryUnknown("too far"))
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == [MARKED]


async def test_one_that_was_sent_again_is_not_sent_a_third_time() -> None:
    """The second look may fail as well, and the second message may be hard to take away (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.reach = 1
        others_write(rig)
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", None, None, ChannelUnavailable("no route"))
        rig.channel.will("delete", ChannelUnavailable("no route"))
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert len(rig.channel.called("send")) == 2


async def test_it_is_not_looked_for_while_another_message_is_on_its_way() -> None:
    """That one, whose id nobody knows yet, would be taken for it and overwritten (P1)."""
    async with running(platform(LOOKING)) as rig:
        together: list[list[str]] = []

        async def learned(_: MessageRef) -> None:
            await asyncio.sleep(0)

        draft = rig.live.open(
            NewDraft(turn=TURN, fence=1, address=rig.channel.address(), on_ref=learned)
        )

        async def another_begins(call: Call) -> None:
            if call.name == "lookup":
                draft.show(1, "the next answer")
                for _ in range(20):
                    await asyncio.sleep(0)
            together.append([one.name for one in rig.channel.in_flight])

        rig.channel.before = another_begins
        rig.channel.will("send", Lost())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        await draft.at_rest()
        assert together == [["send"], ["lookup"], ["send"]]
        assert seen(rig.channel) == ["done", "the next answer"]


async def test_a_mark_that_is_known_too_late_hides_no_earlier_try() -> None:
    """What was sent before anything was known stands below it, so the repeat says so (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.knows_marks = False

        async def learn(call: Call) -> None:
            rig.channel.knows_marks = len(rig.channel.called("send")) > 1

        rig.channel.before = learn
        slow = RateLimited("slow down", retry_after_s=1)
        rig.channel.will("send", Lost(), slow, slow)
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done", MARKED]


@pytest.mark.parametrize("fault", [RateLimited("slow down", retry_after_s=1), Lost()])
async def test_what_is_no_repeat_says_so_no_more_however_often_that_fails(
    fault: RateLimited | Lost,
) -> None:
    """A refused wait or a lost answer leaves no lone answer marked (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", DeliveryUnknown("cut"))
        rig.channel.will("edit", fault)
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert len(rig.channel.called("edit")) == 2
        assert len(rig.channel.called("send")) == 2


async def test_a_second_one_whose_removal_was_not_answered_is_not_kept_as_the_one() -> None:
    """What is recorded is what stands, to be changed later (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.reach = 1
        others_write(rig)
        rig.channel.will("send", Lost())
        rig.channel.will("delete", Lost())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        (shown,) = rig.channel.standing(rig.channel.address())
        assert _text_of(await rig.row(put)).refs == (shown.ref,)


async def test_where_it_can_not_be_told_the_repeat_says_that_it_may_be_one() -> None:
    """The window that the platform leaves (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", DeliveryUnknown("ids ran too far"))
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done", MARKED]


async def test_where_nothing_is_known_to_look_from_the_repeat_says_so() -> None:
    async with running(platform(LOOKING)) as rig:
        rig.channel.knows_marks = False
        rig.channel.will("send", Lost())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done", MARKED]
        assert rig.channel.called("lookup") == []


async def test_what_is_only_late_may_come_after_the_look_so_the_repeat_says_so() -> None:
    """A platform that was slow may carry it out whenever it likes (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Hang())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == [MARKED]


async def test_a_look_that_fails_is_made_again_before_anything_is_sent() -> None:
    """However long the platform is away (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", *[ChannelUnavailable("no route")] * 20, Hang())
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert len(rig.channel.called("send")) == 1


async def test_looks_are_paced_like_every_call_and_obey_a_wait() -> None:
    """The platform counts them (P6)."""
    limited = replace(LOOKING, chat_budget=Budget(per_s=0.1, burst=1))
    async with running(platform(limited)) as rig:
        rig.channel.will("send", Lost())
        rig.channel.will("lookup", RateLimited("slow down", retry_after_s=30))
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        starts = [call.at for call in rig.channel.calls]
        assert starts[1] - starts[0] >= 10
        assert starts[2] - starts[1] >= 30
        assert seen(rig.channel) == ["done"]


async def test_each_part_of_a_long_text_is_found_as_itself() -> None:
    """Parts that stand are not looked at (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", None, Lost(), Lost())
        put = final(rig, LONG)
        await rig.commit(put)
        await rig.outbox.ended(put.key)
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
        for said in ("a draft", "a note"):
            await account.post(channel.address(), Markdown(text=said, key=key, draft=True))
        known += [shown.ref for shown in channel.standing(channel.address())]
        row = await rig.row(put)
        item = replace(_text(put), uncertainty=Uncertainty(mark="0"))
        await commit(store, rows.changed(row, item, "sending"))
        told = rows.changed(row, replace(item, refs=(known[1],)), "delivered")
        await commit(store, replace(told, key=rig.ids.ulid(), expect=0))
    async with running(channel, store=store, open_drafts=(known[0],)) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["a draft", "a note", "done"]


def _text(put: Put) -> Text:
    return _text_of(rows.stored(put, 1))


def _text_of(row: Row) -> Text:
    item = OUTBOX.of(row)
    assert isinstance(item, Text)
    return item


# --- any order ------------------------------------------------------------------------------------

SENDS = st.sampled_from(["arrives", "lost", "cut", "away"])
LOOKS = st.sampled_from(["seen", "away", "limited"])


def _sends(kind: str) -> Exception | Lost | None:
    faults: dict[str, Exception | Lost] = {
        "lost": Lost(),
        "cut": DeliveryUnknown("cut before it was read"),
        "away": ChannelUnavailable("no route"),
        "limited": RateLimited("slow down", retry_after_s=5),
    }
    return faults.get(kind)


@pytest.mark.slow
@given(
    sends=st.lists(SENDS, max_size=6),
    looks=st.lists(LOOKS, max_size=6),
    kills=st.lists(st.integers(1, 12), max_size=3),
    begun=st.booleans(),
)
async def test_whatever_is_lost_and_whoever_is_killed_each_text_stands_once(
    sends: list[str], looks: list[str], kills: list[int], begun: bool
) -> None:
    """In order, whole, and unmarked: here every look can tell (P1, P2)."""
    store = MemoryStore()
    channel = ScriptedChannel(clock=LoopClock(), capabilities=LOOKING)
    channel.reach = 50
    channel.will("send", *map(_sends, sends))
    channel.will("lookup", *map(_sends, looks))
    async with running(channel, store=store) as rig:
        puts = [final(rig, LONG, begun=begun), final(rig, "done"), note(rig, "after it")]
        await commit(store, puts[0], puts[1])
        await commit(store, puts[2])
    for at in kills:
        kill = Kill(store, at)
        async with running(channel, store=store) as rig, asyncio.TaskGroup() as group:
            await rig.outbox.resume()
            ended = group.create_task(rig.outbox.ended(puts[2].key))
            dead = group.create_task(kill.dead.wait())
            await asyncio.wait((ended, dead), return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            dead.cancel()
        store.before = store.after = None
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        for put in puts:
            await rig.outbox.ended(put.key)
        parts = split(LONG, rig.accounts["chat"].fits)
        assert seen(channel) == [*parts, "done", "after it"]
