"""Shares out slow work of each kind, so that no conversation can take all of it (P9).

Scanning, reading, unpacking and redacting texts and files of strangers takes time that other
conversations wait for. Each kind of such work has one `FairShare`. It bounds how much runs at once,
in all and per conversation, and serves waiting conversations in turn, however many calls each of
them has queued.

A thread can't be stopped: work in a thread must bound itself, and keeps its slot until it ends,
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

T = TypeVar("T")


def run_inline(look_up: Callable[[], T]) -> T:
    """Run a few file system look-ups on the event loop; nothing else may do that.

    Five of them take some 20 µs, and a thread hop ten times that. Anything that reads a file,
    follows a link, or takes a path that others may have made long belongs in a thread.
    """
    return look_up()


MAX_WAITING = 64
"""Queued calls per conversation and kind of work; the next one is refused."""


class FairShare:
    """The slots for one kind of work; belongs to one event loop."""

    def __init__(
        self, kind: str, *, at_once: int, each: int = 1, max_waiting: int = MAX_WAITING
    ) -> None:
        """Create the slots.

        Args:
            kind: Name of the work, as in "too many … wait already".
            at_once: Slots in all.
            each: Slots that one conversation may hold at a time.
            max_waiting: Calls that one conversation may queue.
        """
        self._kind = kind
        self._free = asyncio.Semaphore(at_once)
        self._each = each
        self._max_waiting = max_waiting
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()

    async def run(self, conversation: str, work: Callable[[], T]) -> T:
        """Run work in a thread when it is the conversation's turn.

        Raises:
            ToolFailed: The conversation has too many calls queued.
        """
        share = await self._take(conversation)
        try:
            future = asyncio.get_running_loop().run_in_executor(None, work)
        except RuntimeError:  # the system starts no further thread
            self._release(share)
            raise
        future.add_done_callback(lambda done: self._finish(share, done))
        return await asyncio.shield(future)

    @asynccontextmanager
    async def slot(self, conversation: str) -> AsyncGenerator[None]:
        """Hold a slot for work that is done elsewhere: in a child process, or on another machine.

        Raises:
            ToolFailed: The conversation has too many calls queued.
        """
        share = await self._take(conversation)
        try:
            yield
        finally:
            self._release(share)

    async def _take(self, conversation: str) -> asyncio.Semaphore:
        """Wait for one of the conversation's slots, then for a free slot."""
        if self._waiting[conversation] >= self._max_waiting:
            message = f"too many {self._kind} of this conversation wait already: try again later"
            raise ToolFailed(message)
        share = self._shares.setdefault(conversation, asyncio.Semaphore(self._each))
        self._waiting[conversation] += 1
        try:
            await share.acquire()
            try:
                await self._free.acquire()
            except asyncio.CancelledError:
                share.release()
                raise
        finally:
            self._waiting -= Counter((conversation,))  # this also drops entries that reach zero
        return share

    def _release(self, share: asyncio.Semaphore) -> None:
        self._free.release()
        share.release()

    def _finish(self, share: asyncio.Semaphore, done: asyncio.Future[T]) -> None:
        self._release(share)
        if not done.cancelled():
            done.exception()  # mark it as retrieved: the caller has it, or was cancelled
