"""Watches the event loop, and logs its stack when it stalls (P9).

Every conversation needs the event loop, so code that blocks it delays all of them. A stall is one
iteration of the loop that took more than `STALL_S` of its thread's CPU time. Wall time would be
wrong: it also passes while other programs keep the machine busy.
"""

import asyncio
import math
import selectors
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from zeroclaw.channel import Log
from zeroclaw.host.resolver import LeavingLoop

STALL_S = 0.1
SAMPLE_S = 0.05
"""Twice per `STALL_S`, so that every stall is sampled."""
MAX_FRAMES = 8


class LoopWatch:
    """Watches one event loop, which it creates."""

    def __init__(self, log: Log) -> None:
        """Report to `log`."""
        self._log = log
        self._selector = _TimedSelector(self._report_stall)
        self._thread_id = 0
        self._clock_id = 0
        self._place = (math.inf, "")
        self._stopped = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return the watched loop."""
        return LeavingLoop(self._selector)

    def start(self) -> None:
        """Start watching; called on the loop."""
        self._thread_id = threading.get_ident()
        self._clock_id = time.pthread_getcpuclockid(self._thread_id)
        self._selector.is_timed = True
        self._watcher.start()

    def stop(self) -> None:
        """Stop watching; safe if it never started."""
        self._selector.is_timed = False
        self._stopped.set()
        if self._watcher.is_alive():
            self._watcher.join()

    def sample(self) -> None:
        """Remember the loop's stack, if this iteration already takes long."""
        began_s = self._selector.began_s
        if time.clock_gettime(self._clock_id) - began_s > STALL_S / 2:
            # Python has no public way to see the stack of another thread.
            frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            frame = frames.get(self._thread_id)
            self._place = (began_s, stack_of(frame))

    def _watch(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            self.sample()

    def _report_stall(self, began_s: float, took_s: float) -> None:
        sampled_s, place = self._place
        place = place if sampled_s == began_s else "not seen"
        self._log("loop_stalled", cpu_ms=round(took_s * 1000), place=place, level="warning")


class _TimedSelector(selectors.DefaultSelector):
    """A selector that measures the time between two waits, in which the loop does all its work.

    Attributes:
        is_timed: Whether it measures.
        began_s: When this iteration of the loop began, on its thread's CPU clock; infinite while it
            waits.
    """

    def __init__(self, on_stall: Callable[[float, float], None]) -> None:
        super().__init__()
        self.is_timed = False
        self.began_s = math.inf
        self._on_stall = on_stall

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self.is_timed:
            return super().select(timeout)
        ended_s = time.thread_time()
        if ended_s - self.began_s > STALL_S:
            self._on_stall(self.began_s, ended_s - self.began_s)
        self.began_s = math.inf
        ready = super().select(timeout)
        self.began_s = ended_s  # waiting uses no CPU time
        return ready


def stack_of(frame: FrameType | None) -> str:
    """Return a stack, innermost call first: file, line and function, no values."""
    places: list[str] = []
    while frame is not None and len(places) < MAX_FRAMES:
        code = frame.f_code
        file = "/".join(code.co_filename.rsplit("/", 3)[1:])
        places.append(f"{file}:{frame.f_lineno}:{code.co_name}")
        frame = frame.f_back
    return " < ".join(places)
