"""Whatever the model's endpoint does, the person reads it at once, once, and `/retry` answers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulators.model_server import ModelServer
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

PROVIDER = {"attempts": 2, "stall_s": 20.0}
SOON = {"retry-after": "0.1"}


def busy(model: ModelServer) -> None:
    model.refuse(429, "slow down", headers=SOON, times=None)


def broken(model: ModelServer) -> None:
    model.refuse(500, "internal error", headers=SOON, times=None)


def silent(model: ModelServer) -> None:
    model.say(model.gate(), times=None)


def stuck(model: ModelServer) -> None:
    model.say("Half an ", model.gate(), times=None)


def cut(model: ModelServer) -> None:
    model.say("Half an ", cut=True, times=None)


def hung_up(model: ModelServer) -> None:
    model.disconnect(times=None)


FOR_EVER = (busy, broken, silent, stuck, cut, hung_up)


async def failure_text(world: Bot) -> str:
    """Wait for the failure notice in Ann's chat; it names a way on."""
    await world.until(lambda: world.ann.chat.texts and "/retry" in world.ann.chat.texts[-1])
    return world.ann.chat.texts[-1]


@pytest.mark.parametrize("fails", FOR_EVER, ids=lambda fault: fault.__name__)
async def test_a_model_that_fails_for_ever_is_reported_once_and_retried(
    tmp_path: Path, fails: Callable[[ModelServer], None]
) -> None:
    """The notice comes by itself, and no other chat waits for it. P9, P10, S1-14."""
    # Those who are answered meanwhile are so within the time after which it stands still.
    stalls = {"stall_s": 2.0} if fails in {silent, stuck} else {}
    async with bot(tmp_path, provider=PROVIDER | stalls) as world:
        fails(world.model)
        world.model.say("Hello Bob.", key="good day", times=None)
        world.ann.says("first")
        first = await failure_text(world)
        world.bob.says("good day")
        await world.expect(world.bob.chat, "Hello Bob.")
        world.ann.says("/retry")
        await world.until(lambda: len(world.ann.chat.texts) == 2)
        again = await failure_text(world)
        world.model.reset()
        world.model.say("All is well.", key="first")
        world.ann.says("/retry")
        await world.expect(world.ann.chat, first, again, "All is well.")
        (note,) = world.olga.chat.texts
        assert "An answer to Ann in telegram failed" in note


async def test_a_model_that_fails_once_is_asked_again_without_a_trace(tmp_path: Path) -> None:
    """Too busy, broken, cut in the middle: the answer comes all the same, once. K5."""
    async with bot(tmp_path, provider={"attempts": 3, "stall_s": 20.0}) as world:
        for number, fails in enumerate((busy, broken, cut, hung_up)):
            fails(world.model)
            world.model.say("Whole.", key="never")
            world.ann.says(f"message {number}")
            await world.model.until(lambda model: len(model.requests) > 0)
            world.model.reset()
            await world.until(lambda number=number: len(world.ann.chat.texts) == number + 1)
        await world.expect(world.ann.chat, *(f"message {number}" for number in range(4)))


async def test_a_model_that_is_gone_is_reported_and_everything_waits_for_it(tmp_path: Path) -> None:
    """Its address refuses connections: each message gets one notice, and an answer when it is back."""
    async with bot(tmp_path, provider=PROVIDER) as world:
        await world.model.down()
        world.ann.says("first")
        first = await failure_text(world)
        assert await world.daemon.terminate() == 0
        await world.daemon.start()
        await world.model.up()
        world.model.say("All is well.", key="first")
        world.ann.says("/retry")
        await world.expect(world.ann.chat, first, "All is well.")
