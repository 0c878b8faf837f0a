"""`/stop` ends the turn at once, wherever it is; what was shown stays, and what is queued goes on."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_stop_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    """The text stands with a note, the model's connection is closed, the next request knows.

    S4-17, S4-20, K24.
    """
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("Once upon a time ", gate, "there was more.")
        await here.say("ann", "tell a story")
        await gate.reached()
        await here.until(lambda: "Once upon" in here.chat("ann").ever)
        await here.say("ann", "/stop")
        await here.until(lambda: here.chat("ann").answers)
        assert here.chat("ann").answers[0].startswith("Once upon a time")
        assert "topped by ann" in here.chat("ann").answers[0]
        await here.model.until(lambda model: model.disconnects == 1)
        here.model.say("Hello.", key="hi")
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers[-1] == "Hello.")
        contents = [str(one["content"]) for one in here.model.requests[-1].messages[1:]]
        assert contents[1].startswith("Once upon a time")


async def test_stop_in_the_middle_of_a_tool(tmp_path: Path) -> None:
    """The run is cancelled, its slot says that it may have run, and the turn is over. K24."""
    async with world(tmp_path) as here:
        hold = Holds()
        here.bench.will("peek", hold)
        here.model.call("peek", {"what": "far away"}, round=0, key="look")
        await here.say("ann", "look")
        await hold.reached()
        await here.say("ann", "/stop")
        await here.until(lambda: any("topped by ann" in one for one in here.chat("ann").answers))
        await here.until(lambda: here.bench.runs[0].ended)
        here.model.say("Hello.", key="hi")
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers[-1] == "Hello.")
        (result,) = here.tool_results()
        assert "may have run" in result


async def test_stop_while_it_waits_for_an_approval(tmp_path: Path) -> None:
    """The question ends as stopped; a press that comes later runs nothing. P5."""
    async with world(tmp_path) as here:
        card = await ask_to_knock(here)
        await here.say("ann", "/stop")
        await here.until(lambda: card.hows == ["stopped"])
        pressed = await here.press("olga", card)
        assert "stopped" in pressed.toast
        here.model.say("Hello.", key="hi")
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Hello."])
        assert here.bench.runs == []
        assert "did not run" in here.tool_results()[0]


async def test_a_stopped_turn_can_be_retried(tmp_path: Path) -> None:
    """`/retry` asks the model again from the same message. S4-17."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("Once ", gate)
        await here.say("ann", "tell a story")
        await gate.reached()
        await here.say("ann", "/stop")
        await here.until(lambda: here.chat("ann").answers)
        here.model.say("Once upon a time.")
        await here.say("ann", "/retry")
        await here.until(lambda: here.chat("ann").answers[-1] == "Once upon a time.")
        assert here.model.requests[-1].last_user == "tell a story"
