"""Ends the daemon when the store can't be written any more.

Otherwise the commit that fails, in the middle of some conversation, would be retried for ever and
go unnoticed. The stored data stays intact, and work continues after the next start.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Commit, Fence, Store

T = TypeVar("T")


class WatchedStore:
    """A `Store` that reports when a write succeeded or failed; otherwise forwards to the wrapped one."""

    def __init__(
        self,
        store: Store,
        *,
        on_failed: Callable[[StoreUnusable], None],
        on_committed: Callable[[Commit], None],
    ) -> None:
        """Wrap a store; each callback runs before the writer's call returns, and must not wait.

        Args:
            store: The wrapped store.
            on_failed: Called when the store can't be written any more.
            on_committed: Called after each commit.
        """
        self._store = store
        self._on_failed, self._on_committed = on_failed, on_committed
        self.get, self.select, self.count = store.get, store.select, store.count
        self.read, self.last, self.streams = store.read, store.last, store.streams
        self.blob, self.blobs = store.blob, store.blobs
        self.size_bytes, self.used_bytes = store.size_bytes, store.used_bytes
        self.drop_copies, self.aclose = store.drop_copies, store.aclose

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; see `Store.commit`."""
        await self._watch(self._store.commit(commit))
        self._on_committed(commit)

    async def lease(self, conversation: ConversationId) -> Fence:
        """Take the conversation; see `Store.lease`."""
        return await self._watch(self._store.lease(conversation))

    async def _watch(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except StoreUnusable as error:
            self._on_failed(error)
            raise
