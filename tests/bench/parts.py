"""The parts of the bench, each of which adds its figures to the report."""

import asyncio
import json
import os
import statistics
import time
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from tests.bench.figures import Report
from tests.bench.front import Front, SentMessage
from tests.bench.process import Daemon, running
from tests.journeys.configuration import merged
from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import Query, ToolFacts
from zeroclaw.gate.policy import PolicySet, Statement, StatementEffect
from zeroclaw.gate.shipped import assemble
from zeroclaw.value import Value

CHATS = 200
PART_S = 90.0  # a part that takes longer stands still


class Place(Value):
    """Where a run of the bench happens."""

    directory: Path
    model_url: str
    report: Report

    def config(self, **tables: object) -> dict[str, object]:
        """Return a configuration that uses the model of the bench."""
        provider = {"kind": "openai", "base_url": self.model_url, "model": "bench"}
        return {"provider": provider, "listener": {"port": 0}, **tables}


async def starting(place: Place, times: int) -> None:
    """Measure process start to ready and idle memory, of the daemon as people run it."""
    config = place.config(channels={"web": {"enabled": True}, "terminal": {"enabled": True}})
    ready: list[float] = []
    cpu: list[float] = []
    idle: list[float] = []
    for run in range(times + 1):
        async with running(place.directory / "start", config, program=True) as daemon:
            await asyncio.sleep(0.5)
            if run:  # the first one makes the database and warms the disk's cache
                ready.append(daemon.ready_s * 1000)
                cpu.append(daemon.ready_cpu_s * 1000)
                idle.append(daemon.pss_mib())
    place.report.many("start to ready", ready, "ms", aim="< 150")
    place.report.many("start to ready, processor time", cpu, "ms")
    place.report.many("idle memory, PSS", idle, "MiB", aim="< 50")


FASTER_THAN_PEOPLE = {
    "person_per_minute": 6000,
    "person_burst": 10_000,
    "conversation_per_minute": 6000,
    "conversation_burst": 10_000,
    "daily_messages": 1_000_000,
}
"""Limits that count and never bite."""


@asynccontextmanager
async def _talking(
    place: Place,
    name: str,
    chats: list[str],
    *,
    provider: Mapping[str, object] | None = None,
    within_s: float = PART_S,
    channel: Mapping[str, object] | None = None,
) -> AsyncGenerator[tuple[Daemon, Front]]:
    async with Front() as front:
        loopback = {"port": front.port, "allowed_users": chats, **(channel or {})}
        config = place.config(channels={"loopback": loopback}, limits=FASTER_THAN_PEOPLE)
        config = merged(config, {"provider": dict(provider or {})})
        async with running(place.directory / name, config) as daemon:
            async with asyncio.timeout(within_s):
                await front.connected()
                yield daemon, front


async def turns(place: Place, kind: str, times: int, *, aim: str = "") -> None:
    """Measure turns of one conversation, one after another, after five that are not counted."""
    # A draft is edited as often as most platforms let a bot; elsewhere it is over at once.
    edited = {"min_edit_interval_s": 1.0} if kind == "stream" else {}
    async with _talking(place, f"turns-{kind}", ["ann"], channel=edited) as (daemon, front):
        for n in range(5):
            await front.say("ann", f"{kind} warm {n}").answered.wait()
        cpu, written, calls = daemon.cpu_s(), await daemon.written(), front.calls
        messages: list[SentMessage] = []
        for n in range(times):
            messages.append(front.say("ann", f"{kind} {n}"))
            await messages[-1].answered.wait()
        cpu = daemon.cpu_s() - cpu
        written = (await daemon.written()).since(written)
        calls = front.calls - calls
    report = place.report
    first = [(message.first_text_at - message.at) * 1000 for message in messages]
    final = [(message.final_at - message.at) * 1000 for message in messages]
    report.many(f"{kind} turn: first text", first, "ms")
    report.many(f"{kind} turn: final", final, "ms")
    tenth = max(times // 10, 1)
    report.one(
        f"{kind} turn: last tenth / first tenth", sum(final[-tenth:]) / sum(final[:tenth]), ""
    )
    report.one(f"{kind} turn: processor time", cpu / times * 1000, "ms a turn", aim=aim)
    report.one(f"{kind} turn: commits", written.commits / times, "a turn")
    report.one(f"{kind} turn: syncs", written.groups / times, "a turn")
    report.one(f"{kind} turn: time in syncs", written.commit_s / times * 1000, "ms a turn")
    report.one(f"{kind} turn: platform calls", calls / times, "a turn")


def _shared(model_url: str) -> tuple[int, int]:
    """Return what the model says of the beginnings of requests; see `tests.bench.model`."""
    with urllib.request.urlopen(f"{model_url}/shared") as answer:
        common, sent = cast("tuple[int, int]", json.loads(answer.read()))
    return common, sent


async def long(place: Place, hundreds: int) -> None:
    """Measure one conversation, hundred turns by hundred, whose window is full after some thirty.

    Each third turn calls a tool. The first hundred holds what only a new conversation costs; the
    second begins behind the first summaries.
    """
    hundreds = max(hundreds, 4)
    window = {"context_tokens": 8192}
    cpu: list[float] = []
    memory: list[float] = []
    within_s = PART_S * hundreds
    async with _talking(place, "long", ["ann"], provider=window, within_s=within_s) as (
        daemon,
        front,
    ):
        for hundred in range(hundreds):
            before = daemon.cpu_s()
            for n in range(100):
                kind = "tool" if n % 3 == 0 else "text"
                await front.say("ann", f"{kind} {hundred} {n}").answered.wait()
            cpu.append((daemon.cpu_s() - before) / 100 * 1000)
            memory.append(daemon.pss_mib())
    common, sent = await asyncio.to_thread(_shared, place.model_url)
    shared = common / sent * 100
    report = place.report
    # Of three hundreds each, for one differs from the next by a fifth on a machine with other work.
    early, late = statistics.median(cpu[1:4]), statistics.median(cpu[-3:])
    report.one("long conversation: turns 101 to 400, processor time", early, "ms a turn")
    report.one("long conversation: last 300 turns, processor time", late, "ms a turn")
    report.one("long conversation: the last of them / the first", late / early, "", aim="< 1.1")
    report.many("long conversation: each hundred, processor time", cpu, "ms a turn")
    report.one("long conversation: of a request, begins the next one too", shared, "%")
    report.one("long conversation: memory after 200 turns, PSS", memory[1], "MiB")
    report.one("long conversation: memory at the end, PSS", memory[-1], "MiB")


async def burst(place: Place, rounds: int) -> None:
    """Measure 200 conversations that each get a message at once; the first round makes them."""
    chats = [f"u{n:03}" for n in range(CHATS)]
    async with _talking(place, "burst", chats) as (daemon, front):
        rates: list[float] = []
        cpus: list[float] = []
        latencies: list[float] = []
        for n in range(rounds + 1):
            cpu, before, began = daemon.cpu_s(), await daemon.written(), time.perf_counter()
            messages = [front.say(chat, f"text {n}") for chat in chats]
            for message in messages:
                await message.answered.wait()
            seconds = time.perf_counter() - began
            rates.append(CHATS / seconds)
            cpus.append((daemon.cpu_s() - cpu) / CHATS * 1000)
            latencies = [(message.final_at - message.at) * 1000 for message in messages]
            if not n:
                written = (await daemon.written()).since(before)
                place.report.one("200 new conversations: turns", rates[0], "a second")
                place.report.one("200 new conversations: processor time", cpus[0], "ms a turn")
                place.report.many("200 new conversations: final", latencies, "ms")
                place.report.one("200 new conversations: syncs", written.groups, "")
                place.report.one(
                    "200 new conversations: peak memory, RSS", daemon.peak_rss_mib(), "MiB"
                )
        report = place.report
        report.many("200 conversations: turns", rates[1:], "a second", aim="> 200")
        report.many("200 conversations: processor time", cpus[1:], "ms a turn")
        report.many("200 conversations: final", latencies, "ms")
        report.one("200 conversations: peak memory, RSS", daemon.peak_rss_mib(), "MiB")
        report.one("200 conversations: memory after, PSS", daemon.pss_mib(), "MiB")


async def admissions(place: Place, each: int) -> None:
    """Measure admissions alone: every chat's turn waits for the model, so messages only queue."""
    chats = [f"u{n:02}" for n in range(60)]  # below the requests to a model at once
    async with _talking(place, "admissions", chats) as (daemon, front):
        for message in [front.say(chat, "hold") for chat in chats]:
            await message.admitted.wait()
        await asyncio.sleep(0.5)  # until every turn stands at the model
        cpu, before, began = daemon.cpu_s(), await daemon.written(), time.perf_counter()
        messages = [front.say(chat, f"text {n}") for n in range(each) for chat in chats]
        for message in messages:
            await message.admitted.wait()
        seconds = time.perf_counter() - began
        cpu = daemon.cpu_s() - cpu
        written = (await daemon.written()).since(before)
        daemon.process.kill()
    count = len(messages)
    place.report.one("durable admissions", count / seconds, "a second")
    place.report.one("durable admissions: processor time", cpu / count * 1000, "ms each")
    place.report.one("durable admissions: messages a sync", count / written.groups, "")


async def decisions(place: Place, times: int) -> None:
    """Measure policy decisions in this process: the shipped statements, and 40 more of one's own."""
    ann = Principal(id="person:ann", roles=frozenset({"operator"}), channel="web", sender="7")
    effects: tuple[StatementEffect, ...] = ("allow", "ask", "deny")
    own = tuple(
        Statement(
            id=f"own.{n}",
            effect=effects[n % 3],
            principals=("role:operator",) if n % 2 else ("anyone",),
            actions=(f"tool:t{n % 10}", "tool:file_*"),
            resources=(f"file:/srv/p{n}/*", f"file:/home/*/x{n}"),
        )
        for n in range(40)
    )
    query = Query(
        principal=ann,
        action="tool:file_read",
        now=datetime(2026, 1, 1, tzinfo=UTC),
        facts=ToolFacts(effects=frozenset({"read"}), risk="low", declared=True),
        resources=("file:/srv/elsewhere/a", "file:/srv/elsewhere/b"),
    )
    for name, policy in (
        ("shipped statements", assemble("supervised")),
        ("shipped and 40 more", assemble("supervised", own)),
    ):
        place.report.many(f"policy decisions, {name}", _rates(policy, query, times), "a second")


def _rates(policy: PolicySet, query: Query, times: int) -> list[float]:
    rates: list[float] = []
    for _ in range(9):
        began = time.process_time()
        for _ in range(times):
            policy.decide(query)
        rates.append(times / (time.process_time() - began))
    return rates


class Machine:
    """What the machine gives just now, so that figures of two runs can be compared."""

    def __init__(self, place: Place) -> None:
        """Begin with no sample."""
        self._place = place
        self._loops: list[float] = []
        self._syncs: list[float] = []

    def look(self) -> None:
        """Take samples; once for each part."""
        for _ in range(5):
            began = time.process_time()
            sum(n * n for n in range(100_000))
            self._loops.append((time.process_time() - began) * 1000)
        with (self._place.directory / "sync").open("wb", buffering=0) as file:
            for _ in range(25):
                began = time.perf_counter()
                file.write(b"x" * 4096)
                os.fdatasync(file.fileno())
                self._syncs.append((time.perf_counter() - began) * 1000)

    def tell(self) -> None:
        """Add them to the report."""
        name = "the machine: 100,000 squares summed, processor time"
        self._place.report.many(name, self._loops, "ms")
        self._place.report.many("the machine: 4 KiB written and synced", self._syncs, "ms")
