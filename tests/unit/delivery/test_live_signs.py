"""What a draft shows besides its text: that somebody is at work, and when it has caught up."""

import asyncio

from tests.fakes.scripted_calls import Hang
from tests.unit.delivery.rig import CAPABILITIES, TURN, Rig, platform, running
from zeroclaw.channel import ToolProgress
from zeroclaw.delivery.live import NOT_YET_S, TYPING_S, DraftHandle, NewDraft
from zeroclaw.envelope import MessageRef, TurnId
from zeroclaw.errors import ChannelUnavailable, RateLimited
from zeroclaw.value import replace

TYPES = replace(CAPABILITIES, has_typing=True)
PACED = replace(CAPABILITIES, min_edit_interval_s=2.0)


def draft(rig: Rig, *, reply_to: str = "") -> DraftHandle:
    async def on_ref(ref: MessageRef) -> None:
        await asyncio.sleep(0)

    return rig.live.open(
        NewDraft(
            turn=TurnId(TURN),
            fence=1,
            address=rig.channel.address(),
            on_ref=on_ref,
            reply_to=reply_to,
        )
    )


def names(rig: Rig) -> list[str]:
    return [call.name for call in rig.channel.calls]


async def test_typing_is_shown_until_the_first_text_comes() -> None:
    """A person soon sees that their message was taken; then the text says so itself (P6)."""
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(TYPING_S * 1.5)
        assert names(rig) == ["typing", "typing"]
        handle.show(0, "a")
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["typing", "typing", "send"]
        await handle.close()


async def test_a_text_that_comes_soon_needs_no_sign() -> None:
    """No call is spent on what is overtaken at once (P6)."""
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(NOT_YET_S / 2)
        handle.show(0, "a")
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["send"]
        await handle.close()


async def test_no_sign_is_begun_when_all_is_over() -> None:
    """What was to be shown a moment later is forgotten without a word."""
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: faults.append(what))
    async with running(platform(TYPES)) as rig:
        draft(rig)
    await rig.clock.sleep(NOT_YET_S * 2)
    assert (names(rig), faults) == ([], [])


async def test_a_refused_sign_holds_up_no_text_and_its_wait_is_kept_by_signs() -> None:
    """What the bot has to say waits for nothing; it only is not said again that it works (P6, P9)."""
    async with running(platform(TYPES)) as rig:
        rig.channel.will("typing", RateLimited("too many", retry_after_s=3 * TYPING_S))
        handle = draft(rig)
        await rig.clock.sleep(TYPING_S * 2)
        assert names(rig) == ["typing"]
        handle.show(0, "a")
        await handle.at_rest()
        assert rig.channel.calls[-1].at == TYPING_S * 2
        await handle.close()
        again = draft(rig)
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["typing", "send", "typing", "typing"]
        await again.close()


async def test_a_turn_without_text_stops_typing_when_it_ends() -> None:
    """Nothing is shown for a turn that is over."""
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(NOT_YET_S * 2)
        await handle.close()
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == ["typing"]


async def test_a_platform_that_shows_no_typing_is_not_asked_to() -> None:
    """What the capabilities deny is never called."""
    async with running(platform(CAPABILITIES)) as rig:
        handle = draft(rig)
        await rig.clock.sleep(TYPING_S * 3)
        assert names(rig) == []
        await handle.close()


async def test_typing_that_hangs_delays_no_text() -> None:
    """A sign is worth no wait (P9)."""
    async with running(platform(TYPES)) as rig:
        rig.channel.will("typing", Hang())
        handle = draft(rig)
        await rig.clock.sleep(NOT_YET_S * 2)
        handle.show(0, "a")
        await rig.clock.sleep(0.1)
        assert names(rig) == ["typing", "send"]
        await handle.close()


async def test_a_draft_is_at_rest_when_its_newest_text_stands() -> None:
    """So that a note below it is seen before the process ends."""
    async with running(platform(PACED)) as rig:
        await rig.clock.sleep(10)
        handle = draft(rig)
        await handle.at_rest()
        handle.show(0, "a")
        await handle.at_rest()
        handle.show(1, "a note")
        await handle.at_rest()
        assert [(call.at, call.text) for call in rig.channel.calls] == [(10, "a"), (12, "a note")]
        await handle.close()


async def test_only_the_first_message_shows_what_it_answers() -> None:
    """In a group people see whose message it is about; what follows goes on below it."""
    async with running(platform()) as rig:
        handle = draft(rig, reply_to="m1")
        handle.show(0, "a" * rig.channel.capabilities.max_length + " b")
        await handle.at_rest()
        sent = [call.reply_to for call in rig.channel.calls if call.name == "send"]
        assert sent == ["m1", ""]
        await handle.close()


NAMES = replace(TYPES, names_tools=True)
SHELL = ToolProgress(key="1", tool="shell", state="running")
ENDED = replace(SHELL, state="ok")


def masked(text: str, *, growing: bool = False) -> str:
    del growing
    return text.replace("s3cr", "***")


def told(rig: Rig) -> list[str]:
    return [call.text for call in rig.channel.calls if call.name == "typing"]


async def test_what_tools_do_is_told_at_once_and_again_until_they_end() -> None:
    """Below a text as well; a sign that runs out while a tool runs is shown anew (P6)."""
    async with running(platform(NAMES)) as rig:
        handle = draft(rig)
        handle.show(0, "a")
        await handle.at_rest()
        handle.works((SHELL,))
        handle.works((SHELL,))
        await rig.clock.sleep(TYPING_S * 1.5)
        assert told(rig) == ["shell running", "shell running"]
        handle.works((ENDED,))
        await rig.clock.sleep(TYPING_S * 3)
        assert told(rig) == ["shell running", "shell running", "shell ok"]
        handle.works((replace(SHELL, key="2"),))
        await rig.clock.sleep(TYPING_S / 2)
        assert told(rig)[3:] == ["shell running"]
        await handle.close()
        await rig.clock.sleep(TYPING_S * 3)
        assert told(rig)[4:] == ["shell failed"]


async def test_the_end_of_a_tool_that_was_not_heard_is_told_again() -> None:
    async with running(platform(NAMES)) as rig:
        handle = draft(rig)
        handle.show(0, "a")
        await handle.at_rest()
        rig.channel.will("typing", ChannelUnavailable("no route"))
        handle.works((ENDED,))
        await rig.clock.sleep(TYPING_S * 3)
        assert told(rig) == ["shell ok", "shell ok"]
        await handle.close()


async def test_before_the_first_text_one_sign_names_the_tools() -> None:
    """There are not two signs at the same time, and the plain one goes on when no tool runs."""
    async with running(platform(NAMES)) as rig:
        handle = draft(rig)
        handle.works((SHELL,))
        await rig.clock.sleep(TYPING_S * 1.5)
        handle.works((ENDED,))
        await rig.clock.sleep(TYPING_S)
        assert told(rig) == ["shell running", "shell running", "shell ok", ""]
        await handle.close()


async def test_a_secret_in_the_name_of_a_tool_is_masked() -> None:
    """Servers of others name tools; people read no name that was not looked at (P6, P7)."""
    async with running(platform(NAMES), screen=masked) as rig:
        handle = draft(rig)
        handle.works((replace(ENDED, tool="s3cret"),))
        await rig.clock.sleep(TYPING_S / 2)
        assert told(rig)[0] == "***et ok"
        await handle.close()


async def test_a_platform_that_names_no_tools_is_told_of_none() -> None:
    async with running(platform(TYPES)) as rig:
        handle = draft(rig)
        handle.show(0, "a")
        handle.works((SHELL,))
        await rig.clock.sleep(TYPING_S * 3)
        assert told(rig) == []
        await handle.close()
