"""The numbers of requests in a chat; see also `test_open_requests.py`."""

from tests.fakes.memory_store import MemoryStore
from zeroclaw.inbound.approvals import COUNTERS, take_numbers
from zeroclaw.store import Commit, DurablePoint, Put, Reads, RowKind, Write, transact

POINT = DurablePoint.HOUSEKEEPING


async def two(reads: Reads) -> tuple[Commit, int]:
    """Take two numbers of one chat."""
    first, writes = await take_numbers(reads, "chat", 2)
    return Commit(point=POINT, writes=writes), first


async def test_two_who_take_numbers_at_once_get_different_ones() -> None:
    """A number that was given is never given again (P5)."""
    store = MemoryStore()
    between: list[int] = []

    async def another_writer(_: tuple[Write, ...]) -> None:
        store.meanwhile = None
        between.append(await transact(store, two))

    store.meanwhile = another_writer

    assert (await transact(store, two), between) == (3, [1])
    assert await transact(store, two) == 5


async def test_the_counters_of_an_earlier_release_become_one() -> None:
    """It counted a chat once for each conversation, and the highest holds."""
    store = MemoryStore()
    older = tuple(
        Put(kind=RowKind.COUNTER, key=f"{place}#{name}", body=last, place=place)
        for place, name, last in (("chat", "a", b"1"), ("chat", "b", b"4"), ("den", "a", b"9"))
    )
    await store.commit(Commit(point=POINT, writes=older))

    assert await transact(store, two) == 5

    left = {row.key: COUNTERS.of(row) for row in await store.select(COUNTERS.where())}
    assert left == {"chat": 6, "den#a": 9}
