"""A flood is told once and ends in one state; whoever writes as people do never meets a limit."""

from pathlib import Path

import pytest

from tests.journeys.world import World, world

pytestmark = pytest.mark.slow

LIMITS = {
    "person_per_minute": 1,
    "person_burst": 3,
    "conversation_per_minute": 0,
    "daily_messages": 5,
}


async def flood(here: World, who: str, *texts: str) -> None:
    """Write without waiting for an answer, as a script does."""
    events = [await here.say(who, text) for text in texts]
    await here.until(lambda: all(event.confirmed for event in events))


async def test_a_flood_is_told_once_and_everybody_else_goes_on(tmp_path: Path) -> None:
    """What is over is confirmed and not taken; stopping still works, and so do others (P1, P9)."""
    async with world(tmp_path, limits=LIMITS) as here:
        gate = here.model.gate()
        here.model.say("Once upon ", gate, key="one")
        here.model.say("Hello Bob.", key="good day")
        await flood(here, "ann", "one")
        await gate.reached()
        await flood(here, "ann", "two", "three", *(f"flood {number}" for number in range(20)))
        await here.until(lambda: any("That was a lot" in text for text in here.chat("ann").texts))
        await here.say("bob", "good day")
        await here.answered("bob", "Hello Bob.")
        here.model.say("All right.", times=None)
        await here.say("ann", "/stop")
        await here.until(lambda: here.chat("ann").answers.count("All right.") == 2)
        told = [text for text in here.chat("ann").texts if "That was a lot" in text]
        assert len(told) == 1
        assert "I take 1 a minute" in told[0]
        said = [str(request.messages[-1]["content"]) for request in here.model.requests]
        assert [text for text in said if "flood" in text] == []


async def test_a_restart_does_not_begin_a_new_day(tmp_path: Path) -> None:
    """Killed at the last message of the day, the next process takes no more than that (P1)."""
    limits = {**LIMITS, "person_per_minute": 0}
    async with world(tmp_path, limits=limits) as here:
        here.model.say("Hello.", times=None)
        await flood(here, "ann", "1", "2", "3", "4")
        await here.answered("ann", *["Hello."] * 4)
        event = await here.say("ann", "5")
        await here.until(lambda: event.confirmed)
        await here.daemon.restart()
        await here.answered("ann", *["Hello."] * 5)
        await flood(here, "ann", "6", "7")
        await here.until(lambda: len(here.chat("ann").answers) == 6)
        assert "For today that is all that I can take" in here.chat("ann").answers[-1]
        assert len(here.model.requests) in {5, 6}, "asked again at most once, because of the kill"
