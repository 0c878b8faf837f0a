"""The store watch reports failed writes, and the control socket recent errors."""

import pytest

from tests.fakes.house import World
from tests.fakes.manual_clock import EPOCH
from tests.fakes.memory_store import MemoryStore
from zeroclaw.daemon.store_watch import WatchedStore
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Commit, DurablePoint, Fence, LogKind, Query, RowKind

EMPTY = Commit(point=DurablePoint.HOUSEKEEPING, writes=())
CONVERSATION = ConversationId("here")


class Broken(MemoryStore):
    """A store that refuses every write."""

    async def commit(self, commit: Commit) -> None:
        raise StoreUnusable("read only")

    async def lease(self, conversation: ConversationId) -> Fence:
        raise StoreUnusable("read only")


async def test_a_failed_write_is_announced_and_raised() -> None:
    """For a commit and a lease alike; the writer gets the error, too (P10)."""
    notices: list[str] = []
    store = WatchedStore(
        Broken(),
        on_failed=lambda error: notices.append(str(error)),
        on_committed=lambda _commit: notices.append("written"),
    )
    with pytest.raises(StoreUnusable):
        await store.commit(EMPTY)
    with pytest.raises(StoreUnusable):
        await store.lease(CONVERSATION)
    assert notices == ["read only", "read only"]


async def test_all_other_calls_go_to_the_store_behind() -> None:
    """Reads and writes pass through; a write is announced once it is done."""
    behind = MemoryStore()
    announced: list[Commit] = []
    store = WatchedStore(behind, on_failed=lambda _: None, on_committed=announced.append)
    await store.commit(EMPTY)
    assert behind.commits == announced == [EMPTY]
    assert (await store.lease(CONVERSATION)).token == 1
    assert await store.get(RowKind.SWITCH, "x") is None
    assert await store.select(Query(kind=RowKind.SWITCH)) == ()
    assert await store.read(LogKind.AUDIT, "x") == ()
    assert await store.last(LogKind.AUDIT, "x") is None
    assert await store.streams(LogKind.AUDIT) == ()
    assert await store.blob("x") is None
    assert await store.blobs(put_before=EPOCH) == ()
    assert await store.size_bytes() == 0
    assert await store.used_bytes() == 0
    await store.aclose()


# --- errors over the control socket ----------------------------------------------------------


async def test_the_errors_call_returns_recent_errors_and_the_shells_fault(world: World) -> None:
    """Without logging set up, as in this test, there are none."""
    async with world.running() as house:
        answer = await house.ask("errors")
        assert set(answer) == {"errors", "model", "sandbox", "secrets", "watched"}
        assert answer["errors"] == []
