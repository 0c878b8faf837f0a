"""Drafts on a platform that shows unsent text: seen while they are written, and gone without a trace."""

import asyncio
from itertools import pairwise

import pytest

from tests.fakes.scripted_calls import Hang, Lost
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.rig import PLAIN_SENDS, TURN, Rig, platform, running
from zeroclaw.channel import Budget
from zeroclaw.delivery.live import LONGEST_STAND_S, LOOK_S, DraftHandle, NewDraft
from zeroclaw.delivery.rows import DraftRemainder
from zeroclaw.envelope import Address, MessageRef, TurnId
from zeroclaw.errors import ChannelUnavailable, NotSupported, RateLimited
from zeroclaw.value import replace

NATIVE = replace(PLAIN_SENDS, native_draft=True)


def draft(rig: Rig, *, turn: str = TURN, direct: bool = True) -> DraftHandle:
    async def on_ref(ref: MessageRef) -> None:
        await asyncio.sleep(0)

    return rig.live.open(
        NewDraft(
            turn=TurnId(turn), fence=1, address=here(rig.channel, direct=direct), on_ref=on_ref
        )
    )


def here(channel: ScriptedChannel, *, direct: bool = True) -> Address:
    return channel.address(direct=direct)


def seen(channel: ScriptedChannel) -> tuple[str | None, list[str]]:
    """What is shown and not sent, and the messages."""
    return channel.previews.get(here(channel).key()), channel.chat(here(channel))


async def test_the_last_text_leaves_no_call_for_the_final_to_wait_for() -> None:
    """Not even one that was asked for before it came (P6)."""
    async with running(platform(replace(NATIVE, min_edit_interval_s=5))) as rig:
        handle = draft(rig)
        handle.show(0, "a")
        await rig.clock.sleep(6)
        handle.show(1, "ab")
        handle.show(2, "abc", is_last=True)
        await handle.at_rest()
        await rig.clock.sleep(10)
        assert seen(rig.channel) == ("a", [])
        assert (await handle.close()).refs == ()


async def test_what_must_stand_is_a_message_before_anybody_waits() -> None:
    """A card comes below it, and a preview would vanish (K4)."""
    async with running(platform(NATIVE)) as rig:
        handle = draft(rig)
        handle.show(0, "let me look")
        handle.demand_messages()
        await handle.wait_for_messages()
        assert seen(rig.channel) == (None, ["let me look"])
        handle.show(1, "let me look\n\nfound")
        await rig.clock.sleep(1)
        assert seen(rig.channel) == (None, ["let me look\n\nfound"])
        assert [ref.message for ref in (await handle.close()).refs] == ["m1"]
        handle.demand_messages()
        await handle.wait_for_messages()


async def test_nothing_to_show_holds_nobody_up() -> None:
    async with running(platform(NATIVE)) as rig:
        handle = draft(rig)
        handle.demand_messages()
        await handle.wait_for_messages()
        assert rig.clock.monotonic() == 0
        handle.show(0, "a")
        await rig.clock.sleep(1)
        assert seen(rig.channel) == ("a", [])
        await handle.close()


async def test_it_stands_at_once_behind_its_own_previews() -> None:
    """They leave a call of the chat's burst to it (P6)."""
    capabilities = replace(NATIVE, chat_budget=Budget(per_s=1, burst=2), min_edit_interval_s=1.0)
    async with running(platform(capabilities)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(10)
        for number in range(100):
            handle.show(number, f"text {number}")
            await rig.clock.sleep(0.1)
        at = rig.clock.monotonic()
        handle.demand_messages()
        await handle.wait_for_messages()
        assert rig.clock.monotonic() == at
        assert seen(rig.channel) == (None, ["text 99"])
        await handle.close()


@pytest.mark.parametrize("fault", [Hang(), RateLimited("slow down", retry_after_s=60)])
async def test_a_platform_that_is_slow_holds_up_a_tool_for_seconds_only(
    fault: Hang | RateLimited,
) -> None:
    """The message comes when it can (P9)."""
    async with running(platform(NATIVE)) as rig:
        rig.channel.will("preview", fault)
        handle = draft(rig)
        handle.show(0, "a")
        await rig.clock.sleep(1)
        handle.demand_messages()
        await handle.wait_for_messages()
        assert rig.clock.monotonic() == 1 + LONGEST_STAND_S
        await rig.clock.sleep(60)
        assert seen(rig.channel) == (None, ["a"])
        await handle.close()


async def test_a_silent_preview_is_shown_anew_before_it_fades() -> None:
    """Platforms show it for half a minute; nothing is called once it has ended (P6)."""
    async with running(platform(NATIVE)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(5)
        handle.show(0, "a")
        await rig.clock.sleep(60)
        at = [call.at for call in rig.channel.called("preview")]
        assert all(later - earlier <= 2 * LOOK_S for earlier, later in pairwise(at))
        assert at[-1] > 60 - 2 * LOOK_S
        await handle.close()
        await rig.clock.sleep(60)
        assert len(rig.channel.called("preview")) == len(at)


@pytest.mark.parametrize(
    "fault", [Lost(), ChannelUnavailable("no route"), KeyError("an adapter's own fault")]
)
async def test_a_preview_that_fails_is_made_again(fault: Exception | Lost) -> None:
    """And is never one that may stand twice (P1)."""
    async with running(platform(NATIVE)) as rig:
        rig.channel.will("preview", fault)
        handle = draft(rig)
        handle.show(0, "a")
        await rig.clock.sleep(1)
        handle.show(1, "ab")
        await rig.clock.sleep(5)
        assert seen(rig.channel) == ("ab", [])
        assert await handle.close() == DraftRemainder(posted=0)


async def test_a_draft_that_began_before_the_refusal_makes_no_call_either() -> None:
    """What one draft has learned holds for all of the account."""
    async with running(platform(NATIVE)) as rig:
        first, second = draft(rig), draft(rig, turn="second")
        rig.channel.will("preview", NotSupported("no such method"))
        first.show(0, "a")
        await rig.clock.sleep(1)
        second.show(0, "b")
        await rig.clock.sleep(1)
        assert len(rig.channel.called("preview")) == 1
        assert seen(rig.channel) == (None, ["a", "b"])
        for handle in (first, second):
            await handle.close()
