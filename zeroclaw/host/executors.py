"""Shares out slow work of each kind, so that no conversation can use it all up (P9).

Scanning, reading, unpacking and redacting what others wrote takes time that other conversations
wait for. Each kind of such work has one `FairShare`. It bounds how much runs at once, in all and
per conversation, and serves waiting conversations in turn, however many calls each of them has
queued.

A thread can't be stopped: work in a thread has bounds of its own, and keeps its slot until it ends,
even if its caller no longer waits. Work that is cheaper than a thread hop runs on the event loop,
through `run_inline`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from zeroclaw.errors import ToolFailed

Done = TypeVar("Done")


def run_inline(at: Callable[[], Done]) -> Done:
    """Run a few file system look-ups on the event loop; nothing else may do that.

    Five of them take some 20 µs, and a thread hop ten times that. Anything that reads a file,
    follows a link, or takes a path that others may have made long belongs in a thread.
    """
    return at()


MOST_WAITING = 64
"""Queued calls per conversation and kind of work; the next one is refused."""


class FairShare:
    """The slots for one kind of work; belongs to one event loop."""

    def __init__(
        self, kind: str, *, at_once: int, each: int = 1, most_waiting: int = MOST_WAITING
    ) -> None:
        """Create the slots.

        Args:
            kind: Name of the work, as in "too many … wait already".
            at_once: Slots in all.
            each: Slots that one conversation may hold at a time.
            most_waiting: Calls that one conversation may queue.
        """
        self._kind = kind
        self._free = asyncio.Semaphore(at_once)
        self._each = each
        self._most_waiting = most_waiting
        self._own: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()

    async def run(self, whose: str, work: Callable[[], Done]) -> Done:
        """Run work in a thread when it is the conversation's turn.

        Raises:
            ToolFailed: The conversation has too many calls queued.
        """
        own = await self._take(whose)
        doing = asyncio.get_running_loop().run_in_executor(None, work)
        doing.add_done_callback(lambda done: self._ended(own, done))
        return await asyncio.shield(doing)

    @asynccontextmanager
    async def slot(self, whose: str) -> AsyncGenerator[None]:
        """Hold a slot for work that is done elsewhere: in a child process, or on another machine.

        Raises:
            ToolFailed: The conversation has too many calls queued.
        """
        own = await self._take(whose)
        try:
            yield
        finally:
            self._give_back(own)

    async def _take(self, whose: str) -> asyncio.Semaphore:
        """Wait for one of the conversation's own slots, then for a free slot."""
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
            self._waiting -= Counter((whose,))  # subtracting also drops entries that reach zero
        return own

    def _give_back(self, own: asyncio.Semaphore) -> None:
        self._free.release()
        own.release()

    def _ended(self, own: asyncio.Semaphore, done: asyncio.Future[Done]) -> None:
        self._give_back(own)
        if not done.cancelled():
            done.exception()  # mark it as retrieved: the caller has it, or was cancelled
