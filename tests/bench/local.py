"""The local model: how long it loads, how soon and how fast it answers, what memory it takes.

It is opened as the daemon opens it, and its memory is measured beside a daemon, as that is where it
lives. A machine without the package or the model file gets the reason in place of figures.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

from tests.bench.figures import Report
from tests.bench.front import Front
from tests.bench.parts import PART_S, Place
from tests.bench.process import pss_mib, running, written_config
from zeroclaw.cli.configuration import load, start_of
from zeroclaw.daemon.foundation import open_provider
from zeroclaw.errors import ProviderUnusable
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.places import places_of
from zeroclaw.message import SystemMessage, UserMessage
from zeroclaw.provider import ModelRequest, TextDelta, UsageReported
from zeroclaw.providers.local import LocalProvider
from zeroclaw.providers.local.checks import check_model
from zeroclaw.providers.local.provider import SHIPPED_FILE
from zeroclaw.value import Value

NAME = "local model"
ANSWERS = 4  # to each load
ANSWER_TOKENS = 96  # enough to tell its speed, and an end where it finds none
ABOUT = ("lobster", "lighthouse", "violin", "glacier", "bicycle", "teapot", "comet", "harbour")
RULE = SystemMessage(content="You are a helpful assistant. Answer in a few sentences.")


class Answered(Value):
    """One answer.

    Attributes:
        first_s: Seconds until its first text.
        writing_s: Seconds from there to its last text.
        tokens: That the model counted.
    """

    first_s: float
    writing_s: float
    tokens: int


async def local_model(place: Place, loads: int) -> None:
    """Measure some loads with a few answers each, then the memory beside a daemon."""
    model = _model_file()
    try:
        check_model(model)
    except ProviderUnusable as reason:
        place.report.skipped(NAME, str(reason))
        return
    provider: dict[str, object] = {"kind": "local", "model_file": str(model)}
    try:
        async with asyncio.timeout(PART_S):
            await _speed(place, provider, loads)
            await _memory(place, provider)
    except TimeoutError:
        place.report.skipped(f"{NAME}: the rest", f"it took longer than {PART_S:g} s")


async def _speed(place: Place, settings: dict[str, object], loads: int) -> None:
    load_s: list[float] = []
    answers: list[Answered] = []
    config = written_config(place.directory / "local", {"provider": settings})
    clock = SystemClock()
    try:
        for _ in range(loads):
            provider = open_provider(start_of(load(config), os.environ), clock)
            assert isinstance(provider, LocalProvider)
            try:
                began = time.perf_counter()
                await provider.start()
                load_s.append(time.perf_counter() - began)
                for _ in range(ANSWERS):
                    about = ABOUT[len(answers) % len(ABOUT)]  # it remembers what it just read
                    answers.append(await _answer(provider, f"What is a {about}?"))
            finally:
                await provider.aclose()
    finally:  # a machine that is too slow for all of it tells what there is
        _tell(place.report, load_s, answers)


def _tell(report: Report, load_s: list[float], answers: list[Answered]) -> None:
    if load_s:
        report.many(f"{NAME}: load", [seconds * 1000 for seconds in load_s], "ms")
    if answers:
        report.many(f"{NAME}: first token", [answer.first_s * 1000 for answer in answers], "ms")
        rates = [(answer.tokens - 1) / answer.writing_s for answer in answers if answer.tokens > 1]
        report.many(f"{NAME}: tokens", rates, "a second")


async def _answer(provider: LocalProvider, question: str) -> Answered:
    request = ModelRequest(
        messages=(RULE, UserMessage(content=question)), max_output_tokens=ANSWER_TOKENS
    )
    began = time.perf_counter()
    at: list[float] = []
    tokens = 0
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta():
                    at.append(time.perf_counter() - began)
                case UsageReported(usage=usage):
                    tokens = usage.output_tokens
                case _:
                    pass
    return Answered(first_s=at[0], writing_s=at[-1] - at[0], tokens=tokens)


async def _memory(place: Place, settings: dict[str, object]) -> None:
    """Take both processes' memory after a turn, when the model has used what it needs."""
    async with Front() as front:
        channel = {"port": front.port, "allowed_users": ["ann"]}
        config = {**place.config(channels={"loopback": channel}), "provider": settings}
        async with running(place.directory / "local-daemon", config) as daemon:
            await front.connected()
            await front.say("ann", "What is a lobster?").answered.wait()
            report = place.report
            report.one(f"{NAME}: memory of its process, PSS", _children_mib(daemon.pid), "MiB")
            report.one(f"{NAME}: memory of the daemon beside it, PSS", daemon.pss_mib(), "MiB")


def _children_mib(pid: int) -> float:
    return sum(pss_mib(child) for child in _children(pid))


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield from (int(child) for child in (task / "children").read_text().split())


def _model_file() -> Path:
    """Return where `deploy/fetch_model.py` puts the small model."""
    return places_of().models / SHIPPED_FILE
