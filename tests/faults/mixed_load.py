"""What people have the bot do while it is killed again and again: a mixed load, round after round."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.faults.scene import DENIED, Scene

RARER = ("deny", "shell", "look", "text2", "file", "stop")


@dataclass(eq=False, kw_only=True)
class MixedLoad:
    """The load of one scene.

    Attributes:
        rarer: Of which each round has two, beside what it always has.
        mix: How often each kind was wished for.
    """

    here: Scene
    chance: random.Random
    rarer: Sequence[str] = RARER
    rounds: int = 0
    mix: Counter[str] = field(default_factory=Counter[str])

    async def round(self) -> None:
        """Let Ann and Bob write: always a text and an approved call, the rest by chance.

        Where there is a group, they write there as well.
        """
        self.rounds += 1
        name = f"r{self.rounds:02}"
        groups = [f"in {group}" for group in self.here.stage.groups]
        wishes = ["text", "knock", *groups, *self.chance.sample(self.rarer, 2)]
        self.chance.shuffle(wishes)
        for wish in wishes:
            self.mix[wish] += 1
            await self._wish(wish, f"{wish} {name}")

    async def _wish(self, wish: str, key: str) -> None:
        model, here = self.here.stage.model, self.here
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
        where = wish.removeprefix("in ") if wish.startswith("in ") else ""
        files = {"a.txt": b"milk"} if wish == "file" else None
        await here.say(who, key, answer, where=where, files=files)

    async def _stopped(self, key: str) -> None:
        """Let Olga ask for what never ends, and stop it; Ann's and Bob's turns are none of it."""
        here, model = self.here, self.here.stage.model
        # Where nothing was shown of the one before, the model is asked both as one, in one chat others too.
        model.say("And ", "so ", "on ", model.gate(), key=key, last=True, times=None)
        await here.say("olga", key, marks=(f"topped by {here.stage.named('olga')}",), end="stopped")

        async def stop() -> None:
            await model.until(lambda model: any(key in one.last_user for one in model.requests))
            await here.command("olga", "/stop")

        here.act(stop())
