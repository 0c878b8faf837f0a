"""On SIGTERM the daemon gives running work a moment, says that it pauses, and continues when restarted."""

import sys
from pathlib import Path

import pytest
from zeroclaw_test_platform.faults import Hang

from tests.journeys.bench import Holds
from tests.journeys.daemon_process import spawn
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow

NO_NAME_SERVER = """
import socket, threading
from zeroclaw.cli import main

def hang(*_, **__):
    print("looking up", flush=True)
    threading.Event().wait()

socket.getaddrinfo = hang
main()
"""


async def test_an_answer_that_is_nearly_done_is_finished_first(tmp_path: Path) -> None:
    """Within its grace time a turn ends as if nothing had been."""
    async with open_world(tmp_path, runtime={"grace_s": 20.0}) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        await world.say("ann", "count")
        await gate.reached()
        await world.until(lambda: "One," in world.chat("ann").ever)
        world.daemon.send_sigterm()
        gate.open()
        await world.expect("ann", "One, two.")
        assert await world.daemon.wait() == 0


async def test_a_draft_says_that_it_pauses_and_becomes_the_answer_later(tmp_path: Path) -> None:
    """The person sees why nothing moves; the same message ends as the whole answer. P1, P6."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        await world.say("ann", "count")
        await gate.reached()
        await world.until(lambda: "One," in world.chat("ann").ever)
        assert await world.daemon.terminate() == 0
        (draft,) = world.chat("ann").replies
        assert "restarted" in draft.text
        world.model.say("One, two, three.")
        await world.daemon.start()
        await world.expect("ann", "One, two, three.")
        assert world.chat("ann").replies == [draft]


async def test_a_tool_that_may_run_again_runs_again(tmp_path: Path) -> None:
    """An idempotent call is repeated after the restart, and the model reads its result. P3."""
    async with open_world(tmp_path) as world:
        world.bench.will("peek", Holds())
        world.model.call("peek", {"what": "the sky"}, round=0)
        world.model.say("Blue.", round=1)
        await world.say("ann", "look up")
        await world.until(lambda: world.bench.runs)
        assert await world.daemon.terminate() == 0
        await world.daemon.start()
        await world.expect("ann", "Blue.")
        assert world.bench.ran("peek") == ["the sky", "the sky"]
        assert "peek: the sky" in world.tool_results()[0]


async def test_a_tool_that_must_not_run_twice_is_reported_as_unknown(tmp_path: Path) -> None:
    """Its outcome is unknown: the model and the operator read so, and it is not repeated.

    P3, K15.
    """
    async with open_world(tmp_path) as world:
        world.bench.will("dig", Holds())
        world.model.call("dig", {"what": "a hole"}, round=0)
        world.model.say("I do not know.", round=1)
        await world.say("ann", "dig")
        await world.until(lambda: world.bench.runs)
        await world.daemon.kill()
        await world.daemon.start()
        await world.expect("ann", "I do not know.")
        assert world.bench.ran("dig") == ["a hole"]
        assert "may have run" in world.tool_results()[0]
        await world.until(lambda: any("may have run" in text for text in world.chat("olga").texts))


async def test_a_platform_that_hangs_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    """A call that never comes back is left behind; the answer lands after the restart, once."""
    async with open_world(tmp_path) as world:
        hang = Hang()
        world.platform.will("send", hang)
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await hang.reached()
        assert await world.daemon.terminate() == 0
        world.model.say("Hello again.")
        await world.daemon.start()
        await world.until(lambda: world.chat("ann").answers)
        hang.release()
        await world.until(lambda: len(world.platform.called("send")) >= 2)
        assert len(world.chat("ann").replies) == 1


async def test_a_name_server_that_hangs_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    """No thread can be stopped while the system looks up a name in it."""
    command, model = (sys.executable, "-c", NO_NAME_SERVER), {"base_url": "http://model.example/v1"}
    async with open_world(tmp_path, command=command, launch=spawn, provider=model) as world:
        await world.until(lambda: "looking up" in world.daemon.stdout)


async def test_what_waits_in_line_is_answered_after_the_restart(tmp_path: Path) -> None:
    """Admitted is admitted: the queue is on disk (P1, P2)."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One ", gate)
        await world.say("ann", "first")
        await gate.reached()
        events = [await world.say("ann", text) for text in ("second", "third")]
        await world.platform.confirmed(*events)
        await world.daemon.terminate()
        world.model.reset()
        world.model.say("One.", key="first")
        world.model.say("Two.", key="second")
        world.model.say("Three.", key="third")
        await world.daemon.start()
        await world.expect("ann", "One.", "Two.", "Three.")
