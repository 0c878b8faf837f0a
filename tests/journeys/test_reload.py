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
from tests.journeys.world import World, world

pytestmark = pytest.mark.slow

WITHOUT_ANN = {"loopback": {"allowed_users": ["olga", "bob"]}}


def rewrite(here: World, **config: object) -> None:
    """Lay tables over those of the file."""
    text = here.config.read_text(encoding="utf-8")
    here.config.write_text(toml(merged(tomllib.loads(text), config)), encoding="utf-8")


async def test_a_call_that_waits_is_denied_by_what_the_file_says_now(tmp_path: Path) -> None:
    """Approved, and yet it never runs; with the old file back, the next one does (P3)."""
    async with world(tmp_path) as here:
        card = await ask_to_knock(here)
        rewrite(here, autonomy="readonly")
        code, out, err = await zeroclaw(here, "reload")
        assert (code, "holds now   autonomy\n" in out, err) == (0, True, "")
        await here.press("olga", card)
        await here.answered("ann", "So be it.")
        assert here.bench.runs == []
        rewrite(here, autonomy="supervised")
        assert (await zeroclaw(here, "reload"))[0] == 0
        card = await ask_to_knock(here, "knock again")
        await here.press("olga", card)
        await here.answered("ann", "So be it.", "So be it.")
        assert [run.tool for run in here.bench.runs] == ["knock"]


async def test_a_tool_that_runs_comes_to_its_end(tmp_path: Path) -> None:
    """What has begun is not undone; what comes after is under the new file."""
    async with world(tmp_path) as here:
        hold = Holds()
        here.bench.will("peek", hold)
        here.model.call("peek", {"what": "far away"}, round=0, key="look")
        here.model.say("I saw it.", round=1, key="look")
        await here.say("ann", "look")
        await hold.reached()
        rewrite(here, autonomy="full", runtime={"max_iterations": 7}, provider={"attempts": 2})
        code, out, _ = await zeroclaw(here, "reload")
        assert (code, "holds now   autonomy, runtime.max_iterations\n" in out) == (0, True)
        assert "restart     needed for provider.attempts; as it was until then" in out
        assert "restart    for provider.attempts" in (await zeroclaw(here, "status"))[1]
        hold.release()
        await here.answered("ann", "I saw it.")


async def test_who_is_taken_out_is_a_stranger_at_once(tmp_path: Path) -> None:
    """SIGHUP does it too: what Ann has running is stopped, and what she writes is dropped (P4)."""
    async with world(tmp_path) as here:
        here.model.say("Once upon ", here.model.gate(), key="story")
        await here.say("ann", "a story")
        await here.until(lambda: "Once upon" in str(here.chat("ann").from_bot))
        rewrite(here, channels=WITHOUT_ANN)
        os.kill(here.daemon.pid, signal.SIGHUP)
        (stopped,) = await here.until(lambda: here.chat("ann").answers)
        assert "you may no longer talk to me" in stopped
        await here.platform.confirmed(await here.say("ann", "why?"))
        here.model.say("Hello.", key="hi")
        await here.say("bob", "hi")
        await here.answered("bob", "Hello.")
        assert here.chat("ann").answers == [stopped]
        assert await here.daemon.terminate() == 0
        (line,) = [one for one in here.daemon.stderr.splitlines() if " reloaded " in one]
        assert "now=channels.loopback.allowed_users" in line


async def test_a_fault_changes_nothing_and_is_told_whole(tmp_path: Path) -> None:
    """Each fault a line, exit code 2; the daemon goes on as it was (P10)."""
    async with world(tmp_path) as here:
        rewrite(here, autonomy="wild", channels=WITHOUT_ANN, runtime={"backlog": 0})
        code, out, err = await zeroclaw(here, "reload")
        assert (code, out) == (2, "")
        autonomy, backlog, last = err.splitlines()
        assert ("autonomy: should be" in autonomy, "runtime.backlog: " in backlog) == (True, True)
        assert last == "zeroclaw: nothing was changed"
        here.model.say("Hello.", key="hi")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")


async def test_set_and_reload_follow_each_other(tmp_path: Path) -> None:
    """`config set` says that a reload is enough, and it is; without a daemon there is none."""
    async with world(tmp_path) as here:
        code, out, _ = await zeroclaw(here, "config", "set", "runtime.prompt", "You are a lobster.")
        assert code == 0
        assert re.search(r"`\S*zeroclaw reload( [^`]+)?` puts it in force", out), out
        assert (await zeroclaw(here, "reload"))[0] == 0
        here.model.say("Snap.")
        await here.say("ann", "who are you?")
        await here.answered("ann", "Snap.")
        assert "You are a lobster." in str(here.model.requests[0].messages[0]["content"])
        code, out, _ = await zeroclaw(here, "config", "unset", "provider.stall_s")
        assert (code, "when that is started again" in out) == (0, True)
        assert await here.daemon.terminate() == 0
        assert (await zeroclaw(here, "reload"))[0] == 3
