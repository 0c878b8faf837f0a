"""The reads of a store: those of the daemon, and those of a read-only command.

One thread runs the reads one by one, on a connection that can't write. A read-only command may run
while a daemon runs: it writes nothing and checkpoints no log.

Short reads run on the event loop itself, on a second such connection. Reading a row by key takes
some 20 µs, and the trip to a thread and back takes ten times that; a turn made a dozen of them, a
quarter of its processor time (measured 2026-11). A query that takes too many steps, or finds the
file locked, is aborted and run on the thread.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from zeroclaw.errors import StoreRefused, StoreUnusable
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
P = ParamSpec("P")
Read = Callable[Concatenate[sqlite3.Connection, P], T]


class Reader:
    """Owns the reading connections and their thread."""

    def __init__(self, directory: Path) -> None:
        """Open nothing yet."""
        self._directory = directory
        self._thread = ThreadPoolExecutor(1, "zeroclaw-store-reader")
        self._connections: list[sqlite3.Connection] = []
        self._reads = 0
        self._has_stepped = False
        self._stopping = False

    async def open(self) -> None:
        """Start the thread and open the connections; `stop` it even if this fails.

        Raises:
            StoreUnusable: The file can't be opened.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._open)

    def stop(self) -> None:
        """Finish the queued reads, close the connections, end the thread; call it once."""
        self._stopping = True
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def join(self) -> None:
        """Wait for the thread to end; blocks, so never call it on the event loop."""
        self._thread.shutdown()

    async def read_fast(self, read: Read[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query on the event loop if it is short, else on the thread.

        Raises:
            StoreUnusable: The file can't be read, or the store is closed.
        """
        self._reads += 1
        if self._reads % READS_IN_A_ROW == 0:
            await asyncio.sleep(0)  # so that a caller reading row after row lets other tasks run
        try:
            if not self._stopping:
                self._has_stepped = False
                return read(self._connections[1], *args, **kwargs)
        except (sqlite3.Error, OSError, OverflowError, TypeError, UnicodeEncodeError):
            pass  # too many steps, a lock (the thread waits for it), or an error the thread reports
        return await self.read(read, *args, **kwargs)

    def _abort_if_long(self) -> bool:
        """Abort a query at the second call: the step count carries over from earlier statements."""
        has_stepped, self._has_stepped = self._has_stepped, True
        return has_stepped

    async def read(self, read: Read[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query on the thread.

        Raises:
            StoreRefused: The query has a value that can't be stored.
            StoreUnusable: The file can't be read, or the store is closed.
        """
        if self._stopping:
            message = "the store is closed"
            raise StoreUnusable(message)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(
                self._thread, lambda: read(self._connections[0], *args, **kwargs)
            )
        except (sqlite3.Error, OSError) as error:
            raise unusable(error, self._directory / FILE_NAME) from error
        except (OverflowError, TypeError, UnicodeEncodeError) as error:
            message = "a value of the query can't be stored"
            raise StoreRefused(message) from error

    # --- runs on the thread ---

    def _open(self) -> None:
        for waits in (True, False):
            self._connections.append(open_for_reading(self._directory, waits=waits))
        self._connections[1].set_progress_handler(self._abort_if_long, FAST_STEPS)

    def _close(self) -> None:
        for connection in self._connections:
            connection.close()


class StoreReads:
    """All reads of a `Store`, on top of a reader."""

    def __init__(self, reader: Reader) -> None:
        """Keep the reader; its owner opens and stops it."""
        self._reader = reader

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Read one row, see `Rows.get`."""
        return await self._reader.read_fast(statements.get, kind, key)

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Read the rows that match, see `Rows.select`."""
        return await self._reader.read_fast(statements.select, query)

    async def count(self, query: Query) -> int:
        """Count the rows that match, see `Rows.count`."""
        return await self._reader.read_fast(statements.count, query)

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Read a log, see `Logs.read`."""
        run = self._reader.read_fast if limit <= READS_IN_A_ROW else self._reader.read
        return await run(statements.read_log, log, stream, after=after, limit=limit)

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Read the newest entry, see `Logs.last`."""
        return await self._reader.read_fast(statements.last_entry, log, stream)

    async def streams(self, log: LogKind, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """Read the names of a log's streams, see `Logs.streams`."""
        return await self._reader.read(statements.streams, log, last=last, before=before)

    async def blob(self, digest: str) -> bytes | None:
        """Read a blob, see `Store.blob`."""
        return await self._reader.read(statements.blob, digest)

    async def blobs(self, *, put_before: datetime, limit: int = 1000) -> tuple[str, ...]:
        """Read the digests of older blobs, see `Store.blobs`."""
        return await self._reader.read(statements.blobs, put_before=put_before, limit=limit)

    async def used_bytes(self) -> int:
        """Return the size of the pages in use, see `Store.used_bytes`."""
        return await self._reader.read(statements.used_bytes)


class _ReadOnlyStore(StoreReads):
    """Reads of another process's store; skips off-the-record rows, whose bodies only it has."""

    async def get(self, kind: RowKind, key: str) -> Row | None:
        row = await super().get(kind, key)
        return None if row is None or is_reference(row.body) else row

    async def select(self, query: Query) -> tuple[Row, ...]:
        while rows := await super().select(query):
            if readable := tuple(row for row in rows if not is_reference(row.body)):
                return readable
            query = replace(query, after=rows[-1].key)
        return ()

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        found = await super().read(log, stream, after=after, limit=limit)
        return tuple(entry for entry in found if not is_reference(entry.body))


@asynccontextmanager
async def open_read_only(directory: Path) -> AsyncGenerator[StoreReads]:
    """Read the store of a data directory, whether a daemon runs or not.

    Off-the-record content is left out.

    Raises:
        StoreUnusable: There is no store, it can't be read, or it is of a newer release.
    """
    await asyncio.to_thread(check_is_there, directory)
    reader = Reader(directory)
    try:
        await reader.open()
        yield _ReadOnlyStore(reader)
    finally:
        reader.stop()
        await asyncio.to_thread(reader.join)
