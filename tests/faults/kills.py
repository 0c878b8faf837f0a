"""Plays a scenario, kills the daemon at given points, and checks the promises afterwards."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.faults.crash_run import CrashRun, open_crash_run
from tests.faults.kill_points import KillPoint
from tests.faults.on_loopback import on_loopback
from tests.faults.platform_world import OpenWorld
from tests.faults.promises import check
from tests.faults.scenarios import Scenario
from zeroclaw.store import DurablePoint

ONCE_MORE = pytest.mark.long("walks a point once more, elsewhere")
"""For a kill that resembles another: every check kills the daemon at each kind of point."""
_Places = tuple[tuple[str, int], ...]
Places = Mapping[DurablePoint, _Places] | Mapping[str, _Places]


def kill_cases(walk: Places, *, further: str = "") -> list[object]:
    """Return the point, scenario, number and side of each kill.

    Args:
        walk: The places of each point.
        further: Every check kills at the first place of a point on both sides, and at its other
            places on this side only; the long searches kill at the rest.
    """
    return [
        pytest.param(
            *(point, name, n, when), marks=() if place == 0 or when == further else ONCE_MORE
        )
        for point, places in walk.items()
        for place, (name, n) in enumerate(places)
        for when in ("before", "after")
    ]


async def kill_at(
    directory: Path,
    scenario: Scenario,
    *kills_at: Callable[[KillPoint], bool],
    open_world: OpenWorld | None = None,
) -> None:
    """Kill the daemon, and start it again.

    Args:
        directory: An empty directory of this test's own.
        scenario: The script of the run.
        kills_at: The kill conditions of the daemon's first life, its second, and so on.
        open_world: Opens the platform, None for the test platform.
    """
    loopback = on_loopback(
        platform=scenario.platform, channel=scenario.channel, provider=scenario.provider
    )
    async with open_crash_run(directory, open_world or loopback) as run:
        await scenario.play(run)
        for condition in kills_at:
            run.kill_points.kills_at = condition
            await run.start()
            assert await run.killed(), "the daemon never reached that point"
        run.kill_points.kills_at = None
        await run.start()
        await run.idle()
        _check_run(run, scenario)


def _check_run(run: CrashRun, scenario: Scenario) -> None:
    check(run)
    if scenario.notice:
        notes = [
            message.text
            for message in run.world.chat("olga").messages
            if scenario.notice in message.text
        ]
        assert len(notes) == 1, notes
    for name, texts in scenario.texts.items():
        assert tuple(message.text for message in run.world.chat(name).messages) == texts
    if scenario.erased:
        assert not run.ledger.holds(scenario.erased)
