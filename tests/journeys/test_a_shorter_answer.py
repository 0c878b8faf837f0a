"""A draft that had grown long is replaced by a shorter answer, and nothing is left behind (P6)."""

from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

LONG = [f"word{number} " for number in range(60)]
# So that three messages carry it.
LIMIT = 180


async def break_off(world: World) -> int:
    """Let a long draft stand in Ann's chat, then cut its stream; the next answer is short."""
    gate = world.model.gate()
    world.model.say(*LONG, gate, cut=True)
    world.model.say("Short.")
    await world.say("ann", "talk")
    await gate.reached()
    await world.until(lambda: "word59" in world.chat("ann").ever)
    drafts = len(world.chat("ann").replies)
    gate.open()
    return drafts


async def test_the_messages_that_are_not_needed_any_more_are_deleted(tmp_path: Path) -> None:
    """Three messages become one; the stream was re-asked once and nothing had run. K5."""
    async with open_world(tmp_path, platform={"max_length": LIMIT}) as world:
        assert await break_off(world) >= 3
        await world.expect("ann", "Short.")
        assert len(world.model.requests) == 2


async def test_thoughts_that_stood_in_a_draft_are_gone_and_never_come_again(tmp_path: Path) -> None:
    """As those of DeepSeek-R1 behind a server that has no parser for them."""
    async with open_world(tmp_path, platform={"max_length": LIMIT}) as world:
        gate = world.model.gate()
        world.model.say(*LONG, gate, "\n</think>\n\n", "Short.")
        await world.say("ann", "talk")
        await gate.reached()
        await world.until(lambda: "word59" in world.chat("ann").ever)
        gate.open()
        await world.expect("ann", "Short.")
        again = world.model.gate()
        world.model.say("not for anybody ", again, "\n</think>\n\n", "Shorter.")
        await world.say("ann", "talk again")
        await again.reached()
        again.open()
        await world.until(lambda: world.chat("ann").answers == ["Short.", "Shorter."])
        assert "anybody" not in world.chat("ann").ever


async def test_where_nothing_can_be_deleted_they_say_so(tmp_path: Path) -> None:
    """The first message holds the answer, and no other still holds a piece of the old one."""
    async with open_world(tmp_path, platform={"max_length": LIMIT, "can_delete": False}) as world:
        drafts = await break_off(world)
        await world.until(lambda: world.chat("ann").answers[:1] == ["Short."])
        await world.until(lambda: len(world.chat("ann").answers) == drafts)
        assert not any("word" in text for text in world.chat("ann").answers)


async def test_an_answer_that_breaks_off_twice_fails_with_a_notice(tmp_path: Path) -> None:
    """The person reads what there was and what to do; `/retry` works. S4-17, S1-14."""
    async with open_world(tmp_path) as world:
        world.model.say("Half", cut=True, times=2)
        await world.say("ann", "talk")
        await world.until(lambda: world.chat("ann").answers)
        assert "/retry" in world.chat("ann").answers[-1]
        world.model.say("Whole.")
        await world.say("ann", "/retry")
        await world.until(lambda: world.chat("ann").answers[-1] == "Whole.")
