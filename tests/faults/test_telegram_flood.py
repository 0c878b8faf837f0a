"""One person floods the bot on Telegram: they lose nothing that was taken, and nobody waits for them."""

from pathlib import Path

import pytest

from channels.telegram.emulator import Actor, Limits
from tests.emulators.model_scripts import Gate
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

FLOOD = [f"flood {number:03}" for number in range(200)]
WAIT = 100
"""How many may wait in one conversation, where nothing else is configured."""


async def flooded(here: Bot) -> tuple[Gate, str]:
    """Let Ann write all of it while her first answer stands at a gate; return what she is told."""
    gate = here.model.gate()
    here.model.say(gate, FLOOD[0], key=FLOOD[0])
    here.ann.says(FLOOD[0])
    await gate.reached()
    await here.telegram.confirmed(*[here.ann.says(text) for text in FLOOD[1:]])
    (told,) = await here.until(lambda: here.ann.chat.texts)
    return gate, told


def answered_at(who: Actor) -> float:
    """Return when somebody's newest answer came to stand, on the emulator's clock."""
    return who.chat.from_bot[-1].versions[-1].at


async def test_a_flood_is_bounded_told_once_and_answered_in_order(tmp_path: Path) -> None:
    """One is answered, a hundred wait, the others are refused in one sentence; then all is as before.

    P1, P2, P9.
    """
    async with bot(tmp_path) as here:
        gate, told = await flooded(here)
        assert f"{WAIT} messages wait here already" in told
        here.bob.says("good day")
        await here.expect(here.bob.chat, "good day")
        gate.open()
        await here.expect(here.ann.chat, told, *FLOOD[: WAIT + 1])
        here.ann.says("and now?")
        await here.expect(here.ann.chat, told, *FLOOD[: WAIT + 1], "and now?")


async def test_who_writes_after_a_flood_is_answered_before_it_is_through(tmp_path: Path) -> None:
    """A hundred answers to one person do not stand before the first to another. P9."""
    async with bot(tmp_path, runtime={"backlog": 1_000}) as here:
        here.telegram.hold()
        for text in FLOOD:
            here.ann.says(text)
        here.bob.says("good day")
        here.olga.says("good evening")
        here.telegram.release()
        await here.expect(here.bob.chat, "good day")
        await here.expect(here.olga.chat, "good evening")
        await here.expect(here.ann.chat, *FLOOD)
        assert max(answered_at(here.bob), answered_at(here.olga)) < answered_at(here.ann)


async def test_within_the_published_limits_a_flood_waits_for_its_own_chat_only(
    tmp_path: Path,
) -> None:
    """What its chat may not yet be told holds nobody up, and nothing is refused. P1, P9, S2-19."""
    async with bot(tmp_path, limits=Limits(), runtime={"backlog": 10}) as here:
        gate, told = await flooded(here)
        gate.open()
        await here.until(lambda: len(here.ann.chat.texts) > 2)
        here.bob.says("good day")
        here.olga.says("good evening")
        await here.expect(here.bob.chat, "good day")
        await here.expect(here.olga.chat, "good evening")
        await here.expect(here.ann.chat, told, *FLOOD[:11])
        assert max(answered_at(here.bob), answered_at(here.olga)) < answered_at(here.ann)
        assert here.telegram.exceeded == 0
