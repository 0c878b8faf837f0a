"""Killed before and after each durable point, the daemon continues as if it had not been (P1-P3, P5).

    pytest tests/faults/test_durable_points.py -k "gated and before"

The list of points is the store's own, so a point that is missing below fails here.
"""

from pathlib import Path

import pytest

from tests.faults.kill_points import nth
from tests.faults.kills import kill_at
from tests.faults.scenarios import SCENARIOS
from zeroclaw.store import DurablePoint

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap", "platform")]

WALK: dict[DurablePoint, tuple[tuple[str, int], ...]] = {
    # The second admission is the operator's press, or the edit; the third is the second press.
    DurablePoint.ADMITTED: (("text", 1), ("approved", 2), ("edited", 2), ("batch", 3)),
    DurablePoint.FETCHED: (("files", 1), ("files", 2)),
    DurablePoint.TURN_STARTED: (("text", 1), ("files", 1)),
    DurablePoint.GATED: (("batch", 1),),
    # First the card is about to be sent, then it was sent.
    DurablePoint.ASKED: (
        *(("approved", 1), ("approved", 2), ("batch", 1)),
        *(("unsure card", 1), ("unsure card", 2)),
    ),
    DurablePoint.ANSWERED: (("approved", 1), ("denied", 1), ("batch", 2)),
    DurablePoint.SETTLED: (("approved", 1), ("denied", 1), ("batch", 2)),
    DurablePoint.CALL_STARTED: (("shell", 1), ("edited", 1), ("batch", 1)),
    DurablePoint.CALL_FINISHED: (("shell", 1), ("edited", 1), ("batch", 1)),
    DurablePoint.STEERED: (("edited", 1),),
    DurablePoint.COMPACTED: (("compacted", 1),),
    DurablePoint.FINISHED: (("text", 1), ("refused", 1), ("unsure", 1)),
    DurablePoint.REF_KNOWN: (("grows", 1), ("long", 1), ("long", 2), ("long without edits", 1)),
    DurablePoint.DELIVERED: (("text", 1), ("long", 1), ("unsure", 1), ("unsure without edits", 1)),
    DurablePoint.REFUSED: (("refused", 1),),
    # On a platform that can't detect a repeat, each send is recorded before it begins.
    DurablePoint.HOUSEKEEPING: (("unsure without edits", 1), ("unsure card", 1)),
}
CALLS = (
    ("send", "grows"),
    ("send", "unsure"),
    ("send", "unsure without edits"),
    ("send", "long without edits"),
    ("edit", "grows"),
    ("edit", "unsure"),
    ("ask", "approved"),
    ("ask", "unsure card"),
    ("settle", "approved"),
)


def test_every_durable_point_is_walked() -> None:
    """A point that the code exports is killed at."""
    assert set(WALK) == set(DurablePoint)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("point", "name", "n"),
    [(point, name, n) for point, places in WALK.items() for name, n in places],
)
async def test_a_kill_at_a_durable_point_loses_and_repeats_nothing(
    tmp_path: Path, point: DurablePoint, name: str, n: int, when: str
) -> None:
    """Answered once, run at most once, every card settled, audit and journal in order. S4-16, K24."""
    await kill_at(tmp_path, SCENARIOS[name], nth("commit", point.value, when, n))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("call", "name"), CALLS)
async def test_a_kill_around_a_call_to_the_platform_loses_and_repeats_nothing(
    tmp_path: Path, call: str, name: str, when: str
) -> None:
    """Between a call and its record lies the window of platforms that can't detect a repeat (P1)."""
    await kill_at(tmp_path, SCENARIOS[name], nth("call", call, when))
