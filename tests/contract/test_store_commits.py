"""Every store's promises for a commit: once, bounded, all or nothing."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.contract.store_implementations import Implementation
from tests.contract.store_writes import (
    LATER,
    at,
    blob,
    chore,
    claim,
    counter,
    every_store,
    keys,
    line,
)
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.errors import AlreadyClaimed, Conflict, StoreRefused
from zeroclaw.inbound.approvals import COUNTERS, take_numbers
from zeroclaw.store import (
    LARGEST_BLOB_BYTES,
    TRIES,
    Claim,
    Commit,
    Delete,
    Expect,
    LogEntry,
    LogKind,
    PutBlob,
    Reads,
    Row,
    RowKind,
    Store,
    Write,
    transact,
)

# --- claims ---------------------------------------------------------------------------------------


@every_store
@pytest.mark.parametrize(("first", "second", "hit"), [("a", "a", "a"), ("ab", "cb", "b")])
async def test_any_key_that_was_claimed_refuses_the_whole_commit(
    backend: Implementation, tmp_path: Path, first: str, second: str, hit: str
) -> None:
    """One event has several keys, and any of them makes it a duplicate."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim(*first), counter("1")))

        with pytest.raises(AlreadyClaimed) as refused:
            await store.commit(chore(counter("2"), claim(*second)))
        assert refused.value.key == hit

        await store.commit(chore(claim(*set(second) - set(first)), counter("3")))
        assert await keys(store) == ["1", "3"]


@every_store
async def test_an_event_that_names_a_key_twice_is_still_one_event(
    backend: Implementation, tmp_path: Path
) -> None:
    """Where a platform's two ids of an event are the same, that is no duplicate."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim("a", "a"), counter("1")))

        assert await keys(store) == ["1"]


@every_store
async def test_a_claim_that_has_expired_can_be_claimed_again(
    backend: Implementation, tmp_path: Path
) -> None:
    """A platform's ids may start again after a while; until then they are taken."""
    clock = ManualClock()
    until = EPOCH + timedelta(seconds=10)
    async with backend.opened(tmp_path, clock) as store:
        await store.commit(chore(Claim(keys=("a",), until=until)))

        await clock.advance(9)
        with pytest.raises(AlreadyClaimed):
            await store.commit(chore(Claim(keys=("a",), until=until)))
        await clock.advance(1)
        await store.commit(chore(Claim(keys=("a",), until=LATER)))
        with pytest.raises(AlreadyClaimed):
            await store.commit(chore(Claim(keys=("a",), until=LATER)))


@every_store
async def test_one_of_many_claimants_gets_the_claim(
    backend: Implementation, tmp_path: Path
) -> None:
    """The same event ten times at the same instant is admitted once."""
    outcomes: list[str] = []

    async def admit(store: Store, number: int) -> None:
        try:
            await store.commit(chore(claim("event"), counter(str(number))))
            outcomes.append("admitted")
        except AlreadyClaimed:
            outcomes.append("duplicate")

    async with backend.opened(tmp_path, ManualClock()) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(admit(store, number))
        rows = await keys(store)

    assert outcomes.count("admitted") == len(rows) == 1
    assert outcomes.count("duplicate") == 9


# --- blobs ----------------------------------------------------------------------------------------


@every_store
async def test_a_blob_is_kept_once_under_its_hash(backend: Implementation, tmp_path: Path) -> None:
    """Putting the same bytes again is no error."""
    body = bytes(range(256))
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(blob(body)))
        await store.commit(chore(blob(body), blob(b"")))

        assert await store.blob(blob(body).digest) == body
        assert await store.blob(blob(b"").digest) == b""
        assert await store.blob(blob(b"never").digest) is None


@every_store
async def test_a_blob_at_the_cap_is_kept_and_one_above_is_refused(
    backend: Implementation, tmp_path: Path
) -> None:
    """Too large refuses the whole commit; disk use is bounded."""
    at_cap, above = bytes(LARGEST_BLOB_BYTES), bytes(LARGEST_BLOB_BYTES + 1)
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(blob(at_cap)))
        with pytest.raises(StoreRefused):
            await store.commit(chore(counter("a"), blob(above)))

        assert await store.blob(blob(at_cap).digest) == at_cap
        assert await store.blob(blob(above).digest) is None
        assert await keys(store) == []


@every_store
async def test_a_blob_under_a_name_that_is_not_its_hash_is_refused(
    backend: Implementation, tmp_path: Path
) -> None:
    """The name proves the content."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(StoreRefused):
            await store.commit(chore(PutBlob(digest=blob(b"other").digest, body=b"this")))


# --- all or nothing -------------------------------------------------------------------------------


REFUSED: dict[str, Write] = {
    "a claim": claim("taken"),
    "an expectation": Expect(kind=RowKind.COUNTER, key="there", version=0),
    "an append": line(b"late", after=9),
    "a blob": blob(bytes(LARGEST_BLOB_BYTES + 1)),
}


@every_store
@pytest.mark.parametrize("last", REFUSED)
async def test_a_last_write_that_is_refused_undoes_every_kind_of_write_before_it(
    backend: Implementation, tmp_path: Path, last: str
) -> None:
    """A commit is written whole or not at all."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim("taken"), counter("there"), counter("doomed"), line(b"a")))

        with pytest.raises(StoreRefused):
            await store.commit(
                chore(
                    claim("free"),
                    counter("new"),
                    counter("there", b"changed"),
                    Delete(kind=RowKind.COUNTER, key="doomed"),
                    line(b"b"),
                    line(b"c", stream="new"),
                    blob(b"new"),
                    REFUSED[last],
                )
            )

        assert await keys(store) == ["doomed", "there"]
        assert await store.get(RowKind.COUNTER, "there") == Row(
            kind=RowKind.COUNTER, key="there", version=1, body=b"1"
        )
        assert await store.read(LogKind.AUDIT, "s") == (LogEntry(sequence=1, body=b"a"),)
        assert await store.streams(LogKind.AUDIT) == ("s",)
        assert await store.blob(blob(b"new").digest) is None
        await store.commit(chore(claim("free")))


@every_store
async def test_a_refused_commit_leaves_the_others_of_its_instant_whole(
    backend: Implementation, tmp_path: Path
) -> None:
    """A hundred tasks commit at once; the refused ones affect no other."""
    refused: list[int] = []

    async def write(store: Store, number: int) -> None:
        expect = 9 if number % 3 == 0 else 0
        try:
            await store.commit(
                chore(line(b"%d" % number), at(f"{number:03}", expect), counter(f"{number:03}"))
            )
        except Conflict:
            refused.append(number)

    async with backend.opened(tmp_path, ManualClock()) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(write(store, number))
        entries = await store.read(LogKind.AUDIT, "s")
        rows = await keys(store)

    assert sorted(refused) == list(range(0, 100, 3))
    assert [entry.sequence for entry in entries] == list(range(1, 67))
    assert sorted(entry.body for entry in entries) == sorted(b"%d" % int(key) for key in rows)


@every_store
async def test_a_commit_can_be_read(backend: Implementation, tmp_path: Path) -> None:
    """A read sees every commit that returned before it began, in every task."""

    async def count(store: Store, stream: str) -> list[int]:
        seen: list[int] = []
        for number in range(1, 6):
            await store.commit(chore(line(b"", stream=stream, after=number - 1)))
            last = await store.last(LogKind.AUDIT, stream)
            seen.append(0 if last is None else last.sequence)
        return seen

    async with backend.opened(tmp_path, ManualClock()) as store, asyncio.TaskGroup() as group:
        tasks = [group.create_task(count(store, f"s{number}")) for number in range(20)]

    assert [task.result() for task in tasks] == [[1, 2, 3, 4, 5]] * 20


@every_store
async def test_a_cancelled_commit_is_whole_or_undone(
    backend: Implementation, tmp_path: Path
) -> None:
    """After a cancelled commit both writes are there, or neither."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                task = group.create_task(
                    store.commit(chore(counter(f"{number:03}"), line(b"", stream=f"{number:03}")))
                )
                await asyncio.sleep(0)
                task.cancel()
        rows = await keys(store)
        streams = await store.streams(LogKind.AUDIT)

    assert tuple(rows) == streams


# --- plans that run at once -----------------------------------------------------------------------


@every_store
async def test_plans_that_run_at_once_take_different_numbers(
    backend: Implementation, tmp_path: Path
) -> None:
    """Above those of an earlier release, whose rows the first plan replaces."""

    async def take(reads: Reads) -> tuple[Commit | None, int]:
        first, writes = await take_numbers(reads, "chat", 2)
        return chore(*writes), first

    async with backend.opened(tmp_path, ManualClock()) as store:
        older = (COUNTERS.put(f"chat#{last}", last, place="chat") for last in (3, 4))
        await store.commit(chore(*older))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(transact(store, take)) for _ in range(TRIES)]
        remaining = await keys(store)

    assert sorted(task.result() for task in tasks) == list(range(5, 5 + 2 * TRIES, 2))
    assert remaining == ["chat"]


@every_store
@pytest.mark.parametrize("is_by_key", [True, False])
async def test_one_of_many_plans_ends_the_row(
    backend: Implementation, tmp_path: Path, *, is_by_key: bool
) -> None:
    """Found by its key or in a selection; the others plan again, and find it ended or deleted."""

    async def end(reads: Reads, *, erases: bool) -> tuple[Commit | None, bool]:
        if is_by_key:
            value = await COUNTERS.get(reads, "1")
        else:
            value = next(
                iter([counter_ async for counter_ in COUNTERS.all(reads, place="here")]), None
            )
        if value != 0:
            return None, False
        end = COUNTERS.delete("1") if erases else COUNTERS.put("1", 9, place="here")
        return chore(end), True

    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(COUNTERS.put("1", 0, place="here")))
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(transact(store, partial(end, erases=number % 2 == 1)))
                for number in range(TRIES)
            ]

    assert sum(task.result() for task in tasks) == 1
