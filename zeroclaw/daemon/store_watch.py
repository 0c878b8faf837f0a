"""Ends the daemon when the store can't be written any more.

Such a commit fails in the middle of some conversation, and would be retried for ever with nobody
looking. What is stored stays intact, and work continues after the next start.
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
        failed: Callable[[StoreUnusable], None],
        written: Callable[[], None],
        noticed: Callable[[], None],
    ) -> None:
        """Wrap a store; each callback runs before the writer's call returns, and must not wait.

        Args:
            store: The wrapped store.
            failed: Called when the store can't be written any more.
            written: Called after each commit.
            noticed: Called after a commit with something for operators: a notice, or a request.
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
        for one in commit.writes:
            if isinstance(one, Put) and one.kind in _FOR_OPERATORS:
                self._noticed()
                break

    async def lease(self, conversation: ConversationId) -> Fence:
        """Take the conversation; see `Store.lease`."""
        return await self._told(self._store.lease(conversation))

    async def _told(self, done: Awaitable[T]) -> T:
        try:
            return await done
        except StoreUnusable as error:
            self._failed(error)
            raise
