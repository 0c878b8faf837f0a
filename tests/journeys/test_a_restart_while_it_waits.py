"""A question survives the daemon: it is answered after a kill as if nothing had been (P5, P3)."""

from pathlib import Path

import pytest

from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_a_call_is_approved_after_a_kill(tmp_path: Path) -> None:
    """The card stands, the press counts, the call runs once and the answer comes. S4-16."""
    async with world(tmp_path) as here:
        card = await ask_to_knock(here)
        await here.daemon.restart()
        await here.press("olga", card)
        await here.answered("ann", "So be it.")
        await here.until(lambda: card.hows == ["approved"])
        assert here.bench.ran("knock") == ["on wood"]
        assert len(here.chat("olga").cards) == 1


async def test_a_press_while_the_daemon_is_dead_counts_when_it_is_back(tmp_path: Path) -> None:
    """The platform keeps the press, and the deadline has not passed."""
    async with world(tmp_path) as here:
        card = await ask_to_knock(here)
        await here.daemon.kill()
        await here.platform.press("olga", card, "deny")
        await here.daemon.start()
        await here.answered("ann", "So be it.")
        await here.until(lambda: card.hows == ["denied"])
        assert here.bench.runs == []


async def test_a_question_expires_while_the_daemon_is_dead(tmp_path: Path) -> None:
    """A press that is delivered after the deadline loses, though no timer had fired before.

    The daemon starts when the deadline has passed: it ends the question before it listens.
    """
    async with world(tmp_path, approvals={"timeout_s": 3.0}) as here:
        card = await ask_to_knock(here)
        here.platform.hold()
        await here.daemon.kill()
        pressed = await here.platform.press("olga", card)
        await here.daemon.start()
        await here.until(lambda: card.hows == ["expired"])
        here.platform.release()
        await here.until(lambda: pressed.confirmed)
        await here.answered("ann", "So be it.")
        assert here.bench.runs == []


async def test_the_daemon_is_told_to_end_while_it_waits(tmp_path: Path) -> None:
    """SIGTERM does not wait for people: the question goes on in the next process."""
    async with world(tmp_path) as here:
        card = await ask_to_knock(here)
        assert await here.daemon.terminate() == 0
        await here.daemon.start()
        await here.press("olga", card)
        await here.answered("ann", "So be it.")
        assert here.bench.ran("knock") == ["on wood"]


async def test_a_queue_waits_for_the_answer_across_a_kill(tmp_path: Path) -> None:
    """Who writes meanwhile is told that it waits, and is answered after the question (P2)."""
    async with world(tmp_path) as here:
        card = await ask_to_knock(here)
        event = await here.say("ann", "and then?")
        await here.platform.confirmed(event)
        await here.daemon.restart()
        here.model.say("Then nothing.", key="and then?")
        await here.press("olga", card)
        await here.until(lambda: here.chat("ann").answers[-1:] == ["Then nothing."])
        assert "So be it." in here.chat("ann").answers
        assert here.bench.ran("knock") == ["on wood"]
