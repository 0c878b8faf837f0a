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


async def asks_for_a_knock(here: Bot, what: str) -> None:
    """Let Ann ask for what needs an approval."""
    here.model.call("knock", {"what": what}, key=what, round=0)
    here.model.say(f"{what}: done", key=what, round=1)
    here.ann.says(what)


@pytest.mark.parametrize("jump", [AN_HOUR, -AN_HOUR], ids=["forward", "back"])
async def test_a_clock_that_is_set_changes_no_answer(tmp_path: Path, jump: timedelta) -> None:
    """While an answer is written, and while others wait: the pace goes on, and so does the order."""
    set_clock(tmp_path, timedelta())
    async with bot(
        tmp_path, command=COMMAND, launch=fork, channel={"limits": "published", "drafts": "edited"}
    ) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.", key="first")
        here.model.say("Three.", key="second")
        here.model.say("Four.", key="third")
        first = here.ann.says("first")
        await gate.reached()
        here.ann.says("second")
        await here.until(lambda: here.ann.chat.texts == ["One,"])
        set_clock(tmp_path, jump)
        third = here.ann.says("third")
        here.telegram.redeliver(first)
        await here.telegram.confirmed(first, third)
        gate.open()
        await here.until(
            # Whatever was answered an hour late says so beneath.
            lambda: (
                [text.partition("\n\nAnswered ")[0] for text in here.ann.chat.texts]
                == ["One, two.", "Three.", "Four."]
            )
        )


async def test_what_waited_stays_in_order_when_the_clock_is_set_back_between_two_starts(
    tmp_path: Path,
) -> None:
    """Messages that a process left are answered before those that a later one takes (P2)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as here:
        gate = here.model.gate()
        here.model.say(gate, "never", key="first")
        here.ann.says("first")
        await gate.reached()
        await here.telegram.confirmed(*(here.ann.says(f"waits {number}") for number in range(3)))
        await here.daemon.kill()
        set_clock(tmp_path, -AN_HOUR)
        here.model.say("first", key="first")
        here.ann.says("came later")
        await here.daemon.start()
        await here.expect(here.ann.chat, "first", "waits 0", "waits 1", "waits 2", "came later")


async def test_a_deadline_that_the_clock_jumps_over_is_past(tmp_path: Path) -> None:
    """A late press runs nothing and says so, the card shows it, and the chat goes on (P5)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as here:
        await asks_for_a_knock(here, "late")
        card = await here.card()
        set_clock(tmp_path, AN_HOUR)
        pressed = here.olga.presses(card, "Approve once")
        await here.until(lambda: here.olga.toast(pressed))
        await here.until(lambda: "late: done" in here.ann.chat.texts)
        await here.until(lambda: not card.buttons)
        assert here.bench.runs == []
        assert "approved" not in card.text


async def test_a_clock_that_is_set_back_takes_no_approval_away(tmp_path: Path) -> None:
    """The question stays open, is answered, and its answer counts (P5)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as here:
        await asks_for_a_knock(here, "early")
        card = await here.card()
        set_clock(tmp_path, -AN_HOUR)
        here.olga.presses(card, "Approve once")
        await here.until(lambda: "early: done" in here.ann.chat.texts)
        assert here.bench.ran("knock") == ["early"]


async def test_a_repeat_is_known_after_the_clock_was_set_forward_and_back(tmp_path: Path) -> None:
    """A month passes on the clock alone, and what was answered stays answered (P1)."""
    set_clock(tmp_path, timedelta())
    async with bot(tmp_path, command=COMMAND, launch=fork) as here:
        said = here.ann.says("hello")
        await here.expect(here.ann.chat, "hello")
        await here.telegram.confirmed(said)
        set_clock(tmp_path, A_MONTH - timedelta(days=2))
        again = here.telegram.redeliver(said, as_new=True)
        await here.until(lambda: again.confirmed)
        assert await here.daemon.terminate() == 0
        set_clock(tmp_path, timedelta())
        await here.daemon.start()
        here.telegram.redeliver(said)
        await here.telegram.confirmed(said)
        here.ann.says("good day")
        await here.expect(here.ann.chat, "hello", "good day")
