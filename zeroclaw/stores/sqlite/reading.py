"""The reads of a store: of the daemon's own, or of one that is only looked at.

Whoever only looks may do so while a daemon runs: nothing is written and no log is folded in.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import LogEntry, LogKind, Query, Row, RowKind
from zeroclaw.stores.sqlite import reads
from zeroclaw.stores.sqlite.opening import FILE_NAME
from zeroclaw.stores.sqlite.reader import Read, Reader

T = TypeVar("T")


class Reading:
    """`Rows`, `Logs` and `Blobs` over a reader's thread."""

    def __init__(self, reader: Reader) -> None:
        """Hold the reader, which somebody else starts and stops."""
        self._reader = reader

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Read one row, see `Rows.get`."""
        return await self._read(lambda connection: reads.get(connection, kind, key))

    async def find(
        self,
        kind: RowKind,
        *,
        conversation: ConversationId | None = None,
        state: str | None = None,
        place: str | None = None,
        due_before: datetime | None = None,
        after: str = "",
        newest_first: bool = False,
        limit: int = 1000,
    ) -> tuple[Row, ...]:
        """Do what `select` does; new code calls that one."""
        return await self.select(
            Query(
                kind=kind,
                conversation=conversation,
                state=state,
                place=place,
                due_before=due_before,
                after=after,
                newest_first=newest_first,
                limit=limit,
            )
        )

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Read the rows that fit, see `Rows.select`."""
        return await self._read(lambda connection: reads.select(connection, query))

    async def count(self, query: Query) -> int:
        """Count the rows that fit, see `Rows.count`."""
        return await self._read(lambda connection: reads.count(connection, query))

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Read a log, see `Logs.read`."""
        return await self._read(
            lambda connection: reads.read_log(connection, log, stream, after=after, limit=limit)
        )

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Read the newest entry, see `Logs.last`."""
        return await self._read(lambda connection: reads.last_entry(connection, log, stream))

    async def streams(self, log: LogKind, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """Read the names of a log's streams, see `Logs.streams`."""
        if last:
            return await self._read(
                lambda connection: reads.last_streams(connection, log, last=last, before=before)
            )
        return await self._read(lambda connection: reads.streams(connection, log))

    async def blob(self, digest: str) -> bytes | None:
        """Read a blob, see `Blobs.blob`."""
        return await self._read(lambda connection: reads.blob(connection, digest))

    async def blobs(
        self, *, put_before: datetime, after: str = "", limit: int = 1000
    ) -> tuple[str, ...]:
        """Read the digests of older blobs, see `Blobs.blobs`."""
        return await self._read(
            lambda connection: reads.blobs(
                connection, put_before=put_before, after=after, limit=limit
            )
        )

    async def used_bytes(self) -> int:
        """Return the bytes of the pages that hold something, see `Store.used_bytes`."""
        return await self._read(reads.used_bytes)

    async def _read(self, read: Read[T]) -> T:
        return await self._reader.read(read)


@asynccontextmanager
async def open_for_looking(directory: Path) -> AsyncGenerator[Reading]:
    """Read the store of a data directory, whether a daemon runs or not.

    Raises:
        StoreUnusable: There is none, or it can't be read.
    """
    if not await asyncio.to_thread((directory / FILE_NAME).is_file):
        message = f"`{directory}` holds no data yet; start zeroclaw with `zeroclaw run`"
        raise StoreUnusable(message)
    reader = Reader(directory)
    reader.start()
    try:
        await reader.opened
        yield Reading(reader)
    finally:
        reader.stop()
        await asyncio.to_thread(reader.join)
