"""One soak: people write, things go wrong, and at the end everything is counted."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from channels.telegram.emulator import Limits
from tests.bench.process import pss_mib
from tests.journeys.daemon_process import PROGRAM, Launch, executed
from tests.journeys.telegram.bot import Bot, bot
from tests.soak.histories import history
from tests.soak.measured import (
    Measured,
    is_disk_flat,
    is_memory_flat,
    measure,
    memory_halves,
)
from tests.soak.model import SoakModel
from tests.soak.owed import Sums
from tests.soak.people import Crowd
from tests.soak.troubles import Troubles, disobeyed, is_exceeding
from zeroclaw.host.clock import SystemClock
from zeroclaw.value import Value

PROGRESS_S = 10.0
KILLED_FOR = 0.45
"""Of the time; then one daemon lives."""
WARM_AT = 0.6
"""Of the time, when that one is warm."""
LOOKS = 100
"""At what the daemon takes, in the time that people write; those when it is warm count."""
PATIENCE_S = 120.0
"""How long the last answers may take; what is not there by then is lost."""
IN_A_TEAM = 3


class Soak(Value):
    """What is to take place.

    Attributes:
        seconds: How long people write.
        people: How many write in private; three more in a group.
        seed: What they write, and what goes wrong.
        trouble: How many times as often as usual it does.
    """

    seconds: float
    people: int
    seed: int
    trouble: float = 1.0


class Came(Value):
    """What it came to.

    Attributes:
        growth: What grew that should not, in words.
        stalls: What the daemon said of its event loop where that held everybody up.
    """

    sums: Sums
    growth: tuple[str, ...]
    stalls: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether all is well."""
        return self.sums.are_good and not self.growth and not self.stalls


async def soaked(
    soak: Soak,
    directory: Path,
    *,
    tell: Callable[[str], None],
    command: tuple[str, ...] = (PROGRAM,),
    launch: Launch = executed,
) -> Came:
    """Soak, and tell how it goes, line by line.

    Args:
        soak: What is to take place.
        directory: An empty one.
        tell: Takes each line.
        command: What runs the daemon.
        launch: How it is started.
    """
    model = SoakModel(random.Random(f"{soak.seed} model"))
    tell(f"seed {soak.seed}, {soak.people} people and a group, {soak.seconds:g} s")
    async with bot(
        directory,
        limits=Limits(),
        model=model,
        channel={"allowed_users": ["*"]},
        provider={"attempts": 5},
        approvals={"timeout_s": 3600.0},
        command=command,
        launch=launch,
    ) as here:
        return await _Run(soak=soak, here=here, directory=directory, tell=tell).run()


def stalls_in(logged: str) -> tuple[str, ...]:
    """Return the lines of a log that tell of a stall."""
    return tuple(line for line in logged.splitlines() if "loop_stalled" in line)


@dataclass(eq=False, kw_only=True)
class _Run:
    soak: Soak
    here: Bot
    directory: Path
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._looks: list[Measured] = []
        self._crowd = Crowd(
            here=self.here,
            chance=random.Random(f"{self.soak.seed} people"),
            is_over=lambda: self._passed_s() >= self.soak.seconds,
        )
        self._troubles = Troubles(
            crowd=self._crowd,
            chance=random.Random(f"{self.soak.seed} troubles"),
            kills_until=self._began + self.soak.seconds * KILLED_FOR,
            often=self.soak.trouble,
        )

    async def run(self) -> Came:
        begin = self._measured()
        async with asyncio.TaskGroup() as group:
            operator = group.create_task(self._crowd.operate())
            told = group.create_task(self._tell_progress())
            looking = group.create_task(self._look_while_warm())
            ended = group.create_task(self._write())
            await ended
            operator.cancel()
            told.cancel()
            looking.cancel()
        return self._sum_up(begin, self._measured())

    async def _write(self) -> None:
        telegram = self.here.telegram
        people = [telegram.person(f"P{number}") for number in range(self.soak.people)]
        members = [telegram.person(f"T{number}") for number in range(IN_A_TEAM)]
        team = telegram.supergroup("Team", *members)
        try:
            async with asyncio.timeout(self.soak.seconds + PATIENCE_S), asyncio.TaskGroup() as all_:
                for number, one in enumerate(people):
                    all_.create_task(self._crowd.write(one, f"p{number}"))
                for number, one in enumerate(members):
                    all_.create_task(self._crowd.write(one, f"t{number}", team))
                all_.create_task(self._troubles.make())
                all_.create_task(self._troubles.kill())
        except TimeoutError:
            self.tell(f"after {PATIENCE_S:g} s more there are still answers missing")

    # --- what is told ----------------------------------------------------------------------------

    async def _tell_progress(self) -> None:
        while True:
            await self._clock.sleep(PROGRESS_S)
            self.here.daemon.check()
            owed, made = self._crowd.books.owed, self._troubles.made
            waiting = sum(not one.is_answered() for one in owed[-10 * self.soak.people :])
            now = (
                f"{pss_mib(self.here.daemon.pid):.1f} MiB"
                if self.here.daemon.is_running
                else "down"
            )
            minutes, seconds = divmod(int(self._passed_s()), 60)
            self.tell(
                f"{minutes:3}:{seconds:02}  {len(owed)} written, {waiting} wait, "
                f"{sum(made.values())} troubles, {made['kills'] + made['restarts']} ends, "
                f"{self.here.telegram.exceeded} too early, {now}"
            )

    async def _look_while_warm(self) -> None:
        await self._clock.sleep(self.soak.seconds * WARM_AT)
        while True:
            self._looks.append(self._measured())
            await self._clock.sleep(self.soak.seconds / LOOKS)

    def _measured(self) -> Measured:
        answered = sum(one.is_answered() for one in self._crowd.books.owed)
        return measure(self.here.daemon.pid, self.directory / "data", answered)

    def _sum_up(self, begin: Measured, end: Measured) -> Came:
        middle = self._looks[0]
        earlier, later = memory_halves(self._looks)
        early = disobeyed(self.here.telegram.calls, self._troubles.lives)
        sums = self._crowd.books.sums(
            exceeded=self.here.telegram.exceeded + len(early), runs=self.here.bench.ran("knock")
        )
        growth = [
            what
            for what, is_flat in (
                ("memory", is_memory_flat(self._looks)),
                ("disk", is_disk_flat(begin, middle, end)),
            )
            if not is_flat
        ]
        made = ", ".join(f"{count} {what}" for what, count in sorted(self._troubles.made.items()))
        model = self.here.model
        self.tell(
            f"troubles: {made}, {model.faults if isinstance(model, SoakModel) else 0} of the model"
        )
        self.tell(f"messages: {len(self._crowd.books.owed)}, possible repeats: {sums.repeats}")
        for what, keys in (
            ("lost", sums.lost),
            ("doubled", sums.doubled),
            ("out of order", sums.out_of_order),
            ("run twice", sums.ran_twice),
        ):
            self.tell(f"{what}: {len(keys)} {' '.join(keys[:5])}".rstrip())
            for line in self._histories(keys[:5]):
                self.tell(line)
        self.tell(f"429s caused: {sums.exceeded}")
        exceeding = [one for one in self.here.telegram.calls if is_exceeding(one)]
        for line in (
            *early[:5],
            *(f"{one.at - self._began:8.3f}  {one!r}" for one in exceeding[:20]),
        ):
            self.tell(f"    {line}")
        self.tell(
            f"memory: {middle.pss_mib:.1f} MiB warm, {end.pss_mib:.1f} MiB at the end; the median "
            f"of the earlier half {earlier:.1f} MiB, of the later {later:.1f} MiB"
            f" ({'not ' if 'memory' in growth else ''}flat)"
        )
        self.tell(
            f"disk: {begin.disk_mib:.2f} MiB at the start, {middle.disk_mib:.2f} MiB warm, "
            f"{end.disk_mib:.2f} MiB at the end; a message took "
            f"{middle.bytes_each(begin):,.0f} bytes, then {end.bytes_each(middle):,.0f}"
            f" ({'not ' if 'disk' in growth else ''}flat)"
        )
        stalls = stalls_in(self.here.daemon.stderr)
        self.tell(f"stalls of the event loop: {len(stalls)}")
        for line in stalls[:5]:
            self.tell(line)
        return Came(sums=sums, growth=tuple(growth), stalls=stalls)

    def _histories(self, keys: tuple[str, ...]) -> list[str]:
        """Return what was done about the messages of these keys, line by line."""
        return [
            line
            for one in self._crowd.books.owed
            if one.key in keys
            for line in history(
                self.here.telegram, one, began=self._began, turns=self._troubles.turns
            )
        ]

    def _passed_s(self) -> float:
        return self._clock.monotonic() - self._began
