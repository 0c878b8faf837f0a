"""Plays a scenario, kills the daemon at one instant, and holds what it comes to to account."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.faults.instants import Instant
from tests.faults.on_loopback import on_loopback
from tests.faults.promises import check
from tests.faults.scenarios import Scenario
from tests.faults.scene import Scene, scene
from tests.faults.stage import Open
from zeroclaw.store import DurablePoint

ONCE_MORE = pytest.mark.long("walks a point once more, elsewhere")
"""Of a kill like another one: each kind of instant that it stands for is killed in every check."""
_Places = tuple[tuple[str, int], ...]
Places = Mapping[DurablePoint, _Places] | Mapping[str, _Places]


def walked(walk: Places, *, further: str = "") -> list[object]:
    """Return the point, scenario, number and side of each kill.

    Args:
        walk: The places of each point.
        further: At its first place a point is killed on both sides in every check; at the others
            on this side only, and on the rest among the long searches.
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
    *ends_at: Callable[[Instant], bool],
    opened: Open | None = None,
) -> None:
    """Kill the daemon, and start it again.

    Args:
        directory: An empty directory of this test's own.
        scenario: What takes place.
        ends_at: Asked at each instant whether it is the last one of the daemon's first life, of
            its second, and so on.
        opened: What opens the stage, None for the platform of the tests.
    """
    usual = on_loopback(
        platform=scenario.platform, channel=scenario.channel, provider=scenario.provider
    )
    async with scene(directory, opened or usual) as here:
        await scenario.play(here)
        for one in ends_at:
            here.instants.ends_at = one
            await here.start()
            assert await here.ended(), "the daemon never came to that instant"
        here.instants.ends_at = None
        await here.start()
        await here.quiet()
        _hold_to_account(here, scenario)


def _hold_to_account(here: Scene, scenario: Scenario) -> None:
    check(here)
    if scenario.told:
        notes = [one.text for one in here.stage.chat("olga").shown if scenario.told in one.text]
        assert len(notes) == 1, notes
    for name, texts in scenario.stands.items():
        assert tuple(one.text for one in here.stage.chat(name).shown) == texts
    if scenario.forgotten:
        assert not here.ledger.holds(scenario.forgotten)
