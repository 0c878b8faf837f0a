"""Delivers the events of each chat in order, after the messages missed while the daemon was away.

Some platforms push live events and keep none for a client that is offline. After a gap, the channel
first reads the chat's history since the last stored event, while live events wait. This module does
both for any platform whose history can be read from a position.

Each chat has a lane, which exists while it has work. A lane's queue is bounded: events that arrive
when it is full are dropped and read back from the chat's history. So memory is bounded, and a chat
whose history can't be read, or whose events can't be stored, delays no other chat. Events read back
may be repeats; ingress recognises them by their dedup keys.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from zeroclaw import ChannelUnauthorized, ChannelUnavailable, Clock, Log, RateLimited, Struct, field

E = TypeVar("E")
T = TypeVar("T")

MAX_WAITING, MAX_IN_ALL = 256, 10_000
"""Queued events of one lane, and of all lanes, including those in progress."""
SHARES = 8
"""One lane may hold at most this fraction (1/8) of the limit on all lanes."""
MAX_READING = 2
"""Histories read concurrently; sends share the platform's rate limits with them. A read that has to wait
keeps its slot: on Slack all chats share one limit, so other reads would hit it as well; on Discord each
channel has its own, which lasts for seconds."""
AGAIN_S = 1.0
"""Seconds before retrying an event that could not be stored; first wait for a failed history."""
LONGEST_AGAIN_S = 60.0

Take = Callable[[E], Awaitable[bool]]
"""Takes an event; returns False if it could not be stored and must be delivered again."""
Read = Callable[[str], Awaitable[Sequence[E]]]
"""Reads a chat's events after the last stored one, oldest first.

Raises `ChannelUnavailable` or `ChannelUnauthorized` if a retry may help; returns no events if the
platform refuses to show the history.
"""


async def call_when_allowed(call: Callable[[], Awaitable[T]], clock: Clock, log: Log) -> T:
    """Make one of the calls that read a history, waiting as long as the platform's rate limit demands.

    If each refusal restarted the whole read, it would use up the same limit each time, and a long
    history would never be read.

    Raises:
        RateLimited: The platform asks for more than `LONGEST_AGAIN_S`.
    """
    while True:
        try:
            return await call()
        except RateLimited as error:
            if error.retry_after_s > LONGEST_AGAIN_S:
                raise
            log("history_paused", wait_s=error.retry_after_s, level="debug")
            await clock.sleep(max(error.retry_after_s, AGAIN_S))


class _Lane(Struct, Generic[E], kw_only=True):
    waiting: deque[E] = field(default_factory=deque[E])
    is_behind: bool = False


class Lanes(Generic[E]):
    """All lanes of one account."""

    def __init__(
        self, *, take: Take[E], read: Read[E], clock: Clock, log: Log, limit: int = MAX_IN_ALL
    ) -> None:
        """Start nothing before `put` or `catch_up`.

        Args:
            take: See `Take`.
            read: See `Read`.
            clock: For waits.
            log: The channel's log.
            limit: Limit on the queued events of all lanes.
        """
        self._take, self._read = take, read
        self._clock, self._log = clock, log
        self._free_slots = MAX_READING
        self._waiting_reads: dict[str, asyncio.Event] = {}
        self._lanes: dict[str, _Lane[E]] = {}
        self._limit, self._lane_limit = limit, min(MAX_WAITING, limit // SHARES or 1)
        self._queued = 0

    def put(self, group: asyncio.TaskGroup, chat: str, event: E) -> None:
        """Queue an event behind those of its chat; never waits."""
        lane = self._lane(group, chat)
        if len(lane.waiting) < self._lane_limit and self._queued < self._limit:
            lane.waiting.append(event)
            self._queued += 1
            return
        if not lane.is_behind:
            self._log("lane_overflowed", waiting=len(lane.waiting), level="warning")
        lane.is_behind = True

    def catch_up(self, group: asyncio.TaskGroup, chat: str) -> None:
        """Read a chat's history before delivering more of its queued events."""
        self._lane(group, chat).is_behind = True

    def _lane(self, group: asyncio.TaskGroup, chat: str) -> _Lane[E]:
        lane = self._lanes.get(chat)
        if lane is None:
            lane = self._lanes[chat] = _Lane[E]()
            group.create_task(self._run(chat, lane))
        return lane

    async def _run(self, chat: str, lane: _Lane[E]) -> None:
        try:
            while lane.is_behind or lane.waiting:
                if lane.is_behind:
                    await self._catch_up(chat, lane)
                else:
                    await self._deliver(lane.waiting.popleft())
                    self._queued -= 1
        finally:
            del self._lanes[chat]

    async def _catch_up(self, chat: str, lane: _Lane[E]) -> None:
        wait_s = AGAIN_S
        while lane.is_behind:
            lane.is_behind = False
            try:
                async with self._read_slot(chat):
                    missed = await self._read(chat)
            except (ChannelUnavailable, ChannelUnauthorized) as error:
                lane.is_behind = True
                self._log("history_not_read", reason=str(error), level="warning")
                demanded_s = error.retry_after_s if isinstance(error, RateLimited) else 0.0
                await self._clock.sleep(max(wait_s, demanded_s))
                wait_s = min(2 * wait_s, LONGEST_AGAIN_S)
                continue
            for event in missed:
                await self._deliver(event)

    @asynccontextmanager
    async def _read_slot(self, chat: str) -> AsyncGenerator[None]:
        """Hold one of the few slots for reads; chats with queued events get a free slot first."""
        if self._free_slots:
            self._free_slots -= 1
        else:
            granted = self._waiting_reads[chat] = asyncio.Event()
            try:
                await granted.wait()
            finally:
                self._waiting_reads.pop(chat, None)
        try:
            yield
        finally:
            urgent = (waiter for waiter in self._waiting_reads if self._lanes[waiter].waiting)
            following = next(urgent, next(iter(self._waiting_reads), None))
            if following is None:
                self._free_slots += 1
            else:
                self._waiting_reads.pop(following).set()

    async def _deliver(self, event: E) -> None:
        while not await self._take(event):
            await self._clock.sleep(AGAIN_S)
