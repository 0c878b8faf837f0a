"""Somebody sets the machine's clock while people write: nothing is lost, repeated or out of order."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.faults.fork_client import fork
from tests.faults.shifted_daemon import COMMAND, set_clock
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

AN_HOUR = timedelta(hours=1)
A_MONTH = timedelta(days=31)


async def asks_for_a_knock(world: Bot, what: str) -> None:
    """Let Ann ask for what needs an approval."""
    world.model.call("knock", {"what": what}, key=what, round=0)
    world.model.say(f"{what}: done", key=what, round=1)
    world.ann.says(what)


@pytest.mark.parametrize("jump", [AN_HOUR, -AN_HOUR], ids=["forward", "back"])
async def test_a_clock_that_is_set_changes_no_answer(tmp_path: Path, jump: timedelta) -> None:
    """While an answer is written, and while others wait: the pace goes on, and so does the order."""
    set_clock(tmp_path, timedelta())
    async with bot(
        tmp_path, command=COMMAND, launch=fork, channel={"limits": "published", "drafts": "edited"}
    ) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.", key="first")
        world.model.say("Three.", key="second")
        world.model.say("Four.", key="third")
        first = world.ann.says("first")
        await gate.reached()
        world.ann.says("second")
        await world.until(lambda: world.ann.chat.texts == ["One,"])
        set_clock(tmp_path, jump)
        third = world.ann.says("third")
        world.telegram.redeliver(first)
        await world.telegram.confirmed(first, third)
        gate.open()
        await world.until(
            # Whatever was answered an hour late says so beneath.
            lambda: (
                [text.partition("\n\nAnswered ")[0] for text in world.ann.chat.texts]
                == ["One, two.", "Three.", "Four."]
            )
        )


async def test_what_waited_stays_in_order_when_the_clock_is_set_back_between_two_starts(
    tmp_path: Path,
) -> None:
    """Messages that a process left are answered before those that a later one takes (P2)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as world:
        gate = world.model.gate()
        world.model.say(gate, "never", key="first")
        world.ann.says("first")
        await gate.reached()
        await world.telegram.confirmed(*(world.ann.says(f"waits {number}") for number in range(3)))
        await world.daemon.kill()
        set_clock(tmp_path, -AN_HOUR)
        world.model.say("first", key="first")
        world.ann.says("came later")
        await world.daemon.start()
        await world.expect(world.ann.chat, "first", "waits 0", "waits 1", "waits 2", "came later")


async def test_a_deadline_that_the_clock_jumps_over_is_past(tmp_path: Path) -> None:
    """A late press runs nothing and says so, the card shows it, and the chat goes on (P5)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as world:
        await asks_for_a_knock(world, "late")
        card = await world.card()
        set_clock(tmp_path, AN_HOUR)
        pressed = world.olga.presses(card, "Approve once")
        await world.until(lambda: world.olga.toast(pressed))
        await world.until(lambda: "late: done" in world.ann.chat.texts)
        await world.until(lambda: not card.buttons)
        assert world.bench.runs == []
        assert "approved" not in card.text


async def test_a_clock_that_is_set_back_takes_no_approval_away(tmp_path: Path) -> None:
    """The question stays open, is answered, and its answer counts (P5)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as world:
        await asks_for_a_knock(world, "early")
        card = await world.card()
        set_clock(tmp_path, -AN_HOUR)
        world.olga.presses(card, "Approve once")
        await world.until(lambda: "early: done" in world.ann.chat.texts)
        assert world.bench.ran("knock") == ["early"]


async def test_a_repeat_is_known_after_the_clock_was_set_forward_and_back(tmp_path: Path) -> None:
    """A month passes on the clock alone, and what was answered stays answered (P1)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as world:
        action = world.ann.says("hello")
        await world.expect(world.ann.chat, "hello")
        await world.telegram.confirmed(action)
        set_clock(tmp_path, A_MONTH - timedelta(days=2))
        again = world.telegram.redeliver(action, as_new=True)
        await world.until(lambda: again.confirmed)
        assert await world.daemon.terminate() == 0
        set_clock(tmp_path, timedelta())
        await world.daemon.start()
        world.telegram.redeliver(action)
        await world.telegram.confirmed(action)
        world.ann.says("good day")
        await world.expect(world.ann.chat, "hello", "good day")
