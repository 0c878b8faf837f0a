"""What is remembered of those who wrote: only what still drains."""

from datetime import timedelta

from tests.fakes.house import World
from zeroclaw.config.model import LimitsSettings
from zeroclaw.envelope import Said
from zeroclaw.value import replace


async def test_a_bucket_that_has_drained_is_not_remembered(world: World) -> None:
    """After a crowd nothing is left of it; whoever is over a limit stays so meanwhile."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=1))
    async with world.running() as house:
        for name in ("ben", "cleo", "cleo"):
            await house.say("hello", name)
        assert house.services.rate_limiter.filled == 2 * 2
        await house.advance(9)
        await house.say("too early", "cleo")
        assert house.texts("cleo")[0] == "ok"
        assert "ok" not in house.texts("cleo")[1:]
        await house.advance(60)
        await house.say("hello", "ben")
        assert house.services.rate_limiter.filled == 2


async def test_a_flood_that_was_written_a_while_ago_is_counted_all_the_same(world: World) -> None:
    """Its buckets have drained by their messages' own time, and were not written slowly."""
    world.configure(limits=LimitsSettings(person_per_minute=6, person_burst=2))
    async with world.running() as house:
        sent_at = world.clock.now() - timedelta(minutes=10)
        for text in ("one", "two", "three", "four"):
            late = replace(house.envelope(Said(text=text), "ben"), sent_at=sent_at)
            await world.platforms["chat"].say(late)
        await house.settle()
        assert house.services.rate_limiter.refused == {"chat": 2}
        await house.advance(60)
        await house.say("hello", "cleo")
        assert house.services.rate_limiter.filled == 2
