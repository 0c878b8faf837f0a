"""Killed at each durable point on the platforms beside Telegram, the daemon keeps its promises.

    pytest tests/faults/test_walked_platforms.py -k "slack and asked"

What differs from platform to platform is how an event comes again, how a message is found whose
answer was lost, and how a card is pressed and settled. So each point is killed at once on every channel,
after it in every check and before it among the long searches; the other places of a point are walked on
Telegram and on the platform of the tests, and there alone the summary of a long chat, of which no
platform hears.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.crash_run import CrashRun
from tests.faults.kill_points import nth
from tests.faults.kills import ONCE_MORE, kill_at
from tests.faults.platforms import LOCAL, PLATFORMS, WITHOUT_EDITS, WITHOUT_FILES, on
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.scenarios_on_telegram import ON_TELEGRAM
from tests.faults.scenarios_while_busy import BUSY
from zeroclaw import replace
from zeroclaw.store import DurablePoint

pytestmark = pytest.mark.slow


TWO_MAILS = ("\n".join(["A line."] * 5_000), "\n".join(["Another."] * 5_000))
"""Neither has room for a line of the other's."""


async def _in_two_mails(run: CrashRun) -> None:
    run.world.model.say("\n\n".join(TWO_MAILS), key="hi", times=None)
    await run.say("ann", "hi", *TWO_MAILS)


PLAYED = {
    **SCENARIOS,
    **BUSY,
    "file": ON_TELEGRAM["file"],
    "in two mails": Scenario(play=_in_two_mails),
    "refused": replace(SCENARIOS["refused"], channel={}),
    "whole": replace(SCENARIOS["approved"], channel={"stream": False}),
}
WALK: Mapping[DurablePoint, str] = {
    DurablePoint.ADMITTED: "text",
    DurablePoint.FETCHED: "file",
    DurablePoint.TURN_STARTED: "text",
    DurablePoint.GATED: "batch",
    DurablePoint.ASKED: "approved",
    DurablePoint.ANSWERED: "approved",
    DurablePoint.SETTLED: "approved",
    DurablePoint.CALL_STARTED: "shell",
    DurablePoint.CALL_FINISHED: "shell",
    DurablePoint.STEERED: "edited",
    DurablePoint.FINISHED: "text",
    DurablePoint.REF_KNOWN: "grows",
    DurablePoint.DELIVERED: "text",
    DurablePoint.REFUSED: "refused",
    DurablePoint.HOUSEKEEPING: "approved",
}
CALLS = (
    ("send", "grows"),
    ("send", "whole"),
    ("edit", "grows"),
    ("ask", "approved"),
    ("settle", "approved"),
)
MORE_CALLS = (("send", "approved"), ("ask", "whole"), ("settle", "whole"))
# A mail stays as it was sent, its writer's and the bot's; there no answer is seen to grow.
WALK_WITHOUT_EDITS = {**WALK, DurablePoint.STEERED: "steer", DurablePoint.REF_KNOWN: "in two mails"}


@pytest.mark.parametrize(
    ("point", "when", "platform"),
    [
        pytest.param(
            *(point, when, platform), marks=(on(platform), *(() if is_in_check else (ONCE_MORE,)))
        )
        for platform in PLATFORMS
        for point in WALK
        for when in ("before", "after")
        for is_in_check in [when == "after" or point is DurablePoint.ADMITTED]
    ],
)
async def test_a_kill_at_a_durable_point_loses_and_repeats_nothing(
    tmp_path: Path, platform: str, point: DurablePoint, when: str
) -> None:
    """Answered once, run at most once, every card settled, the books in order. P1, P3, P5."""
    scenario = PLAYED[(WALK_WITHOUT_EDITS if platform in WITHOUT_EDITS else WALK)[point]]
    open_world = PLATFORMS[platform](channel=scenario.channel)
    await kill_at(tmp_path, scenario, nth("commit", point.value, when), open_world=open_world)


@pytest.mark.parametrize(
    ("call", "name", "when", "platform"),
    [
        pytest.param(
            *(call, name, when, platform),
            marks=(on(platform), *(() if is_in_check else (ONCE_MORE,))),
        )
        for platform in PLATFORMS
        for call, name in (*CALLS, *MORE_CALLS)
        for when in ("before", "after")
        for is_in_check in [when == "after" and (call, name) in CALLS]
        if call != "edit" or platform not in WITHOUT_EDITS
    ],
)
async def test_a_kill_around_a_call_loses_and_repeats_nothing(
    tmp_path: Path, platform: str, call: str, name: str, when: str
) -> None:
    """An unrecorded effect on the platform is found and continued. P1, P5, P6."""
    scenario = PLAYED["text" if name == "grows" and platform in WITHOUT_EDITS else name]
    open_world = PLATFORMS[platform](channel=scenario.channel)
    await kill_at(tmp_path, scenario, nth("call", call, when), open_world=open_world)


def on_this_machine(name: str) -> Mapping[DurablePoint, str]:
    """Return the points that a channel of this machine comes to, and where.

    It refuses nothing that is sent, and knows a repeated send, so none is noted before it begins.
    """
    never = {DurablePoint.REFUSED, DurablePoint.HOUSEKEEPING}
    never |= {DurablePoint.FETCHED} if name in WITHOUT_FILES else set()
    walk = {**WALK_WITHOUT_EDITS, DurablePoint.REF_KNOWN: "grows"}
    return {point: played for point, played in walk.items() if point not in never}


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize(
    ("point", "when", "name"),
    [
        pytest.param(point, when, name, marks=() if is_in_check else (ONCE_MORE,))
        for name in LOCAL
        for point in on_this_machine(name)
        for when in ("before", "after")
        for is_in_check in [when == "after"]
    ],
)
async def test_a_kill_at_a_durable_point_costs_a_channel_of_this_machine_nothing(
    tmp_path: Path, name: str, point: DurablePoint, when: str
) -> None:
    """A message without a confirmation is written again, and counts once. P1, P2, P3, P5."""
    scenario = PLAYED[on_this_machine(name)[point]]
    open_world = LOCAL[name](channel=scenario.channel)
    await kill_at(tmp_path, scenario, nth("commit", point.value, when), open_world=open_world)
