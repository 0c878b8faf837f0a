"""Shares out the slow work of each kind, so that no conversation can use it all up (P9).

To scan, read, unpack or redact what others wrote takes time that others wait for. For
each kind of such work there is one `FairShare`: so much runs at once in all, less of it for one
conversation, and those who wait get their turn one conversation after the other, however many
calls each of them has waiting.

A thread can't be stopped: work that is handed to one has bounds of its own, and keeps its place
until it has ended, even where its caller no longer waits.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from zeroclaw.errors import ToolFailed

Done = TypeVar("Done")

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
        self._free = at_once
        self._each = each
        self._most_waiting = most_waiting
        self._running: Counter[str] = Counter()
        # INVARIANT: while a place is free, each conversation that waits has all it may have.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def run(self, whose: str, work: Callable[[], Done]) -> Done:
        """Do work in a thread, when it is this conversation's turn.

        Raises:
            ToolFailed: Too much of this conversation waits already.
        """
        await self._take(whose)
        doing = asyncio.get_running_loop().run_in_executor(None, work)
        doing.add_done_callback(lambda done: self._ended(whose, done))
        return await asyncio.shield(doing)

    @asynccontextmanager
    async def place(self, whose: str) -> AsyncGenerator[None]:
        """Hold a place for work that is done elsewhere: in a child process, by another machine.

        Raises:
            ToolFailed: Too much of this conversation waits already.
        """
        await self._take(whose)
        try:
            yield
        finally:
            self._give_back(whose)

    async def _take(self, whose: str) -> None:
        if self._free and self._running[whose] < self._each:
            self._seat(whose)
            return
        queue = self._waiting.setdefault(whose, deque())
        if len(queue) >= self._most_waiting:
            message = f"too many {self._kind} of this conversation wait already: try again later"
            raise ToolFailed(message)
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give_back(whose)  # its turn came at the same moment
            elif turn in queue:
                queue.remove(turn)
            raise
        finally:
            if not queue and self._waiting.get(whose) is queue:
                del self._waiting[whose]

    def _seat(self, whose: str) -> None:
        self._free -= 1
        self._running[whose] += 1

    def _ended(self, whose: str, done: asyncio.Future[Done]) -> None:
        self._give_back(whose)
        if not done.cancelled():
            done.exception()  # the caller has it, or was cancelled

    def _give_back(self, whose: str) -> None:
        self._free += 1
        self._running[whose] -= 1
        if not self._running[whose]:
            del self._running[whose]
        for one, queue in self._waiting.items():
            while self._running[one] < self._each and queue:
                turn = queue.popleft()
                if not turn.cancelled():  # else it has yet to hear of that
                    self._seat(one)
                    turn.set_result(None)
                    self._waiting.move_to_end(one)
                    return
