"""The configuration's file is changed while the daemon runs, and read again."""

import os
import re
import signal
import tomllib
from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.configuration import merged, toml
from tests.journeys.test_an_approval import ask_to_knock
from tests.journeys.test_the_command_line import zeroclaw
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

WITHOUT_ANN = {"loopback": {"allowed_users": ["olga", "bob"]}}


def rewrite(world: World, **config: object) -> None:
    """Lay tables over those of the file."""
    text = world.config.read_text(encoding="utf-8")
    world.config.write_text(toml(merged(tomllib.loads(text), config)), encoding="utf-8")


async def test_a_call_that_waits_is_denied_by_what_the_file_says_now(tmp_path: Path) -> None:
    """Approved, and yet it never runs; with the old file back, the next one does (P3)."""
    async with open_world(tmp_path) as world:
        card = await ask_to_knock(world)
        rewrite(world, autonomy="readonly")
        code, output, err = await zeroclaw(world, "reload")
        assert (code, "in force    autonomy\n" in output, err) == (0, True, "")
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        assert world.bench.runs == []
        rewrite(world, autonomy="supervised")
        assert (await zeroclaw(world, "reload"))[0] == 0
        card = await ask_to_knock(world, "knock again")
        await world.press("olga", card)
        await world.expect("ann", "So be it.", "So be it.")
        assert [run.tool for run in world.bench.runs] == ["knock"]


async def test_a_tool_that_runs_comes_to_its_end(tmp_path: Path) -> None:
    """A running call is not undone; later calls are decided by the new file."""
    async with open_world(tmp_path) as world:
        hold = Holds()
        world.bench.will("peek", hold)
        world.model.call("peek", {"what": "far away"}, round=0, key="look")
        world.model.say("I saw it.", round=1, key="look")
        await world.say("ann", "look")
        await hold.reached()
        rewrite(world, autonomy="full", runtime={"max_iterations": 7}, provider={"attempts": 2})
        code, output, _ = await zeroclaw(world, "reload")
        assert (code, "in force    autonomy, runtime.max_iterations\n" in output) == (0, True)
        assert "restart     needed for provider.attempts; unchanged until then" in output
        assert "restart    for provider.attempts" in (await zeroclaw(world, "status"))[1]
        hold.release()
        await world.expect("ann", "I saw it.")


async def test_who_is_taken_out_is_a_stranger_at_once(tmp_path: Path) -> None:
    """SIGHUP does it too: what Ann has running is stopped, and what she writes is dropped (P4)."""
    async with open_world(tmp_path) as world:
        world.model.say("Once upon ", world.model.gate(), key="story")
        await world.say("ann", "a story")
        await world.until(lambda: "Once upon" in str(world.chat("ann").from_bot))
        rewrite(world, channels=WITHOUT_ANN)
        os.kill(world.daemon.pid, signal.SIGHUP)
        (stopped,) = await world.until(lambda: world.chat("ann").answers)
        assert "you may no longer talk to me" in stopped
        await world.platform.confirmed(await world.say("ann", "why?"))
        world.model.say("Hello.", key="hi")
        await world.say("bob", "hi")
        await world.expect("bob", "Hello.")
        assert world.chat("ann").answers == [stopped]
        assert await world.daemon.terminate() == 0
        (line,) = [row for row in world.daemon.stderr.splitlines() if " reloaded " in row]
        assert "now=channels.loopback.allowed_users" in line


async def test_a_fault_changes_nothing_and_is_reported_whole(tmp_path: Path) -> None:
    """Each fault a line, exit code 2; the daemon goes on as it was (P10)."""
    async with open_world(tmp_path) as world:
        rewrite(world, autonomy="wild", channels=WITHOUT_ANN, runtime={"backlog": 0})
        code, output, err = await zeroclaw(world, "reload")
        assert (code, output) == (2, "")
        autonomy, backlog, last = err.splitlines()
        assert ("autonomy: should be" in autonomy, "runtime.backlog: " in backlog) == (True, True)
        assert last == "zeroclaw: nothing was changed"
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")


async def test_set_and_reload_follow_each_other(tmp_path: Path) -> None:
    """`config set` says that a reload is enough, and it is; without a daemon there is none."""
    async with open_world(tmp_path) as world:
        code, output, _ = await zeroclaw(
            world, "config", "set", "runtime.prompt", "You are a lobster."
        )
        assert code == 0
        assert re.search(r"`\S*zeroclaw reload( [^`]+)?` puts it in force", output), output
        assert (await zeroclaw(world, "reload"))[0] == 0
        world.model.say("Snap.")
        await world.say("ann", "who are you?")
        await world.expect("ann", "Snap.")
        assert "You are a lobster." in str(world.model.requests[0].messages[0]["content"])
        code, output, _ = await zeroclaw(world, "config", "unset", "provider.stall_s")
        assert (code, "when the daemon is restarted" in output) == (0, True)
        assert await world.daemon.terminate() == 0
        assert (await zeroclaw(world, "reload"))[0] == 3
