"""The store on one SQLite file; commits go to the writer thread, queries to the reader thread."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from zeroclaw.channel import Log
from zeroclaw.clock import Clock
from zeroclaw.envelope import ConversationId
from zeroclaw.store import Commit, Fence, Put, Query, Row, RowKind
from zeroclaw.stores.sqlite import statements
from zeroclaw.stores.sqlite.files import FILE_NAME, Opened, drop_copies, open_for_writing
from zeroclaw.stores.sqlite.reader import Reader, StoreReads
from zeroclaw.stores.sqlite.statements import to_microseconds
from zeroclaw.stores.sqlite.writer import CommitJob, LeaseJob, Writer


async def open_store(directory: Path, *, clock: Clock, log: Log | None = None) -> "SqliteStore":
    """Open the store in a directory, created if missing; `aclose` it on the same event loop.

    Args:
        directory: The data directory; one process at a time.
        clock: Decides when claims expire.
        log: Gets `store_opened`, and `file_not_rewritten` at the end of an erasure.

    Raises:
        StoreUnusable: One line that says what to do; nothing was damaged.
    """
    files = partial(open_for_writing, directory)
    store = SqliteStore(directory, clock=clock, open_files=files, log=log)
    opened = await store.open()
    if log is not None:
        log(
            "store_opened",
            path=str(directory / FILE_NAME),
            schema=opened.schema,
            schema_before=opened.schema_before,
            sqlite=sqlite3.sqlite_version,
        )
    return store


class SqliteStore(StoreReads):
    """A `Store`; every method must be called on the event loop that opened it."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock,
        open_files: Callable[[], Opened],
        log: Log | None = None,
    ) -> None:
        self._directory = directory
        self._clock = clock
        super().__init__(Reader(directory))
        self._writer = Writer(directory, open_files=open_files, log=log)
        self._closing = False
        # Kinds without any row. Most stores have no grants, notes or marks, for which a turn asks four times.
        self._absent = frozenset[RowKind]()

    async def open(self) -> Opened:
        """Start both threads; called by `open_store`."""
        self._writer.start()
        with ExitStack() as stack:
            stack.callback(self._stop)  # failed or cancelled: the threads end on their own
            opened = await self._writer.opened
            await self._reader.open()
            self._absent = await self._reader.read(statements.absent)
            stack.pop_all()
        return opened

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing, see `Store.commit`."""
        self._absent -= {write.kind for write in commit.writes if isinstance(write, Put)}
        now_us = to_microseconds(self._clock.now())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._writer.put(CommitJob(commit=commit, now_us=now_us, done=done))
        await done

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Read one row, see `Rows.get`."""
        return None if kind in self._absent else await super().get(kind, key)

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Read the rows that match, see `Rows.select`."""
        return () if query.kind in self._absent else await super().select(query)

    async def lease(self, conversation: ConversationId) -> Fence:
        """Lease the conversation, see `Store.lease`; does not touch the disk."""
        done: asyncio.Future[Fence] = asyncio.get_running_loop().create_future()
        await self._writer.put(LeaseJob(conversation=conversation, done=done))
        return await done

    async def size_bytes(self) -> int:
        """Return the size of the database and the files next to it, with copies of old schemas."""
        return await self._reader.read(lambda _: _size_bytes(self._directory))

    async def drop_copies(self, before: datetime) -> int:
        """Delete the older copies that migrations made, see `Store.drop_copies`."""
        with suppress(OSError):  # the next call tries again
            return await asyncio.to_thread(drop_copies, self._directory, before)
        return 0

    async def aclose(self) -> None:
        """Finish the queued jobs, then close and unlock the directory; safe to call twice."""
        if not self._closing:
            self._stop()
        await asyncio.shield(self._writer.closed)

    def _stop(self) -> None:
        self._closing = True
        self._absent = frozenset[RowKind]()  # reads of these kinds must fail like all others
        self._reader.stop()
        # The writer closes last, so that its close checkpoints the write-ahead log.
        self._writer.stop(before_closing=self._reader.join)


def _size_bytes(directory: Path) -> int:
    size_bytes = 0
    for path in directory.glob(f"{FILE_NAME}*"):
        with suppress(FileNotFoundError):  # the write-ahead log may be deleted at any time
            size_bytes += path.stat().st_size
    return size_bytes
