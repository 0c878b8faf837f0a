"""The parts of the bench that talk Telegram, to the emulator in a process of its own."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

from msgspec import convert

from channels.telegram.emulator import Limits
from tests.bench.allowed import needed_s, slot
from tests.bench.floor import CLIENTS
from tests.bench.parts import FASTER_THAN_PEOPLE, PART_S, Place
from tests.bench.process import Daemon, process_cpu_s, running, started
from tests.bench.telegram_process import Told
from zeroclaw.value import Value

TOKEN = "BENCH_TELEGRAM_TOKEN"
CHATS = 200
WRITERS = 30
WARM = 5
LAST_WORD = {"text": "word39", "tool": "word39", "slow": "ended-"}
"""What the model of the bench ends its answers with."""
PUBLISHED = Limits()
_ENDED = re.compile(r"ended-([0-9.]+)")


class Stage(Value):
    """The process in which Telegram and its people are."""

    process: asyncio.subprocess.Process
    url: str
    token: str
    people: list[str]

    async def polled(self, since: float = 0.0) -> float:
        """Wait for the first poll since an instant; returns when it came."""
        return cast("float", await self._ask({"polled": since}))

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
            message = "the emulator ended; what it waited for is above"
            raise RuntimeError(message)
        return json.loads(answer)

    def config(self, place: Place, **channel: object) -> dict[str, object]:
        """Return a configuration of the daemon that talks to these people."""
        telegram = {
            "allowed_users": self.people,
            "token": {"env": TOKEN},
            "api_base_url": self.url,
            "limits": "off",
            **channel,
        }
        return place.config(channels={"telegram": telegram}, limits=FASTER_THAN_PEOPLE)


@asynccontextmanager
async def stage(people: int, *, limits: str = "off") -> AsyncGenerator[Stage]:
    """Open Telegram with so many people."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bench.telegram_process",
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
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def _talking(
    place: Place, name: str, people: int, *, limits: str = "off"
) -> AsyncGenerator[tuple[Daemon, Stage]]:
    async with stage(people, limits=limits) as here:
        config, secrets = here.config(place, limits=limits), {TOKEN: here.token}
        async with running(place.directory / name, config, secrets=secrets) as daemon:
            async with asyncio.timeout(PART_S):
                await here.polled()
                yield daemon, here


# --- start and idle ------------------------------------------------------------------------------


async def starting(place: Place, times: int) -> None:
    """Measure the start to the first poll, and to the answer of what waited meanwhile."""
    floors: list[tuple[str, float, float]] = []
    for client in CLIENTS:
        async with stage(1) as here:
            opened = partial(_floor, place, here, client)
            found = await _starting(place, f"floor on {client}", here, opened, times=times)
            floors.append((client, *found))
    async with stage(1) as here:
        config, secrets = here.config(place), {TOKEN: here.token}
        where = place.directory / "telegram-start"
        polled, memory = await _starting(
            place,
            "telegram",
            here,
            lambda: running(where, config, program=True, secrets=secrets),
            times=times,
            aims=("< 250", "< 55"),
        )
    for client, floor_polled, floor_memory in floors:
        _beside(place, client, "start to the first poll", polled / floor_polled, "<= 1.35")
        _beside(place, client, "memory after one answer", memory / floor_memory, "<= 1.8")


def _beside(place: Place, client: str, what: str, ratio: float, aim: str) -> None:
    """Tell a ratio to a floor; the aims are to the one on httpx."""
    name = f"telegram, {what}: to the floor on {client}"
    place.report.one(name, ratio, "times", aim=aim if client == "httpx" else "")


async def _starting(
    place: Place,
    name: str,
    here: Stage,
    start: Callable[[], AbstractAsyncContextManager[Daemon]],
    *,
    times: int,
    aims: tuple[str, str] = ("", ""),
) -> tuple[float, float]:
    polled: list[float] = []
    answered: list[float] = []
    cpu: list[float] = []
    idle: list[float] = []
    for run in range(times + 1):
        async with asyncio.TaskGroup() as group:
            saying = group.create_task(here.say("text"))
            async with start() as daemon:
                told = (await saying)[0][0]
                first = await here.polled(daemon.began)
                await asyncio.sleep(0.5)  # memory is that of one at rest
                if run:  # the first one makes the database and warms the disk's cache
                    polled.append((first - daemon.began) * 1000)
                    answered.append((told.final - daemon.began) * 1000)
                    cpu.append(daemon.ready_cpu_s * 1000)
                    idle.append(daemon.pss_mib())
    report = place.report
    report.many(f"{name}: start to the first poll", polled, "ms", aim=aims[0])
    report.many(f"{name}: start to the first answer", answered, "ms")
    report.many(f"{name}: start to ready, processor time", cpu, "ms")
    report.many(f"{name}: memory after one answer, PSS", idle, "MiB", aim=aims[1])
    return median(polled), median(idle)


# --- turns one after another ---------------------------------------------------------------------


async def turns(place: Place, times: int) -> None:
    """Measure turns of one chat, those of the floors beside them."""
    floors: dict[str, float] = {}
    for client in CLIENTS:
        name = f"floor on {client}, text"
        async with stage(1) as here, _floor(place, here, client) as floor:
            floors[client] = await _turns(place, name, floor, here, kind="text", times=times)
    async with _talking(place, "telegram-turns", 1) as (daemon, here):
        ours = await _turns(place, "telegram, text", daemon, here, kind="text", times=times)
    for client, floor_ms in floors.items():
        _beside(place, client, "processor time of a text turn", ours / floor_ms, "<= 1.0")
    async with _talking(place, "telegram-tools", 1) as (daemon, here):
        await _turns(place, "telegram, one tool", daemon, here, kind="tool", times=times)


async def _turns(
    place: Place, name: str, daemon: Daemon, here: Stage, *, kind: str, times: int
) -> float:
    await here.say(kind, times=WARM)
    cpu, server = daemon.cpu_s(), process_cpu_s(here.process.pid)
    told = [some[0] for some in await here.say(kind, times=times)]
    cpu, server = daemon.cpu_s() - cpu, process_cpu_s(here.process.pid) - server
    report = place.report
    report.many(f"{name}: first text", [(one.first - one.delivered) * 1000 for one in told], "ms")
    report.many(f"{name}: final", [(one.final - one.delivered) * 1000 for one in told], "ms")
    report.one(f"{name}: processor time", cpu / times * 1000, "ms a turn")
    report.one(f"{name}: processor time of the emulator", server / times * 1000, "ms a turn")
    shown = sum(len(one.calls) for one in told)
    report.one(f"{name}: calls that show text", shown / times, "a turn")
    return cpu / times * 1000


@asynccontextmanager
async def _floor(place: Place, here: Stage, client: str) -> AsyncGenerator[Daemon]:
    where = place.directory / "floor"
    where.mkdir(exist_ok=True)
    path = where / f"{here.url.rpartition(':')[2]}.db"
    told = [client, here.url, here.token, place.model_url, str(path)]
    async with started([sys.executable, "-m", "tests.bench.floor", *told], where) as floor:
        yield floor


# --- everybody at once ---------------------------------------------------------------------------


async def burst(place: Place, rounds: int) -> None:
    """Measure 200 chats that each get a message at once, without limits."""
    floors: dict[str, float] = {}
    for client in CLIENTS:
        async with stage(CHATS) as here, _floor(place, here, client) as floor:
            name = f"floor on {client}, 200 chats"
            floors[client] = await _burst(place, name, floor, here, rounds)
    async with _talking(place, "telegram-burst", CHATS) as (daemon, here):
        rate = await _burst(place, "telegram, 200 chats", daemon, here, rounds)
    for client, floor_rate in floors.items():
        _beside(place, client, "turns a second in a burst", rate / floor_rate, ">= 2.0")


async def _burst(place: Place, name: str, daemon: Daemon, here: Stage, rounds: int) -> float:
    rates: list[float] = []
    cpus: list[float] = []
    servers: list[float] = []
    finals: list[float] = []
    for n in range(rounds + 1):
        cpu, server = daemon.cpu_s(), process_cpu_s(here.process.pid)
        told = (await here.say("text", people=CHATS))[0]
        if n:  # the first one makes the conversations
            began = min(one.said for one in told)
            rates.append(CHATS / (max(one.final for one in told) - began))
            cpus.append((daemon.cpu_s() - cpu) / CHATS * 1000)
            servers.append((process_cpu_s(here.process.pid) - server) / CHATS * 1000)
            finals = [(one.final - one.said) * 1000 for one in told]
    report = place.report
    report.many(f"{name}: turns", rates, "a second")
    report.many(f"{name}: processor time", cpus, "ms a turn")
    report.many(f"{name}: processor time of the emulator", servers, "ms a turn")
    report.many(f"{name}: final", finals, "ms")
    report.one(f"{name}: peak memory, RSS", daemon.peak_rss_mib(), "MiB")
    return median(rates)


async def limited(place: Place) -> None:
    """Measure 200 chats at once within the limits that Telegram publishes."""
    async with _talking(place, "telegram-limits", CHATS, limits="published") as (_, here):
        # What the limit needs is reckoned from a full bucket; after a start ours counts as spent.
        await asyncio.sleep(PUBLISHED.account.burst / PUBLISHED.account.per_s)
        told = (await here.say("text", people=CHATS))[0]
    calls = _counted(told)
    took = max(one.final for one in told) - min(one.delivered for one in told)
    needed = needed_s(len(calls), PUBLISHED.account)
    report, name = place.report, "telegram, 200 chats within limits"
    report.one(f"{name}: calls refused (429)", _refused(told), "", aim="0")
    # One for each answer is the least; more of them would make the ratio smaller, not better.
    report.one(f"{name}: calls that count", len(calls), "", aim=str(CHATS))
    report.one(f"{name}: last answer", took, "s")
    report.one(f"{name}: what the limit needs for them", needed, "s")
    report.one(f"{name}: ratio", took / needed, "", aim="< 1.2")


def _counted(told: Sequence[Told]) -> list[float]:
    """Return when calls were made that count against the limits, in order."""
    return sorted(
        call.at
        for one in told
        for call in one.calls
        if PUBLISHED.counts(call.kind) and not call.refused
    )


def _refused(told: Sequence[Told]) -> int:
    return sum(call.refused for one in told for call in one.calls)


# --- a model that writes slowly ------------------------------------------------------------------


async def streams(place: Place, times: int) -> None:
    """Measure how 200 tokens, 20 ms apart, are seen: by one person alone, and by 30 at once."""
    for limits in ("off", "published"):
        words = "no limits" if limits == "off" else "limits"
        name = f"telegram-slow-{limits}"
        async with _talking(place, name, WRITERS, limits=limits) as (_, here):
            await here.say("text")  # so that nothing is done for the first time
            alone: list[list[Told]] = []
            for _ in range(times):
                await asyncio.sleep(PUBLISHED.chat.burst / PUBLISHED.chat.per_s)  # buckets refill
                alone += await here.say("slow")
            _tell(place, f"one slow answer, {words}", alone, limits, aim="< 50")
            together = await here.say("slow", people=WRITERS)
            _tell(place, f"30 slow answers, {words}", together, limits)


def _tell(
    place: Place, name: str, rounds: Sequence[Sequence[Told]], limits: str, *, aim: str = ""
) -> None:
    told = [one for some in rounds for one in some]
    report = place.report
    report.many(f"{name}: first text", [(one.first - one.delivered) * 1000 for one in told], "ms")
    report.many(f"{name}: calls that show text", [float(len(one.calls)) for one in told], "")
    behind = [(one.final - _ended(one)) * 1000 for one in told]
    report.many(
        f"{name}: final behind the model's end", behind, "ms", aim="" if limits != "off" else aim
    )
    if limits == "off":
        return
    late = [(one.final - _slot(one, some)) * 1000 for some in rounds for one in some]
    report.many(f"{name}: final behind the first slot", late, "ms", aim=aim)
    report.one(f"{name}: calls refused (429)", _refused(told), "", aim="0")


def _ended(told: Told) -> float:
    found = _ENDED.search(told.text)
    assert found is not None
    return float(found.group(1))


def _slot(told: Told, together: Sequence[Told]) -> float:
    """Return when the limits of the chat and of the account allowed a final at the soonest."""
    end = _ended(told)
    chat = [at for at in _counted([told]) if at < told.final]
    account = [at for at in _counted(together) if at < told.final]
    return max(slot(chat, PUBLISHED.chat, end), slot(account, PUBLISHED.account, end))
