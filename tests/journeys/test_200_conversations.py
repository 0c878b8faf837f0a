"""Two hundred people write at once, and each gets their own answer."""

from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

PEOPLE = [f"p{number:03}" for number in range(200)]


async def everybody_writes(world: World) -> None:
    """One message each; every tenth wants a tool."""
    world.platform.hold()
    for number, who in enumerate(PEOPLE):
        key = f"this is {who}."
        if number % 10 == 0:
            world.model.call("peek", {"what": who}, key=key, round=0)
        world.model.say("Hello ", f"{who}, ", "how are you?", key=key)
        await world.say(who, key)
    world.platform.release()


async def test_two_hundred_conversations_at_once(tmp_path: Path) -> None:
    """Everybody's answer is theirs, whole and single (P2, P9). S1-20."""
    async with open_world(tmp_path, channels={"loopback": {"allowed_users": ["*"]}}) as world:
        await everybody_writes(world)
        await world.until(lambda: all(world.chat(who).answers for who in PEOPLE))
        answers = {who: world.chat(who).answers for who in PEOPLE}
        assert answers == {who: [f"Hello {who}, how are you?"] for who in PEOPLE}
        assert sorted(world.bench.ran("peek")) == PEOPLE[::10]


async def test_two_hundred_conversations_survive_a_kill(tmp_path: Path) -> None:
    """Killed in the middle, the daemon answers everybody once all the same (P1)."""
    async with open_world(tmp_path, channels={"loopback": {"allowed_users": ["*"]}}) as world:
        await everybody_writes(world)
        await world.until(lambda: sum(bool(world.chat(who).answers) for who in PEOPLE) >= 50)
        await world.daemon.restart()
        await world.until(lambda: all(world.chat(who).answers for who in PEOPLE))
        assert {len(world.chat(who).replies) for who in PEOPLE} == {1}
