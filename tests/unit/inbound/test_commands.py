"""The slash commands, the same on every channel."""

import asyncio

import pytest

from tests.fakes.house import World
from tests.fakes.many_rows import put_a_page_before
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.conversation.inbox import INBOX, item_put
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StreamBroken
from zeroclaw.inbound.commands.registry import COMMANDS
from zeroclaw.store import PAGE, RowKind

POKE = asks_for(("poke", '{"a": 1}'))


async def test_help_lists_every_command(world: World) -> None:
    """Each with what it does (P10)."""
    async with world.running() as house:
        await house.say("/help")
        [text] = house.texts()
        assert text.splitlines()[0] == "- `/help`: this list"
        assert len(text.splitlines()) == len(COMMANDS)


@pytest.mark.parametrize("command", ["/halt", "/resume", "/tool look {}"])
async def test_what_only_operators_may_is_refused_with_a_reason(world: World, command: str) -> None:
    """One line that says why, and nothing happens (P10)."""
    async with world.running() as house:
        await house.say(command, "ben")
        [text] = house.texts("ben")
        assert text.startswith(f"`{command.split(maxsplit=1)[0]}` is not for you: ")
        assert house.services.policy.halted_by == ""
        assert world.look.runs == []


async def test_status_tells_how_the_daemon_is(world: World) -> None:
    """Model, channels, what waits, disk; a halt and who made it."""
    async with world.running() as house:
        await house.say("/tool poke {}")
        await house.say("/status")
        lines = house.texts()[-1].splitlines()
        assert lines[0] == "- zeroclaw 1, model scripted"
        assert lines[1] == "- channels: `chat` up"
        assert lines[2] == "- here 0 waiting; everywhere 0 waiting, 1 at work, 1 to approve"
        await house.say("/halt")
        await house.say("/status")
        assert "- halted by Ada; `/resume` goes on" in house.texts()[-1]


async def test_status_counts_all_that_waits(world: World) -> None:
    """A page is not the end of the count."""
    async with world.running() as house:
        await house.say("/halt")
        await house.say("one")
        row = (await house.rows(RowKind.INBOX, "queued"))[0]
        await put_a_page_before(world.store, item_put(INBOX.of(row), "queued"))
        await house.say("/status")
        waits = f"- here {PAGE + 1} waiting; everywhere {PAGE + 1} waiting, 1 at work, 0 to approve"
        assert waits in house.texts()[-1]


async def test_status_shows_why_a_channel_is_not_up(world: World) -> None:
    """A failed channel is seen from another one."""
    async with world.running() as house:
        house.services.supervisor._note("chat", "waiting", "cut off")  # pyright: ignore[reportPrivateUsage]
        text = await house.services.status(conversation=ConversationId("none"))
        assert "`chat` waiting (cut off)" in text
        report = await house.ask("status")
        assert report["channels"] == {
            "chat": {"condition": "waiting", "since": "2026-01-01T12:00:00+00:00", "why": "cut off"}
        }


# --- /new ----------------------------------------------------------------------------------------


async def test_new_as_the_first_word_makes_one_conversation(world: World) -> None:
    """There is no old one to end."""
    async with world.running() as house:
        await house.say("/new")
        await house.say("one")
        assert world.model.asked() == ["user: one"]
        assert await house.states() == ["answered"]


@pytest.mark.parametrize("command", ["/new", "/otr"])
async def test_words_behind_a_command_that_takes_none_are_not_lost_in_silence(
    world: World, command: str
) -> None:
    """Their writer is told to send them again; nobody answers them (P1)."""
    async with world.running() as house:
        await house.say(f"{command} and then tell me a story")
        assert house.texts()[-1].endswith(
            " I took the command alone: send what you wrote behind it as a message."
        )
        await house.say(f"{command} ")
        assert "alone: send" not in house.texts()[-1]
        assert world.model.requests == []


async def test_new_leaves_somebody_elses_turn_running(world: World) -> None:
    """Who may not stop it begins a conversation that waits for it, and is told so (P2, S4-20)."""
    held = asyncio.Event()
    world.model.will((held, *says("to ben")), says("to cleo"))
    async with world.running() as house:
        await house.say("one", "ben", room="lobby")
        await house.say("/new", "cleo", room="lobby")
        await house.say("two", "cleo", room="lobby")
        assert sorted(house.texts(room="lobby")) == [
            "A new conversation; the old one is kept.",
            "The answer to Ben is finished first; Ben or an operator may stop it.",
        ]
        held.set()
        await house.settle()
        assert house.texts(room="lobby")[-2:] == ["to ben", "to cleo"]
        assert world.model.asked() == ["user: chat:cleo: two"]
        assert await house.states() == ["answered", "answered", "answered"]


@pytest.mark.parametrize("who", ["ben", "ada"])
async def test_new_of_who_may_stop_the_turn_ends_it(world: World, who: str) -> None:
    """Its own person, and an operator (S4-20)."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("one", "ben", room="lobby")
        await house.say("/new", who, room="lobby")
        note = f"_Stopped: a new conversation was begun by {who.title()}._"
        assert note in house.texts(room="lobby")


async def test_a_turn_that_new_left_running_can_still_be_stopped(world: World) -> None:
    """However many conversations were begun since; `/stop` means what runs (S4-20)."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("one", "ben", room="lobby")
        await house.say("/new", "cleo", room="lobby")
        await house.say("/new", "cleo", room="lobby")
        await house.say("two", "cleo", room="lobby")
        await house.say("/stop", "cleo", room="lobby")
        assert house.texts(room="lobby")[-1] == "Only Ben or an operator may stop this."
        await house.say("/stop", "ben", room="lobby")
        assert house.texts(room="lobby")[-2:] == ["_Stopped by Ben._", "ok"]
        await house.say("/stop", "ben", room="lobby")
        assert house.texts(room="lobby")[-1] == "Nothing is running."


# --- /halt and /resume ---------------------------------------------------------------------------


async def test_a_turn_found_at_a_start_is_ended_by_the_halt(world: World) -> None:
    """Whatever it waited for; its question ends with it (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
    await world.halt("Ada")
    async with world.running() as house:
        assert await house.states() == ["stopped"]
        assert house.endings() == [("stopped", "Ada")]
        assert await house.audited() == ["proposed", "evaluated", "cancelled"]


async def test_where_nothing_is_halted_nothing_goes_on(world: World) -> None:
    """Whoever mistook the bot or the moment is not told that something was done (P10)."""
    async with world.running() as house:
        await house.say("/resume")
        await house.say("/halt")
        await house.say("/resume")
        await house.say("/resume")
        assert [text.partition(":")[0] for text in house.texts()] == [
            "Nothing is halted.",
            "Halted",
            "Resumed",
            "Nothing is halted.",
        ]
        assert (await house.ask("resume"))["before"] is False


async def test_the_control_lane_is_served_during_a_halt(world: World) -> None:
    """A `/stop` is answered although nothing starts."""
    async with world.running() as house:
        await house.say("one")
        await house.say("/halt")
        await house.say("/stop")
        assert house.texts()[-1] == "Nothing is running."


# --- /retry and /tool ----------------------------------------------------------------------------


async def test_retry_asks_again_what_failed(world: World) -> None:
    """From the user message of the newest failed or stopped turn; it takes its place in line."""
    world.model.will((StreamBroken("cut"),), (StreamBroken("cut"),), says("better"))
    async with world.running() as house:
        await house.say("one")
        assert house.texts() == [
            "_The model's answer broke off twice; send `/retry` to ask again._"
        ]
        await house.say("/retry")
        assert house.texts()[-1] == "better"
        assert world.model.asked()[-1] == "user: one"
        assert await house.states() == ["failed", "answered"]
        await house.say("/retry")
        assert house.texts()[-1].startswith("There is nothing to retry")


async def test_retry_without_a_failure_says_so(world: World) -> None:
    """Nothing is asked (P10)."""
    async with world.running() as house:
        await house.say("/retry")
        assert house.texts() == [
            "There is nothing to retry: no message of this conversation failed or was stopped."
        ]
        assert await house.states() == ["answered"]


async def test_tool_without_a_name_shows_how_it_is_written(world: World) -> None:
    """And without arguments it is called with none (P10)."""
    async with world.running() as house:
        await house.say("/tool")
        assert house.texts() == ['Name the tool: `/tool shell {"command": "ls"}`']
        await house.say("/tool look")
        assert world.look.runs == [{}]


async def test_a_tool_call_of_a_person_is_gated_like_any_other(world: World) -> None:
    """An operator's own risky call asks, too (P3)."""
    async with world.running() as house:
        await house.say("/tool poke {}")
        assert world.poke.runs == []
        assert await house.press() == "approved: `poke`"
        assert world.poke.runs == [{}]


async def test_a_tool_that_failed_is_tried_again(world: World) -> None:
    """`/retry` of a stopped `/tool` makes the same call, through the gate again."""
    async with world.running() as house:
        await house.say('/tool poke {"a": 1}')
        await house.say("/stop")
        await house.say("/retry")
        await house.press()
        assert world.poke.runs == [{"a": 1}]


async def test_a_retry_gets_nobody_a_tool_call_that_they_may_not_make(world: World) -> None:
    """Somebody else's `/tool` runs again only for whoever may use `/tool` (P3)."""
    async with world.running() as house:
        await house.say('/tool poke {"a": 1}', room="lobby")
        await house.say("/stop", room="lobby")
        await house.say("/retry", "ben", room="lobby")
        assert house.texts(room="lobby")[-1].startswith(
            "What would be retried is a `/tool` call, and `/tool` is not for you: "
        )
        assert await house.states() == ["stopped", "answered", "answered"]
        assert len(await house.rows(RowKind.APPROVAL)) == 1
        await house.say("/retry", room="lobby")
        await house.press()
        assert world.poke.runs == [{"a": 1}]
