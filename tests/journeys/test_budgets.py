"""Spent budget stays spent across kills, and the bot reports when it is exhausted."""

from pathlib import Path

import pytest

from tests.journeys.world import open_world

pytestmark = pytest.mark.slow

PRICES = {"scripted": {"input": 10.0, "output": 0.0}}


async def test_a_killed_daemon_goes_on_counting(tmp_path: Path) -> None:
    """In the middle of a turn and after it; then the day's budget is exhausted for all (P1, S4-17).

    Needs processes: after a kill the next one has to read what was spent.
    """
    budget = {"day_tokens": 1_000_000, "prices": PRICES}
    async with open_world(tmp_path, budget=budget) as world:
        gate = world.model.gate()
        world.model.say("That is all.", key="look", round=1, usage=(300_000, 0))
        world.model.calls(("peek", {"what": "sky"}), key="look", round=0)
        world.model.say("Hello.", key="hello", usage=(600_000, 0))
        await world.say("ann", "hello")
        await world.expect("ann", "Hello.")
        world.model.say("Half", gate, key="again", usage=(200_000, 0))
        await world.say("bob", "again")
        await gate.reached()
        await world.daemon.kill()
        gate.open()
        world.model.say("Whole.", key="again", usage=(200_000, 0))
        await world.daemon.start()
        await world.expect("bob", "Whole.")
        (warned,) = await world.until(lambda: world.chat("olga").texts)
        assert warned.startswith("80 % of what may be used in a day, 1,000,000 tokens, is used")
        await world.say("ann", "look")
        await world.until(
            lambda: "is used up; I go on at 00:00 UTC" in world.chat("ann").answers[-1]
        )
        await world.daemon.restart()
        await world.say("bob", "one more")
        await world.until(
            lambda: "is used up; I go on at 00:00 UTC" in world.chat("bob").answers[-1]
        )
        await world.until(lambda: len(world.chat("olga").texts) == 2)
