"""Which conversation is open in memory, for how long, and for one process alone."""

import asyncio
import sys
from weakref import ref

import pytest

from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.unit.turn.parts import AT
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Fenced
from zeroclaw.store import Commit, DurablePoint, Fence, LogEntry, LogKind, Put, RowKind, Trim
from zeroclaw.turn.entries import Noted
from zeroclaw.turn.session import (
    KEPT_S,
    LOOK_S,
    MAX_KEPT,
    MAX_KEPT_BYTES,
    MAX_READ,
    ConversationSession,
    Leases,
    SessionCache,
    Transition,
    open_session,
)
from zeroclaw.turn.signals import TextArrived
from zeroclaw.value import replace

HERE = ConversationId("here")
NOTE = Noted(text="x", why="edited", at=AT)


async def test_a_released_session_is_taken_up_as_it_was() -> None:
    """While a turn uses it no other gets it, and it is never older than the disk (P2)."""
    store = MemoryStore()
    leases = Leases(store)
    sessions = SessionCache(store, leases, ManualClock())
    session = await sessions.take(HERE)
    await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(NOTE,)))
    assert await sessions.take(HERE) is not session
    sessions.leave(session)
    assert await sessions.take(HERE) is session


async def test_nothing_is_kept_of_events_that_leave_nothing_to_write() -> None:
    """A long answer arrives in thousands of pieces before its next commit."""
    store = MemoryStore()
    session = await open_session(store, Leases(store), HERE)
    piece = TextArrived(request=1, text="x")
    before = sys.getrefcount(piece)
    await session.commit(Transition(events=(piece,)))
    assert sys.getrefcount(piece) == before


async def test_writes_without_a_commit_of_their_own_wait_for_the_next() -> None:
    """And are in it, though nothing else came with them."""
    store = MemoryStore()
    session = await open_session(store, Leases(store), HERE)
    put = Put(kind=RowKind.SWITCH, key="x", body=b"")
    await session.commit(Transition(writes=(put,)))
    assert await store.get(RowKind.SWITCH, "x") is None
    await session.commit(Transition(point=DurablePoint.HOUSEKEEPING))
    assert await store.get(RowKind.SWITCH, "x") is not None


async def test_few_journals_are_in_memory_at_once() -> None:
    """Two hundred people who wrote at once, each with a long chat, took 140 MB that never came back."""

    class Counting(MemoryStore):
        """Knows how many are reading."""

        reading = most = 0

        async def read(
            self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
        ) -> tuple[LogEntry, ...]:
            self.reading += 1
            self.most = max(self.most, self.reading)
            await asyncio.sleep(0)
            self.reading -= 1
            return await super().read(log, stream, after=after, limit=limit)

    store = Counting()
    sessions = SessionCache(store, Leases(store), ManualClock())
    async with asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(sessions.take(ConversationId(f"{number}")))
    assert store.most == MAX_READ


async def test_a_session_that_another_process_took_meanwhile_is_read_anew() -> None:
    """It has their entries (P2)."""
    store = MemoryStore()
    leases = Leases(store)
    sessions = SessionCache(store, leases, ManualClock())
    sessions.leave(await sessions.take(HERE))
    other = await open_session(store, Leases(store), HERE)
    await other.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(NOTE,)))
    leases.mark_lost(HERE)
    assert (await sessions.take(HERE)).history == other.history


async def test_a_session_whose_oldest_entries_are_gone_is_read_anew() -> None:
    """The model is sent nothing that retention took."""
    store = MemoryStore()
    sessions = SessionCache(store, Leases(store), ManualClock())
    session = await sessions.take(HERE)
    await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(NOTE, NOTE)))
    sessions.leave(session)
    trim = Trim(log=LogKind.JOURNAL, stream=HERE, before=2)
    await store.write(trim)
    assert await sessions.take(HERE) is not session


async def test_few_desks_are_kept() -> None:
    """The one that was left longest ago goes first."""
    store = MemoryStore()
    sessions = SessionCache(store, Leases(store), ManualClock())
    names = [ConversationId(f"c{number}") for number in range(MAX_KEPT + 1)]
    left = [await sessions.take(name) for name in names]
    for session in left:
        sessions.leave(session)
    assert await sessions.take(names[0]) is not left[0]
    assert await sessions.take(names[1]) is left[1]


async def with_a_note_of(
    sessions: SessionCache, conversation: str, size: int
) -> ConversationSession:
    """Take a session, write so many bytes and a few more into its journal, and leave it."""
    session = await sessions.take(ConversationId(conversation))
    note = replace(NOTE, text="x" * size)
    await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(note,)))
    sessions.leave(session)
    return session


async def test_long_conversations_leave_room_for_fewer() -> None:
    """The kept sessions are bounded by size; the least recently used ones go first."""
    store = MemoryStore()
    sessions = SessionCache(store, Leases(store), ManualClock())
    third = MAX_KEPT_BYTES // 3
    left = [await with_a_note_of(sessions, f"c{number}", third) for number in range(4)]
    kept = [await sessions.take(session.conversation) is session for session in left]
    assert kept == [False, False, True, True]


async def test_the_size_of_a_conversation_that_was_read_counts_like_one_that_was_written() -> None:
    store = MemoryStore()
    sessions = SessionCache(store, Leases(store), ManualClock())
    written = await with_a_note_of(sessions, "here", 1000)
    assert (await open_session(store, Leases(store), HERE)).journal_bytes == written.journal_bytes


async def test_the_newest_conversation_stays_at_any_length() -> None:
    """Else each message of a long one would wait until all of it was read anew."""
    store = MemoryStore()
    sessions = SessionCache(store, Leases(store), ManualClock())
    short = await with_a_note_of(sessions, "short", 1)
    long = await with_a_note_of(sessions, "here", 2 * MAX_KEPT_BYTES)
    assert await sessions.take(short.conversation) is not short
    assert await sessions.take(HERE) is long


async def test_a_quiet_conversation_is_let_go_of() -> None:
    """After a crowd memory comes back by itself, without a new message."""
    store, clock = MemoryStore(), ManualClock()
    sessions = SessionCache(store, Leases(store), clock)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(sessions.keep())
        old = await sessions.take(ConversationId("old"))
        sessions.leave(old)
        await clock.advance(KEPT_S - LOOK_S)
        young = await sessions.take(HERE)
        sessions.leave(young)
        await clock.advance(2 * LOOK_S)
        assert await sessions.take(old.conversation) is not old
        assert await sessions.take(HERE) is young
        sessions.leave(young)
        await clock.advance(KEPT_S + LOOK_S)
        assert await sessions.take(HERE) is not young
        keeping.cancel()


# --- leases: a conversation is taken once, however many ask for it at once ------------------------

LEASED = ConversationId("01C")


async def write(store: MemoryStore, fence: Fence) -> None:
    await store.commit(
        Commit(point=DurablePoint.HOUSEKEEPING, conversation=LEASED, fence=fence, writes=())
    )


async def test_all_who_ask_at_once_get_the_same_fence() -> None:
    """A second lease would make the first worthless, and its holder would give up (P1)."""
    store = MemoryStore()
    leases = Leases(store)
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(leases.fence_of(LEASED)) for _ in range(3)]
    first, second, third = (task.result() for task in asking)
    assert first == second == third
    await write(store, first)


async def test_a_fence_is_kept_while_it_is_held() -> None:
    """The outbox writes by the fence of the turn (P2)."""
    leases = Leases(MemoryStore())
    first = await leases.fence_of(LEASED)
    assert await leases.fence_of(LEASED) is first


async def test_nothing_is_kept_of_conversations_without_a_holder() -> None:
    """Whoever ever wrote to the bot would stay in memory for as long as the process lives."""
    leases = Leases(MemoryStore())
    held = await leases.fence_of(LEASED)
    others = [ref(await leases.fence_of(ConversationId(f"c{number}"))) for number in range(100)]
    assert [other for other in others if other()] == []
    assert await leases.fence_of(LEASED) is held


async def test_a_fence_that_was_lost_is_taken_anew() -> None:
    store = MemoryStore()
    leases = Leases(store)
    old = await leases.fence_of(LEASED)
    await store.lease(LEASED)
    with pytest.raises(Fenced):
        await write(store, old)
    leases.mark_lost(LEASED)
    await write(store, await leases.fence_of(LEASED))


async def test_who_waits_takes_over_when_the_first_is_cancelled() -> None:
    leases = Leases(MemoryStore())
    async with asyncio.TaskGroup() as group:
        first = group.create_task(leases.fence_of(LEASED))
        second = group.create_task(leases.fence_of(LEASED))
        await asyncio.sleep(0)
        first.cancel()
    assert second.result() is await leases.fence_of(LEASED)
