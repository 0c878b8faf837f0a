"""Killed at each durable point of a turn off the record, a daemon leaves no word of it anywhere (K23).

While no daemon runs, the test searches the store's file, its write-ahead log, workspaces, the channel's
directory and the most verbose log. Only a process has all of these; `tests/unit/inbound/
test_off_the_record.py` proves the same of the store alone at every point.
"""

from pathlib import Path

import pytest

from tests.faults.crash_run import CrashRun, open_crash_run
from tests.faults.kill_points import nth
from tests.faults.killed_daemon import LOUD_VARIABLE
from tests.faults.kills import ONCE_MORE
from tests.faults.on_loopback import on_loopback
from tests.faults.on_web import on_web
from tests.faults.platform_world import answers
from tests.journeys.leaks import PHRASE, leaks

pytestmark = [pytest.mark.slow, pytest.mark.needs("platform")]

POINTS = (
    "admitted",
    "fetched",
    "turn_started",
    "call_started",
    "call_finished",
    "finished",
    "ref_known",
    "delivered",
)
IN_EVERY_CHECK = ("fetched", "call_finished", "finished")
PLATFORMS = {"loopback": on_loopback, "web": on_web}
ON_THE_WEB = ("admitted", "fetched")
"""The points of the page's files, which are uploaded before the message that names them."""


async def say(run: CrashRun, text: str, *, files: bool = False) -> None:
    """Let Ann write, with or without a file that contains the phrase."""
    sent = {"note.txt": PHRASE.encode()} if files else None
    run.actions.append(await run.world.say("ann", text, files=sent))


@pytest.mark.parametrize(
    ("platform", "point", "when"),
    [
        pytest.param(*(platform, point, when), marks=() if point in IN_EVERY_CHECK else ONCE_MORE)
        for platform, points in (("loopback", POINTS), ("web", ON_THE_WEB))
        for point in points
        for when in ("before", "after")
    ],
)
async def test_a_kill_off_the_record_leaves_no_word(
    tmp_path: Path, platform: str, point: str, when: str
) -> None:
    """The bot asks its writer to say it again, or answers if the message was not admitted yet."""
    async with open_crash_run(tmp_path, PLATFORMS[platform](channel={})) as run:
        world = run.world
        world.daemon.environment[LOUD_VARIABLE] = "1"
        world.model.call("peek", {"what": PHRASE}, round=0, key="look", times=None)
        rest = world.model.gate()
        world.model.say("There: ", rest, f"{PHRASE}.", key="look", round=1, times=None)
        if point != "ref_known":  # a draft is certain only while its answer is incomplete
            rest.open()
        run.write("again", f"Once more: {PHRASE}.")

        def is_shown(text: str) -> bool:
            return any(text in answer for answer in answers(world.chat("ann")))

        await run.start()
        await say(run, "/otr")
        await world.until(lambda: is_shown("Off the record from now on"))
        run.kill_points.kills_at = nth("commit", point, when)
        await say(run, f"look: {PHRASE}", files=True)
        assert await run.killed(), "the daemon never reached that point"
        assert leaks(tmp_path) == []
        rest.open()
        run.kill_points.kills_at = None
        await run.start()
        notice = "what you said off the record is gone"
        await world.until(lambda: is_shown(notice) or is_shown(f"There: {PHRASE}."))
        await say(run, f"again: {PHRASE}")
        await world.until(lambda: is_shown(f"Once more: {PHRASE}."))
        await world.daemon.kill()
        assert leaks(tmp_path) == []
