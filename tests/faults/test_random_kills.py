"""Killed at hundreds of random points in the middle of mixed work, the daemon keeps its promises.

    FAULTS_SEED=0 pytest tests/faults/test_random_kills.py -k telegram

A hundred kills on the test platform, with many abilities and with few, three hundred on Telegram, and
sixty on each of the others, the page and the terminal included. A kill is aimed at a phase (an answer
that is streamed, a pending approval, a running call, a final that is delivered) or at any point, and
happens at its k-th kill point: before or after a commit or a call to the platform, at a piece of the
model's answer, at the start of a tool. One in four daemons is killed once more while it recovers. The
phases of all kills are counted, and printed with the seed.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.faults.crash_run import open_crash_run
from tests.faults.kill_points import PHASES, Phase, nth_within
from tests.faults.mixed_load import RARER, MixedLoad
from tests.faults.on_loopback import on_loopback
from tests.faults.on_telegram import on_telegram
from tests.faults.platform_world import OpenWorld
from tests.faults.platforms import LOCAL, NEEDS, PLATFORMS, WITHOUT_FILES
from tests.faults.promises import check, count
from zeroclaw.value import Value

# The highest k of each phase; one or two rounds of work have more points than that.
DEPTHS: dict[Phase | None, int] = {
    "streaming": 12,
    "confirming": 10,
    "executing": 4,
    "delivering": 8,
    None: 60,
}
DEEPEST_IN_RECOVERY = 25
SEED_VARIABLE = "FAULTS_SEED"
# The same each time, so that a failure is due to a change; 0 draws another one.
SEED = int(os.environ.get(SEED_VARIABLE, "2711")) or random.SystemRandom().randrange(1, 10**6)
VARIANTS: tuple[Mapping[str, object], ...] = (
    {},
    {"idempotent_send": False},
    {"can_edit": False},
    {"idempotent_send": False, "can_edit": False},
    {"can_delete": False, "multi_message": False},
)


class Case(Value):
    """One platform on which the daemon is killed over and over.

    Attributes:
        kills: The number of kills, without those in a recovery.
        aimed: How many of them aim at each phase; the rest aim at any point.
        rarer: The kinds of work that not every round has.
    """

    name: str
    open_world: OpenWorld
    kills: int
    aimed: int
    rarer: tuple[str, ...] = RARER
    needs: tuple[str, ...] = ()

    @property
    def aims(self) -> tuple[Phase | None, ...]:
        """The phases of the kills, None for any point."""
        anything = self.kills - self.aimed * len(PHASES)
        return (*(PHASES * self.aimed), *([None] * anything))


ON_LOOPBACK = tuple(
    Case(
        name=f"loopback {number}",
        open_world=on_loopback(platform=VARIANTS[number % len(VARIANTS)]),
        kills=10,
        aimed=2,
    )
    for number in range(10)
)
# 45 and more of the 300 hit each phase, where 20 are asked for.
ON_TELEGRAM = tuple(
    Case(name=f"telegram {number}", open_world=on_telegram(crowded=True), kills=20, aimed=3)
    for number in range(15)
)
# More mails in an hour than people write.
NO_CAPS = {"email": {"account_per_hour": 10_000}}
WITHOUT_A_FILE = tuple(kind for kind in RARER if kind != "file")
# Short ones: a kill by mail takes most of a minute, and a share of the searches holds whole worlds.
ELSEWHERE = tuple(
    Case(
        name=f"{name} {number}",
        open_world=opens(channel=NO_CAPS.get(name, {})),
        kills=7,
        aimed=1,
        rarer=WITHOUT_A_FILE if name in WITHOUT_FILES else RARER,
        needs=NEEDS.get(name, ()),
    )
    for name, opens in {**PLATFORMS, **LOCAL}.items()
    for number in range(9)
)
IN_EVERY_RUN = (ON_LOOPBACK[0], ON_TELEGRAM[0])
LONG = pytest.mark.long("hundreds of kills")


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.name,
            marks=(
                pytest.mark.needs("bwrap", "platform", *case.needs),
                *(() if case in IN_EVERY_RUN else (LONG,)),
            ),
        )
        for case in (*ON_LOOPBACK, *ON_TELEGRAM, *ELSEWHERE)
    ],
)
async def test_kills_at_random_instants_lose_and_repeat_nothing(
    tmp_path: Path, case: Case, record_property: Callable[[str, object], None]
) -> None:
    """Answered once, run at most once, every card settled, the books in order (P1-P3, P5)."""
    chance = random.Random(f"{SEED}/{case.name}")
    aims = chance.sample(case.aims, case.kills)
    hits: Counter[str] = Counter()
    ended: list[str] = []
    async with open_crash_run(tmp_path, case.open_world) as run:
        load = MixedLoad(run=run, chance=chance, rarer=case.rarer)
        run.hold_tools("knock")
        try:
            await run.start()
            for aim in aims:
                ended += await _kill(load, aim, hits)
                check(run)
        except AssertionError as error:
            error.add_note(f"{SEED_VARIABLE}={SEED}, {case.name}; killed: {ended}")
            raise
        summary = f"seed {SEED}, {case.name}: {len(ended)} kills, hit {dict(sorted(hits.items()))}"
        summary += f", mix {dict(sorted(load.mix.items()))}, counted {count(run)}"
        record_property("told", summary)
    assert min(hits[phase] for phase in PHASES) >= case.aimed, summary


async def _kill(load: MixedLoad, aim: Phase | None, hits: Counter[str]) -> list[str]:
    """Work until the daemon is killed, and let it recover; return the points of its kills."""
    run, chance = load.run, load.chance
    kill_points = run.kill_points
    ended: list[str] = []

    def under_way() -> frozenset[Phase]:
        return kill_points.progress.phases

    kill_points.kills_at = nth_within(under_way, aim, chance.randint(1, DEPTHS[aim]))
    is_dead = False
    while not is_dead:
        await load.round()
        is_dead = await run.killed()
    deadly = [0, 0, 0, chance.randint(1, DEEPEST_IN_RECOVERY)]
    for depth in (chance.choice(deadly), 0):
        hits.update(kill_points.phases)
        ended.append(f"{kill_points.killed_at} while {sorted(kill_points.phases)}")
        kill_points.kills_at = nth_within(under_way, None, depth)
        await run.start()
        if not await run.killed():
            break
    return ended
