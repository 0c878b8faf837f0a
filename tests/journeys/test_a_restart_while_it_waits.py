"""A question survives the daemon: it is answered after a kill as if nothing had been (P5, P3)."""

from pathlib import Path

import pytest

from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_a_call_is_approved_after_a_kill(tmp_path: Path) -> None:
    """The card stays, the press counts, the call runs once and the answer comes. S4-16."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        await world.daemon.restart()
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        await world.until(lambda: card.outcomes == ["approved"])
        assert world.bench.ran("knock") == ["on wood"]
        assert len(world.chat("olga").cards) == 1


async def test_a_press_while_the_daemon_is_dead_counts_when_it_is_back(tmp_path: Path) -> None:
    """The platform keeps the press, and the deadline has not passed."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        await world.daemon.kill()
        await world.platform.press("olga", card, "deny")
        await world.daemon.start()
        await world.expect("ann", "So be it.")
        await world.until(lambda: card.outcomes == ["denied"])
        assert world.bench.runs == []


async def test_a_question_expires_while_the_daemon_is_dead(tmp_path: Path) -> None:
    """A press that is delivered after the deadline loses, though no timer had fired before.

    The daemon starts when the deadline has passed: it ends the question before it listens.
    """
    async with open_world(tmp_path, approvals={"timeout_s": 3.0}) as world:
        card = await ask_to_knock(world)
        world.platform.hold()
        await world.daemon.kill()
        pressed = await world.platform.press("olga", card)
        await world.daemon.start()
        await world.until(lambda: card.outcomes == ["expired"])
        world.platform.release()
        await world.until(lambda: pressed.confirmed)
        await world.expect("ann", "So be it.")
        assert world.bench.runs == []


async def test_the_daemon_is_stopped_while_it_waits(tmp_path: Path) -> None:
    """SIGTERM does not wait for people: the question goes on in the next process."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        assert await world.daemon.terminate() == 0
        await world.daemon.start()
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        assert world.bench.ran("knock") == ["on wood"]


async def test_a_queue_waits_for_the_answer_across_a_kill(tmp_path: Path) -> None:
    """A later message gets a note that it waits, and its answer after the approval (P2)."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        event = await world.say("ann", "and then?")
        await world.platform.confirmed(event)
        await world.daemon.restart()
        world.model.say("Then nothing.", key="and then?")
        await world.press("olga", card)
        await world.until(lambda: world.chat("ann").answers[-1:] == ["Then nothing."])
        assert "So be it." in world.chat("ann").answers
        assert world.bench.ran("knock") == ["on wood"]
