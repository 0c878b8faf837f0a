"""Long polling: one poll at a time waits for updates, and a newer one ends it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from channels.telegram.emulator.refusals import conflict
from channels.telegram.emulator.updates import (
    LONGEST_WAIT_S,
    MAX_UPDATES,
    Update,
    Updates,
    allowed_updates,
)
from channels.telegram.emulator.wire import Json, Parameters
from zeroclaw import Clock


@dataclass(eq=False, kw_only=True)
class _Poll:
    """A waiting call of `getUpdates`.

    Attributes:
        ended_by: The call that ended it, empty for none.
        timed_out: Its time is over.
    """

    woken: asyncio.Event = field(default_factory=asyncio.Event)
    ended_by: str = ""
    timed_out: bool = False


class Polling:
    """Answers `getUpdates`.

    Attributes:
        on_hold: Nothing is delivered while this is set.
    """

    def __init__(self, updates: Updates, clock: Clock) -> None:
        """Serve polls from a queue of updates; the clock times the waits."""
        self._updates = updates
        self._clock = clock
        self._poll: _Poll | None = None
        self.on_hold = False

    @property
    def is_waited(self) -> bool:
        """Whether a poll is waiting right now."""
        return self._poll is not None

    def wake(self) -> None:
        """Make the poll check again, after a new update or another change."""
        if self._poll is not None:
            self._poll.woken.set()

    def end(self, by: str) -> None:
        """End the waiting poll, if there is one."""
        if self._poll is not None:
            self._poll.ended_by = by
            self._poll.woken.set()

    async def get_updates(
        self,
        parameters: Parameters,
        on_disconnect: Callable[[Callable[[], None]], Callable[[], bool]],
    ) -> list[Json]:
        """Wait for updates.

        Args:
            parameters: The call's parameters.
            on_disconnect: Takes a function to call when the bot disconnects; returns a function that tells
                whether it has.

        Raises:
            Refused: Another call ended this one, or a parameter is invalid.
        """
        self._updates.allow(allowed_updates(parameters))
        self._updates.forget_old(self._clock.monotonic())
        self._updates.confirm(parameters.number("offset"))
        limit = parameters.number("limit") if parameters.has("limit") else MAX_UPDATES
        wait_s = min(parameters.number("timeout"), LONGEST_WAIT_S)
        self.end("other getUpdates request; make sure that only one bot instance is running")
        poll = self._poll = _Poll()
        try:
            updates = await self._wait(poll, limit, wait_s, on_disconnect(poll.woken.set))
        finally:
            if self._poll is poll:
                self._poll = None
        return [update.to_json() for update in updates]

    async def _wait(
        self, poll: _Poll, limit: int, wait_s: int, is_disconnected: Callable[[], bool]
    ) -> list[Update]:
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._time_out(poll, wait_s))
            while not self._has_updates() and not poll.timed_out and not poll.ended_by:
                await poll.woken.wait()
                poll.woken.clear()
                if is_disconnected():
                    break
            timer.cancel()
        if poll.ended_by:
            raise conflict(f"terminated by {poll.ended_by}")
        return self._updates.take(limit) if self._has_updates() and not is_disconnected() else []

    def _has_updates(self) -> bool:
        return bool(self._updates.waiting) and not self.on_hold

    async def _time_out(self, poll: _Poll, wait_s: int) -> None:
        await self._clock.sleep(wait_s)
        poll.timed_out = True
        poll.woken.set()
