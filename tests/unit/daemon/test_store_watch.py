"""The store, watched for the day when it can't be written, and the last errors told."""

import pytest

from tests.fakes.house import World
from tests.fakes.manual_clock import EPOCH
from tests.fakes.memory_store import MemoryStore
from zeroclaw.daemon.store_watch import WatchedStore
from zeroclaw.delivery.rows import notice_row
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Commit, DurablePoint, Fence, LogKind, Query, RowKind
from zeroclaw.text.language import Sentence

EMPTY = Commit(point=DurablePoint.HOUSEKEEPING, writes=())
HERE = ConversationId("here")


class Broken(MemoryStore):
    """Can't be written at all."""

    async def commit(self, commit: Commit) -> None:
        raise StoreUnusable("read only")

    async def lease(self, conversation: ConversationId) -> Fence:
        raise StoreUnusable("read only")


async def test_what_cannot_be_written_is_told_and_raised() -> None:
    """A commit and a lease alike; whoever wrote is told, too (P10)."""
    told: list[str] = []
    store = WatchedStore(
        Broken(),
        on_failed=lambda error: told.append(str(error)),
        on_written=lambda: told.append("written"),
        on_operators_due=lambda: told.append("noticed"),
    )
    with pytest.raises(StoreUnusable):
        await store.commit(EMPTY)
    with pytest.raises(StoreUnusable):
        await store.lease(HERE)
    assert told == ["read only", "read only"]


async def test_in_all_else_it_is_the_store_behind_it() -> None:
    """Reads and writes pass through; that something was written is told once it was."""
    behind = MemoryStore()
    told: list[str] = []
    store = WatchedStore(
        behind,
        on_failed=lambda _error: None,
        on_written=lambda: told.append("written"),
        on_operators_due=lambda: told.append("noticed"),
    )
    await store.commit(EMPTY)
    assert (behind.commits, told) == ([EMPTY], ["written"])
    assert (await store.lease(HERE)).token == 1
    assert await store.get(RowKind.SWITCH, "x") is None
    assert await store.select(Query(kind=RowKind.SWITCH)) == ()
    assert await store.read(LogKind.AUDIT, "x") == ()
    assert await store.last(LogKind.AUDIT, "x") is None
    assert await store.streams(LogKind.AUDIT) == ()
    assert await store.blob("x") is None
    assert await store.blobs(put_before=EPOCH) == ()
    assert await store.size_bytes() == 0
    assert await store.used_bytes() == 0
    notice = notice_row("0" * 26, Sentence(en="trouble", de="Ärger"))
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(notice,)))
    assert told == ["written", "written", "noticed"]
    await store.aclose()


# --- errors told over the control socket ----------------------------------------------------------


async def test_a_daemon_tells_its_last_errors_and_why_it_has_no_shell(world: World) -> None:
    """Where logging was not set up, as in this test, there are none."""
    async with world.running() as house:
        told = await house.ask("errors")
        assert set(told) == {"errors", "model", "sandbox", "secrets", "watched"}
        assert told["errors"] == []
