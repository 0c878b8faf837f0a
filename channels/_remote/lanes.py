"""Show the events of each chat one after another, and first what was written while the daemon was away.

A platform that tells events as they happen, and keeps none for who was away, leaves two tasks: what
stands in a chat since the last one that was taken is read before the next one is shown, and what
comes meanwhile waits. Both are done here, for any platform whose chats can be read from a position.

Each chat has a lane, which exists while there is something in it. A lane holds so many events and no
more; what comes while it is full is let go, and read back from the chat itself. So memory is bounded,
and a chat whose history can't be read, or whose events can't be stored, holds up no other. What is
read back may have been shown before, and is known again by its keys.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from zeroclaw import ChannelLog, ChannelUnavailable, Clock, RateLimited, Struct, field

E = TypeVar("E")

MOST_WAITING, MOST_IN_ALL = 256, 10_000
"""Events of one lane, and of all lanes, those included that are being shown."""
MOST_READING = 2
"""Chats whose history is read at the same time; what is sent shares the platform's limits with it."""
AGAIN_S = 1.0
"""Seconds until what could not be stored is shown again, and until a history is read again."""
LONGEST_AGAIN_S = 60.0

Take = Callable[[E], Awaitable[bool]]
"""Takes an event; False when it could not be stored, and is to be shown again."""
Read = Callable[[str], Awaitable[Sequence[E]]]
"""Reads what stands in a chat after the last event that was taken from it, oldest first.

Raises `ChannelUnavailable` where it may be read again; what can't be read at all is nothing.
"""


class _Lane(Struct, Generic[E], kw_only=True):
    waiting: deque[E] = field(default_factory=deque[E])
    is_behind: bool = False


class Lanes(Generic[E]):
    """All lanes of one account."""

    def __init__(
        self,
        *,
        take: Take[E],
        read: Read[E],
        clock: Clock,
        log: ChannelLog,
        most: int = MOST_IN_ALL,
    ) -> None:
        """Hold what is needed; nothing happens before `put` or `catch_up`.

        Args:
            take: See the type.
            read: Likewise.
            clock: For waits.
            log: For facts.
            most: Events of all lanes.
        """
        self._take = take
        self._read = read
        self._clock = clock
        self._log = log
        self._reading = asyncio.Semaphore(MOST_READING)
        self._lanes: dict[str, _Lane[E]] = {}
        self._most = most
        self._held = 0

    def put(self, group: asyncio.TaskGroup, chat: str, event: E) -> None:
        """Let an event wait for those before it; never waits itself."""
        lane = self._lane(group, chat)
        if len(lane.waiting) < MOST_WAITING and self._held < self._most:
            lane.waiting.append(event)
            self._held += 1
            return
        if not lane.is_behind:
            self._log("lane_overflowed", waiting=len(lane.waiting), level="warning")
        lane.is_behind = True

    def catch_up(self, group: asyncio.TaskGroup, chat: str) -> None:
        """Read a chat's history before anything else of it is shown."""
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
                async with self._reading:
                    missed = await self._read(chat)
            except ChannelUnavailable as error:
                lane.is_behind = True
                self._log("history_not_read", why=str(error), level="warning")
                asked = error.retry_after_s if isinstance(error, RateLimited) else 0.0
                await self._clock.sleep(max(wait_s, asked))
                wait_s = min(2 * wait_s, LONGEST_AGAIN_S)
                continue
            for event in missed:
                await self._show(event)

    async def _show(self, event: E) -> None:
        while not await self._take(event):
            await self._clock.sleep(AGAIN_S)
