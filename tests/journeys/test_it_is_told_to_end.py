"""Told to end, the daemon gives what runs a moment, says that it pauses, and goes on when it is back."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.faults import Hang

from tests.journeys.bench import Holds
from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_an_answer_that_is_nearly_done_is_finished_first(tmp_path: Path) -> None:
    """Within its grace time a turn ends as if nothing had been."""
    async with world(tmp_path, runtime={"grace_s": 20.0}) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.")
        await here.say("ann", "count")
        await gate.reached()
        await here.until(lambda: "One," in here.chat("ann").ever)
        here.daemon.ask_to_end()
        gate.open()
        await here.answered("ann", "One, two.")
        assert await here.daemon.ended() == 0


async def test_a_draft_says_that_it_pauses_and_becomes_the_answer_later(tmp_path: Path) -> None:
    """The person sees why nothing moves; the same message ends as the whole answer. P1, P6."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.")
        await here.say("ann", "count")
        await gate.reached()
        await here.until(lambda: "One," in here.chat("ann").ever)
        assert await here.daemon.terminate() == 0
        (draft,) = here.chat("ann").said
        assert "restarted" in draft.text
        here.model.say("One, two, three.")
        await here.daemon.start()
        await here.answered("ann", "One, two, three.")
        assert here.chat("ann").said == [draft]


async def test_a_tool_that_may_run_again_runs_again(tmp_path: Path) -> None:
    """An idempotent call is repeated after the restart; its result is what the model reads. P3."""
    async with world(tmp_path) as here:
        here.bench.will("peek", Holds())
        here.model.call("peek", {"what": "the sky"}, round=0)
        here.model.say("Blue.", round=1)
        await here.say("ann", "look up")
        await here.until(lambda: here.bench.runs)
        assert await here.daemon.terminate() == 0
        await here.daemon.start()
        await here.answered("ann", "Blue.")
        assert here.bench.ran("peek") == ["the sky", "the sky"]
        assert "peek: the sky" in here.tool_results()[0]


async def test_a_tool_that_must_not_run_twice_is_told_as_unknown(tmp_path: Path) -> None:
    """Nobody knows whether it ran: the model reads so, the operator too, and it is not repeated.

    P3, K15.
    """
    async with world(tmp_path) as here:
        here.bench.will("dig", Holds())
        here.model.call("dig", {"what": "a hole"}, round=0)
        here.model.say("I do not know.", round=1)
        await here.say("ann", "dig")
        await here.until(lambda: here.bench.runs)
        await here.daemon.kill()
        await here.daemon.start()
        await here.answered("ann", "I do not know.")
        assert here.bench.ran("dig") == ["a hole"]
        assert "may have run" in here.tool_results()[0]
        await here.until(lambda: any("may have run" in text for text in here.chat("olga").texts))


async def test_a_platform_that_hangs_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    """A call that never comes back is left behind; the answer lands after the restart, once."""
    async with world(tmp_path) as here:
        hang = Hang()
        here.platform.will("send", hang)
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await hang.reached()
        assert await here.daemon.terminate() == 0
        here.model.say("Hello again.")
        await here.daemon.start()
        await here.until(lambda: here.chat("ann").answers)
        hang.release()
        await here.until(lambda: len(here.platform.called("send")) >= 2)
        assert len(here.chat("ann").said) == 1


async def test_what_waits_in_line_is_answered_after_the_restart(tmp_path: Path) -> None:
    """Admitted is admitted: the queue is on disk (P1, P2)."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One ", gate)
        await here.say("ann", "first")
        await gate.reached()
        events = [await here.say("ann", text) for text in ("second", "third")]
        await here.platform.confirmed(*events)
        await here.daemon.terminate()
        here.model.reset()
        here.model.say("One.", key="first")
        here.model.say("Two.", key="second")
        here.model.say("Three.", key="third")
        await here.daemon.start()
        await here.answered("ann", "One.", "Two.", "Three.")
