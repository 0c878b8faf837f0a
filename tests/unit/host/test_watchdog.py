"""A stall of the event loop is logged with its place, measured in processor time."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine

import pytest

from zeroclaw.host import watchdog
from zeroclaw.host.watchdog import STALL_S, LoopWatch

Told = list[tuple[str, dict[str, object]]]


def watched(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[LoopWatch], Coroutine[None, None, None]]
) -> Told:
    """Run a coroutine under a watch whose checks are made by hand; return the logged events."""
    monkeypatch.setattr(watchdog, "SAMPLE_S", 3600)
    logged: Told = []
    watch = LoopWatch(lambda event, **fields: logged.append((event, fields)))

    async def main() -> None:
        watch.start()
        await asyncio.sleep(0)
        await work(watch)
        await asyncio.sleep(0)

    try:
        with asyncio.Runner(loop_factory=watch.new_loop) as runner:
            runner.run(main())
    finally:
        watch.stop()
    return logged


def busy(cpu_s: float) -> None:
    """Use processor time, not wall time."""
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        pass


def test_a_stall_is_logged_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions and their line numbers, without their contents (P8)."""

    async def block_the_loop(watch: LoopWatch) -> None:
        busy(STALL_S * 1.5)
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)

    async def run_and_check(watch: LoopWatch) -> None:
        busy(STALL_S * 1.5)
        looker = threading.Thread(target=watch.sample)
        looker.start()
        looker.join()

    [(event, fields)] = watched(monkeypatch, run_and_check)
    assert (event, fields["level"]) == ("loop_stalled", "warning")
    cpu_ms, place = fields["cpu_ms"], fields["place"]
    assert isinstance(cpu_ms, int)
    assert isinstance(place, str)
    assert cpu_ms >= STALL_S * 1000
    assert "host/test_watchdog.py" in place
    assert ":run_and_check" in place
    [(_, unseen)] = watched(monkeypatch, block_the_loop)
    assert unseen["place"] == "not seen"


def test_work_that_yields_to_other_tasks_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is waiting, nor work in a thread."""

    async def yield_often(watch: LoopWatch) -> None:
        for _ in range(8):
            busy(STALL_S / 4)
            watch.sample()
            await asyncio.sleep(0)
        await asyncio.to_thread(busy, STALL_S * 2)
        await asyncio.to_thread(threading.Event().wait, STALL_S * 2)

    assert watched(monkeypatch, yield_often) == []


def test_a_watch_that_never_began_stops() -> None:
    """So a failed start ends with its own error."""
    LoopWatch(lambda _event, **_fields: None).stop()
