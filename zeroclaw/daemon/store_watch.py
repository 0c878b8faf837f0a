"""Watches the store for the day when it can't be written, which ends the daemon (§9).

A commit that fails so is somebody's in the middle of a conversation, and would be tried again for
ever where nobody looks. What was stored stays as it was, and goes on after the next start.
"""

from collections.abc import Callable
from datetime import datetime

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Commit, Fence, LogEntry, LogKind, Query, Row, RowKind, Store


class ForwardingStore:
    """A store that passes everything on to the one behind it; what is watched overrides a call."""

    def __init__(self, store: Store) -> None:
        """Stand before a store."""
        self._store = store

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; see `Store.commit`."""
        await self._store.commit(commit)

    async def lease(self, conversation: ConversationId) -> Fence:
        """Take the conversation; see `Store.lease`."""
        return await self._store.lease(conversation)

    async def get(self, kind: RowKind, key: str) -> Row | None:
        """Return one row; see `Rows.get`."""
        return await self._store.get(kind, key)

    async def select(self, query: Query) -> tuple[Row, ...]:
        """Return rows; see `Rows.select`."""
        return await self._store.select(query)

    async def count(self, query: Query) -> int:
        """Return how many rows there are; see `Rows.count`."""
        return await self._store.count(query)

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        """Return entries; see `Logs.read`."""
        return await self._store.read(log, stream, after=after, limit=limit)

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        """Return the newest entry; see `Logs.last`."""
        return await self._store.last(log, stream)

    async def streams(self, log: LogKind, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """See `Logs.streams`."""
        return await self._store.streams(log, last=last, before=before)

    async def blob(self, digest: str) -> bytes | None:
        """Return bytes; see `Blobs.blob`."""
        return await self._store.blob(digest)

    async def blobs(
        self, *, put_before: datetime, after: str = "", limit: int = 1000
    ) -> tuple[str, ...]:
        """Return digests; see `Blobs.blobs`."""
        return await self._store.blobs(put_before=put_before, after=after, limit=limit)

    async def size_bytes(self) -> int:
        """Return how much disk the store takes."""
        return await self._store.size_bytes()

    async def used_bytes(self) -> int:
        """Return how much of it holds something; see `Store.used_bytes`."""
        return await self._store.used_bytes()

    async def aclose(self) -> None:
        """Finish what is queued, then close; safe twice."""
        await self._store.aclose()


class WatchedStore(ForwardingStore):
    """A store that tells when it wrote and when it could not; in all else the one behind it."""

    def __init__(
        self,
        store: Store,
        *,
        failed: Callable[[StoreUnusable], None],
        written: Callable[[], None],
    ) -> None:
        """Call one of them each time, before the one who wrote is told; neither may wait."""
        super().__init__(store)
        self._failed = failed
        self._written = written

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; see `Store.commit`."""
        try:
            await super().commit(commit)
        except StoreUnusable as error:
            self._failed(error)
            raise
        self._written()

    async def lease(self, conversation: ConversationId) -> Fence:
        """Take the conversation; see `Store.lease`."""
        try:
            return await super().lease(conversation)
        except StoreUnusable as error:
            self._failed(error)
            raise
