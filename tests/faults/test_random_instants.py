"""Killed at hundreds of random instants in the middle of mixed work, the daemon keeps its promises.

    FAULTS_SEED=0 pytest tests/faults/test_random_instants.py -k telegram

A hundred kills on the platform of the tests, as generous and as poor as platforms are, three
hundred on Telegram, and sixty on each of the others, the page and the terminal among them. A kill is
aimed at something that is under way (an answer that is streamed, a question that waits, a call that
runs, a final that is delivered) or at anything, and falls at its k-th observable instant: a commit or
a call to the platform begun or done, a piece of the model's answer, a tool that began. One in four
daemons is killed once more while it recovers. What was hit is counted where it was hit, and printed
with the seed.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.faults.instants import PHASES, Phase, nth_within
from tests.faults.mixed_load import RARER, MixedLoad
from tests.faults.on_loopback import on_loopback
from tests.faults.on_telegram import on_telegram
from tests.faults.platforms import LOCAL, NEEDS, PLATFORMS, WITHOUT_FILES
from tests.faults.promises import check, counted
from tests.faults.scene import scene
from tests.faults.stage import Open
from zeroclaw.value import Value

# The most instants of a phase that are let pass; more are there in one round of work, or two.
DEPTHS: dict[Phase | None, int] = {
    "streaming": 12,
    "confirming": 10,
    "executing": 4,
    "delivering": 8,
    None: 60,
}
DEEPEST_IN_RECOVERY = 25
SEED_VARIABLE = "FAULTS_SEED"
# The same each time, so that what fails is what was changed; 0 draws another one.
SEED = int(os.environ.get(SEED_VARIABLE, "2711")) or random.SystemRandom().randrange(1, 10**6)
VARIANTS: tuple[Mapping[str, object], ...] = (
    {},
    {"idempotent_send": False},
    {"can_edit": False},
    {"idempotent_send": False, "can_edit": False},
    {"can_delete": False, "multi_message": False},
)


class World(Value):
    """One world, in which the daemon is killed over and over.

    Attributes:
        kills: How often, kills in a recovery apart.
        aimed: How many of them aim at each phase; the rest aim at anything.
        rarer: What people do now and then.
    """

    name: str
    opened: Open
    kills: int
    aimed: int
    rarer: tuple[str, ...] = RARER
    needs: tuple[str, ...] = ()

    @property
    def aims(self) -> tuple[Phase | None, ...]:
        """What the kills are aimed at, None for anything."""
        anything = self.kills - self.aimed * len(PHASES)
        return (*(PHASES * self.aimed), *([None] * anything))


ON_LOOPBACK = tuple(
    World(
        name=f"loopback {number}",
        opened=on_loopback(platform=VARIANTS[number % len(VARIANTS)]),
        kills=10,
        aimed=2,
    )
    for number in range(10)
)
# 45 and more of the 300 hit each phase, where 20 are asked for.
ON_TELEGRAM = tuple(
    World(name=f"telegram {number}", opened=on_telegram(crowded=True), kills=20, aimed=3)
    for number in range(15)
)
# More mails in an hour than people write.
NO_CAPS = {"email": {"account_per_hour": 10_000}}
WITHOUT_A_FILE = tuple(one for one in RARER if one != "file")
# Short ones: a kill by mail takes most of a minute, and a share of the searches holds whole worlds.
ELSEWHERE = tuple(
    World(
        name=f"{name} {number}",
        opened=opens(channel=NO_CAPS.get(name, {})),
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
    "world",
    [
        pytest.param(
            world,
            id=world.name,
            marks=(
                pytest.mark.needs("bwrap", "platform", *world.needs),
                *(() if world in IN_EVERY_RUN else (LONG,)),
            ),
        )
        for world in (*ON_LOOPBACK, *ON_TELEGRAM, *ELSEWHERE)
    ],
)
async def test_kills_at_random_instants_lose_and_repeat_nothing(
    tmp_path: Path, world: World, record_property: Callable[[str, object], None]
) -> None:
    """Answered once, run at most once, every card settled, the books in order (P1-P3, P5)."""
    chance = random.Random(f"{SEED}/{world.name}")
    aims = chance.sample(world.aims, world.kills)
    hits: Counter[str] = Counter()
    ended: list[str] = []
    async with scene(tmp_path, world.opened) as here:
        load = MixedLoad(here=here, chance=chance, rarer=world.rarer)
        here.hold_tools("knock")
        try:
            await here.start()
            for aim in aims:
                ended += await _kill(load, aim, hits)
                check(here)
        except AssertionError as error:
            error.add_note(f"{SEED_VARIABLE}={SEED}, {world.name}; killed: {ended}")
            raise
        told = f"seed {SEED}, {world.name}: {len(ended)} kills, hit {dict(sorted(hits.items()))}"
        told += f", mix {dict(sorted(load.mix.items()))}, counted {counted(here)}"
        record_property("told", told)
    assert min(hits[phase] for phase in PHASES) >= world.aimed, told


async def _kill(load: MixedLoad, aim: Phase | None, hits: Counter[str]) -> list[str]:
    """Work until the daemon is killed, and let it recover; return where it was killed."""
    here, chance = load.here, load.chance
    instants = here.instants
    ended: list[str] = []

    def under_way() -> frozenset[Phase]:
        return instants.progress.phases

    instants.ends_at = nth_within(under_way, aim, chance.randint(1, DEPTHS[aim]))
    is_dead = False
    while not is_dead:
        await load.round()
        is_dead = await here.ended()
    deadly = [0, 0, 0, chance.randint(1, DEEPEST_IN_RECOVERY)]
    for depth in (chance.choice(deadly), 0):
        hits.update(instants.phases)
        ended.append(f"{instants.last} while {sorted(instants.phases)}")
        instants.ends_at = nth_within(under_way, None, depth)
        await here.start()
        if not await here.ended():
            break
    return ended
