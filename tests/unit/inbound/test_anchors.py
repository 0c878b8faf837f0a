"""What is noted of chains, and what is remembered of them."""

from datetime import timedelta

from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.gate import audit
from zeroclaw.inbound.anchors import STREAM, Anchors
from zeroclaw.store import Append, Commit, DurablePoint, LogEntry, LogKind, Trim, Write

HERE, THERE = "01HERE", "01THERE"
BODY, _ = audit.link(audit.GENESIS, audit.Entry(kind=audit.Kind.HALTED, at=EPOCH))


class Counted(MemoryStore):
    """Counts the entries that are read of the daemon's own chain."""

    def __init__(self) -> None:
        super().__init__()
        self.entries_read = 0

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 1000
    ) -> tuple[LogEntry, ...]:
        found = await super().read(log, stream, after=after, limit=limit)
        self.entries_read += len(found) if stream == STREAM else 0
        return found


async def write(store: MemoryStore, *writes: Write) -> None:
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))


async def noted(store: MemoryStore) -> int:
    """Return how many anchors there are."""
    return len(await store.read(LogKind.AUDIT, STREAM))


async def with_two_chains() -> Counted:
    store = Counted()
    both = [Append(log=LogKind.AUDIT, stream=stream, body=BODY) for stream in (HERE, THERE)]
    await write(store, *both)
    return store


async def test_a_chain_that_is_gone_is_forgotten() -> None:
    """Retention takes away chains by their age; what is remembered goes with them."""
    store = await with_two_chains()
    anchors = Anchors(store, ManualClock())
    await anchors.anchor()
    assert len(anchors) == 2
    await write(store, Trim(log=LogKind.AUDIT, stream=HERE, before=2))
    await anchors.anchor()
    assert len(anchors) == 1


async def test_a_restart_notes_only_what_has_moved() -> None:
    """Else each start would make the daemon's chain longer by all conversations there are."""
    store = await with_two_chains()
    await Anchors(store, ManualClock()).anchor()
    assert await noted(store) == 2
    odd = (b"damaged", BODY)  # neither is an anchor
    await write(store, *(Append(log=LogKind.AUDIT, stream=STREAM, body=body) for body in odd))
    await write(store, Append(log=LogKind.AUDIT, stream=HERE, body=BODY))
    anchors = Anchors(store, ManualClock())
    await anchors.anchor()
    assert await noted(store) == 2 + len(odd) + 1
    assert len(anchors) == 2


async def test_a_chain_of_which_nothing_is_old_is_not_read() -> None:
    """It has an entry for each time that something ran, of a whole year."""
    store = await with_two_chains()
    clock = ManualClock()
    anchors = Anchors(store, clock)
    await anchors.anchor()
    store.entries_read = 0
    assert not await anchors.cut_own(clock.now() - timedelta(days=1))
    assert store.entries_read == 1
