"""Prefetches the body of an answer: what came meanwhile is taken in one piece.

A model's answer is hundreds of small pieces, and several often lie in one read of the socket, the
more so the busier this process is. Each station behind costs something a piece; so they are joined
here, before the first one. Nobody waits for a piece that has not come.
"""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

MOST_AHEAD = 256 * 1024
"""Bytes that wait to be taken before no more are read."""


class Prefetch:
    """Reads while the block is entered; an error is raised behind what came before it.

    Whoever leaves before the end makes the pieces end first, and then awaits `dropped`: a reader
    that is cancelled while it closes its connection would lose it.
    """

    def __init__(self, pieces: AsyncIterator[bytes], failures: type[Exception]) -> None:
        """Read nothing yet; `failures` are what `pieces` may raise."""
        self._pieces = pieces
        self._failures = failures
        self._group = asyncio.TaskGroup()
        self._reading: asyncio.Task[None] | None = None
        self._held: list[bytes] = []
        self._size = 0
        self._ended = asyncio.Event()
        self._is_dropped = False
        self._failure: Exception | None = None
        self._came = asyncio.Event()
        self._taken = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._reading = self._group.create_task(self._read(), name="reading ahead")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reading is not None and not self._ended.is_set():
            self._reading.cancel()
        # What failed in the body leaves as it is, not wrapped in a group.
        await self._group.__aexit__(None, None, None)

    async def dropped(self) -> None:
        """Take nothing more, and wait for the end of the pieces."""
        self._is_dropped = True
        self._taken.set()
        await self._ended.wait()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Hand over the body in order, once."""
        while True:
            while not self._held:
                if self._failure is not None:
                    raise self._failure
                if self._ended.is_set():
                    return
                await self._came.wait()
                self._came.clear()
            chunk = b"".join(self._held)
            self._held.clear()
            self._size = 0
            self._taken.set()
            yield chunk

    async def _read(self) -> None:
        try:
            async for piece in self._pieces:
                if self._is_dropped:
                    continue
                self._held.append(piece)
                self._size += len(piece)
                self._came.set()
                while self._size >= MOST_AHEAD and not self._is_dropped:
                    self._taken.clear()
                    await self._taken.wait()
        except self._failures as failure:
            self._failure = failure
        finally:
            self._ended.set()
            self._came.set()
