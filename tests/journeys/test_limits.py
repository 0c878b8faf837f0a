"""A flood gets one notice and every message one end; people at normal speed never meet a limit."""

from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

LIMITS = {
    "person_per_minute": 1,
    "person_burst": 3,
    "conversation_per_minute": 0,
    "daily_messages": 5,
}


async def flood(world: World, person: str, *texts: str) -> None:
    """Write without waiting for an answer, as a script does."""
    events = [await world.say(person, text) for text in texts]
    await world.until(lambda: all(event.confirmed for event in events))


async def test_a_flood_gets_one_notice_and_all_others_go_on(tmp_path: Path) -> None:
    """Excess messages are acknowledged and dropped; `/stop` and other people still work (P1, P9)."""
    async with open_world(tmp_path, limits=LIMITS) as world:
        gate = world.model.gate()
        world.model.say("Once upon ", gate, key="one")
        world.model.say("Hello Bob.", key="good day")
        await flood(world, "ann", "one")
        await gate.reached()
        await flood(world, "ann", "two", "three", *(f"flood {number}" for number in range(20)))
        await world.until(lambda: any("That was a lot" in text for text in world.chat("ann").texts))
        await world.say("bob", "good day")
        await world.expect("bob", "Hello Bob.")
        world.model.say("All right.", times=None)
        await world.say("ann", "/stop")
        await world.until(lambda: world.chat("ann").answers.count("All right.") == 2)
        notices = [text for text in world.chat("ann").texts if "That was a lot" in text]
        assert len(notices) == 1
        assert "I take 1 a minute" in notices[0]
        contents = [str(request.messages[-1]["content"]) for request in world.model.requests]
        assert [text for text in contents if "flood" in text] == []


async def test_a_restart_does_not_begin_a_new_day(tmp_path: Path) -> None:
    """Killed at the last message of the day, the next process takes no more than that (P1)."""
    limits = {**LIMITS, "person_per_minute": 0}
    async with open_world(tmp_path, limits=limits) as world:
        world.model.say("Hello.", times=None)
        await flood(world, "ann", "1", "2", "3", "4")
        await world.expect("ann", *["Hello."] * 4)
        event = await world.say("ann", "5")
        await world.until(lambda: event.confirmed)
        await world.daemon.restart()
        await world.expect("ann", *["Hello."] * 5)
        await flood(world, "ann", "6", "7")
        await world.until(lambda: len(world.chat("ann").answers) == 6)
        assert "For today that is all that I can take" in world.chat("ann").answers[-1]
        assert len(world.model.requests) in {5, 6}, "asked again at most once, because of the kill"
