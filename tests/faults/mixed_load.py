"""A mixed load on a bot that is killed again and again, round after round."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.faults.crash_run import DENIED, CrashRun

RARER = ("deny", "shell", "look", "text2", "file", "stop")


@dataclass(eq=False, kw_only=True)
class MixedLoad:
    """The load of one run.

    Attributes:
        rarer: Kinds of which each round has two, besides those of every round.
        mix: How often each kind was used.
    """

    run: CrashRun
    chance: random.Random
    rarer: Sequence[str] = RARER
    rounds: int = 0
    mix: Counter[str] = field(default_factory=Counter[str])

    async def round(self) -> None:
        """Let Ann and Bob write: always a text and an approved call, the rest by chance.

        They also write in each group.
        """
        self.rounds += 1
        name = f"r{self.rounds:02}"
        groups = [f"in {group}" for group in self.run.world.groups]
        kinds = ["text", "knock", *groups, *self.chance.sample(self.rarer, 2)]
        self.chance.shuffle(kinds)
        for kind in kinds:
            self.mix[kind] += 1
            await self._write(kind, f"{kind} {name}")

    async def _write(self, kind: str, key: str) -> None:
        model, run = self.run.world.model, self.run
        answer = f"The answer to {key} is this."
        above = f"First, {key}." if kind == "knock" and run.world.begins_anew_below_cards else ""
        who = self.chance.choice(["ann", "bob"])
        calls: dict[str, tuple[str, dict[str, object]]] = {
            "knock": ("knock", {"what": key}),
            "deny": ("knock", {"what": f"{DENIED} {key}"}),
            "shell": ("shell", {"command": f"echo {key} >> runs.txt"}),
            "look": ("peek", {"what": key}),
        }
        pieces = ("The answer ", "to ", key, " is ", "this", ".")
        if kind == "stop":
            await self._stop_a_turn(key)
            return
        if kind in calls:
            tool, arguments = calls[kind]
            model.call(tool, arguments, text=above, round=0, key=key, times=None)
            run.write(key, *pieces, round=1)
        else:
            run.write(key, *pieces)
        where = kind.removeprefix("in ") if kind.startswith("in ") else ""
        files = {"a.txt": b"milk"} if kind == "file" else None
        await run.say(who, key, *filter(None, (above, answer)), where=where, files=files)

    async def _stop_a_turn(self, key: str) -> None:
        """Let Olga start an endless answer and stop it; Ann's and Bob's turns are not affected."""
        run, model = self.run, self.run.world.model
        # A message before it of which nothing was shown joins this turn, in a shared chat others' too.
        model.say("And ", "so ", "on ", model.gate(), key=key, last=True, times=None)
        await run.say(
            "olga", key, marks=(f"topped by {run.world.display_name('olga')}",), end="stopped"
        )

        async def stop() -> None:
            await model.until(
                lambda model: any(key in request.last_user for request in model.requests)
            )
            await run.command("olga", "/stop")

        run.act(stop())
