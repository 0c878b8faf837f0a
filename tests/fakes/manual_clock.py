"""Clocks for tests: one that a test moves, and one that moves while every task waits."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
LIVELOCK_ROUNDS = 100_000


@dataclass(kw_only=True)
class _Sleeper:
    due: float
    order: int
    woken: asyncio.Future[None]


class ManualClock:
    """A clock that stands still until `advance`; its monotonic zero is its start.

    For table-like tests of one room. `asyncio.timeout` doesn't follow it: if timeouts
    matter, use `VirtualTimeLoop` with `LoopClock`.
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start
        self._seconds = 0.0
        self._sleepers: list[_Sleeper] = []
        self._order = 0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        self._order += 1
        woken = asyncio.get_running_loop().create_future()
        sleeper = _Sleeper(due=self._seconds + seconds, order=self._order, woken=woken)
        self._sleepers.append(sleeper)
        try:
            await woken
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def sleeping(self) -> tuple[float, ...]:
        """Seconds until each sleeper is due, the next one first."""
        return tuple(sorted(sleeper.due - self._seconds for sleeper in self._sleepers))

    async def settle(self) -> None:
        """Run every task until all of them wait for time or for input."""
        loop = asyncio.get_running_loop()
        for _ in range(LIVELOCK_ROUNDS):
            await asyncio.sleep(0)
            if not loop._ready:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # no public way to ask
                return
        raise AssertionError("tasks keep each other awake")

    def leap(self, by: timedelta) -> None:
        """Move only the wall time, like a machine that slept, or a clock that was set."""
        self._start += by

    async def advance(self, seconds: float) -> None:
        """Move the time; sleepers wake in the order they are due, each settling before the next."""
        await self.settle()
        until = self._seconds + seconds
        while due := sorted(
            (sleeper for sleeper in self._sleepers if sleeper.due <= until),
            key=lambda sleeper: (sleeper.due, sleeper.order),
        ):
            self._sleepers.remove(due[0])
            self._seconds = max(self._seconds, due[0].due)
            if not due[0].woken.done():
                due[0].woken.set_result(None)
            await self.settle()
        self._seconds = until
        await self.settle()


class _JumpingSelector(selectors.DefaultSelector):
    """Jumps to the next timer instead of waiting for it.

    Attributes:
        threads: The number of pieces of work in threads; time stands still while there are any.
    """

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        waits = timeout is not None and timeout > 0
        if waits and self.threads:
            return super().select(None)  # a thread that is done wakes the loop
        ready = super().select(0 if timeout is not None else None)
        if not ready and waits:
            assert timeout is not None
            self._jump(timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer whenever every task waits.

    `asyncio.timeout`, `asyncio.sleep` and `LoopClock` all follow it, so an hour of back-off takes
    no time and always ends the same way; while a thread works for the loop, time stands still. Not for
    tests with sockets: time would jump while they work. A conftest.py turns it on for its
    folder:

        def pytest_asyncio_loop_factories(config, item):
            return {"virtual": VirtualTimeLoop}
    """

    def __init__(self) -> None:
        self._virtual = 0.0
        self._jumping = _JumpingSelector(self._jump)
        super().__init__(self._jumping)

    def _jump(self, seconds: float) -> None:
        self._virtual += seconds

    def time(self) -> float:
        return self._virtual

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Give work to a thread, and stop time until it is done."""
        self._jumping.threads += 1
        working = super().run_in_executor(executor, func, *args)
        working.add_done_callback(self._returned)
        return working

    async def shutdown_default_executor(self, *_: float | None) -> None:
        """Wait for the threads without a limit, because a timeout would never pass."""
        self._jumping.threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._jumping.threads -= 1

    def _returned(self, _: object) -> None:
        self._jumping.threads -= 1


class LoopClock:
    """The clock of a test that runs in a `VirtualTimeLoop`."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)
