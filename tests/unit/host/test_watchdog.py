"""A stall of the event loop is told, with its place and by its processor time."""

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
    """Run something under a watch whose looks are made by hand, and return what was logged."""
    monkeypatch.setattr(watchdog, "SAMPLE_S", 3600)
    told: Told = []
    watch = LoopWatch(lambda event, **fields: told.append((event, fields)))

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
    return told


def busy(cpu_s: float) -> None:
    """Use up the processor; whatever else the machine does meanwhile does not count."""
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        pass


def test_a_stall_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions and their lines, and nothing that stands in them (P8)."""

    async def hold_everybody_up(watch: LoopWatch) -> None:
        busy(STALL_S * 1.5)
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)

    async def looked_at(watch: LoopWatch) -> None:
        busy(STALL_S * 1.5)
        looker = threading.Thread(target=watch.sample)
        looker.start()
        looker.join()

    [(event, fields)] = watched(monkeypatch, looked_at)
    assert (event, fields["level"]) == ("loop_stalled", "warning")
    cpu_ms, place = fields["cpu_ms"], fields["place"]
    assert isinstance(cpu_ms, int)
    assert isinstance(place, str)
    assert cpu_ms >= STALL_S * 1000
    assert "host/test_watchdog.py" in place
    assert ":looked_at" in place
    [(_, unseen)] = watched(monkeypatch, hold_everybody_up)
    assert unseen["place"] == "not seen"


def test_work_between_which_others_get_their_turn_is_no_stall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor is waiting, nor work in a thread."""

    async def considerate(watch: LoopWatch) -> None:
        for _ in range(8):
            busy(STALL_S / 4)
            watch.sample()
            await asyncio.sleep(0)
        await asyncio.to_thread(busy, STALL_S * 2)
        await asyncio.to_thread(threading.Event().wait, STALL_S * 2)

    assert watched(monkeypatch, considerate) == []


def test_a_watch_that_never_began_stops() -> None:
    """A start that failed ends with its own error."""
    LoopWatch(lambda _event, **_fields: None).stop()
