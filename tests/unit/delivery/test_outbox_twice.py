"""Whatever is lost, late or killed while a lost message is sent again: one stands unmarked at most."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import LoopClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_calls import Call, CallName, Hang, Lost
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.outbox_rows import final, seen, turn_of
from tests.unit.delivery.rig import HERE, LOOKING, Kill, card, commit, platform, running
from zeroclaw.delivery.account import Markdown
from zeroclaw.delivery.draft import message_key
from zeroclaw.delivery.live import NewDraft
from zeroclaw.delivery.reconcile import MOST_LOST
from zeroclaw.delivery.rows import ApprovalCard, outbox_row
from zeroclaw.envelope import MessageRef
from zeroclaw.errors import ChannelUnavailable, DeliveryUnknown, RateLimited
from zeroclaw.store import Put
from zeroclaw.text import catalogue

MARKED = "done" + catalogue.POSSIBLE_REPEAT.en
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


async def test_a_second_that_is_found_says_on_that_it_may_be_one_while_the_first_may_come() -> None:
    """Looked for as it was sent, it is not mistaken for the first, which stands beside it (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    put = await a_final(store)
    channel.will("send", Hang(), Lost())
    await go_on(channel, store, put)
    await comes_after_all(channel, put)
    assert seen(channel) == [MARKED, "done"]


async def test_what_was_late_once_may_come_after_a_later_try_was_cut() -> None:
    """A try that ends at once says nothing of the one before it (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    put = await a_final(store)
    channel.will("send", Hang(), DeliveryUnknown("cut"))
    await go_on(channel, store, put)
    assert seen(channel) == [MARKED]


async def test_a_draft_that_may_come_late_leaves_no_answer_unmarked_beside_it() -> None:
    """It may show the whole answer by then (P1)."""

    async def learned(ref: MessageRef) -> None:
        raise AssertionError(ref)

    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", Hang())
        put = final(rig, "done")
        turn = turn_of(put.key)
        draft = rig.live.open(
            NewDraft(turn=turn, fence=1, address=rig.channel.address(), on_ref=learned)
        )
        draft.show(1, "done")
        left = await draft.close()
        await commit(rig.store, put)
        rig.outbox.announce(put, left)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == [MARKED]


async def test_of_two_cards_one_is_left_though_a_person_pressed_one_before_the_restart() -> None:
    """The other would stand open for ever (P5)."""
    store, channel = MemoryStore(), far()
    there, reached = channel.address("approver", direct=True), asyncio.Event()

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
            rig.ids.ulid(), ApprovalCard(address=there, card=card(), approvals=("a1",)), HERE
        )
        await rig.commit(put)
        await reached.wait()
    channel.before = None
    assert len(channel.standing(there)) == 2
    async with running(channel, store=store) as rig:
        rig.hooks.stands = channel.standing(there)[1].ref
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        (left,) = channel.standing(there)
        assert rig.hooks.asked_refs == [left.ref]


# --- any order ------------------------------------------------------------------------------------

SENDS = st.sampled_from(["arrives", "lost", "cut", "away", "hangs"])
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
    sends=st.lists(SENDS, max_size=MOST_LOST - 1),  # one more, and it is given up
    looks=st.lists(OTHERS, max_size=5),
    changes=st.lists(OTHERS, max_size=4),
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    kills=st.lists(st.integers(1, 9), max_size=4),
)
async def test_whatever_befalls_it_one_stands_unmarked_at_most_and_none_is_missing(
    sends: list[str], looks: list[str], changes: list[str], steps: list[int], kills: list[int]
) -> None:
    """Others write meanwhile, so that looks miss what stands further on (P1)."""
    store = MemoryStore()
    channel = ScriptedChannel(clock=LoopClock(), capabilities=LOOKING)
    channel.reach = 1
    channel.will("send", *map(_fault, sends))
    channel.will("lookup", *map(_fault, looks))
    channel.will("edit", *map(_fault, changes))
    channel.will("delete", *map(_fault, changes))
    put = await a_final(store)

    async def others_write(_: Call) -> None:
        channel.skip(steps[len(channel.calls) % len(steps)])

    channel.before = others_write
    for at in kills:
        kill = Kill(store, at)
        async with running(channel, store=store) as rig, asyncio.TaskGroup() as group:
            await rig.outbox.resume()
            ended = group.create_task(rig.outbox.ended(put.key))
            dead = group.create_task(kill.dead.wait())
            await asyncio.wait((ended, dead), return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            dead.cancel()
        store.before = store.after = None
    await go_on(channel, store, put)
    stand = seen(channel)
    assert stand.count("done") <= 1
    assert set(stand) <= {"done", MARKED}
    assert stand
