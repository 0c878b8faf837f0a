"""Killed at a hundred random instants in the middle of mixed work, the daemon keeps its promises.

    FAULTS_SEED=123 pytest tests/faults/test_random_instants.py

Each world lives through ten kills. A kill is aimed at something that is under way (an answer that
is streamed, a question that waits, a call that runs, a final that is delivered) or at anything,
and falls at its k-th observable instant: a commit or a call to the platform begun or done, a piece
of the model's answer, a tool that began. One in four daemons is killed once more while it
recovers. What was hit is counted where it was hit, and printed with the seed.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults.instants import PHASES, Phase, nth_within
from tests.faults.promises import check, counted
from tests.faults.scene import DENIED, Scene, scene

KILLS = 100
KILLS_A_WORLD = 10
AIMED = 2
"""Kills of a world at each phase: 20 of 100, where 15 are asked for."""
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
# Drawn anew for each run, unless one is to be repeated.
SEED = int(os.environ.get(SEED_VARIABLE, "0")) or random.SystemRandom().randrange(1, 10**6)
PLATFORMS: tuple[Mapping[str, object], ...] = (
    {},
    {"idempotent_send": False},
    {"can_edit": False},
    {"idempotent_send": False, "can_edit": False},
    {"can_delete": False, "multi_message": False},
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("bwrap", "platform"),
    pytest.mark.timeout(300),  # a dozen lives of a daemon, on a machine that others use too
]


@dataclass(eq=False, kw_only=True)
class Work:
    """What people have the bot do, round after round."""

    here: Scene
    chance: random.Random
    rounds: int = 0
    mix: Counter[str] = field(default_factory=Counter[str])

    async def round(self) -> None:
        """Let Ann and Bob write: always a text and an approved call, the rest by chance."""
        self.rounds += 1
        name = f"r{self.rounds:02}"
        wishes = [
            "text",
            "knock",
            *self.chance.sample(["deny", "shell", "look", "text2", "file", "stop"], 2),
        ]
        self.chance.shuffle(wishes)
        for wish in wishes:
            self.mix[wish] += 1
            await self._wish(wish, f"{wish} {name}")

    async def _wish(self, wish: str, key: str) -> None:
        model, here = self.here.here.model, self.here
        answer = f"The answer to {key} is this."
        who = self.chance.choice(["ann", "bob"])
        calls: dict[str, tuple[str, dict[str, object]]] = {
            "knock": ("knock", {"what": key}),
            "deny": ("knock", {"what": f"{DENIED} {key}"}),
            "shell": ("shell", {"command": f"echo {key} >> runs.txt"}),
            "look": ("peek", {"what": key}),
        }
        pieces = ("The answer ", "to ", key, " is ", "this", ".")
        if wish == "stop":
            await self._stopped(key)
            return
        if wish in calls:
            tool, arguments = calls[wish]
            model.call(tool, arguments, round=0, key=key, times=None)
            here.write(key, *pieces, round=1)
        else:
            here.write(key, *pieces)
        await here.say(who, key, answer, files={"a.txt": b"milk"} if wish == "file" else None)

    async def _stopped(self, key: str) -> None:
        """Let Olga ask for what never ends, and stop it; Ann's and Bob's turns are none of it."""
        here, model = self.here, self.here.here.model
        # Where nothing was shown of the one before, the model is asked both as one.
        model.say("And ", "so ", "on ", model.gate(), key="stop ", times=None)
        await here.say("olga", key, marks=("topped by olga",), end="stopped")

        async def stop() -> None:
            await model.until(lambda model: any(key in one.last_user for one in model.requests))
            await here.command("olga", "/stop")

        here.act(stop())


@pytest.mark.parametrize("number", range(KILLS // KILLS_A_WORLD))
async def test_kills_at_random_instants_lose_and_repeat_nothing(
    tmp_path: Path, number: int, record_property: Callable[[str, object], None]
) -> None:
    """Answered once, run at most once, every card settled, the books in order (P1-P3, P5)."""
    chance = random.Random(f"{SEED}/{number}")
    aims: list[Phase | None] = [*(PHASES * AIMED), None, None]
    aims = aims[:KILLS_A_WORLD]
    chance.shuffle(aims)
    hits: Counter[str] = Counter()
    ended: list[str] = []
    async with scene(tmp_path, platform=PLATFORMS[number % len(PLATFORMS)]) as here:
        work = Work(here=here, chance=chance)
        here.hold_tools("knock")
        try:
            await here.start()
            for aim in aims:
                ended += await _kill(work, aim, hits)
                check(here)
        except AssertionError as error:
            error.add_note(f"{SEED_VARIABLE}={SEED}, world {number}; killed: {ended}")
            raise
        told = f"seed {SEED}, world {number}: {len(ended)} kills, hit {dict(sorted(hits.items()))}"
        told += f", mix {dict(sorted(work.mix.items()))}, counted {counted(here)}"
        record_property("told", told)
    assert min(hits[phase] for phase in PHASES) >= AIMED, told


async def _kill(work: Work, aim: Phase | None, hits: Counter[str]) -> list[str]:
    """Work until the daemon is killed, and let it recover; return where it was killed."""
    here, chance = work.here, work.chance
    instants = here.instants
    ended: list[str] = []

    def under_way() -> frozenset[Phase]:
        return instants.progress.phases

    instants.ends_at = nth_within(under_way, aim, chance.randint(1, DEPTHS[aim]))
    is_dead = False
    while not is_dead:
        await work.round()
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
