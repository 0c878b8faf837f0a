"""Two hundred people write at once, and each gets their own answer."""

from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

PEOPLE = [f"p{number:03}" for number in range(200)]


async def everyone_writes(world: World) -> None:
    """One message each; every tenth wants a tool."""
    world.platform.hold()
    for number, person in enumerate(PEOPLE):
        key = f"this is {person}."
        if number % 10 == 0:
            world.model.call("peek", {"what": person}, key=key, round=0)
        world.model.say("Hello ", f"{person}, ", "how are you?", key=key)
        await world.say(person, key)
    world.platform.release()


async def test_two_hundred_conversations_at_once(tmp_path: Path) -> None:
    """Every person gets their own answer, complete and once (P2, P9). S1-20."""
    async with open_world(tmp_path, channels={"loopback": {"allowed_users": ["*"]}}) as world:
        await everyone_writes(world)
        await world.until(lambda: all(world.chat(person).answers for person in PEOPLE))
        answers = {person: world.chat(person).answers for person in PEOPLE}
        assert answers == {person: [f"Hello {person}, how are you?"] for person in PEOPLE}
        assert sorted(world.bench.ran("peek")) == PEOPLE[::10]


async def test_two_hundred_conversations_survive_a_kill(tmp_path: Path) -> None:
    """Killed in the middle, the daemon still answers every person once (P1)."""
    async with open_world(tmp_path, channels={"loopback": {"allowed_users": ["*"]}}) as world:
        await everyone_writes(world)
        await world.until(lambda: sum(bool(world.chat(person).answers) for person in PEOPLE) >= 50)
        await world.daemon.restart()
        await world.until(lambda: all(world.chat(person).answers for person in PEOPLE))
        assert {len(world.chat(person).replies) for person in PEOPLE} == {1}
