"""Shares out the slow work of each kind, so that no conversation can use it all up (P9).

To scan, read, unpack or redact what others wrote takes time that others wait for. For
each kind of such work there is one `FairShare`: so much runs at once in all, less of it for one
conversation, and those who wait get their turn one conversation after the other, however many
calls each of them has waiting.

A thread can't be stopped: work that is handed to one has bounds of its own, and keeps its place
until it has ended, even where its caller no longer waits. What takes less than the way to a thread is
done on the loop, by `look`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from zeroclaw.errors import ToolFailed

Done = TypeVar("Done")


def look(at: Callable[[], Done]) -> Done:
    """Look at a few names of a file system on the event loop; the one place that may.

    Five of them take some 20 µs, and the way to a thread and back ten times that. What reads a file,
    follows a link, or takes a path that somebody else may have made long, is for a thread.
    """
    return at()


MOST_WAITING = 64
"""Of one conversation, for one kind of work; its next call is refused."""


class FairShare:
    """The places of one kind of work; belongs to one event loop."""

    def __init__(
        self, kind: str, *, at_once: int, each: int = 1, most_waiting: int = MOST_WAITING
    ) -> None:
        """Open the places.

        Args:
            kind: What the work is called, as in "too many … wait already".
            at_once: Places in all.
            each: Places that one conversation may have at the same time.
            most_waiting: Calls of one conversation that may wait for one.
        """
        self._kind = kind
        self._free = asyncio.Semaphore(at_once)
        self._each = each
        self._most_waiting = most_waiting
        self._own: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()

    async def run(self, whose: str, work: Callable[[], Done]) -> Done:
        """Do work in a thread, when it is this conversation's turn.

        Raises:
            ToolFailed: Too much of this conversation waits already.
        """
        own = await self._take(whose)
        doing = asyncio.get_running_loop().run_in_executor(None, work)
        doing.add_done_callback(lambda done: self._ended(own, done))
        return await asyncio.shield(doing)

    @asynccontextmanager
    async def place(self, whose: str) -> AsyncGenerator[None]:
        """Hold a place for work that is done elsewhere: in a child process, by another machine.

        Raises:
            ToolFailed: Too much of this conversation waits already.
        """
        own = await self._take(whose)
        try:
            yield
        finally:
            self._give_back(own)

    async def _take(self, whose: str) -> asyncio.Semaphore:
        """Wait for a place of the conversation's own, and then, behind others, for a free one."""
        if self._waiting[whose] >= self._most_waiting:
            message = f"too many {self._kind} of this conversation wait already: try again later"
            raise ToolFailed(message)
        own = self._own.setdefault(whose, asyncio.Semaphore(self._each))
        self._waiting[whose] += 1
        try:
            await own.acquire()
            try:
                await self._free.acquire()
            except asyncio.CancelledError:
                own.release()
                raise
        finally:
            self._waiting -= Counter((whose,))  # which forgets who waits no more
        return own

    def _give_back(self, own: asyncio.Semaphore) -> None:
        self._free.release()
        own.release()

    def _ended(self, own: asyncio.Semaphore, done: asyncio.Future[Done]) -> None:
        self._give_back(own)
        if not done.cancelled():
            done.exception()  # the caller has it, or was cancelled
