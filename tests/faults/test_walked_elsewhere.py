"""Killed at each durable point on the platforms beside Telegram, the daemon keeps its promises.

    pytest tests/faults/test_walked_elsewhere.py -k "slack and asked"

What differs from platform to platform is how an event comes again, how a message is found whose
answer was lost, and how a card is pressed and settled. So each point is killed at once, before and
after; the other places of a point are walked on Telegram and on the platform of the tests.
"""

from pathlib import Path

import pytest

from tests.faults.instants import nth
from tests.faults.killing import kill_at
from tests.faults.on_slack import on_slack
from tests.faults.scenarios import SCENARIOS
from tests.faults.stage import Open
from zeroclaw.store import DurablePoint

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap")]

STAGES = {"slack": on_slack()}
WALK: dict[DurablePoint, tuple[str, int]] = {
    DurablePoint.ADMITTED: ("text", 1),
    DurablePoint.TURN_STARTED: ("text", 1),
    DurablePoint.ASSISTANT_RECEIVED: ("batch", 1),
    DurablePoint.GATED: ("batch", 1),
    DurablePoint.ASKED: ("approved", 1),
    DurablePoint.ANSWERED: ("approved", 1),
    DurablePoint.SETTLED: ("approved", 1),
    DurablePoint.CALL_STARTED: ("shell", 1),
    DurablePoint.CALL_FINISHED: ("shell", 1),
    DurablePoint.BATCH_APPENDED: ("batch", 1),
    DurablePoint.STEERED: ("edited", 1),
    DurablePoint.FINISHED: ("text", 1),
    DurablePoint.REF_KNOWN: ("text", 1),
    DurablePoint.DELIVERED: ("text", 1),
    DurablePoint.REFUSED: ("refused", 1),
    DurablePoint.HOUSEKEEPING: ("approved", 1),
}
CALLS = (("send", "text"), ("edit", "text"), ("ask", "approved"), ("settle", "approved"))

each_stage = pytest.mark.parametrize(
    "opened",
    [
        pytest.param(one, id=name, marks=pytest.mark.needs("emulate"))
        for name, one in STAGES.items()
    ],
)


@each_stage
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", WALK)
async def test_a_kill_at_a_durable_point_loses_and_repeats_nothing(
    tmp_path: Path, opened: Open, point: DurablePoint, when: str
) -> None:
    """Answered once, run at most once, every card settled, the books in order. P1, P3, P5."""
    name, n = WALK[point]
    await kill_at(tmp_path, SCENARIOS[name], nth("commit", point.value, when, n), opened=opened)


@each_stage
@pytest.mark.parametrize(("call", "name"), CALLS)
async def test_a_kill_between_a_call_and_its_record_loses_and_repeats_nothing(
    tmp_path: Path, opened: Open, call: str, name: str
) -> None:
    """What the platform carried out and nobody recorded is found and gone on with. P1, P5, P6."""
    await kill_at(tmp_path, SCENARIOS[name], nth("call", call, "after", 1), opened=opened)
