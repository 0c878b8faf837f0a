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
from tests.bench.stage_process import Exchange
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
    floors={library: ("tests.bench.floor", library) for library in ("httpx", "aiohttp")},
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

    async def wait_listening(self, since: float = 0.0) -> float:
        """Wait until the bot has begun to listen, since an instant; returns when it had."""
        return cast("float", await self._ask({"listening": since}))

    async def say(self, kind: str, *, people: int = 1, times: int = 1) -> list[list[Exchange]]:
        """Let people write at once, `times` times, and wait for every answer."""
        order: dict[str, object] = {
            "say": f"{kind} please",
            "people": people,
            "ends": LAST_WORD[kind],
            "times": times,
        }
        return convert(await self._ask(order), list[list[Exchange]])

    async def _ask(self, order: dict[str, object]) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        answer = await self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the platform's process ended; what it waited for is above")
        return json.loads(answer)


@asynccontextmanager
async def open_stage(
    platform: Platform, people: int, *, limits: str = "off"
) -> AsyncGenerator[Stage]:
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
    channels = {name: dict(stage.channel) for name, stage in stages.items()}
    return place.config(channels=channels, limits=FASTER_THAN_PEOPLE)


@asynccontextmanager
async def talking(
    place: Place, platform: Platform, name: str, people: int, *, limits: str = "off"
) -> AsyncGenerator[tuple[Daemon, Stage]]:
    """Run the daemon on a platform, and wait until it listens."""
    async with open_stage(platform, people, limits=limits) as stage:
        settings = config(place, {platform.name: stage})
        where = place.directory / f"{platform.name}-{name}"
        async with running(where, settings, secrets=stage.secrets) as daemon:
            async with asyncio.timeout(PART_S):
                await stage.wait_listening()
                await asyncio.sleep(SETTLES_S)  # mail from before the first start is left alone
                yield daemon, stage


@asynccontextmanager
async def _floor(
    place: Place, platform: Platform, stage: Stage, library: str
) -> AsyncGenerator[Daemon]:
    where = place.directory / "floor"
    where.mkdir(exist_ok=True)
    path = where / f"{stage.process.pid}.db"
    arguments = [*platform.floors[library], *stage.floor, place.model_url, str(path)]
    async with started([sys.executable, "-m", *arguments], where) as floor:
        yield floor


# --- start and idle ------------------------------------------------------------------------------


async def starting(place: Place, platform: Platform, times: int) -> None:
    """Measure the start until the bot listens and until its first answer, floors in alternation."""
    async with AsyncExitStack() as stack:
        floors: dict[str, _Start] = {}
        for library in platform.floors:
            stage = await stack.enter_async_context(open_stage(platform, 1))
            opened = partial(_floor, place, platform, stage, library)
            floors[library] = _Start(_named(platform, library), stage, opened)
        stage = await stack.enter_async_context(open_stage(platform, 1))
        where = place.directory / f"{platform.name}-start"
        settings = config(place, {platform.name: stage})
        opened = partial(running, where, settings, program=True, secrets=stage.secrets)
        ours = _Start(platform.name, stage, opened)
        for run in range(times + 1):
            for contender in (*floors.values(), ours):
                await contender.measure(counts=run > 0)
    for contender in (*floors.values(), ours):
        contender.tell(place)
    for library, floor in floors.items():
        ratio = partial(_beside, place, platform, library)
        listens = median(ours.listens) / median(floor.listens)
        ratio("start until it listens", (listens, platform.aims.start))
        memory = median(ours.memory) / median(floor.memory)
        ratio("memory after one answer", (memory, platform.aims.memory))


def _named(platform: Platform, floor: str) -> str:
    return f"{platform.name}, floor on {floor}"


def _beside(
    place: Place, platform: Platform, library: str, what: str, ratio: tuple[float, str]
) -> None:
    """Tell a ratio to a floor; the aims are to the first."""
    name, (times, aim) = f"{platform.name}, {what}: to the floor on {library}", ratio
    place.report.one(
        name, times, "times", aim=aim if library == next(iter(platform.floors)) else ""
    )


@dataclass(eq=False)
class _Start:
    """What is started again and again, and its figures."""

    name: str
    stage: Stage
    start: Callable[[], AbstractAsyncContextManager[Daemon]]
    listens: list[float] = field(default_factory=list[float])
    answered: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    memory: list[float] = field(default_factory=list[float])

    async def measure(self, *, counts: bool) -> None:
        """Start it once; the first one makes the database, warms the disk's cache, and is left out."""
        async with self.start() as daemon:
            first = await self.stage.wait_listening(daemon.began)
            used = daemon.cpu_s()
            await asyncio.sleep(0 if counts else SETTLES_S)
            exchange = (await self.stage.say("text"))[0][0]
            await asyncio.sleep(SETTLES_S)  # memory is that of one at rest
            if counts:
                self.listens.append((first - daemon.began) * 1000)
                self.answered.append((exchange.final - daemon.began) * 1000)
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
            for library in platform.floors:
                stage = await stack.enter_async_context(open_stage(platform, 1))
                floor = await stack.enter_async_context(_floor(place, platform, stage, library))
                await stage.wait_listening()
                floors[library] = _Turns(f"{_named(platform, library)}, {what}", floor, stage)
            daemon, stage = await stack.enter_async_context(
                talking(place, platform, f"turns-{kind}", 1)
            )
            ours = _Turns(f"{platform.name}, {what}", daemon, stage)
            contenders = (*floors.values(), ours)
            for contender in contenders:
                await contender.stage.say(kind, times=WARM)
            for _ in range(ROUNDS):
                for contender in contenders:
                    await contender.measure(kind, times)
        for contender in contenders:
            contender.tell(place, aim=first_ms if contender is ours else "")
        for library, floor in floors.items():
            figure = f"processor time of a {kind} turn"
            _beside(place, platform, library, figure, (ours.cpu_s / floor.cpu_s, aim))


@dataclass(eq=False)
class _Turns:
    """The daemon of one chat, and the figures of its turns."""

    name: str
    daemon: Daemon
    stage: Stage
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    cpu_s: float = 0.0
    server_s: float = 0.0

    async def measure(self, kind: str, times: int) -> None:
        cpu, server = self.daemon.cpu_s(), process_cpu_s(self.stage.process.pid)
        self.exchanges += [exchanges[0] for exchanges in await self.stage.say(kind, times=times)]
        self.cpu_s += self.daemon.cpu_s() - cpu
        self.server_s += process_cpu_s(self.stage.process.pid) - server

    def tell(self, place: Place, *, aim: str) -> None:
        report, name, exchanges, ms = (
            place.report,
            self.name,
            self.exchanges,
            1000 / len(self.exchanges),
        )
        first = [(exchange.first - exchange.delivered) * 1000 for exchange in exchanges]
        report.many(f"{name}: first text", first, "ms", aim=aim)
        report.many(
            f"{name}: final",
            [(exchange.final - exchange.delivered) * 1000 for exchange in exchanges],
            "ms",
        )
        report.one(f"{name}: processor time", self.cpu_s * ms, "ms a turn")
        report.one(f"{name}: processor time of the platform", self.server_s * ms, "ms a turn")
        shown = sum(len(exchange.calls) for exchange in exchanges)
        report.one(f"{name}: calls that show text", shown / len(exchanges), "a turn")


# --- everybody at once ---------------------------------------------------------------------------


async def burst(place: Place, platform: Platform, rounds: int) -> None:
    """Measure many chats that each get a message at once, without limits."""
    floors: dict[str, float] = {}
    chats = platform.chats
    for library in platform.floors:
        name = f"{_named(platform, library)}, {chats} chats"
        async with (
            open_stage(platform, chats) as stage,
            _floor(place, platform, stage, library) as floor,
        ):
            await stage.wait_listening()
            floors[library] = await _burst(place, name, floor, stage, chats=chats, rounds=rounds)
    async with talking(place, platform, "burst", chats) as (daemon, stage):
        name = f"{platform.name}, {chats} chats"
        rate = await _burst(place, name, daemon, stage, chats=chats, rounds=rounds)
    for library, floor_rate in floors.items():
        what = "turns a second in a burst"
        _beside(place, platform, library, what, (rate / floor_rate, platform.aims.burst))


async def _burst(
    place: Place, name: str, daemon: Daemon, stage: Stage, *, chats: int, rounds: int
) -> float:
    rates: list[float] = []
    cpus: list[float] = []
    servers: list[float] = []
    finals: list[float] = []
    for n in range(rounds + 1):
        cpu, server = daemon.cpu_s(), process_cpu_s(stage.process.pid)
        exchanges = (await stage.say("text", people=chats))[0]
        if n:  # the first one makes the conversations
            began = min(exchange.sent for exchange in exchanges)
            rates.append(chats / (max(exchange.final for exchange in exchanges) - began))
            cpus.append((daemon.cpu_s() - cpu) / chats * 1000)
            servers.append((process_cpu_s(stage.process.pid) - server) / chats * 1000)
            finals = [(exchange.final - exchange.sent) * 1000 for exchange in exchanges]
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
        stages = {
            platform.name: await stack.enter_async_context(open_stage(platform, 1))
            for platform in (TELEGRAM, DISCORD, SLACK, EMAIL)
        }
        settings = config(place, stages)
        channels = cast("dict[str, object]", settings["channels"])
        channels |= {"web": {"enabled": True}, "terminal": {"enabled": True}}
        secrets = {key: value for stage in stages.values() for key, value in stage.secrets.items()}
        for run in range(times + 1):
            async with running(
                place.directory / "six", settings, program=True, secrets=secrets
            ) as it:
                listening_at = [await stage.wait_listening(it.began) for stage in stages.values()]
                used = it.cpu_s()
                await asyncio.sleep(0 if run else SETTLES_S)
                for stage in stages.values():
                    await stage.say("text")
                await asyncio.sleep(SETTLES_S)
                if run:
                    listens.append((max(listening_at) - it.began) * 1000)
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
