"""`/new` ends what runs and begins a conversation that knows nothing of the old one."""

from pathlib import Path

import pytest

from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_new_while_a_turn_runs(tmp_path: Path) -> None:
    """The running answer ends with a note; what comes after it is a new conversation."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("Once upon ", gate, "a time.", key="story")
        world.model.say("Fresh.", key="who are you")
        await world.say("ann", "a story")
        await gate.reached()
        await world.until(lambda: "Once upon" in world.chat("ann").ever)
        await world.say("ann", "/new")
        await world.say("ann", "who are you?")
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Fresh."])
        assert any("new conversation was begun" in text for text in world.chat("ann").answers)
        roles = [message["role"] for message in world.model.requests[-1].messages]
        assert roles == ["system", "user"]


async def test_messages_before_new_are_answered_in_the_old_conversation_first(
    tmp_path: Path,
) -> None:
    """The queue of the old conversation is served, then the new one begins."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One ", gate, key="first")
        world.model.say("Two.", key="second")
        world.model.say("Three.", key="third")
        await world.say("ann", "first")
        await gate.reached()
        events = [await world.say("ann", text) for text in ("second", "/new", "third")]
        await world.platform.confirmed(*events)
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Three."])
        assert [request.last_user for request in world.model.requests] == [
            "first",
            "second",
            "third",
        ]
        assert len(world.model.requests[-1].messages) == 2


async def test_a_new_conversation_stays_new_after_a_restart(tmp_path: Path) -> None:
    """The chat points to the new one, durably."""
    async with open_world(tmp_path) as world:
        world.model.say("Red.", key="colour")
        await world.say("ann", "a colour?")
        await world.expect("ann", "Red.")
        await world.say("ann", "/new")
        await world.until(lambda: len(world.chat("ann").answers) == 2)
        await world.daemon.restart()
        world.model.say("Fresh.", key="who are you")
        await world.say("ann", "who are you?")
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Fresh."])
        assert len(world.model.requests[-1].messages) == 2
