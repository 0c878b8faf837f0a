"""Whatever was committed to be said is said on a platform in trouble, once, or somebody is told."""

import asyncio

import pytest

from tests.fakes.scripted_calls import Hang
from tests.unit.delivery.outbox_rows import HOUR_S, final, seen
from tests.unit.delivery.rig import (
    CALL_TIMEOUT_S,
    LOOKING,
    PLAIN_SENDS,
    commit,
    platform,
    refused_late,
    running,
)
from zeroclaw.delivery.reconcile import MOST_LOST
from zeroclaw.errors import ChannelUnavailable
from zeroclaw.value import replace


async def test_who_waited_for_another_message_of_the_chat_obeys_its_refusal() -> None:
    """Two topics of a group share its limit, and one is posted after the other (P6)."""
    async with running(platform(replace(LOOKING, has_threads=True))) as rig:
        refused_late(rig, retry_after_s=7)
        puts = [final(rig, thread, thread=thread) for thread in ("1", "2")]
        await rig.commit(*puts)
        for put in puts:
            await rig.outbox.ended(put.key)
        assert sorted(call.at for call in rig.channel.calls) == pytest.approx([0, 8, 9])


async def test_what_is_lost_every_time_is_given_up_and_told() -> None:
    """An adapter that breaks down each time does not fill a chat (P1)."""
    async with running(platform(PLAIN_SENDS)) as rig:
        rig.channel.will("send", *[KeyError("fault")] * MOST_LOST)
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert len(rig.channel.calls) == MOST_LOST
        assert rig.hooks.reasons == ["raised KeyError"]


async def test_a_silent_platform_is_tried_without_end_where_repeats_are_not_seen() -> None:
    """A final is not given up because the platform was away for an hour (P1)."""
    async with running(platform()) as rig:
        rig.channel.will("send", *[Hang()] * 100)
        put = final(rig, "done")
        await rig.commit(put)
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
        assert rig.clock.monotonic() > HOUR_S


async def test_a_channel_that_hangs_delays_no_other_channel_and_no_other_chat() -> None:
    """P9: only its own chat waits."""
    async with running(platform(), platform(name="other")) as rig:
        rig.channel.will("send", Hang())
        stuck, free = final(rig, "stuck"), final(rig, "free", chat="c2")
        other = final(rig, "other", name="other")
        await rig.commit(stuck)
        await rig.clock.sleep(1)
        await rig.commit(free)
        await rig.commit(other)
        async with asyncio.timeout(1):
            await rig.outbox.ended(free.key)
            await rig.outbox.ended(other.key)
        await rig.outbox.ended(stuck.key)
        assert rig.clock.monotonic() > CALL_TIMEOUT_S
        assert seen(rig.channel) == ["stuck"]


async def test_an_account_makes_so_many_calls_at_once_and_no_more() -> None:
    """The rest wait for one to end."""
    async with running(platform(), calls_at_once=2) as rig:
        most = 0

        async def count(call: object) -> None:
            nonlocal most
            most = max(most, len(rig.channel.in_flight))
            await rig.clock.sleep(1)

        rig.channel.before = count
        puts = [final(rig, "done", chat=f"c{number}") for number in range(10)]
        for put in puts:
            await rig.commit(put)
        for put in puts:
            await rig.outbox.ended(put.key)
        assert most == 2


async def test_rows_of_one_address_go_out_in_the_order_of_their_keys() -> None:
    """Each after the one before it is over (P2)."""
    async with running(platform()) as rig:
        rig.channel.will("send", ChannelUnavailable("no route"))
        puts = [final(rig, f"{number}") for number in range(5)]
        await commit(rig.store, *puts)
        for put in reversed(puts):
            rig.outbox.announce(put)
        await rig.outbox.ended(puts[-1].key)
        await rig.outbox.ended(puts[0].key)
        assert seen(rig.channel) == ["0", "1", "2", "3", "4"]


async def test_a_channel_that_is_not_there_yet_is_waited_for() -> None:
    """Its rows stay open."""
    async with running(platform()) as rig:
        account = rig.accounts.pop("chat")
        put = final(rig, "done")
        await rig.commit(put)
        await rig.clock.sleep(30)
        assert (await rig.row(put)).state == "pending"
        rig.accounts["chat"] = account
        await rig.outbox.ended(put.key)
        assert seen(rig.channel) == ["done"]
