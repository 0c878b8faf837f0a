"""Which desks stay in memory while nobody writes, and for how long."""

import asyncio

from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.unit.turn.parts import AT
from zeroclaw.envelope import ConversationId
from zeroclaw.store import DurablePoint
from zeroclaw.turn.desk import KEPT_S, LOOK_S, MOST_KEPT, MOST_KEPT_BYTES, Desk, Desks, open_desk
from zeroclaw.turn.entries import Noted
from zeroclaw.turn.leases import Leases
from zeroclaw.value import replace

HERE = ConversationId("here")
NOTE = Noted(text="x", why="edited", at=AT)


async def test_a_desk_that_was_left_tidy_is_taken_up_as_it_was() -> None:
    """While somebody works at it nobody else gets it, and it is never older than the disk (P2)."""
    store = MemoryStore()
    leases = Leases(store)
    desks = Desks(store, leases, ManualClock())
    desk = await desks.take(HERE)
    await desk.commit(DurablePoint.HOUSEKEEPING, journal=(NOTE,))
    assert await desks.take(HERE) is not desk
    desks.leave(desk)
    assert await desks.take(HERE) is desk


async def test_a_desk_that_somebody_else_took_meanwhile_is_read_anew() -> None:
    """What they wrote is on it (P2)."""
    store = MemoryStore()
    leases = Leases(store)
    desks = Desks(store, leases, ManualClock())
    desks.leave(await desks.take(HERE))
    other = await open_desk(store, Leases(store), HERE)
    await other.commit(DurablePoint.HOUSEKEEPING, journal=(NOTE,))
    leases.lost(HERE)
    assert (await desks.take(HERE)).history == other.history


async def test_few_desks_are_kept() -> None:
    """The one that was left longest ago goes first."""
    store = MemoryStore()
    desks = Desks(store, Leases(store), ManualClock())
    names = [ConversationId(f"c{number}") for number in range(MOST_KEPT + 1)]
    left = [await desks.take(name) for name in names]
    for desk in left:
        desks.leave(desk)
    assert await desks.take(names[0]) is not left[0]
    assert await desks.take(names[1]) is left[1]


async def with_a_note_of(desks: Desks, conversation: str, size: int) -> Desk:
    """Take a desk, write so many bytes and a few more into its journal, and leave it."""
    desk = await desks.take(ConversationId(conversation))
    note = replace(NOTE, text="x" * size)
    await desk.commit(DurablePoint.HOUSEKEEPING, journal=(note,))
    desks.leave(desk)
    return desk


async def test_long_conversations_leave_room_for_fewer() -> None:
    """What is kept is bounded by its size; those that were left longest ago go first."""
    store = MemoryStore()
    desks = Desks(store, Leases(store), ManualClock())
    third = MOST_KEPT_BYTES // 3
    left = [await with_a_note_of(desks, f"c{number}", third) for number in range(4)]
    assert len(desks) == 2
    assert await desks.take(left[3].conversation) is left[3]
    assert await desks.take(left[1].conversation) is not left[1]


async def test_the_size_of_a_conversation_that_was_read_counts_like_one_that_was_written() -> None:
    store = MemoryStore()
    desks = Desks(store, Leases(store), ManualClock())
    written = await with_a_note_of(desks, "here", 1000)
    assert (await open_desk(store, Leases(store), HERE)).journal_bytes == written.journal_bytes


async def test_the_newest_conversation_stays_whatever_its_length() -> None:
    """Else each message of a long one would wait until all of it was read anew."""
    store = MemoryStore()
    desks = Desks(store, Leases(store), ManualClock())
    await with_a_note_of(desks, "short", 1)
    long = await with_a_note_of(desks, "here", 2 * MOST_KEPT_BYTES)
    assert len(desks) == 1
    assert await desks.take(HERE) is long


async def test_a_quiet_conversation_is_let_go_of() -> None:
    """After a crowd memory comes back by itself, though nobody writes any more."""
    store, clock = MemoryStore(), ManualClock()
    desks = Desks(store, Leases(store), clock)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(desks.keep())
        desks.leave(await desks.take(ConversationId("old")))
        await clock.advance(KEPT_S - LOOK_S)
        young = await desks.take(HERE)
        desks.leave(young)
        await clock.advance(2 * LOOK_S)
        assert len(desks) == 1
        assert await desks.take(HERE) is young
        desks.leave(young)
        await clock.advance(KEPT_S + LOOK_S)
        assert len(desks) == 0
        keeping.cancel()
