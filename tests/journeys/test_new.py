"""`/new` ends what runs and begins a conversation that knows nothing of the old one."""

from pathlib import Path

import pytest

from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_new_while_a_turn_runs(tmp_path: Path) -> None:
    """The running answer ends with a note; what comes after it is a new conversation."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("Once upon ", gate, "a time.", key="story")
        here.model.say("Fresh.", key="who are you")
        await here.say("ann", "a story")
        await gate.reached()
        await here.until(lambda: "Once upon" in here.chat("ann").ever)
        await here.say("ann", "/new")
        await here.say("ann", "who are you?")
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Fresh."])
        assert any("new conversation was begun" in text for text in here.chat("ann").answers)
        roles = [message["role"] for message in here.model.requests[-1].messages]
        assert roles == ["system", "user"]


async def test_what_was_admitted_before_new_is_answered_in_the_old_one_first(
    tmp_path: Path,
) -> None:
    """The queue of the old conversation is served, then the new one begins."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One ", gate, key="first")
        here.model.say("Two.", key="second")
        here.model.say("Three.", key="third")
        await here.say("ann", "first")
        await gate.reached()
        events = [await here.say("ann", text) for text in ("second", "/new", "third")]
        await here.platform.confirmed(*events)
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Three."])
        assert [one.last_user for one in here.model.requests] == ["first", "second", "third"]
        assert len(here.model.requests[-1].messages) == 2


async def test_a_new_conversation_stays_new_after_a_restart(tmp_path: Path) -> None:
    """The chat points to the new one, durably."""
    async with world(tmp_path) as here:
        here.model.say("Red.", key="colour")
        await here.say("ann", "a colour?")
        await here.answered("ann", "Red.")
        await here.say("ann", "/new")
        await here.until(lambda: len(here.chat("ann").answers) == 2)
        await here.daemon.restart()
        here.model.say("Fresh.", key="who are you")
        await here.say("ann", "who are you?")
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Fresh."])
        assert len(here.model.requests[-1].messages) == 2
