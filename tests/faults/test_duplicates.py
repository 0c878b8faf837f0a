"""Whatever a platform delivers again, and however, acts once, on every platform that is written to.

Telegram's own ways to deliver again are in `tests/faults/test_telegram_duplicates.py`.
"""

from pathlib import Path

import pytest

from tests.faults.instants import nth
from tests.faults.on_loopback import on_loopback
from tests.faults.on_telegram import on_telegram
from tests.faults.platforms import LOCAL, PLATFORMS, WITHOUT_EDITS, WITHOUT_FILES, on
from tests.faults.promises import check
from tests.faults.scenarios import SCENARIOS
from tests.faults.scene import Scene, scene
from tests.faults.stage import Open

pytestmark = pytest.mark.slow


async def _all_again(here: Scene) -> None:
    """Tell of all that was done once more, and wait until what people write after it is answered."""
    for deed in tuple(here.deeds):
        await here.stage.again(deed)
    for who in ("ann", "bob", "olga"):
        text = f"still there, number {len(here.said)}?"
        answer = f"Here, {len(here.said)}."
        here.stage.model.say(answer, key=text, times=None)
        await here.say(who, text, answer)
    await here.quiet()
    check(here)


@pytest.mark.parametrize(
    ("opened", "name"),
    [
        pytest.param(on_loopback(), "", id="loopback", marks=pytest.mark.needs("platform")),
        pytest.param(on_telegram(), "", id="telegram", marks=pytest.mark.needs("bwrap")),
        *(
            pytest.param(opens(channel={}), name, id=name, marks=on(name))
            for name, opens in {**PLATFORMS, **LOCAL}.items()
        ),
    ],
)
async def test_whatever_comes_again_acts_once(tmp_path: Path, opened: Open, name: str) -> None:
    """Words, edits, files, commands and presses: at once, later, and after a kill. P1, P3, S2-02."""
    async with scene(tmp_path, opened) as here:
        for played in ("approved", *(() if name in WITHOUT_EDITS else ("edited",))):
            await SCENARIOS[played].play(here)
        here.write("good day", "Hello ", "to ", "Ann.")
        await here.say("ann", "good day", "Hello to Ann.")
        await here.say("olga", "/whoami", marks=("Roles: operator" if name in LOCAL else "olga",))
        files = None if name in WITHOUT_FILES else {"a.txt": b"milk"}
        await here.say("bob", "a file for you", "A file.", files=files)
        here.stage.model.say("A file.", key="a file for you", times=None)
        await here.start()
        for deed in tuple(here.deeds):
            await here.stage.again(deed)
        await here.quiet()
        check(here)
        await _all_again(here)
        asked = len(here.stage.model.requests)
        here.instants.ends_at = nth("commit", "admitted", "before")
        await here.say("ann", "and now?", "Now as well.")
        here.stage.model.say("Now as well.", key="and now?", times=None)
        assert await here.ended()
        here.instants.ends_at = None
        await here.start()
        await _all_again(here)
        assert len(here.stage.model.requests) == asked + 4
