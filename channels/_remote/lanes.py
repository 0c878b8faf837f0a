"""Delivers the events of each chat in order, after the messages missed while the daemon was away.

Some platforms push live events and keep none for a client that is offline. After a gap, the chat's
history since the last taken event has to be read first, while live events wait. This module does
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

MOST_WAITING, MOST_IN_ALL = 256, 10_000
"""Queued events of one lane, and of all lanes, including those in progress."""
SHARES = 8
"""One lane takes up at most one of so many parts of what is queued in all."""
MOST_READING = 2
"""Histories read concurrently; sending shares the platform's rate limits with it. A reading that has to
wait keeps its place: on Slack all chats share the limit that it met, so others would meet it as well; on
Discord each channel has its own, which lasts for seconds."""
AGAIN_S = 1.0
"""Seconds before retrying an event that could not be stored; first wait for a failed history."""
LONGEST_AGAIN_S = 60.0

Take = Callable[[E], Awaitable[bool]]
"""Takes an event; returns False if it could not be stored and must be offered again."""
Read = Callable[[str], Awaitable[Sequence[E]]]
"""Reads a chat's events after the last one taken, oldest first.

Raises `ChannelUnavailable` or `ChannelUnauthorized` to be retried; returns nothing for a history
that can't be read at all.
"""


async def patiently(call: Callable[[], Awaitable[T]], clock: Clock, log: Log) -> T:
    """Make one call of a reading that takes several, waiting as long as the platform asks for.

    A reading that began again after each refusal would use up the same limit each time, and a long
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
        self, *, take: Take[E], read: Read[E], clock: Clock, log: Log, most: int = MOST_IN_ALL
    ) -> None:
        """Start nothing before `put` or `catch_up`.

        Args:
            take: See `Take`.
            read: See `Read`.
            clock: For waits.
            log: The channel's log.
            most: Limit on the queued events of all lanes.
        """
        self._take = take
        self._read = read
        self._clock = clock
        self._log = log
        self._free_places = MOST_READING
        self._unread: dict[str, asyncio.Event] = {}
        self._lanes: dict[str, _Lane[E]] = {}
        self._most, self._each = most, min(MOST_WAITING, most // SHARES or 1)
        self._held = 0

    def put(self, group: asyncio.TaskGroup, chat: str, event: E) -> None:
        """Queue an event behind those of its chat; never waits."""
        lane = self._lane(group, chat)
        if len(lane.waiting) < self._each and self._held < self._most:
            lane.waiting.append(event)
            self._held += 1
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
                    await self._show(lane.waiting.popleft())
                    self._held -= 1
        finally:
            del self._lanes[chat]

    async def _catch_up(self, chat: str, lane: _Lane[E]) -> None:
        wait_s = AGAIN_S
        while lane.is_behind:
            lane.is_behind = False
            try:
                async with self._place(chat):
                    missed = await self._read(chat)
            except (ChannelUnavailable, ChannelUnauthorized) as error:
                lane.is_behind = True
                self._log("history_not_read", why=str(error), level="warning")
                asked = error.retry_after_s if isinstance(error, RateLimited) else 0.0
                await self._clock.sleep(max(wait_s, asked))
                wait_s = min(2 * wait_s, LONGEST_AGAIN_S)
                continue
            for event in missed:
                await self._show(event)

    @asynccontextmanager
    async def _place(self, chat: str) -> AsyncGenerator[None]:
        """Take one of the few places for readings; a chat in which an event waits gets it first."""
        if self._free_places:
            self._free_places -= 1
        else:
            granted = self._unread[chat] = asyncio.Event()
            try:
                await granted.wait()
            finally:
                self._unread.pop(chat, None)
        try:
            yield
        finally:
            awaited = (one for one in self._unread if self._lanes[one].waiting)
            following = next(awaited, next(iter(self._unread), None))
            if following is None:
                self._free_places += 1
            else:
                self._unread.pop(following).set()

    async def _show(self, event: E) -> None:
        while not await self._take(event):
            await self._clock.sleep(AGAIN_S)
