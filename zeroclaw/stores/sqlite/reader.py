"""The thread that reads, one query after the other, on a connection that can't write."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from zeroclaw.errors import StoreRefused, StoreUnusable, ZeroclawError
from zeroclaw.stores.sqlite.opening import FILE_NAME, open_for_reading
from zeroclaw.stores.sqlite.troubles import unusable

T = TypeVar("T")
Read = Callable[[sqlite3.Connection], T]


class Reader:
    """Owns the reading connection; bounded by the store, which lets in only so many at once."""

    def __init__(self, directory: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._directory = directory
        self._path = directory / FILE_NAME
        self._queries: SimpleQueue[Callable[[sqlite3.Connection], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="zeroclaw-store-reader", daemon=True)
        self._stopping = False
        self._waiting: set[Callable[[ZeroclawError], None]] = set()
        self.opened: asyncio.Future[None] = self._loop.create_future()

    def start(self) -> None:
        """Start the thread, which opens its connection first."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is queued, close, end."""
        self._stopping = True
        self._queries.put(None)

    def join(self) -> None:
        """Wait for the end; blocks, so only another thread may."""
        if self._thread.ident is not None:
            self._thread.join()

    async def read(self, read: Read[T]) -> T:
        """Run a query on the thread.

        Raises:
            StoreUnusable: The file can't be read, or the store is closed.
        """
        if self._stopping:
            message = "the store is closed"
            raise StoreUnusable(message)
        done: asyncio.Future[T] = self._loop.create_future()

        def run(connection: sqlite3.Connection) -> None:
            if done.cancelled():
                return
            try:
                found = read(connection)
            except (sqlite3.Error, OSError) as error:
                trouble = unusable(error, self._path)
                self._tell(lambda: _fail(done, trouble))
            except (OverflowError, TypeError, UnicodeEncodeError) as error:
                refusal = StoreRefused("a value of the query can't be stored")
                refusal.__cause__ = error
                self._tell(lambda: _fail(done, refusal))
            else:
                self._tell(lambda: _succeed(done, found))

        def give_up(error: ZeroclawError) -> None:
            _fail(done, error)

        self._waiting.add(give_up)
        try:
            self._queries.put(run)
            return await done
        finally:
            self._waiting.discard(give_up)

    def _end(self) -> None:
        # Nobody waits unless the thread died by a fault of our own.
        self._stopping = True
        for give_up in tuple(self._waiting):
            give_up(StoreUnusable("the store stopped by a fault; restart zeroclaw"))

    def _tell(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(callback)

    def _run(self) -> None:
        try:
            connection = open_for_reading(self._directory)
        except StoreUnusable as error:
            trouble = error
            self._tell(lambda: _fail(self.opened, trouble))
            return
        try:
            self._tell(lambda: _succeed(self.opened, None))
            while (run := self._queries.get()) is not None:
                run(connection)
        finally:
            connection.close()
            self._tell(self._end)


def _succeed(done: asyncio.Future[T], value: T) -> None:
    if not done.done():
        done.set_result(value)


def _fail(done: asyncio.Future[T], error: ZeroclawError) -> None:
    if not done.done():
        done.set_exception(error)
