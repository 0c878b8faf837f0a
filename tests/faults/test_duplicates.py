"""Every event that a platform delivers again acts once, on every platform.

Telegram's own ways to deliver again are in `tests/faults/test_telegram_duplicates.py`.
"""

from pathlib import Path

import pytest

from tests.faults.crash_run import CrashRun, open_crash_run
from tests.faults.kill_points import nth
from tests.faults.on_loopback import on_loopback
from tests.faults.on_telegram import on_telegram
from tests.faults.platform_world import OpenWorld
from tests.faults.platforms import LOCAL, PLATFORMS, WITHOUT_EDITS, WITHOUT_FILES, on
from tests.faults.promises import check
from tests.faults.scenarios import SCENARIOS

pytestmark = pytest.mark.slow


async def _all_again(run: CrashRun) -> None:
    """Deliver all actions once more, and wait until later messages are answered."""
    for action in tuple(run.actions):
        await run.world.redeliver(action)
    for who in ("ann", "bob", "olga"):
        text = f"still there, number {len(run.expectations)}?"
        answer = f"Here, {len(run.expectations)}."
        run.world.model.say(answer, key=text, times=None)
        await run.say(who, text, answer)
    await run.idle()
    check(run)


@pytest.mark.parametrize(
    ("open_world", "name"),
    [
        pytest.param(on_loopback(), "", id="loopback", marks=pytest.mark.needs("platform")),
        pytest.param(on_telegram(), "", id="telegram", marks=pytest.mark.needs("bwrap")),
        *(
            pytest.param(opens(channel={}), name, id=name, marks=on(name))
            for name, opens in {**PLATFORMS, **LOCAL}.items()
        ),
    ],
)
async def test_any_repeated_event_acts_once(
    tmp_path: Path, open_world: OpenWorld, name: str
) -> None:
    """Messages, edits, files, commands and presses: at once, later, and after a kill. P1, P3, S2-02."""
    async with open_crash_run(tmp_path, open_world) as run:
        for played in ("approved", *(() if name in WITHOUT_EDITS else ("edited",))):
            await SCENARIOS[played].play(run)
        run.write("good day", "Hello ", "to ", "Ann.")
        await run.say("ann", "good day", "Hello to Ann.")
        await run.say("olga", "/whoami", marks=("Roles: operator" if name in LOCAL else "olga",))
        files = None if name in WITHOUT_FILES else {"a.txt": b"milk"}
        await run.say("bob", "a file for you", "A file.", files=files)
        run.world.model.say("A file.", key="a file for you", times=None)
        await run.start()
        for action in tuple(run.actions):
            await run.world.redeliver(action)
        await run.idle()
        check(run)
        await _all_again(run)
        requests_before = len(run.world.model.requests)
        run.kill_points.kills_at = nth("commit", "admitted", "before")
        await run.say("ann", "and now?", "Now as well.")
        run.world.model.say("Now as well.", key="and now?", times=None)
        assert await run.killed()
        run.kill_points.kills_at = None
        await run.start()
        await _all_again(run)
        assert len(run.world.model.requests) == requests_before + 4
