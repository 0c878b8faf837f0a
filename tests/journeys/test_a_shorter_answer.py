"""A draft that had grown long is replaced by a shorter answer, and nothing is left behind (P6)."""

from pathlib import Path

import pytest

from tests.journeys.world import World, world

pytestmark = pytest.mark.slow

LONG = [f"word{number} " for number in range(60)]
# So that three messages carry it.
LIMIT = 180


async def break_off(here: World) -> int:
    """Let a long draft stand in Ann's chat, then cut its stream; the next answer is short."""
    gate = here.model.gate()
    here.model.say(*LONG, gate, cut=True)
    here.model.say("Short.")
    await here.say("ann", "talk")
    await gate.reached()
    await here.until(lambda: "word59" in here.chat("ann").ever)
    drafts = len(here.chat("ann").said)
    gate.open()
    return drafts


async def test_the_messages_that_are_not_needed_any_more_are_deleted(tmp_path: Path) -> None:
    """Three messages become one; the stream was re-asked once and nothing had run. K5."""
    async with world(tmp_path, platform={"max_length": LIMIT}) as here:
        assert await break_off(here) >= 3
        await here.answered("ann", "Short.")
        assert len(here.model.requests) == 2


async def test_thoughts_that_stood_in_a_draft_are_gone_and_never_come_again(tmp_path: Path) -> None:
    """As those of DeepSeek-R1 behind a server that has no parser for them."""
    async with world(tmp_path, platform={"max_length": LIMIT}) as here:
        gate = here.model.gate()
        here.model.say(*LONG, gate, "\n</think>\n\n", "Short.")
        await here.say("ann", "talk")
        await gate.reached()
        await here.until(lambda: "word59" in here.chat("ann").ever)
        gate.open()
        await here.answered("ann", "Short.")
        again = here.model.gate()
        here.model.say("not for anybody ", again, "\n</think>\n\n", "Shorter.")
        await here.say("ann", "talk again")
        await again.reached()
        again.open()
        await here.until(lambda: here.chat("ann").answers == ["Short.", "Shorter."])
        assert "anybody" not in here.chat("ann").ever


async def test_where_nothing_can_be_deleted_they_say_so(tmp_path: Path) -> None:
    """The first message holds the answer, and no other still holds a piece of the old one."""
    async with world(tmp_path, platform={"max_length": LIMIT, "can_delete": False}) as here:
        drafts = await break_off(here)
        await here.until(lambda: here.chat("ann").answers[:1] == ["Short."])
        await here.until(lambda: len(here.chat("ann").answers) == drafts)
        assert not any("word" in text for text in here.chat("ann").answers)


async def test_an_answer_that_breaks_off_twice_fails_and_is_told(tmp_path: Path) -> None:
    """The person reads what there was and what to do; `/retry` works. S4-17, S1-14."""
    async with world(tmp_path) as here:
        here.model.say("Half", cut=True, times=2)
        await here.say("ann", "talk")
        await here.until(lambda: here.chat("ann").answers)
        assert "/retry" in here.chat("ann").answers[-1]
        here.model.say("Whole.")
        await here.say("ann", "/retry")
        await here.until(lambda: here.chat("ann").answers[-1] == "Whole.")
