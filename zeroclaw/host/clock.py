"""The real clock, the only reader of time; and helpers to start tasks and to wait on any clock."""

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import TypeVar

from zeroclaw.clock import Clock

T = TypeVar("T")


class SystemClock:
    """This machine's time as a `Clock`."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC; it may jump when the machine's time is set."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back; on Linux they stop while the machine is suspended."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; return at once for zero or less."""
        if seconds > 0:
            await asyncio.sleep(seconds)


def begin_in(
    group: asyncio.TaskGroup, work: Coroutine[object, object, T], *, name: str
) -> asyncio.Task[T] | None:
    """Start a task; None if the group is shutting down: then `work` does not begin."""
    try:
        return group.create_task(work, name=name)
    except RuntimeError:
        work.close()
        return None


async def wait_at_most(
    seconds: float, work: Coroutine[None, None, object], *, clock: Clock
) -> None:
    """Wait until `work` returns, but no longer than `seconds`; then cancel it."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        timer = group.create_task(clock.sleep(seconds))
        task.add_done_callback(lambda _: timer.cancel())
        timer.add_done_callback(lambda _: task.cancel())
