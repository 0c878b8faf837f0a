"""The SQLite store beyond the contract: groups, opening, closing, deletion."""

import asyncio
import errno
import hashlib
import os
import shutil
import sqlite3
from contextlib import aclosing, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Event
from weakref import ref

import pytest

from tests.contract.store_writes import at, chore, counter
from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.unit.stores.sqlite.groups import (
    CONVERSATION,
    Gate,
    before_work,
    claim,
    counters_on_disk,
    grouped,
    names,
)
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import AlreadyClaimed, Conflict, StoreUnusable
from zeroclaw.store import Claim, Commit, Delete, DropBlob, DurablePoint, PutBlob, Query, RowKind
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.files import FILE_NAME, open_for_writing, unusable
from zeroclaw.stores.sqlite.schema import backup_path, shipped
from zeroclaw.stores.sqlite.statements import blobs, to_microseconds
from zeroclaw.stores.sqlite.writer import Fences

# --- groups ---------------------------------------------------------------------------------------


async def test_commits_that_wait_together_are_synced_together(tmp_path: Path) -> None:
    """A hundred commits at one instant cost a few syncs of the disk, not a hundred."""
    statements: list[str] = []
    commits = [chore(counter(str(number))) for number in range(100)]
    errors = await grouped(tmp_path, *commits, trace=statements.append)
    assert errors == [None] * 100
    assert 1 <= statements.count("COMMIT") <= 10


async def test_a_refused_commit_does_not_affect_its_group(tmp_path: Path) -> None:
    """Each commit is undone by itself; later ones of the group see only the others' writes."""
    errors = await grouped(
        tmp_path,
        chore(claim("a"), counter("1")),
        chore(counter("2"), claim("a")),
        chore(counter("3"), at("2", 0), counter("2")),
        chore(at("1", 9), counter("1")),
        chore(at("1", 1), counter("1", b"2")),
    )

    assert [type(error) for error in errors] == [
        type(None),
        AlreadyClaimed,
        type(None),
        Conflict,
        type(None),
    ]
    assert await counters_on_disk(tmp_path) == {"1": b"2", "2": b"1", "3": b"1"}


async def test_a_failed_commit_makes_no_later_claim_a_duplicate(tmp_path: Path) -> None:
    """When the disk fails both admissions of an event fail, so the platform sends it again (P1)."""
    errors = await grouped(
        tmp_path,
        chore(claim("event"), counter("1", bytes(100_000))),
        chore(claim("event"), counter("2", bytes(100_000))),
        full=True,
    )

    assert [type(error) for error in errors] == [StoreUnusable, StoreUnusable]
    assert await counters_on_disk(tmp_path) == {}


async def test_a_commit_that_does_not_fit_is_refused_alone(tmp_path: Path) -> None:
    """On an almost full disk, small commits are still written."""
    errors = await grouped(
        tmp_path,
        chore(counter("1")),
        chore(counter("2", bytes(100_000))),
        chore(counter("3")),
        full=True,
    )

    assert [type(error) for error in errors] == [type(None), StoreUnusable, type(None)]
    assert await counters_on_disk(tmp_path) == {"1": b"1", "3": b"1"}


async def test_a_lease_waits_for_commits_under_an_older_fence(tmp_path: Path) -> None:
    """When a lease returns, all commits under the older fence are on disk, or will be refused."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        older = await store.lease(CONVERSATION)
        commit = Commit(
            point=DurablePoint.FINISHED,
            writes=(counter("a"),),
            conversation=CONVERSATION,
            fence=older,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(store.commit(commit))
            await asyncio.sleep(0)
            await store.lease(CONVERSATION)
            row = await store.get(RowKind.COUNTER, "a")

    assert row is not None


# --- opening and closing --------------------------------------------------------------------------


async def test_opening_is_logged(tmp_path: Path) -> None:
    """One line names the file, the schema and the SQLite version."""
    logged: list[tuple[str, dict[str, object]]] = []

    def log(event: str, /, **fields: object) -> None:
        logged.append((event, fields))

    async with aclosing(await open_store(tmp_path, clock=ManualClock(), log=log)):
        pass

    facts = {
        "path": str(tmp_path / FILE_NAME),
        "schema": 2,
        "schema_before": 0,
        "sqlite": sqlite3.sqlite_version,
    }
    assert logged == [("store_opened", facts)]


async def test_a_store_that_can_not_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    """The refusal is raised to the caller, and the directory is free again."""
    path = tmp_path / FILE_NAME
    path.write_text("my diary\n" * 1000)
    with pytest.raises(StoreUnusable):
        await open_store(tmp_path, clock=ManualClock())
    path.unlink()

    assert await counters_on_disk(tmp_path) == {}


async def test_a_cancelled_opening_releases_the_directory(tmp_path: Path) -> None:
    """A daemon stopped while it starts leaves no lock behind in its process."""
    gate = Gate(tmp_path)
    store = gate.store()
    opening = asyncio.get_running_loop().create_task(store.open())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    gate.open.set()
    await store.aclose()

    assert await counters_on_disk(tmp_path) == {}


async def test_a_closed_store_refuses_calls(tmp_path: Path) -> None:
    """Late callers get an error instead of waiting."""
    store = await open_store(tmp_path, clock=ManualClock())
    await store.aclose()

    with pytest.raises(StoreUnusable, match="the store is closed"):
        await store.commit(chore(counter("a")))
    with pytest.raises(StoreUnusable, match="the store is closed"):
        await store.get(RowKind.COUNTER, "a")
    with pytest.raises(StoreUnusable, match="the store is closed"):
        await store.select(Query(kind=RowKind.GRANT))
    with pytest.raises(StoreUnusable, match="the store is closed"):
        await store.lease(CONVERSATION)


async def test_closing_leaves_one_file(tmp_path: Path) -> None:
    """The write-ahead log is folded in, so a copy of the file is a whole backup."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("a")))

    assert names(tmp_path) == ["lock", FILE_NAME]


async def test_a_commit_that_is_cancelled_before_its_turn_is_not_written(tmp_path: Path) -> None:
    """A caller that gave up while the writer was busy leaves no row and no slot in the queue."""
    gate = Gate(tmp_path)
    store = gate.store()
    async with asyncio.TaskGroup() as group:
        group.create_task(store.open())
        given_up = group.create_task(store.commit(chore(counter("a"))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.sleep(0)
        gate.open.set()
    await store.aclose()

    assert await counters_on_disk(tmp_path) == {}


async def test_a_commit_that_is_cancelled_while_it_is_written_harms_no_other(
    tmp_path: Path,
) -> None:
    """It is on disk; the answer that nobody waits for is dropped."""
    loop, cancelled, faults = asyncio.get_running_loop(), Event(), list[object]()
    loop.set_exception_handler(lambda _, context: faults.append(context))

    def cancel_first(statement: str) -> None:
        if statement == "COMMIT":
            loop.call_soon_threadsafe(given_up.cancel)
            loop.call_soon_threadsafe(cancelled.set)
            cancelled.wait()

    async with before_work(tmp_path, lambda it: it.set_trace_callback(cancel_first)) as store:
        async with asyncio.TaskGroup() as group:
            given_up = group.create_task(store.commit(chore(counter("a"))))
        await store.commit(chore(counter("b")))

    assert given_up.cancelled()
    assert faults == []
    assert await counters_on_disk(tmp_path) == {"a": b"1", "b": b"1"}


# --- claims ---------------------------------------------------------------------------------------


async def test_later_claims_remove_expired_ones(tmp_path: Path) -> None:
    """Disk use is bounded without a separate task."""
    clock = ManualClock()
    async with aclosing(await open_store(tmp_path, clock=clock)) as store:
        old = Claim(
            keys=tuple(str(number) for number in range(600)), until=EPOCH + timedelta(seconds=1)
        )
        await store.commit(chore(old, claim("kept")))
        await clock.advance(2)
        await store.commit(chore(claim("second")))
        await store.commit(chore(claim("third")))

    connection = sqlite3.connect(tmp_path / FILE_NAME)
    keys: list[tuple[str]] = connection.execute("SELECT key FROM claim ORDER BY key").fetchall()
    connection.close()
    assert keys == [("kept",), ("second",), ("third",)]


async def test_a_refused_commit_costs_no_sync(tmp_path: Path) -> None:
    statements: list[str] = []
    (error,) = await grouped(tmp_path, chore(counter("a"), at("a", 7)), trace=statements.append)
    assert isinstance(error, Conflict)
    assert (statements.count("ROLLBACK"), statements.count("COMMIT")) == (1, 0)


def test_the_test_process_holds_no_descriptor_of_a_closed_store(tmp_path: Path) -> None:
    """Opening and closing leaks no file."""

    async def once() -> None:
        await counters_on_disk(tmp_path)

    asyncio.run(once())
    before = names(Path("/proc/self/fd"))
    asyncio.run(once())

    assert names(Path("/proc/self/fd")) == before


# --- deletion ---------------------------------------------------------------------------


async def test_free_pages_are_returned_to_the_disk(tmp_path: Path) -> None:
    """The file shrinks while much is removed, a little with each commit."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        for number in range(20):
            body = bytes([number]) * 500_000
            digest = hashlib.sha256(body).hexdigest()
            await store.commit(chore(PutBlob(digest=digest, body=body)))
        for digest in await store.blobs(put_before=EPOCH + timedelta(days=1)):
            await store.commit(chore(DropBlob(digest=digest)))

    assert (tmp_path / FILE_NAME).stat().st_size < 3_000_000


def holding(directory: Path, words: bytes) -> list[str]:
    """The names of the files that hold these bytes."""
    return [path.name for path in directory.iterdir() if words in path.read_bytes()]


async def test_after_an_erasure_no_file_holds_the_words(tmp_path: Path) -> None:
    """Neither free pages nor the write-ahead log do, while the store stays open."""
    words = b"the words that somebody wants forgotten"
    request = Delete(kind=RowKind.FORGETTING, key="person:ann")
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("a", words * 500), counter("b", words)))
        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="a")))
        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="b")))
        await store.commit(chore(request))
        assert holding(tmp_path, words) == []


async def test_an_erasure_removes_the_copies_of_older_schemas(tmp_path: Path) -> None:
    """An upgrade left them, whole or cut off, and no table and no age leads to them."""
    copy = backup_path(tmp_path / FILE_NAME, 1)
    for path in (copy, copy.with_name(f"{copy.name}.unfinished")):
        path.write_bytes(b"the words")
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(Delete(kind=RowKind.FORGETTING, key="person:ann")))
        assert holding(tmp_path, b"the words") == []


async def test_a_copy_that_is_gone_saves_no_other_from_an_erasure(tmp_path: Path) -> None:
    """A sweep may delete it meanwhile, and a link may lead nowhere."""
    gone, copy = (backup_path(tmp_path / FILE_NAME, number) for number in (1, 2))
    gone.symlink_to(tmp_path / "nowhere")
    copy.write_bytes(b"the words")
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(Delete(kind=RowKind.FORGETTING, key="person:ann")))
    assert not copy.exists()


async def test_old_copies_of_older_schemas_are_dropped(tmp_path: Path) -> None:
    """One that can't be deleted harms nothing."""
    clock = ManualClock()
    copies = [backup_path(tmp_path / FILE_NAME, number) for number in (1, 2, 3)]
    copies[0].mkdir()
    async with aclosing(await open_store(tmp_path, clock=clock)) as store:
        assert await store.drop_copies(datetime.max.replace(tzinfo=UTC)) == 0
        copies[0].rmdir()
        for copy, age in zip(copies, (91, 91, 89), strict=True):
            copy.write_bytes(b"words")
            made_s = (clock.now() - timedelta(days=age)).timestamp()
            os.utime(copy, (made_s, made_s))
        assert await store.drop_copies(clock.now() - timedelta(days=90)) == 2
        assert [copy.exists() for copy in copies] == [False, False, True]


@pytest.mark.parametrize("seed", range(8))
async def test_after_an_erasure_no_split_page_holds_the_words(tmp_path: Path, seed: int) -> None:
    """SQLite leaves a copy there of some of the rows that it moves to another page."""
    random = Random(seed)
    every = [f"{number:03}" for number in range(160)]
    going = random.sample(every, 80)
    puts = [
        counter(key, b"the words of %s " % key.encode() * random.choice((5, 15, 30)))
        for key in random.sample(every, len(every))
        for _ in range(3)
    ]
    deletes = [Delete(kind=RowKind.COUNTER, key=key) for key in going]
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(*puts))
        await store.commit(chore(*deletes))
        await store.commit(chore(Delete(kind=RowKind.FORGETTING, key="person:ann")))
        content = (tmp_path / FILE_NAME).read_bytes()
        assert [key for key in going if f"the words of {key}".encode() in content] == []


async def test_a_reader_delays_emptying_the_log_but_no_commit(tmp_path: Path) -> None:
    """A backup may read for minutes; the words go with the first commit after it."""
    words = b"the words that somebody wants forgotten"
    request = Delete(kind=RowKind.FORGETTING, key="person:ann")
    data, killed = tmp_path / "data", tmp_path / "killed"
    async with aclosing(await open_store(data, clock=ManualClock())) as store:
        await store.commit(chore(counter("a", words)))
        with closing(sqlite3.connect(data / FILE_NAME, isolation_level=None)) as reader:
            reader.execute("BEGIN").execute("SELECT count(*) FROM stored_row").fetchone()
            await store.commit(chore(Delete(kind=RowKind.COUNTER, key="a"), request))
            shutil.copytree(data, killed)
        await store.commit(chore(counter("b", b"other")))
        assert holding(data, words) == []
    assert holding(killed, words)
    async with aclosing(await open_store(killed, clock=ManualClock())) as store:
        await store.commit(chore(counter("b", b"other")))
        assert holding(killed, words) == []


def test_blobs_of_the_first_schema_count_as_old_as_their_migration(tmp_path: Path) -> None:
    """A blob of unknown age is not swept early."""
    opened = open_for_writing(tmp_path, migrations=lambda: shipped()[:1])
    opened.connection.execute("INSERT INTO blob (digest, body) VALUES ('a', x'00')")
    opened.close()

    opened = open_for_writing(tmp_path)
    rows: list[tuple[int]] = opened.connection.execute("SELECT put_at FROM blob").fetchall()
    opened.close()

    assert rows[0][0] > to_microseconds(EPOCH - timedelta(days=365))


def test_a_query_for_old_blobs_reads_no_young_one(tmp_path: Path) -> None:
    """In the table their age is stored behind their bytes, so a scan would read each blob whole."""
    opened = open_for_writing(tmp_path)
    insert = "INSERT INTO blob (digest, body, put_at) VALUES (?, zeroblob(9000), ?)"
    opened.connection.executemany(insert, [(f"{number:04}", number) for number in range(1000)])
    steps: list[None] = []
    opened.connection.set_progress_handler(lambda: steps.append(None), 1)
    digests = blobs(opened.connection, put_before=datetime.fromtimestamp(0, UTC), limit=4)
    opened.close()
    assert (digests, len(steps) < 100) == ((), True)


# --- fences ---------------------------------------------------------------------------------------


def test_only_fences_in_use_are_remembered() -> None:
    """A process that runs for months leases more conversations than fit into memory."""
    fences = Fences(epoch=1)
    held = fences.lease(ConversationId("held"))
    left = [ref(fences.lease(ConversationId(f"left {number}"))) for number in range(1000)]
    assert [it() for it in (ref(held), *left) if it() is not None] == [held]


# --- file errors ---------------------------------------------------------

PATH = Path("/data/zeroclaw.db")


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (errno.ENOSPC, "the disk of `/data/zeroclaw.db` is full; free space"),
        (
            errno.EACCES,
            "`/data/zeroclaw.db` can't be used; give zeroclaw's user the right to read and write it",
        ),
        (errno.EROFS, "`/data/zeroclaw.db` is on a read-only file system; name another directory"),
        (errno.ENOLCK, "`/data/zeroclaw.db` can't be used: no locks available"),
    ],
)
def test_errors_of_the_file_system_become_one_line(number: int, line: str) -> None:
    """It tells the operator what to do."""
    assert str(unusable(OSError(number, os.strerror(number)), PATH)) == line


def test_unknown_sqlite_errors_are_passed_on_in_one_line() -> None:
    """An unforeseen error keeps SQLite's message and the file's name."""
    error = sqlite3.OperationalError("strange\nthing")

    assert str(unusable(error, PATH)) == "`/data/zeroclaw.db` can't be used: strange thing"
