"""The bell of a conversation, its lease and its desk."""

import asyncio

import pytest

from tests.fakes.memory_store import MemoryStore
from tests.unit.turn.parts import AT
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Fenced, StoreUnusable
from zeroclaw.store import Commit, DurablePoint, LogKind, RowKind
from zeroclaw.turn.bell import Bell
from zeroclaw.turn.desk import open_desk
from zeroclaw.turn.entries import Noted
from zeroclaw.turn.leases import Leases
from zeroclaw.turn.numbers import Numbers, last_put

HERE = ConversationId("here")
NOTE = Noted(text="x", why="edited", at=AT)


async def test_a_bell_that_rang_before_the_look_is_heard() -> None:
    """Silenced, looked, and rung meanwhile: the wait returns at once (P2)."""
    bell = Bell()
    assert not bell.rings
    bell.ring()
    assert bell.rings
    await bell.wait()
    bell.silence()
    assert not bell.rings


async def test_a_conversation_is_taken_once_and_again_when_lost() -> None:
    """Whoever writes for it shares the fence (P2)."""
    leases = Leases(MemoryStore())
    first = await leases.fence_of(HERE)
    assert await leases.fence_of(HERE) == first
    leases.lost(HERE)
    leases.lost(HERE)
    assert (await leases.fence_of(HERE)).token == first.token + 1


async def test_a_desk_has_on_the_table_what_is_on_disk() -> None:
    """A commit that failed changes nothing in memory; a second desk fences the first off (P2)."""
    store = MemoryStore()
    desk = await open_desk(store, Leases(store), HERE)

    def fail(commit: Commit) -> None:
        message = "full"
        raise StoreUnusable(message)

    store.before = fail
    with pytest.raises(StoreUnusable):
        await desk.commit(DurablePoint.HOUSEKEEPING, journal=(NOTE,))
    assert desk.history.messages == ()
    store.before = None
    await desk.commit(DurablePoint.HOUSEKEEPING, journal=(NOTE,))
    assert len(desk.history.messages) == 1
    other = await open_desk(store, Leases(store), HERE)
    assert other.history == desk.history
    with pytest.raises(Fenced):
        await desk.commit(DurablePoint.HOUSEKEEPING, journal=(NOTE,))


async def test_a_journal_longer_than_a_page_is_read_whole() -> None:
    """The newest entries are those that count."""
    store = MemoryStore()
    desk = await open_desk(store, Leases(store), HERE)
    await desk.commit(DurablePoint.HOUSEKEEPING, journal=(NOTE,) * 2001)
    again = await open_desk(store, Leases(store), HERE)
    assert len(again.history.messages) == 2001
    assert len(await store.read(LogKind.JOURNAL, HERE)) == 2001


async def test_numbers_only_grow_whatever_order_they_are_stored_in() -> None:
    """Two conversations take numbers for one chat, and commit in the other order (P5)."""
    store = MemoryStore()
    numbers = Numbers(store)
    async with asyncio.TaskGroup() as group:
        one = group.create_task(numbers.take("place", 2))
        two = group.create_task(numbers.take("place", 3))
    assert sorted((one.result(), two.result())) in ([1, 3], [1, 4])
    writes = (
        last_put("place", ConversationId("b"), 5),
        last_put("place", ConversationId("a"), 2),
        last_put("elsewhere", ConversationId("a"), 9),
    )
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))
    assert len(await store.find(RowKind.COUNTER)) == 3
    assert await Numbers(store).take("place", 1) == 6
