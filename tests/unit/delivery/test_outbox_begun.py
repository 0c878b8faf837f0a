"""A final that goes out at once says in its own commit that its send begins."""

import pytest

from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_calls import Lost
from tests.unit.delivery.outbox_rows import final, note, seen
from tests.unit.delivery.rig import (
    CAPABILITIES,
    LOOKING,
    PLAIN_SENDS,
    Rig,
    commit,
    platform,
    running,
)
from zeroclaw.channel import Budget, Capabilities
from zeroclaw.delivery.rows import DraftRemainder
from zeroclaw.errors import RateLimited
from zeroclaw.store import DurablePoint, Put, RowKind
from zeroclaw.value import replace


async def begun(rig: Rig, text: str) -> Put:
    """Commit a final as the end of a turn does."""
    put = final(rig, text, begun=True)
    assert put.state == "sending"
    await commit(rig.store, put)
    rig.outbox.announce(put, DraftRemainder())
    return put


async def test_it_is_sent_without_a_look_and_without_another_commit_before() -> None:
    """Of what its own process has not sent nothing can stand."""
    async with running(platform(LOOKING)) as rig:
        put = await begun(rig, "done")
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert [call.name for call in rig.channel.calls] == ["send"]
        assert rig.store.points() == [DurablePoint.FINISHED, DurablePoint.DELIVERED]


async def test_killed_before_it_was_sent_it_is_looked_for_and_stands_once() -> None:
    """Its own process alone knew that no send was begun (P1)."""
    store, channel = MemoryStore(), platform(LOOKING)
    async with running(channel, store=store) as rig:
        put = final(rig, "done", begun=True)
        await commit(store, put)
    async with running(channel, store=store) as rig:
        await rig.outbox.resume()
        await rig.outbox.ended(put.key)
        assert seen(channel) == ["done"]
        assert channel.called("lookup")


@pytest.mark.parametrize("fault", [Lost(), RateLimited("slow down", retry_after_s=1)])
async def test_what_goes_wrong_with_it_is_found_out_as_with_any_other(
    fault: Lost | RateLimited,
) -> None:
    """A lost answer is looked for, a refusal is none of a message (P1)."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", fault)
        put = await begun(rig, "done")
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert bool(rig.channel.called("lookup")) == isinstance(fault, Lost)


async def test_one_that_another_writer_changed_is_read_and_looked_for() -> None:
    """Nobody knows then whether it was sent before (P1)."""
    async with running(platform(LOOKING)) as rig:
        put = final(rig, "done", begun=True)
        await commit(rig.store, put)
        await commit(rig.store, replace(put, expect=1))
        rig.outbox.announce(put, DraftRemainder())
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert [call.name for call in rig.channel.calls] == ["send", "lookup"]


async def test_one_that_is_gone_when_its_turn_comes_is_not_sent() -> None:
    """What waits for others is read when they are over."""
    async with running(platform(LOOKING)) as rig:
        rig.channel.will("send", RateLimited("slow down", retry_after_s=9))
        first = note(rig, "first")
        await rig.commit(first)
        second = note(rig, "second")
        await rig.commit(second)
        rig.store.forget(RowKind.OUTBOX)
        await rig.outbox.ended(second.key)
        assert "second" not in seen(rig.channel)


@pytest.mark.parametrize(
    "can",
    [
        pytest.param(CAPABILITIES, id="it may be sent twice"),
        pytest.param(PLAIN_SENDS, id="it can't be looked for"),
        pytest.param(replace(LOOKING, may_repeat=False), id="it might be given up unsent"),
        pytest.param(
            replace(LOOKING, chat_budget=Budget(per_s=0.01, burst=1)), id="the chat has to wait"
        ),
        pytest.param(
            replace(LOOKING, account_budget=Budget(per_s=0.01, burst=1)), id="all have to wait"
        ),
    ],
)
async def test_elsewhere_it_says_so_when_it_begins(can: Capabilities) -> None:
    """What a kill leaves unsent is then sent without a look."""
    async with running(platform(can)) as rig:
        assert rig.outbox.mark_if_sent_now(rig.channel.address()) == ""


async def test_behind_another_it_waits_and_in_a_channel_that_is_not_there() -> None:
    """It begins when the others are over."""
    async with running(platform(LOOKING)) as rig:
        there = rig.channel.address()
        put = note(rig, "first")
        await rig.commit(put)
        assert rig.outbox.mark_if_sent_now(there) == ""
        await rig.outbox.ended(put.key)
        assert rig.outbox.mark_if_sent_now(there) != ""
        assert rig.outbox.mark_if_sent_now(replace(there, channel="gone")) == ""
