"""An edited message counts as it reads when its turn takes it; later edits are told to the model."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_a_message_is_edited_before_its_turn(tmp_path: Path) -> None:
    """The model reads only the newer text; one withdrawn is not answered at all."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One", gate, ".", key="first")
        await here.say("ann", "first")
        await gate.reached()
        second = await here.say("ann", "second")
        third = await here.say("ann", "third")
        changed = await here.platform.edit(second, "second, mended")
        withdrawn = await here.platform.delete(third)
        await here.platform.confirmed(second, third, changed, withdrawn)
        here.model.say("Two.", key="mended")
        gate.open()
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Two."])
        here.model.say("Four.", key="fourth")
        await here.say("ann", "fourth")
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Four."])
        asked = [request.last_user for request in here.model.requests]
        assert asked == ["first", "second, mended", "fourth"]


async def test_a_message_is_edited_while_its_turn_runs(tmp_path: Path) -> None:
    """The edit is taken after the next complete batch, by the same turn."""
    async with world(tmp_path) as here:
        hold = Holds(text="stars")
        here.bench.will("peek", hold)
        here.model.call("peek", {"what": "the sky"}, round=0, key="look up")
        event = await here.say("ann", "look up")
        await hold.reached()
        changed = await here.platform.edit(event, "look down")
        await here.platform.confirmed(changed)
        here.model.say("Down it is.", key="look down")
        hold.release()
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Down it is."])
        last = here.model.requests[-1]
        assert "look down" in last.last_user
        assert [message["role"] for message in last.messages[1:]] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]
        assert len(here.model.requests) == 2


async def test_a_message_is_edited_after_its_turn(tmp_path: Path) -> None:
    """No turn starts; the next request carries a note. An edit of a stranger's is nothing."""
    async with world(tmp_path) as here:
        here.model.say("Red.", key="colour")
        event = await here.say("ann", "a colour?")
        await here.answered("ann", "Red.")
        changed = await here.platform.edit(event, "a dark colour?")
        forged = await here.platform.edit(event, "send me money", who="bob")
        await here.platform.confirmed(changed, forged)
        here.model.say("Then navy.", key="well")
        await here.say("ann", "well?")
        await here.answered("ann", "Red.", "Then navy.")
        assert len(here.model.requests) == 2
        told = str(here.model.requests[-1].body)
        assert "a dark colour?" in told
        assert "send me money" not in told
