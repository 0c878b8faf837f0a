"""`/stop` ends the turn at once, in any phase; the text so far stays, and queued messages go on."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_stop_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    """The text stays with a note, the model's connection is closed, the next request knows.

    S4-17, S4-20, K24.
    """
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("Once upon a time ", gate, "there was more.")
        await world.say("ann", "tell a story")
        await gate.reached()
        await world.until(lambda: "Once upon" in world.chat("ann").ever)
        await world.say("ann", "/stop")
        await world.until(lambda: world.chat("ann").answers)
        assert world.chat("ann").answers[0].startswith("Once upon a time")
        assert "topped by ann" in world.chat("ann").answers[0]
        await world.model.until(lambda model: model.disconnects == 1)
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.until(lambda: world.chat("ann").answers[-1] == "Hello.")
        contents = [str(message["content"]) for message in world.model.requests[-1].messages[1:]]
        assert contents[1].startswith("Once upon a time")


async def test_stop_in_the_middle_of_a_tool(tmp_path: Path) -> None:
    """The run is cancelled, its slot says that it may have run, and the turn is over. K24."""
    async with open_world(tmp_path) as world:
        hold = Holds()
        world.bench.will("peek", hold)
        world.model.call("peek", {"what": "far away"}, round=0, key="look")
        await world.say("ann", "look")
        await hold.reached()
        await world.say("ann", "/stop")
        await world.until(
            lambda: any("topped by ann" in answer for answer in world.chat("ann").answers)
        )
        await world.until(lambda: world.bench.runs[0].ended)
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.until(lambda: world.chat("ann").answers[-1] == "Hello.")
        (result,) = world.tool_results()
        assert "may have run" in result


async def test_stop_while_it_waits_for_an_approval(tmp_path: Path) -> None:
    """The question ends as stopped; a press that comes later runs nothing. P5."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        await world.say("ann", "/stop")
        await world.until(lambda: card.outcomes == ["stopped"])
        pressed = await world.press("olga", card)
        assert "stopped" in pressed.toast
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Hello."])
        assert world.bench.runs == []
        assert "did not run" in world.tool_results()[0]


async def test_a_stopped_turn_can_be_retried(tmp_path: Path) -> None:
    """`/retry` asks the model again from the same message. S4-17."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("Once ", gate)
        await world.say("ann", "tell a story")
        await gate.reached()
        await world.say("ann", "/stop")
        await world.until(lambda: world.chat("ann").answers)
        world.model.say("Once upon a time.")
        await world.say("ann", "/retry")
        await world.until(lambda: world.chat("ann").answers[-1] == "Once upon a time.")
        assert world.model.requests[-1].last_user == "tell a story"
