"""Watches the store for the day when it can't be written, which ends the daemon (§9).

A commit that fails so is somebody's in the middle of a conversation, and would be tried again for
ever where nobody looks. What was stored stays as it was, and goes on after the next start.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Commit, Fence, Put, RowKind, Store

T = TypeVar("T")


class WatchedStore:
    """A `Store` that tells when it wrote and when it could not; in all else the one behind it."""

    def __init__(
        self,
        store: Store,
        *,
        failed: Callable[[StoreUnusable], None],
        written: Callable[[], None],
        noticed: Callable[[], None],
    ) -> None:
        """Call these each time, before the one who wrote is told; none may wait.

        Args:
            store: Behind it.
            failed: It can't be written any more.
            written: Something was.
            noticed: A notice to operators was, see `NOTICES`.
        """
        self._store = store
        self._failed = failed
        self._written, self._noticed = written, noticed
        self.get, self.select, self.count = store.get, store.select, store.count
        self.read, self.last, self.streams = store.read, store.last, store.streams
        self.blob, self.blobs = store.blob, store.blobs
        self.size_bytes, self.used_bytes = store.size_bytes, store.used_bytes
        self.aclose = store.aclose

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; see `Store.commit`."""
        await self._told(self._store.commit(commit))
        self._written()
        if any(isinstance(one, Put) and one.kind is RowKind.NOTICE for one in commit.writes):
            self._noticed()

    async def lease(self, conversation: ConversationId) -> Fence:
        """Take the conversation; see `Store.lease`."""
        return await self._told(self._store.lease(conversation))

    async def _told(self, done: Awaitable[T]) -> T:
        try:
            return await done
        except StoreUnusable as error:
            self._failed(error)
            raise
