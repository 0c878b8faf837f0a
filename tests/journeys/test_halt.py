"""`/halt` stops everything and holds across a restart, until `/resume`."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_halt_ends_what_runs_and_starts_nothing_until_resume(tmp_path: Path) -> None:
    """Streams, tools and approvals end; writers read that they wait; then they are answered."""
    async with open_world(tmp_path) as world:
        gate, hold = world.model.gate(), Holds()
        world.bench.will("peek", hold)
        world.model.say("Once upon ", gate, key="story")
        world.model.call("peek", {"what": "far away"}, round=0, key="look")
        await world.say("ann", "a story")
        await world.say("bob", "look")
        await gate.reached()
        await hold.reached()
        await world.say("olga", "/halt")
        await world.until(lambda: any("halted" in text for text in world.chat("ann").answers))
        await world.until(lambda: any("halted" in text for text in world.chat("bob").answers))
        assert any("Halted" in text for text in world.chat("olga").answers)
        requests = len(world.model.requests)
        world.model.say("Here I am.", key="hello?")
        answer_count = len(world.chat("ann").answers)
        await world.say("ann", "hello?")
        await world.until(lambda: len(world.chat("ann").answers) > answer_count)
        assert len(world.model.requests) == requests
        await world.say("olga", "/resume")
        await world.until(lambda: world.chat("ann").answers[-1] == "Here I am.")


async def test_halt_holds_across_a_restart(tmp_path: Path) -> None:
    """The switch is on disk: after a kill nothing starts either."""
    async with open_world(tmp_path) as world:
        await world.platform.confirmed(await world.say("olga", "/halt"))
        await world.daemon.restart()
        world.model.say("Here I am.", key="hello?")
        await world.platform.confirmed(await world.say("ann", "hello?"))
        await world.say("olga", "/status")
        await world.until(lambda: len(world.chat("olga").answers) == 2)
        assert world.model.requests == []
        await world.say("olga", "/resume")
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Here I am."])


async def test_only_operators_halt(tmp_path: Path) -> None:
    """Ann reads that she may not, and nothing stops."""
    async with open_world(tmp_path) as world:
        await world.say("ann", "/halt")
        await world.until(lambda: world.chat("ann").answers)
        assert "not for you" in world.chat("ann").answers[0]
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.until(lambda: world.chat("ann").answers[-1] == "Hello.")
