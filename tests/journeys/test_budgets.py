"""What is spent stays spent, whatever becomes of the process, and its end is told."""

from pathlib import Path

import pytest

from tests.journeys.world import world

pytestmark = pytest.mark.slow

PRICES = {"scripted": {"input": 10.0, "output": 0.0}}


async def test_a_killed_daemon_goes_on_counting(tmp_path: Path) -> None:
    """In the middle of a turn and behind it; then the day is over for everybody (P1, S4-17).

    A process, for a kill and what another one reads of it is what this is about.
    """
    budget = {"day_tokens": 1_000_000, "prices": PRICES}
    async with world(tmp_path, budget=budget) as here:
        gate = here.model.gate()
        here.model.say("That is all.", key="look", round=1, usage=(300_000, 0))
        here.model.calls(("peek", {"what": "sky"}), key="look", round=0)
        here.model.say("Hello.", key="hello", usage=(600_000, 0))
        await here.say("ann", "hello")
        await here.answered("ann", "Hello.")
        here.model.say("Half", gate, key="again", usage=(200_000, 0))
        await here.say("bob", "again")
        await gate.reached()
        await here.daemon.kill()
        gate.open()
        here.model.say("Whole.", key="again", usage=(200_000, 0))
        await here.daemon.start()
        await here.answered("bob", "Whole.")
        (warned,) = await here.until(lambda: here.chat("olga").texts)
        assert warned.startswith("80 % of what may be used in a day, 1,000,000 tokens, is used")
        await here.say("ann", "look")
        await here.until(lambda: "is used up; I go on at 00:00 UTC" in here.chat("ann").answers[-1])
        await here.daemon.restart()
        await here.say("bob", "one more")
        await here.until(lambda: "is used up; I go on at 00:00 UTC" in here.chat("bob").answers[-1])
        await here.until(lambda: len(here.chat("olga").texts) == 2)
