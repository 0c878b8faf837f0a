"""`/halt` stops everything and holds across a restart, until `/resume`."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_halt_ends_what_runs_and_starts_nothing_until_resume(tmp_path: Path) -> None:
    """Streams, tools and questions end; writers are told that they wait; then they are answered."""
    async with world(tmp_path) as here:
        gate, hold = here.model.gate(), Holds()
        here.bench.will("peek", hold)
        here.model.say("Once upon ", gate, key="story")
        here.model.call("peek", {"what": "far away"}, round=0, key="look")
        await here.say("ann", "a story")
        await here.say("bob", "look")
        await gate.reached()
        await hold.reached()
        await here.say("olga", "/halt")
        await here.until(lambda: any("halted" in text for text in here.chat("ann").answers))
        await here.until(lambda: any("halted" in text for text in here.chat("bob").answers))
        assert any("Halted" in text for text in here.chat("olga").answers)
        requests = len(here.model.requests)
        here.model.say("Here I am.", key="hello?")
        told = len(here.chat("ann").answers)
        await here.say("ann", "hello?")
        await here.until(lambda: len(here.chat("ann").answers) > told)
        assert len(here.model.requests) == requests
        await here.say("olga", "/resume")
        await here.until(lambda: here.chat("ann").answers[-1] == "Here I am.")


async def test_halt_holds_across_a_restart(tmp_path: Path) -> None:
    """The switch is on disk: after a kill nothing starts either."""
    async with world(tmp_path) as here:
        await here.platform.confirmed(await here.say("olga", "/halt"))
        await here.daemon.restart()
        here.model.say("Here I am.", key="hello?")
        await here.platform.confirmed(await here.say("ann", "hello?"))
        await here.say("olga", "/status")
        await here.until(lambda: len(here.chat("olga").answers) == 2)
        assert here.model.requests == []
        await here.say("olga", "/resume")
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Here I am."])


async def test_only_operators_halt(tmp_path: Path) -> None:
    """Ann is told that it is not for her, and nothing stops."""
    async with world(tmp_path) as here:
        await here.say("ann", "/halt")
        await here.until(lambda: here.chat("ann").answers)
        assert "not for you" in here.chat("ann").answers[0]
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers[-1] == "Hello.")
