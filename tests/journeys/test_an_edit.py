"""A turn takes an edited message in its newest version; the model hears of later edits."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_a_message_is_edited_before_its_turn(tmp_path: Path) -> None:
    """The model reads only the newer text; one withdrawn is not answered at all."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One", gate, ".", key="first")
        await world.say("ann", "first")
        await gate.reached()
        second = await world.say("ann", "second")
        third = await world.say("ann", "third")
        changed = await world.platform.edit(second, "second, mended")
        withdrawn = await world.platform.delete(third)
        await world.platform.confirmed(second, third, changed, withdrawn)
        world.model.say("Two.", key="mended")
        gate.open()
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Two."])
        world.model.say("Four.", key="fourth")
        await world.say("ann", "fourth")
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Four."])
        questions = [request.last_user for request in world.model.requests]
        assert questions == ["first", "second, mended", "fourth"]


async def test_a_message_is_edited_while_its_turn_runs(tmp_path: Path) -> None:
    """The edit is taken after the next complete batch, by the same turn."""
    async with open_world(tmp_path) as world:
        hold = Holds(text="stars")
        world.bench.will("peek", hold)
        world.model.call("peek", {"what": "the sky"}, round=0, key="look up")
        event = await world.say("ann", "look up")
        await hold.reached()
        changed = await world.platform.edit(event, "look down")
        await world.platform.confirmed(changed)
        world.model.say("Down it is.", key="look down")
        hold.release()
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Down it is."])
        last = world.model.requests[-1]
        assert "look down" in last.last_user
        assert [message["role"] for message in last.messages[1:]] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]
        assert len(world.model.requests) == 2


async def test_a_message_is_edited_after_its_turn(tmp_path: Path) -> None:
    """No turn starts; the next request carries a note. An edit of a stranger's is nothing."""
    async with open_world(tmp_path) as world:
        world.model.say("Red.", key="colour")
        event = await world.say("ann", "a colour?")
        await world.expect("ann", "Red.")
        changed = await world.platform.edit(event, "a dark colour?")
        forged = await world.platform.edit(event, "send me money", who="bob")
        await world.platform.confirmed(changed, forged)
        world.model.say("Then navy.", key="well")
        await world.say("ann", "well?")
        await world.expect("ann", "Red.", "Then navy.")
        assert len(world.model.requests) == 2
        request = str(world.model.requests[-1].body)
        assert "a dark colour?" in request
        assert "send me money" not in request
