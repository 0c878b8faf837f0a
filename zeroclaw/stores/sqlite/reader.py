"""The reads of a store: the daemon's own, or by a command that only looks.

One thread runs the reads one by one, on a connection that can't write. A command that only looks
may do so while a daemon runs: it writes nothing and folds in no log.

Short reads run on the event loop itself, on a second such connection. Reading a row by key takes
some 20 µs, and the trip to a thread and back takes ten times that; a turn made a dozen of them, a
quarter of its processor time (measured 2026-11). A query that takes too many steps, or finds the
file locked, is aborted and run on the thread.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from zeroclaw.errors import StoreRefused, StoreUnusable, ZeroclawError
from zeroclaw.store import LogEntry, LogKind, Query, Row, RowKind
from zeroclaw.stores.off_the_record import is_reference
from zeroclaw.stores.sqlite import statements
from zeroclaw.stores.sqlite.files import FILE_NAME, check_is_there, open_for_reading, unusable
from zeroclaw.value import replace

READS_IN_A_ROW = 32
"""Reads on the event loop before yielding to it."""
FAST_STEPS = 2_000
"""SQLite VM steps allowed for a query on the event loop: some 150 rows, half a millisecond."""
T = TypeVar("T")
Read = Callable[[sqlite3.Connection], T]


class ReaderThread:
    """Owns the reading connections; the store limits how many queries are queued."""

    def __init__(self, directory: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._directory = directory
        self._path = directory / FILE_NAME
        self._queries: SimpleQueue[Callable[[sqlite3.Connection], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="zeroclaw-store-reader", daemon=True)
        self._inline: sqlite3.Connection | None = None
        self._reads = 0
        self._has_stepped = False
        self._stopping = False
        self._waiting: set[Callable[[ZeroclawError], None]] = set()
        self.opened: asyncio.Future[None] = self._loop.create_future()

    def start(self) -> None:
        """Start the thread, which first opens its connections."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is queued, close the connections, end the thread."""
        self._stopping = True
        self._queries.put(None)
        self._close_inline()

    def join(self) -> None:
        """Wait for the thread to end; blocks, so never call it on the event loop."""
        if self._thread.ident is not None:
            self._thread.join()

    async def read_fast(self, read: Read[T]) -> T:
        """Run a query on the event loop if it is short, else on the thread.

        Raises:
            StoreUnusable: The file can't be read, or the store is closed.
        """
        self._reads += 1
        if self._reads % READS_IN_A_ROW == 0:
            await asyncio.sleep(0)  # so that a caller reading row after row lets other tasks run
        try:
            if self._inline is not None:
                self._has_stepped = False
                return read(self._inline)
        except (sqlite3.Error, OSError, OverflowError, TypeError, UnicodeEncodeError):
            pass  # too many steps, a lock (the thread waits for it), or an error the thread reports
        return await self.read(read)

    def _abort_if_long(self) -> bool:
        """Abort a query at the second call: the step count carries over from earlier statements."""
        has_stepped, self._has_stepped = self._has_stepped, True
        return has_stepped

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

        give_up = partial(_fail, done)
        self._waiting.add(give_up)
        try:
            self._queries.put(run)
            return await done
        finally:
            self._waiting.discard(give_up)

    def _open(self, inline: sqlite3.Connection) -> None:
        if self._stopping:
            inline.close()
            return
        inline.set_progress_handler(self._abort_if_long, FAST_STEPS)
        self._inline = inline
        _succeed(self.opened, None)

    def _close_inline(self) -> None:
        inline, self._inline = self._inline, None
        if inline is not None:
            inline.close()

    def _end(self) -> None:
        # Reads are still waiting here only if a bug killed the thread.
        self._stopping = True
        self._close_inline()
        for give_up in tuple(self._waiting):
            give_up(StoreUnusable("the store stopped by a fault; restart zeroclaw"))

    def _tell(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: no caller is left to tell
            self._loop.call_soon_threadsafe(callback)

    def _run(self) -> None:
        try:
            connection = open_for_reading(self._directory)
            inline = open_for_reading(self._directory, waits=False)
        except StoreUnusable as error:
            trouble = error
            self._tell(lambda: _fail(self.opened, trouble))
            return
        try:
            self._tell(lambda: self._open(inline))
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


class StoreReads:
    """`Rows`, `Logs` and `Blobs` on top of a reader thread."""

    def __init__(self, reader: ReaderThread) -> None:
        """Keep the reader; its owner starts and stops it."""
        self._reader = reader

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Read one row, see `Rows.get`."""
        return await self._reader.read_fast(partial(statements.get, kind=kind, key=key))

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Read the rows that match, see `Rows.select`."""
        return await self._reader.read_fast(partial(statements.select, query=query))

    async def count(self, query: Query) -> int:
        """Count the rows that match, see `Rows.count`."""
        return await self._reader.read_fast(partial(statements.count, query=query))

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Read a log, see `Logs.read`."""
        run = self._reader.read_fast if limit <= READS_IN_A_ROW else self._reader.read
        return await run(
            partial(statements.read_log, log=log, stream=stream, after=after, limit=limit)
        )

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Read the newest entry, see `Logs.last`."""
        return await self._reader.read_fast(partial(statements.last_entry, log=log, stream=stream))

    async def streams(self, log: LogKind, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """Read the names of a log's streams, see `Logs.streams`."""
        return await self._read(partial(statements.streams, log=log, last=last, before=before))

    async def blob(self, digest: str) -> bytes | None:
        """Read a blob, see `Blobs.blob`."""
        return await self._read(partial(statements.blob, digest=digest))

    async def blobs(self, *, put_before: datetime, limit: int = 1000) -> tuple[str, ...]:
        """Read the digests of older blobs, see `Blobs.blobs`."""
        return await self._read(partial(statements.blobs, put_before=put_before, limit=limit))

    async def used_bytes(self) -> int:
        """Return the size of the pages in use, see `Store.used_bytes`."""
        return await self._read(statements.used_bytes)

    async def _read(self, read: Read[T]) -> T:
        return await self._reader.read(read)


class _ReadOnlyStore(StoreReads):
    """Reads of another process's store; skips off-the-record rows, whose bodies only it has."""

    async def get(self, kind: RowKind, key: str) -> Row | None:
        row = await super().get(kind, key)
        return None if row is None or is_reference(row.body) else row

    async def select(self, query: Query) -> tuple[Row, ...]:
        while rows := await super().select(query):
            if found := tuple(row for row in rows if not is_reference(row.body)):
                return found
            query = replace(query, after=rows[-1].key)
        return ()

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        found = await super().read(log, stream, after=after, limit=limit)
        return tuple(one for one in found if not is_reference(one.body))


@asynccontextmanager
async def open_read_only(directory: Path) -> AsyncGenerator[StoreReads]:
    """Read the store of a data directory, whether a daemon runs or not.

    Off-the-record content is left out.

    Raises:
        StoreUnusable: There is none, it can't be read, or it is of a newer release.
    """
    await asyncio.to_thread(check_is_there, directory)
    reader = ReaderThread(directory)
    reader.start()
    try:
        await reader.opened
        yield _ReadOnlyStore(reader)
    finally:
        reader.stop()
        await asyncio.to_thread(reader.join)
