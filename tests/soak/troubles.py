"""What goes wrong meanwhile: Telegram refuses, fails and forgets, and the daemon is killed."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from channels.telegram.emulator import BadGateway, Lose, TooMany
from channels.telegram.emulator.faults import Call, Fault
from tests.soak.people import Crowd

FAULTS: tuple[Fault, ...] = (
    TooMany(retry_after_s=1),
    TooMany(retry_after_s=3),
    BadGateway(),
    BadGateway(carried_out=True),
    Lose(carried_out=False),
    Lose(carried_out=True),
)
FAULTY = 0.006
"""Of the calls run into each of these; all together every thirtieth."""
PAUSES_S = (1.0, 6.0)
AWAY_S = (0.2, 1.5)
SLOW_S = (0.02, 0.2)
KILL_EVERY_S = (12.0, 25.0)
_TOLERANCE_S = 0.01
_NAMED = "retry after "


@dataclass(eq=False, kw_only=True)
class Troubles:
    """Makes trouble until it is over.

    Attributes:
        crowd: Whom it befalls.
        chance: Decides what happens, and when.
        kills_until: Seconds on the crowd's clock until which the daemon is killed.
        often: How many times as often as usual.
        made: How often what happened.
        lives: When each life of the daemon began.
        turns: What befell the daemon and the connection, and when.
    """

    crowd: Crowd
    chance: random.Random
    kills_until: float
    often: float = 1.0
    made: Counter[str] = field(default_factory=Counter[str])
    lives: list[float] = field(default_factory=list[float])
    turns: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    async def make(self) -> None:
        """Let calls fail now and then, and one thing go wrong after another."""
        for fault in FAULTS:
            self.crowd.here.telegram.will("", fault, times=None, when=self._befalls(fault))
        deeds = (self._cut, self._away, self._slow, self._again, self._again, self._twice)
        while not self.crowd.is_over():
            await self.crowd.clock.sleep(self.chance.uniform(*PAUSES_S) / self.often)
            await self.chance.choice(deeds)()

    async def kill(self) -> None:
        """Kill the daemon again and again, and tell it to end now and then."""
        daemon, clock = self.crowd.here.daemon, self.crowd.clock
        while True:
            await clock.sleep(self.chance.uniform(*KILL_EVERY_S) / self.often)
            if clock.monotonic() > self.kills_until:
                return
            if self.chance.random() < 1 / 4:
                self._happens("restarts", "it is told to end")
                await daemon.terminate()
            else:
                self._happens("kills", "it is killed")
                await daemon.kill()
            await clock.sleep(self.chance.uniform(*AWAY_S))
            self.lives.append(clock.monotonic())
            self.turns.append((clock.monotonic(), "it is started"))
            await daemon.start()

    def _happens(self, what: str, told: str) -> None:
        self.made[what] += 1
        self.turns.append((self.crowd.clock.monotonic(), told))

    # --- one thing each ------------------------------------------------------------------------

    def _befalls(self, fault: Fault) -> Callable[[Call], bool]:
        def befalls(_: Call) -> bool:
            does = not self.crowd.is_over() and self.chance.random() < FAULTY * self.often
            self.made[_name(fault)] += does
            return does

        return befalls

    async def _cut(self) -> None:
        self._happens("cuts", "all connections are cut")
        self.crowd.here.telegram.cut()

    async def _away(self) -> None:
        self._happens("outages", "Telegram is away")
        await self.crowd.here.telegram.down()
        await self.crowd.clock.sleep(self.chance.uniform(*AWAY_S))
        await self.crowd.here.telegram.up()

    async def _slow(self) -> None:
        self._happens("slow spells", "Telegram is slow")
        self.crowd.here.telegram.latency_s = self.chance.uniform(*SLOW_S)
        await self.crowd.clock.sleep(self.chance.uniform(*AWAY_S))
        self.crowd.here.telegram.latency_s = 0.0

    async def _again(self) -> None:
        if self.crowd.deeds:
            self.made["repeats"] += 1
            deed, as_new = self.chance.choice(self.crowd.deeds), self.chance.random() < 1 / 2
            self.crowd.here.telegram.redeliver(deed, as_new=as_new)

    async def _twice(self) -> None:
        """Let what waits stand twice in its batch."""
        waiting = self.crowd.here.telegram.account.updates.waiting
        if waiting:
            self.made["repeats in a batch"] += 1
            waiting.insert(0, waiting[0])


def disobeyed(calls: list[Call], lives: list[float]) -> list[str]:
    """Return calls that came into a chat before a wait was over that a refusal had named.

    What a process before this one was told dies with it, so only calls of one life count.
    """
    found: list[str] = []
    until: dict[int, float] = {}
    starts = iter([*sorted(lives), float("inf")])
    next_start = next(starts)
    for call in calls:
        while call.at >= next_start:
            until.clear()
            next_start = next(starts)
        if call.method not in ("sendMessage", "editMessageText"):
            continue
        if call.at < until.get(call.chat, 0.0) - _TOLERANCE_S:
            found.append(f"{call!r}, {until[call.chat] - call.at:.2f} s too early")
        _, named, seconds = call.refusal.partition(_NAMED)
        if named:
            until[call.chat] = call.at + int(seconds)
    return found


def is_exceeding(call: Call) -> bool:
    """Whether a call was refused because it was one too many, which nobody had planned."""
    return call.befell is None and _NAMED in call.refusal


def _name(fault: Fault) -> str:
    match fault:
        case TooMany():
            return "429"
        case BadGateway(carried_out=done) | Lose(carried_out=done):
            what = "502" if isinstance(fault, BadGateway) else "lost"
            return f"{what} after the effect" if done else f"{what} before it"
        case _:
            return type(fault).__name__
