"""Killed at a durable point, a daemon of an earlier release leaves what this one goes on with.

    pytest tests/faults/test_upgrade.py -k "gated and before"

Open turns, cards that wait and answers on their way are taken up, and the books verify. Processes,
because the release's own code has to write what is read here.
"""

from pathlib import Path

import pytest

from tests.faults.kill_points import nth
from tests.faults.kills import Places, kill_at, kill_cases
from tests.faults.on_loopback import on_loopback
from tests.faults.release import FirstLife
from tests.faults.scenarios import SCENARIOS
from tests.faults.test_durable_points import WALK
from zeroclaw.store import DurablePoint

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap", "platform")]

RELEASE = "ff26965"
REACHED: Places = {
    # That release made no summaries.
    **{point: places for point, places in WALK.items() if point != DurablePoint.COMPACTED},
    # It wrote down one by one what is one commit today.
    "assistant_received": (("batch", 1),),
    "gated": (("batch", 1), ("edited", 1)),
    # It wrote down only that a card was sent.
    "asked": (("approved", 1), ("batch", 1), ("unsure card", 1)),
    "call_started": (("shell", 1), ("edited", 1), ("batch", 2)),
    "batch_appended": (("approved", 1), ("batch", 1)),
}


@pytest.mark.parametrize(("point", "name", "n", "when"), kill_cases(REACHED))
async def test_what_a_release_left_at_a_durable_point_is_gone_on_with(
    tmp_path: Path, point: str, name: str, n: int, when: str
) -> None:
    """Answered once, run at most once, every card settled, the books in order. S4-16."""
    scenario = SCENARIOS[name]
    open_world = on_loopback(
        platform=scenario.platform, channel=scenario.channel, launch=FirstLife(RELEASE)
    )
    await kill_at(tmp_path, scenario, nth("commit", point, when, n), open_world=open_world)
