"""A platform may deliver twice; a message is answered once all the same (P1, S2-02)."""

from pathlib import Path

import pytest

from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_an_event_that_comes_again_is_answered_once(tmp_path: Path) -> None:
    """Again as itself, and as another event about the same message. S2-02."""
    async with world(tmp_path) as here:
        here.model.say("Once.", times=None)
        event = await here.say("ann", "hi")
        await here.answered("ann", "Once.")
        again = await here.platform.redeliver(event)
        other = await here.platform.redeliver(event, as_new=True)
        await here.platform.confirmed(again, other)
        await here.say("ann", "and now?")
        await here.answered("ann", "Once.", "Once.")
        assert [request.last_user for request in here.model.requests] == ["hi", "and now?"]


async def test_an_event_that_comes_again_after_a_restart_is_answered_once(tmp_path: Path) -> None:
    """What was claimed is remembered on disk. S2-02."""
    async with world(tmp_path) as here:
        here.model.say("Once.", times=None)
        event = await here.say("ann", "hi")
        await here.answered("ann", "Once.")
        await here.daemon.restart()
        await here.platform.confirmed(await here.platform.redeliver(event))
        await here.say("ann", "and now?")
        await here.answered("ann", "Once.", "Once.")
        assert len(here.model.requests) == 2


async def test_a_command_that_comes_again_acts_once(tmp_path: Path) -> None:
    """A command's reply is committed with its claim, so it is said once. S2-02."""
    async with world(tmp_path) as here:
        event = await here.say("ann", "/whoami")
        await here.until(lambda: len(here.chat("ann").answers) == 1)
        await here.platform.confirmed(await here.platform.redeliver(event))
        await here.daemon.restart()
        await here.platform.confirmed(await here.platform.redeliver(event))
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers[-1] == "Hello.")
        assert len(here.chat("ann").answers) == 2


async def test_an_event_that_was_not_confirmed_before_a_kill_is_answered_once(
    tmp_path: Path,
) -> None:
    """Killed while the model writes, the daemon finishes what it had admitted (P1)."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("Half ", gate, "and half.")
        event = await here.say("ann", "hi")
        await gate.reached()
        await here.until(lambda: "Half" in here.chat("ann").ever)
        await here.daemon.kill()
        here.model.say("Whole again.")
        await here.platform.redeliver(event)
        await here.daemon.start()
        await here.answered("ann", "Whole again.")
        assert event.confirmed
        assert len(here.chat("ann").said) == 1
