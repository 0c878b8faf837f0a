"""A conversation is taken once, however many ask for it at once."""

import asyncio

import pytest

from tests.fakes.memory_store import MemoryStore
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Fenced
from zeroclaw.store import Commit, DurablePoint, Fence
from zeroclaw.turn.session import Leases

HERE = ConversationId("01C")


async def write(store: MemoryStore, fence: Fence) -> None:
    await store.commit(
        Commit(point=DurablePoint.HOUSEKEEPING, conversation=HERE, fence=fence, writes=())
    )


async def test_all_who_ask_at_once_get_the_same_fence() -> None:
    """A second lease would make the first worthless, and its holder would give up (P1)."""
    store = MemoryStore()
    leases = Leases(store)
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(leases.fence_of(HERE)) for _ in range(3)]
    first, second, third = (task.result() for task in asking)
    assert first == second == third
    await write(store, first)


async def test_a_fence_is_kept_while_somebody_holds_it() -> None:
    """The outbox writes by the fence of the turn (P2)."""
    leases = Leases(MemoryStore())
    first = await leases.fence_of(HERE)
    assert await leases.fence_of(HERE) is first


async def test_nothing_is_kept_of_conversations_that_nobody_holds() -> None:
    """Whoever ever wrote to the bot would stay in memory for as long as the process lives."""
    leases = Leases(MemoryStore())
    held = await leases.fence_of(HERE)
    for number in range(100):
        await leases.fence_of(ConversationId(f"c{number}"))
    assert len(leases) == 1
    assert await leases.fence_of(HERE) is held


async def test_a_fence_that_was_lost_is_taken_anew() -> None:
    store = MemoryStore()
    leases = Leases(store)
    old = await leases.fence_of(HERE)
    await store.lease(HERE)
    with pytest.raises(Fenced):
        await write(store, old)
    leases.mark_lost(HERE)
    await write(store, await leases.fence_of(HERE))


async def test_who_waits_takes_over_when_the_first_is_cancelled() -> None:
    leases = Leases(MemoryStore())
    async with asyncio.TaskGroup() as group:
        first = group.create_task(leases.fence_of(HERE))
        second = group.create_task(leases.fence_of(HERE))
        await asyncio.sleep(0)
        first.cancel()
    assert second.result() is await leases.fence_of(HERE)
