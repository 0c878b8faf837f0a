"""Ends the daemon when the store can't be written any more.

Otherwise the commit that fails, in the middle of some conversation, would be retried for ever and
go unnoticed. The stored data stays intact, and work continues after the next start.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Commit, Fence, Put, RowKind, Store

T = TypeVar("T")

_FOR_OPERATORS = frozenset({RowKind.NOTICE, RowKind.APPROVAL, RowKind.STRANGER})


class WatchedStore:
    """A `Store` that reports when a write succeeded or failed; otherwise forwards to the wrapped one."""

    def __init__(
        self,
        store: Store,
        *,
        on_failed: Callable[[StoreUnusable], None],
        on_written: Callable[[], None],
        on_operators_due: Callable[[], None],
    ) -> None:
        """Wrap a store; each callback runs before the writer's call returns, and must not wait.

        Args:
            store: The wrapped store.
            on_failed: Called when the store can't be written any more.
            on_written: Called after each commit.
            on_operators_due: Called after a commit with a notice or a request for operators.
        """
        self._store = store
        self._on_failed, self._on_written = on_failed, on_written
        self._on_operators_due = on_operators_due
        self.get, self.select, self.count = store.get, store.select, store.count
        self.read, self.last, self.streams = store.read, store.last, store.streams
        self.blob, self.blobs = store.blob, store.blobs
        self.size_bytes, self.used_bytes = store.size_bytes, store.used_bytes
        self.drop_copies, self.aclose = store.drop_copies, store.aclose

    async def commit(self, commit: Commit) -> None:
        """Write everything or nothing; see `Store.commit`."""
        await self._watch(self._store.commit(commit))
        self._on_written()
        if any(isinstance(it, Put) and it.kind in _FOR_OPERATORS for it in commit.writes):
            self._on_operators_due()

    async def lease(self, conversation: ConversationId) -> Fence:
        """Take the conversation; see `Store.lease`."""
        return await self._watch(self._store.lease(conversation))

    async def _watch(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except StoreUnusable as error:
            self._on_failed(error)
            raise
