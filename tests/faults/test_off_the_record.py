"""Killed at each durable point of a turn off the record, a daemon leaves no word of it anywhere (K23).

The store's file, its write-ahead log, workspaces, the channel's directory and a log at its loudest are
searched, while nothing runs. A process is started because only one has all of these; that every point
leaves nothing in the store alone is proven by `tests/unit/inbound/test_off_the_record.py`.
"""

from pathlib import Path

import pytest

from tests.faults.instants import nth
from tests.faults.killed_daemon import LOUD_VARIABLE
from tests.faults.killing import ONCE_MORE
from tests.faults.on_loopback import on_loopback
from tests.faults.on_web import on_web
from tests.faults.scene import Scene, scene
from tests.faults.stage import answers
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
"""What the page's files come through: they are uploaded before the message that names them."""


async def said(scene: Scene, text: str, *, files: bool = False) -> None:
    """Ann writes, with a file that holds the phrase where it is wanted."""
    sent = {"note.txt": PHRASE.encode()} if files else None
    scene.deeds.append(await scene.stage.say("ann", text, files=sent))


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
    """Its writer is asked to say it again, or is answered where it was not admitted yet."""
    async with scene(tmp_path, PLATFORMS[platform](channel={})) as here:
        stage = here.stage
        stage.daemon.environment[LOUD_VARIABLE] = "1"
        stage.model.call("peek", {"what": PHRASE}, round=0, key="look", times=None)
        rest = stage.model.gate()
        stage.model.say("There: ", rest, f"{PHRASE}.", key="look", round=1, times=None)
        if point != "ref_known":  # a draft is certain only while more of its answer is to come
            rest.open()
        here.write("again", f"Once more: {PHRASE}.")

        def stands(text: str) -> bool:
            return any(text in one for one in answers(stage.chat("ann")))

        await here.start()
        await said(here, "/otr")
        await stage.until(lambda: stands("Off the record from now on"))
        here.instants.ends_at = nth("commit", point, when)
        await said(here, f"look: {PHRASE}", files=True)
        assert await here.ended(), "the daemon never came to that instant"
        assert leaks(tmp_path) == []
        rest.open()
        here.instants.ends_at = None
        await here.start()
        asks = "what you said off the record is gone"
        await stage.until(lambda: stands(asks) or stands(f"There: {PHRASE}."))
        await said(here, f"again: {PHRASE}")
        await stage.until(lambda: stands(f"Once more: {PHRASE}."))
        await stage.daemon.kill()
        assert leaks(tmp_path) == []
