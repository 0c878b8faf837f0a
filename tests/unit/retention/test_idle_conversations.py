"""What retention took away is in nobody's memory either."""

from datetime import timedelta

import pytest

from tests.fakes.house import World
from zeroclaw.retention.sweep import EVERY_S

OLD = timedelta(days=400)


@pytest.mark.parametrize("lately", [True, False])
async def test_what_is_gone_is_not_sent_to_the_model_again(world: World, lately: bool) -> None:
    """A conversation that goes on forgets its old messages while the process runs, too."""
    async with world.running() as house:
        await house.say("one")
        world.clock.leap(OLD)
        if lately:
            await house.say("two")
        await house.advance(EVERY_S)
        for _ in range(20):
            await house.advance(0.1)
        await house.say("three")
        expected = ["user: two", "assistant: ok"] if lately else []
        assert world.model.asked() == [*expected, "user: three"]
