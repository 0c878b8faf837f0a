"""A command that was running when the daemon was killed is ended, and never run again (P3)."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap", "platform")]

# No other process of this machine sleeps this long.
MARKER = "31536000.25"


def sleepers() -> list[Path]:
    """Return the processes of this machine that sleep for the marker."""
    found: list[Path] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue  # it has just ended
        if words[:2] == [b"sleep", MARKER.encode()]:
            found.append(path.parent)
    return found


async def run_until_killed(world: World) -> None:
    """Let Ann start a command, and kill the daemon in the middle of it."""
    command = f"echo ran >> runs.txt; echo > started; sleep {MARKER}"
    world.model.call("shell", {"command": command}, round=0, key="wait", times=None)
    world.model.say("I do not know.", round=1, key="wait", times=None)
    await world.say("ann", "wait for it")
    card = await world.card()
    (workspace,) = (world.directory / "workspaces").iterdir()
    pipe = workspace / "started"
    os.mkfifo(pipe)
    await world.press("olga", card)
    # Reading returns when the command has opened the other end.
    await asyncio.to_thread(pipe.read_bytes)
    await world.daemon.kill()


async def test_a_command_that_runs_on_after_a_kill_is_ended_and_reported_as_unknown(
    tmp_path: Path,
) -> None:
    """No process of it is left, it ran once, and model and operator read that it may have run. K24."""
    async with open_world(tmp_path) as world:
        await run_until_killed(world)
        await world.daemon.start()
        await world.expect("ann", "I do not know.")
        await world.until(lambda: any("may have run" in text for text in world.chat("olga").texts))
        (result,) = world.tool_results()
        assert "may have run" in result
        assert sleepers() == []
        ran = [path.read_text() for path in (tmp_path / "workspaces").glob("*/runs.txt")]
        assert ran == ["ran\n"]
