"""One person floods the bot on Telegram: no admitted message is lost, and no other person waits."""

from pathlib import Path

import pytest

from channels.telegram.emulator import Actor, Limits
from tests.emulators.model_scripts import Gate
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

FLOOD = [f"flood {number:03}" for number in range(200)]
WAIT = 100
"""How many may wait in one conversation, where nothing else is configured."""


async def flooded(world: Bot) -> tuple[Gate, str]:
    """Let Ann write all of it while her first answer stands at a gate; return the notice to her."""
    gate = world.model.gate()
    world.model.say(gate, FLOOD[0], key=FLOOD[0])
    world.ann.says(FLOOD[0])
    await gate.reached()
    await world.telegram.confirmed(*[world.ann.says(text) for text in FLOOD[1:]])
    (notice,) = await world.until(lambda: world.ann.chat.texts)
    return gate, notice


def answered_at(who: Actor) -> float:
    """Return when a person's newest answer came to stand, on the emulator's clock."""
    return who.chat.from_bot[-1].versions[-1].at


async def test_a_flood_is_bounded_announced_once_and_answered_in_order(tmp_path: Path) -> None:
    """One is answered, a hundred wait, the others are refused in one sentence; then all is as before.

    P1, P2, P9.
    """
    async with bot(tmp_path) as world:
        gate, notice = await flooded(world)
        assert f"{WAIT} messages wait here already" in notice
        world.bob.says("good day")
        await world.expect(world.bob.chat, "good day")
        gate.open()
        await world.expect(world.ann.chat, notice, *FLOOD[: WAIT + 1])
        world.ann.says("and now?")
        await world.expect(world.ann.chat, notice, *FLOOD[: WAIT + 1], "and now?")


async def test_who_writes_after_a_flood_is_answered_before_it_is_through(tmp_path: Path) -> None:
    """A hundred answers to one person do not stand before the first to another. P9."""
    async with bot(tmp_path, runtime={"backlog": 1_000}) as world:
        world.telegram.hold()
        for text in FLOOD:
            world.ann.says(text)
        world.bob.says("good day")
        world.olga.says("good evening")
        world.telegram.release()
        await world.expect(world.bob.chat, "good day")
        await world.expect(world.olga.chat, "good evening")
        await world.expect(world.ann.chat, *FLOOD)
        assert max(answered_at(world.bob), answered_at(world.olga)) < answered_at(world.ann)


async def test_within_the_published_limits_a_flood_waits_for_its_own_chat_only(
    tmp_path: Path,
) -> None:
    """Messages that its chat may not get yet delay no other; nothing is refused. P1, P9, S2-19."""
    async with bot(tmp_path, limits=Limits(), runtime={"backlog": 10}) as world:
        gate, notice = await flooded(world)
        gate.open()
        await world.until(lambda: len(world.ann.chat.texts) > 2)
        world.bob.says("good day")
        world.olga.says("good evening")
        await world.expect(world.bob.chat, "good day")
        await world.expect(world.olga.chat, "good evening")
        await world.expect(world.ann.chat, notice, *FLOOD[:11])
        assert max(answered_at(world.bob), answered_at(world.olga)) < answered_at(world.ann)
        assert world.telegram.exceeded == 0
