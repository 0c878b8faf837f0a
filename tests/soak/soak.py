"""One soak: people write, things go wrong, and at the end everything is counted."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.bench.process import pss_mib
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, PROGRAM, DaemonProcess, Launch, spawn
from tests.journeys.harness import ends_cleanly, open_harness
from tests.soak.expected import Sums
from tests.soak.measured import Measured, is_disk_flat, is_memory_flat, measure, memory_halves
from tests.soak.model import SoakModel
from tests.soak.on_discord import OnDiscord
from tests.soak.on_email import OnEmail
from tests.soak.on_slack import OnSlack
from tests.soak.on_telegram import OnTelegram
from tests.soak.on_this_machine import OnTheTerminal, OnTheWeb
from tests.soak.people import Crowd
from tests.soak.place import Place, Tables
from tests.soak.troubles import Troubles
from zeroclaw.host.clock import SystemClock
from zeroclaw.value import Value

PROGRESS_S = 10.0
KILLED_FOR = 0.45
"""Of the time; then one daemon lives."""
WARM_AT = 0.6
"""Of the time, when that one is warm."""
LOOKS = 100
"""At what the daemon takes, in the time that people write; those when it is warm count."""
PLACES: Mapping[str, Callable[[random.Random], Place]] = {
    "telegram": OnTelegram,
    "discord": lambda chance: OnDiscord(chance=chance),
    "slack": lambda chance: OnSlack(chance=chance),
    "email": lambda chance: OnEmail(chance=chance),
    "web": lambda chance: OnTheWeb(chance=chance),
    "terminal": lambda chance: OnTheTerminal(chance=chance),
}
OPERATED = ("slack", "telegram", "discord")
"""Where Olga is: on the first of these that there is."""


class Soak(Value):
    """The plan of a soak.

    Attributes:
        seconds: How long people write.
        people: How many write in private, on each platform; three more in a group on Telegram.
        channels: Where.
        seed: What they write, and what goes wrong.
        trouble: How many times as often as usual it does.
    """

    seconds: float
    people: int
    seed: int
    trouble: float = 1.0
    channels: Sequence[str] = ("telegram",)


class SoakResult(Value):
    """What the soak found.

    Attributes:
        growth: What grew that should not, in words.
        stalls: What the daemon said of its event loop where that delayed every chat.
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
    launch: Launch = spawn,
) -> SoakResult:
    """Soak, and tell how it goes, line by line.

    Args:
        soak: The plan of a soak.
        directory: An empty one.
        tell: Takes each line.
        command: What runs the daemon.
        launch: How it is started.
    """
    tell(
        f"seed {soak.seed}, {soak.people} people on each of {', '.join(soak.channels)}, "
        f"{soak.seconds:g} s"
    )
    async with _open_world(soak, directory, command=command, launch=launch) as world:
        return await _Run(soak=soak, world=world, directory=directory, tell=tell).run()


@dataclass(frozen=True, kw_only=True)
class _World:
    """Where it takes place."""

    places: Sequence[Place]
    operator: Place | None
    model: SoakModel
    bench: Bench
    daemon: DaemonProcess


@asynccontextmanager
async def _open_world(
    soak: Soak, directory: Path, *, command: tuple[str, ...], launch: Launch
) -> AsyncGenerator[_World]:
    """Open every place, and the daemon when they stand; then stop it and check that it ends."""
    places = [PLACES[channel](random.Random(f"{soak.seed} {channel}")) for channel in soak.channels]
    model = SoakModel(random.Random(f"{soak.seed} model"))
    async with open_harness(directory, model, lambda: None) as harness, AsyncExitStack() as stack:
        group = harness.group
        tables = {
            place.name: await place.open(stack, group, soak.people, directory) for place in places
        }
        operated = next((channel for channel in OPERATED if channel in tables), "")
        secrets = {
            key: value for channel in tables.values() for key, value in channel.secrets.items()
        }
        daemon = harness.daemon(
            _tables(tables, operated), environment=secrets, command=command, launch=launch
        )
        world = _World(
            places=places,
            operator=next((place for place in places if place.name == operated), None),
            model=model,
            bench=harness.bench,
            daemon=daemon,
        )
        async with ends_cleanly(daemon, secrets):
            await daemon.start()
            yield world


def _tables(tables: Mapping[str, Tables], operated: str) -> Mapping[str, object]:
    """Return the configuration; who writes on several platforms is one person."""
    most = max((len(channel.people) for channel in tables.values()), default=0)
    people: list[dict[str, object]] = [
        {
            "name": f"p{number}",
            "ids": [
                f"{name}:{channel.people[number]}"
                for name, channel in tables.items()
                if number < len(channel.people)
            ],
        }
        for number in range(most)
    ]
    if operated:
        olga = f"{operated}:{tables[operated].operator}"
        people.append({"name": "olga", "ids": [olga], "roles": ["operator"]})
    return {
        "provider": {"attempts": 5},
        "approvals": {"timeout_s": 3600.0},
        "channels": {name: dict(channel.channel) for name, channel in tables.items()},
        "people": people,
    }


def stalls_in(logged: str) -> tuple[str, ...]:
    """Return the lines of a log that tell of a stall."""
    return tuple(line for line in logged.splitlines() if "loop_stalled" in line)


@dataclass(eq=False, kw_only=True)
class _Run:
    soak: Soak
    world: _World
    directory: Path
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._looks: list[Measured] = []
        self._crowd = Crowd(
            places=self.world.places,
            operator=self.world.operator,
            chance=random.Random(f"{self.soak.seed} people"),
            is_over=lambda: self._passed_s() >= self.soak.seconds,
        )
        self._troubles = Troubles(
            crowd=self._crowd,
            daemon=self.world.daemon,
            chance=random.Random(f"{self.soak.seed} troubles"),
            kills_until=self._began + self.soak.seconds * KILLED_FOR,
            often=self.soak.trouble,
        )

    async def run(self) -> SoakResult:
        async with asyncio.TaskGroup() as group:
            observers = [group.create_task(self._crowd.look())]
            await self._all_heard()
            begin = self._measured()
            observers += [
                group.create_task(self._tell_progress()),
                group.create_task(self._look_while_warm()),
            ]
            await self._write()
            for task in observers:
                task.cancel()
        # In a thread, for it reads mailboxes as they lie on disk.
        return await asyncio.to_thread(self._sum_up, begin, self._measured())

    async def _all_heard(self) -> None:
        """Wait until the bot listens everywhere."""
        async with asyncio.timeout(PATIENCE_S):
            for place in self.world.places:
                await self._crowd.until(
                    lambda place=place: self.world.daemon.check() or place.is_connected
                )

    async def _write(self) -> None:
        try:
            async with asyncio.timeout(self.soak.seconds + PATIENCE_S), asyncio.TaskGroup() as all_:
                for place in self.world.places:
                    for line in place.lines:
                        all_.create_task(self._crowd.write(line))
                    all_.create_task(self._troubles.make(place))
                all_.create_task(self._troubles.kill())
        except TimeoutError:
            self.tell(f"after {PATIENCE_S:g} s more there are still answers missing")

    # --- the report ----------------------------------------------------------------------------

    async def _tell_progress(self) -> None:
        while True:
            await self._clock.sleep(PROGRESS_S)
            self.world.daemon.check()
            expected, made = self._crowd.books.expected, self._troubles.made
            waiting = sum(not answer.is_answered() for answer in expected[-10 * self.soak.people :])
            now = "down"
            with suppress(FileNotFoundError, ProcessLookupError):  # killed at this moment
                if self.world.daemon.is_running:
                    now = f"{pss_mib(self.world.daemon.pid):.1f} MiB"
            minutes, seconds = divmod(int(self._passed_s()), 60)
            self.tell(
                f"{minutes:3}:{seconds:02}  {len(expected)} written, {waiting} wait, "
                f"{sum(made.values())} troubles, {made['kills'] + made['restarts']} ends, {now}"
            )

    async def _look_while_warm(self) -> None:
        await self._clock.sleep(self.soak.seconds * WARM_AT)
        while True:
            self._looks.append(self._measured())
            await self._clock.sleep(self.soak.seconds / LOOKS)

    def _measured(self) -> Measured:
        answered = sum(answer.is_answered() for answer in self._crowd.books.expected)
        return measure(self.world.daemon.pid, self.directory / "data", answered)

    def _sum_up(self, begin: Measured, end: Measured) -> SoakResult:
        middle = self._looks[0]
        earlier, later = memory_halves(self._looks)
        early = [place.too_early(self._troubles.lives) for place in self.world.places]
        orders = {
            line.chat.id: order
            for place, order in [(place, place.order()) for place in self.world.places]
            for line in place.lines
        }
        sums = self._crowd.books.sums(
            exceeded=sum(count for count, _ in early),
            runs=self.world.bench.ran("knock"),
            order=lambda answer: orders[answer.chat.id](answer.action),
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
        self.tell(f"troubles: {made}, {self.world.model.faults} of the model")
        expected = self._crowd.books.expected
        counts = [
            f"{sum(answer.chat is line.chat for answer in expected for line in place.lines)} on {place.name}"
            for place in self.world.places
        ]
        self.tell(
            f"messages: {len(expected)} ({', '.join(counts)}), possible repeats: {sums.repeats}"
        )
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
        for _, lines in early:
            for line in lines:
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
        stalls = stalls_in(self.world.daemon.stderr)
        self.tell(f"stalls of the event loop: {len(stalls)}")
        for line in stalls[:5]:
            self.tell(line)
        return SoakResult(sums=sums, growth=tuple(growth), stalls=stalls)

    def _histories(self, keys: tuple[str, ...]) -> list[str]:
        """Return what was done about the messages of these keys, line by line."""
        places = {line.chat.id: place for place in self.world.places for line in place.lines}
        return [
            line
            for answer in self._crowd.books.expected
            if answer.key in keys
            for line in places[answer.chat.id].history(
                answer.key,
                answer.chat,
                answer.action,
                began=self._began,
                turns=self._troubles.turns,
            )
        ]

    def _passed_s(self) -> float:
        return self._clock.monotonic() - self._began
