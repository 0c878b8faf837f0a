"""Killed where a message takes a special path, the daemon continues as if it had not been.

    pytest tests/faults/test_ways_killed.py -k "steer and before"

The commits that all paths share are in `test_durable_points.py`; these are the special ones.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.kill_points import later, nth
from tests.faults.kills import kill_at
from tests.faults.scenarios import Scenario
from tests.faults.scenarios_of_commands import COMMANDED
from tests.faults.scenarios_while_busy import BUSY
from zeroclaw.store import DurablePoint

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap", "platform")]

WAYS: Mapping[str, Scenario] = {**BUSY, **COMMANDED}
KILLS = (
    # The turn that takes both messages.
    ("collect", DurablePoint.TURN_STARTED, 2, "before"),
    ("collect", DurablePoint.TURN_STARTED, 2, "after"),
    # The running turn takes the message.
    ("steer", DurablePoint.STEERED, 1, "before"),
    ("steer", DurablePoint.STEERED, 1, "after"),
    # What ends the turn is admitted; the turn ends.
    ("interrupt", DurablePoint.ADMITTED, 2, "after"),
    ("interrupt", DurablePoint.FINISHED, 1, "before"),
    ("stop", DurablePoint.FINISHED, 1, "after"),
    ("stop asked", DurablePoint.ADMITTED, 2, "after"),
    ("stop asked", DurablePoint.FINISHED, 1, "before"),
    ("new", DurablePoint.ADMITTED, 2, "after"),
    # Without a model: it begins with a call, and ends with its result.
    ("tool", DurablePoint.TURN_STARTED, 1, "after"),
    ("tool", DurablePoint.FINISHED, 1, "before"),
    # The switch is on, and off again.
    ("halt", DurablePoint.ADMITTED, 2, "after"),
    ("halt", DurablePoint.ADMITTED, 4, "after"),
)
FORGETTING = (1, 5)
"""Commits after the wish was admitted: the way to the conversation goes, its messages have gone."""


@pytest.mark.parametrize(("way", "point", "n", "when"), KILLS)
async def test_a_kill_on_a_way_of_its_own_loses_and_repeats_nothing(
    tmp_path: Path, way: str, point: DurablePoint, n: int, when: str
) -> None:
    """Each message ends once, as it should, and each due answer is sent once. P1, P3, P5, K24."""
    await kill_at(tmp_path, WAYS[way], nth("commit", point.value, when, n))


@pytest.mark.parametrize("n", FORGETTING)
async def test_a_wish_to_be_forgotten_is_carried_out_across_a_kill(tmp_path: Path, n: int) -> None:
    """Killed between two removals it begins again, and nothing of the person is left."""
    wished = nth("commit", DurablePoint.ADMITTED.value, "after", 3)
    removed = nth("commit", DurablePoint.HOUSEKEEPING.value, "after", n)
    await kill_at(tmp_path, WAYS["forget"], later(wished, removed))
