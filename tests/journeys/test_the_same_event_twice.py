"""A platform may deliver twice; a message is answered once all the same (P1, S2-02)."""

from pathlib import Path

import pytest

from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_an_event_that_comes_again_is_answered_once(tmp_path: Path) -> None:
    """Again as itself, and as another event about the same message. S2-02."""
    async with open_world(tmp_path) as world:
        world.model.say("Once.", times=None)
        event = await world.say("ann", "hi")
        await world.expect("ann", "Once.")
        again = await world.platform.redeliver(event)
        second_event = await world.platform.redeliver(event, as_new=True)
        await world.platform.confirmed(again, second_event)
        await world.say("ann", "and now?")
        await world.expect("ann", "Once.", "Once.")
        assert [request.last_user for request in world.model.requests] == ["hi", "and now?"]


async def test_an_event_that_comes_again_after_a_restart_is_answered_once(tmp_path: Path) -> None:
    """The store remembers claimed events. S2-02."""
    async with open_world(tmp_path) as world:
        world.model.say("Once.", times=None)
        event = await world.say("ann", "hi")
        await world.expect("ann", "Once.")
        await world.daemon.restart()
        await world.platform.confirmed(await world.platform.redeliver(event))
        await world.say("ann", "and now?")
        await world.expect("ann", "Once.", "Once.")
        assert len(world.model.requests) == 2


async def test_a_command_that_comes_again_acts_once(tmp_path: Path) -> None:
    """A command's reply is committed with its claim, so it is sent once. S2-02."""
    async with open_world(tmp_path) as world:
        event = await world.say("ann", "/whoami")
        await world.until(lambda: len(world.chat("ann").answers) == 1)
        await world.platform.confirmed(await world.platform.redeliver(event))
        await world.daemon.restart()
        await world.platform.confirmed(await world.platform.redeliver(event))
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.until(lambda: world.chat("ann").answers[-1] == "Hello.")
        assert len(world.chat("ann").answers) == 2


async def test_an_event_that_was_not_confirmed_before_a_kill_is_answered_once(
    tmp_path: Path,
) -> None:
    """Killed while the model writes, the daemon finishes the admitted message (P1)."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("Half ", gate, "and half.")
        event = await world.say("ann", "hi")
        await gate.reached()
        await world.until(lambda: "Half" in world.chat("ann").ever)
        await world.daemon.kill()
        world.model.say("Whole again.")
        await world.platform.redeliver(event)
        await world.daemon.start()
        await world.expect("ann", "Whole again.")
        assert event.confirmed
        assert len(world.chat("ann").replies) == 1
