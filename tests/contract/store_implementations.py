"""The stores under the contract suite; a new implementation is one entry here."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.daemon.store_watch import WatchedStore
from zeroclaw.envelope import ConversationId
from zeroclaw.store import Put, Store
from zeroclaw.stores.off_the_record import OffTheRecord
from zeroclaw.stores.sqlite import open_store

Opening = Callable[[Path, ManualClock], AbstractAsyncContextManager[Store]]


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """One store.

    Attributes:
        opened: Opens the store of a directory; if the store is durable, a second opening finds the
            rows of the first.
        durable: Its content survives closing.
    """

    name: str
    opened: Opening
    durable: bool


@asynccontextmanager
async def _sqlite(directory: Path, clock: ManualClock) -> AsyncGenerator[Store]:
    store = await open_store(directory / "data", clock=clock)
    async with aclosing(store):
        yield store


@asynccontextmanager
async def _memory(directory: Path, clock: ManualClock) -> AsyncGenerator[Store]:
    store = MemoryStore(clock=clock)
    async with aclosing(store):
        yield store


@asynccontextmanager
async def _watched(directory: Path, clock: ManualClock) -> AsyncGenerator[Store]:
    async with _memory(directory, clock) as store:
        yield WatchedStore(store, on_failed=lambda error: None, on_committed=lambda commit: None)


class _Everything(OffTheRecord):
    """Keeps every row in memory that may be kept there, whichever conversation it belongs to."""

    def _owner_of(self, put: Put, scope: ConversationId | None) -> ConversationId:
        return put.conversation or scope or ConversationId("")


@asynccontextmanager
async def _off_the_record(directory: Path, clock: ManualClock) -> AsyncGenerator[Store]:
    async with _sqlite(directory, clock) as store:
        yield _Everything(store)


IMPLEMENTATIONS = (
    Implementation(name="sqlite", opened=_sqlite, durable=True),
    Implementation(name="memory", opened=_memory, durable=False),
    Implementation(name="watched", opened=_watched, durable=False),
    Implementation(name="off the record", opened=_off_the_record, durable=False),
)
DURABLE = tuple(implementation for implementation in IMPLEMENTATIONS if implementation.durable)
