"""The parts of the bench that talk a platform, to its stand-in in a process of its own.

A channel is a small description; what is measured is the same for all: the start, turns one after
another, and many chats at once, each beside floors in the same run.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

from msgspec import convert

from tests.bench.parts import FASTER_THAN_PEOPLE, PART_S, Place
from tests.bench.process import Daemon, process_cpu_s, running, started
from tests.bench.stage_process import Told
from zeroclaw.value import Value

WARM = 5
SETTLES_S = 0.5
LAST_WORD = {"text": "word39", "tool": "word39", "slow": "ended-"}
"""What the model of the bench ends its answers with."""


class Aims(Value):
    """What is aimed at, in words; ratios are to the first floor, in the same run."""

    start: str = "<= 1.35"
    memory: str = ""
    cpu: str = "<= 1.3"
    tool_cpu: str = ""
    burst: str = ""
    first_ms: str = "<= 70"


class Platform(Value):
    """A channel under measurement.

    Attributes:
        name: Of the channel.
        process: Plays the platform; see `tests.bench.stage_process`.
        floors: Commands of Python for each floor, by what tells it from others.
        chats: That write at once.
        times: Turns are this much fewer than of others; of what answers slowly.
    """

    name: str
    process: str = "tests.bench.platform_process"
    floors: Mapping[str, Sequence[str]]
    chats: int = 100
    times: float = 1.0
    aims: Aims = Aims()


TELEGRAM = Platform(
    name="telegram",
    process="tests.bench.telegram_process",
    floors={one: ("tests.bench.floor", one) for one in ("httpx", "aiohttp")},
    chats=200,
    aims=Aims(memory="<= 1.8", cpu="<= 1.0", tool_cpu="<= 1.2", burst=">= 2.0", first_ms=""),
)


def _floors(sdk: str, platform: str) -> Mapping[str, Sequence[str]]:
    """Return a floor for each client of the model, the one of Telegram's first floor first."""
    clients = ("httpx", "aiohttp")
    return {f"{sdk} and {client}": ("tests.bench.floors", platform, client) for client in clients}


DISCORD = Platform(name="discord", floors=_floors("discord.py", "discord"))
SLACK = Platform(name="slack", floors=_floors("slack-bolt", "slack"))
EMAIL = Platform(
    name="email",
    floors=_floors("aioimaplib", "email"),
    times=0.3,
    aims=Aims(first_ms=""),  # what two servers need for a mail is more
)


class Stage(Value):
    """The process in which a platform and its people are."""

    process: asyncio.subprocess.Process
    channel: Mapping[str, object]
    secrets: Mapping[str, str]
    floor: Sequence[str]

    async def heard(self, since: float = 0.0) -> float:
        """Wait until the bot has begun to listen, since an instant; returns when it had."""
        return cast("float", await self._ask({"heard": since}))

    async def say(self, kind: str, *, people: int = 1, times: int = 1) -> list[list[Told]]:
        """Let people write at once, as often as told, and wait for every answer."""
        order: dict[str, object] = {
            "say": f"{kind} please",
            "people": people,
            "ends": LAST_WORD[kind],
            "times": times,
        }
        return convert(await self._ask(order), list[list[Told]])

    async def _ask(self, order: dict[str, object]) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        answer = await self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the platform's process ended; what it waited for is above")
        return json.loads(answer)


@asynccontextmanager
async def stage(platform: Platform, people: int, *, limits: str = "off") -> AsyncGenerator[Stage]:
    """Open a platform with so many people."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        platform.process,
        platform.name,
        limits,
        str(people),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=64 * 1024 * 1024,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        facts = json.loads(await process.stdout.readline())
        yield Stage(process=process, **facts)
    finally:
        # At its input's end it stops what it has started.
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(PART_S):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def config(place: Place, stages: Mapping[str, Stage]) -> dict[str, object]:
    """Return a configuration of the daemon with these channels."""
    channels = {name: dict(one.channel) for name, one in stages.items()}
    return place.config(channels=channels, limits=FASTER_THAN_PEOPLE)


@asynccontextmanager
async def talking(
    place: Place, platform: Platform, name: str, people: int, *, limits: str = "off"
) -> AsyncGenerator[tuple[Daemon, Stage]]:
    """Run the daemon on a platform, and wait until it listens."""
    async with stage(platform, people, limits=limits) as here:
        told = config(place, {platform.name: here})
        where = place.directory / f"{platform.name}-{name}"
        async with running(where, told, secrets=here.secrets) as daemon:
            async with asyncio.timeout(PART_S):
                await here.heard()
                await asyncio.sleep(SETTLES_S)  # mail from before the first start is left alone
                yield daemon, here


@asynccontextmanager
async def _floor(
    place: Place, platform: Platform, here: Stage, which: str
) -> AsyncGenerator[Daemon]:
    where = place.directory / "floor"
    where.mkdir(exist_ok=True)
    path = where / f"{here.process.pid}.db"
    told = [*platform.floors[which], *here.floor, place.model_url, str(path)]
    async with started([sys.executable, "-m", *told], where) as floor:
        yield floor


# --- start and idle ------------------------------------------------------------------------------


async def starting(place: Place, platform: Platform, times: int) -> None:
    """Measure the start until the bot listens and until its first answer, floors in alternation."""
    async with AsyncExitStack() as stack:
        floors: dict[str, _Start] = {}
        for which in platform.floors:
            here = await stack.enter_async_context(stage(platform, 1))
            opened = partial(_floor, place, platform, here, which)
            floors[which] = _Start(_named(platform, which), here, opened)
        here = await stack.enter_async_context(stage(platform, 1))
        where = place.directory / f"{platform.name}-start"
        told = config(place, {platform.name: here})
        opened = partial(running, where, told, program=True, secrets=here.secrets)
        ours = _Start(platform.name, here, opened)
        for run in range(times + 1):
            for one in (*floors.values(), ours):
                await one.measure(counts=run > 0)
    for one in (*floors.values(), ours):
        one.tell(place)
    for which, floor in floors.items():
        ratio = partial(_beside, place, platform, which)
        listens = median(ours.listens) / median(floor.listens)
        ratio("start until it listens", (listens, platform.aims.start))
        memory = median(ours.memory) / median(floor.memory)
        ratio("memory after one answer", (memory, platform.aims.memory))


def _named(platform: Platform, floor: str) -> str:
    return f"{platform.name}, floor on {floor}"


def _beside(
    place: Place, platform: Platform, which: str, what: str, ratio: tuple[float, str]
) -> None:
    """Tell a ratio to a floor; the aims are to the first."""
    name, (times, aim) = f"{platform.name}, {what}: to the floor on {which}", ratio
    place.report.one(name, times, "times", aim=aim if which == next(iter(platform.floors)) else "")


@dataclass(eq=False)
class _Start:
    """What is started again and again, and its figures."""

    name: str
    here: Stage
    start: Callable[[], AbstractAsyncContextManager[Daemon]]
    listens: list[float] = field(default_factory=list[float])
    answered: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    memory: list[float] = field(default_factory=list[float])

    async def measure(self, *, counts: bool) -> None:
        """Start it once; the first one makes the database, warms the disk's cache, and is left out."""
        async with self.start() as daemon:
            first = await self.here.heard(daemon.began)
            used = daemon.cpu_s()
            await asyncio.sleep(0 if counts else SETTLES_S)
            told = (await self.here.say("text"))[0][0]
            await asyncio.sleep(SETTLES_S)  # memory is that of one at rest
            if counts:
                self.listens.append((first - daemon.began) * 1000)
                self.answered.append((told.final - daemon.began) * 1000)
                self.cpu.append(used * 1000)
                self.memory.append(daemon.pss_mib())

    def tell(self, place: Place) -> None:
        report, name = place.report, self.name
        report.many(f"{name}: start until it listens", self.listens, "ms")
        report.many(f"{name}: start to the first answer", self.answered, "ms")
        report.many(f"{name}: start until it listens, processor time", self.cpu, "ms")
        report.many(f"{name}: memory after one answer, PSS", self.memory, "MiB")


# --- turns one after another ---------------------------------------------------------------------

ROUNDS = 10
"""Turns are measured in so many rounds, for a machine's speed changes within one run."""


async def turns(place: Place, platform: Platform, times: int) -> None:
    """Measure turns of one chat, in alternation with those of the floors: in words, and with a tool."""
    times = max(round(times * platform.times / ROUNDS), 1)
    for kind, what, aim, first_ms in (
        ("text", "text", platform.aims.cpu, platform.aims.first_ms),
        ("tool", "one tool", platform.aims.tool_cpu, ""),
    ):
        async with AsyncExitStack() as stack:
            floors: dict[str, _Turns] = {}
            for which in platform.floors:
                here = await stack.enter_async_context(stage(platform, 1))
                floor = await stack.enter_async_context(_floor(place, platform, here, which))
                await here.heard()
                floors[which] = _Turns(f"{_named(platform, which)}, {what}", floor, here)
            daemon, here = await stack.enter_async_context(
                talking(place, platform, f"turns-{kind}", 1)
            )
            ours = _Turns(f"{platform.name}, {what}", daemon, here)
            everyone = (*floors.values(), ours)
            for command in everyone:
                await command.here.say(kind, times=WARM)
            for _ in range(ROUNDS):
                for command in everyone:
                    await command.measure(kind, times)
        for command in everyone:
            command.tell(place, aim=first_ms if command is ours else "")
        for which, floor in floors.items():
            told = f"processor time of a {kind} turn"
            _beside(place, platform, which, told, (ours.cpu_s / floor.cpu_s, aim))


@dataclass(eq=False)
class _Turns:
    """Who answers one chat, and the figures of its turns."""

    name: str
    daemon: Daemon
    here: Stage
    told: list[Told] = field(default_factory=list[Told])
    cpu_s: float = 0.0
    server_s: float = 0.0

    async def measure(self, kind: str, times: int) -> None:
        cpu, server = self.daemon.cpu_s(), process_cpu_s(self.here.process.pid)
        self.told += [some[0] for some in await self.here.say(kind, times=times)]
        self.cpu_s += self.daemon.cpu_s() - cpu
        self.server_s += process_cpu_s(self.here.process.pid) - server

    def tell(self, place: Place, *, aim: str) -> None:
        report, name, told, ms = place.report, self.name, self.told, 1000 / len(self.told)
        first = [(one.first - one.delivered) * 1000 for one in told]
        report.many(f"{name}: first text", first, "ms", aim=aim)
        report.many(f"{name}: final", [(one.final - one.delivered) * 1000 for one in told], "ms")
        report.one(f"{name}: processor time", self.cpu_s * ms, "ms a turn")
        report.one(f"{name}: processor time of the platform", self.server_s * ms, "ms a turn")
        shown = sum(len(one.calls) for one in told)
        report.one(f"{name}: calls that show text", shown / len(told), "a turn")


# --- everybody at once ---------------------------------------------------------------------------


async def burst(place: Place, platform: Platform, rounds: int) -> None:
    """Measure many chats that each get a message at once, without limits."""
    floors: dict[str, float] = {}
    chats = platform.chats
    for which in platform.floors:
        name = f"{_named(platform, which)}, {chats} chats"
        async with stage(platform, chats) as here, _floor(place, platform, here, which) as floor:
            await here.heard()
            floors[which] = await _burst(place, name, floor, here, chats=chats, rounds=rounds)
    async with talking(place, platform, "burst", chats) as (daemon, here):
        name = f"{platform.name}, {chats} chats"
        rate = await _burst(place, name, daemon, here, chats=chats, rounds=rounds)
    for which, floor_rate in floors.items():
        what = "turns a second in a burst"
        _beside(place, platform, which, what, (rate / floor_rate, platform.aims.burst))


async def _burst(
    place: Place, name: str, daemon: Daemon, here: Stage, *, chats: int, rounds: int
) -> float:
    rates: list[float] = []
    cpus: list[float] = []
    servers: list[float] = []
    finals: list[float] = []
    for n in range(rounds + 1):
        cpu, server = daemon.cpu_s(), process_cpu_s(here.process.pid)
        told = (await here.say("text", people=chats))[0]
        if n:  # the first one makes the conversations
            began = min(one.said for one in told)
            rates.append(chats / (max(one.final for one in told) - began))
            cpus.append((daemon.cpu_s() - cpu) / chats * 1000)
            servers.append((process_cpu_s(here.process.pid) - server) / chats * 1000)
            finals = [(one.final - one.said) * 1000 for one in told]
    report = place.report
    report.many(f"{name}: turns", rates, "a second")
    report.many(f"{name}: processor time", cpus, "ms a turn")
    report.many(f"{name}: processor time of the platform", servers, "ms a turn")
    report.many(f"{name}: final", finals, "ms")
    report.one(f"{name}: peak memory, RSS", daemon.peak_rss_mib(), "MiB")
    return median(rates)


# --- all in one daemon ---------------------------------------------------------------------------


async def six(place: Place, times: int) -> None:
    """Measure one daemon with all channels on: when the last one listens, and its memory."""
    listens: list[float] = []
    ready: list[float] = []
    cpu: list[float] = []
    share: list[float] = []
    peak: list[float] = []
    async with AsyncExitStack() as stack:
        here = {
            one.name: await stack.enter_async_context(stage(one, 1))
            for one in (TELEGRAM, DISCORD, SLACK, EMAIL)
        }
        told = config(place, here)
        channels = cast("dict[str, object]", told["channels"])
        channels |= {"web": {"enabled": True}, "terminal": {"enabled": True}}
        secrets = {key: value for one in here.values() for key, value in one.secrets.items()}
        for run in range(times + 1):
            async with running(place.directory / "six", told, program=True, secrets=secrets) as it:
                heard = [await one.heard(it.began) for one in here.values()]
                used = it.cpu_s()
                await asyncio.sleep(0 if run else SETTLES_S)
                for one in here.values():
                    await one.say("text")
                await asyncio.sleep(SETTLES_S)
                if run:
                    listens.append((max(heard) - it.began) * 1000)
                    ready.append(it.ready_s * 1000)
                    cpu.append(used * 1000)
                    share.append(it.pss_mib())
                    peak.append(it.peak_rss_mib())
    report = place.report
    report.many("six channels: start to ready", ready, "ms")
    report.many("six channels: start until all listen", listens, "ms")
    report.many("six channels: start until all listen, processor time", cpu, "ms")
    report.many("six channels: memory after an answer on each, PSS", share, "MiB", aim="<= 110")
    report.many("six channels: peak memory, RSS", peak, "MiB")
