"""The troubles of a soak: platforms refuse, fail and forget, and the daemon is killed."""

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.journeys.daemon_process import DaemonProcess
from tests.soak.people import Crowd
from tests.soak.place import Place

FAULTY = 0.006
"""Of the calls run into each of a place's faults; all of Telegram's together every thirtieth."""
PAUSES_S = (1.0, 6.0)
AWAY_S = (0.2, 1.5)
KILL_EVERY_S = (12.0, 25.0)


@dataclass(eq=False, kw_only=True)
class Troubles:
    """Makes trouble until it is over.

    Attributes:
        crowd: Whom it befalls.
        daemon: Who is killed.
        chance: Decides what happens, and when.
        kills_until: Seconds on the crowd's clock until which the daemon is killed.
        often: How many times as often as usual.
        made: How often what happened.
        lives: When each life of the daemon began.
        turns: What befell the daemon and its connections, and when.
    """

    crowd: Crowd
    daemon: DaemonProcess
    chance: random.Random
    kills_until: float
    often: float = 1.0
    made: Counter[str] = field(default_factory=Counter[str])
    lives: list[float] = field(default_factory=list[float])
    turns: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    async def make(self, place: Place) -> None:
        """Let calls to a place fail now and then, and one thing go wrong there after another."""
        place.let_fail(lambda fault: self._befalls(f"{place.name}: {fault}"))
        troubles = [*place.troubles().items()]
        while not self.crowd.is_over():
            await self.crowd.clock.sleep(self.chance.uniform(*PAUSES_S) / self.often)
            what, trouble = self.chance.choice(troubles)
            self._happens(f"{place.name}: {what}")
            await trouble()

    async def kill(self) -> None:
        """Kill the daemon again and again, and tell it to end now and then."""
        daemon, clock = self.daemon, self.crowd.clock
        while True:
            pause_s = self.chance.uniform(*KILL_EVERY_S) / self.often
            if clock.monotonic() + pause_s > self.kills_until:
                return
            await clock.sleep(pause_s)
            if self.chance.random() < 1 / 4:
                self._happens("restarts")
                await daemon.terminate()
            else:
                self._happens("kills")
                await daemon.kill()
            await clock.sleep(self.chance.uniform(*AWAY_S))
            self.lives.append(clock.monotonic())
            self.turns.append((clock.monotonic(), "it is started"))
            await daemon.start()

    def _happens(self, what: str) -> None:
        self.made[what] += 1
        self.turns.append((self.crowd.clock.monotonic(), what))

    def _befalls(self, fault: str) -> bool:
        does = not self.crowd.is_over() and self.chance.random() < FAULTY * self.often
        self.made[fault] += does
        return does
