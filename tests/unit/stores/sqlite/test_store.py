"""What the SQLite store does beyond the contract: groups, full disks, faults, closing."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import AlreadyClaimed, Conflict, StoreRefused, StoreUnusable
from zeroclaw.store import (
    Append,
    Claim,
    Commit,
    Delete,
    DurablePoint,
    LogKind,
    Put,
    RowKind,
    Write,
)
from zeroclaw.stores.sqlite import SqliteStore, Statistics, open_store, reads
from zeroclaw.stores.sqlite.opening import FILE_NAME, Opened, open_for_writing

HERE = ConversationId("01HERE")


def chore(*writes: Write) -> Commit:
    """A commit in the daemon's own scope."""
    return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes)


def counter(key: str, body: bytes = b"1", *, expect: int | None = None) -> Put:
    return Put(kind=RowKind.COUNTER, key=key, body=body, expect=expect)


def claim(key: str, until: datetime = EPOCH + timedelta(days=1)) -> Claim:
    return Claim(keys=(key,), until=until)


class Gate:
    """Holds the writer's thread back from opening, so that what is handed in becomes one group."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.open = Event()
        self.before_work: Callable[[sqlite3.Connection], None] = lambda _: None

    def files(self) -> Opened:
        opened = open_for_writing(self._directory)
        self.before_work(opened.connection)
        self.open.wait()
        return opened

    def store(self) -> SqliteStore:
        """A store whose thread waits; what it is given is done after `open.set()`."""
        return SqliteStore(
            self._directory, clock=ManualClock(), blob_cap_bytes=1000, open_files=self.files
        )


async def grouped(directory: Path, *commits: Commit, full: bool = False) -> list[Exception | None]:
    """Commit all of these in one group; returns how each ended.

    Args:
        full: The file may not grow any more.
    """
    gate = Gate(directory)
    if full:
        gate.before_work = fill
    store = gate.store()
    ends: list[Exception | None] = [None] * len(commits)

    async def one(number: int) -> None:
        try:
            await store.commit(commits[number])
        except (StoreRefused, StoreUnusable) as error:
            ends[number] = error

    async with asyncio.TaskGroup() as group:
        group.create_task(store.open())
        for number in range(len(commits)):
            group.create_task(one(number))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.open.set()
    await store.aclose()
    return ends


def fill(connection: sqlite3.Connection) -> None:
    """Let the file grow no further than it is."""
    connection.execute("PRAGMA max_page_count = 1")


def impatient(connection: sqlite3.Connection) -> None:
    """Wait for no other program."""
    connection.execute("PRAGMA busy_timeout = 0")


def names(directory: Path) -> list[str]:
    """What is in a directory, sorted."""
    return sorted(path.name for path in directory.iterdir())


async def everything(directory: Path) -> dict[str, bytes]:
    """The counters that are on disk."""
    async with aclosing(await open_store(directory, clock=ManualClock())) as store:
        return {row.key: row.body for row in await store.find(RowKind.COUNTER)}


# --- groups --------------------------------------------------------------------------------------


async def test_what_waits_together_is_synced_together(tmp_path: Path) -> None:
    """A hundred commits at one instant cost a few syncs of the disk, not a hundred."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(store.commit(chore(counter(str(number)))))
        statistics = store.statistics()

    assert (statistics.commits, statistics.refused) == (100, 0)
    assert 1 <= statistics.groups <= 10


async def test_a_refused_commit_leaves_its_group_whole(tmp_path: Path) -> None:
    """Each commit is undone by itself; later ones of the group see only what stayed."""
    ends = await grouped(
        tmp_path,
        chore(claim("a"), counter("1")),
        chore(counter("2"), claim("a")),
        chore(counter("3"), counter("2", expect=0)),
        chore(counter("1", expect=9)),
        chore(counter("1", b"2", expect=1)),
    )

    assert [type(end) for end in ends] == [
        type(None),
        AlreadyClaimed,
        type(None),
        Conflict,
        type(None),
    ]
    assert await everything(tmp_path) == {"1": b"2", "2": b"1", "3": b"1"}


async def test_nobody_is_called_a_duplicate_of_what_did_not_reach_the_disk(tmp_path: Path) -> None:
    """When the disk fails both admissions of an event fail, so the platform sends it again (P1)."""
    ends = await grouped(
        tmp_path,
        chore(claim("event"), counter("1", bytes(100_000))),
        chore(claim("event"), counter("2", bytes(100_000))),
        full=True,
    )

    assert [type(end) for end in ends] == [StoreUnusable, StoreUnusable]
    assert await everything(tmp_path) == {}


async def test_what_does_not_fit_refuses_only_itself(tmp_path: Path) -> None:
    """On a disk that is almost full, small things are still written."""
    ends = await grouped(
        tmp_path,
        chore(counter("1")),
        chore(counter("2", bytes(100_000))),
        chore(counter("3")),
        full=True,
    )

    assert [type(end) for end in ends] == [type(None), StoreUnusable, type(None)]
    assert await everything(tmp_path) == {"1": b"1", "3": b"1"}


async def test_a_lease_waits_for_what_an_older_fence_has_handed_in(tmp_path: Path) -> None:
    """When a lease returns, all under the older fence is on disk, or will be refused."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        older = await store.lease(HERE)
        commit = Commit(
            point=DurablePoint.FINISHED, writes=(counter("a"),), conversation=HERE, fence=older
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(store.commit(commit))
            await asyncio.sleep(0)
            await store.lease(HERE)
            found = await store.get(RowKind.COUNTER, "a")

    assert found is not None


# --- what a caller can get wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        counter("\ud800"),
        claim("\ud800"),
        Append(log=LogKind.AUDIT, stream="\ud800", body=b""),
        claim("a", datetime(2026, 1, 1)),  # noqa: DTZ001  what is wrong with it
    ],
    ids=["surrogate in a key", "in a claim", "in a stream", "a naive instant"],
)
async def test_what_can_not_be_stored_refuses_one_commit_and_nobody_else(
    tmp_path: Path, write: Write
) -> None:
    """Half a character from a broken platform must not stop the writer."""
    ends = await grouped(tmp_path, chore(counter("1")), chore(counter("2"), write))

    assert [type(end) for end in ends] == [type(None), StoreRefused]
    assert await everything(tmp_path) == {"1": b"1"}


async def test_a_query_for_what_can_not_be_stored_refuses_only_itself(tmp_path: Path) -> None:
    """The reader goes on."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        with pytest.raises(StoreRefused):
            await store.get(RowKind.COUNTER, "\ud800")

        assert await store.get(RowKind.COUNTER, "a") is None


# --- disks ---------------------------------------------------------------------------------------


async def test_a_full_store_says_so_and_works_again_when_there_is_room(tmp_path: Path) -> None:
    """Nothing is damaged, reads go on, and no restart is needed."""
    async with aclosing(
        await open_store(tmp_path, clock=ManualClock(), cap_bytes=400_000)
    ) as store:
        await store.commit(chore(counter("1", bytes(200_000))))
        with pytest.raises(StoreUnusable) as refused:
            await store.commit(chore(counter("2", bytes(300_000))))
        assert str(refused.value) == (
            f"`{tmp_path / FILE_NAME}` can't grow: its disk is full, or the store is at its cap; "
            "free space or raise the cap, nothing stored is damaged"
        )
        assert await store.get(RowKind.COUNTER, "2") is None

        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="1")))
        await store.commit(chore(counter("2", bytes(300_000))))
        assert await store.check() is None


async def test_a_file_locked_by_another_program_says_so(tmp_path: Path) -> None:
    """Somebody who looks into the file with another tool and holds it is named as the cause."""
    gate = Gate(tmp_path)
    gate.before_work = impatient
    gate.open.set()
    store = gate.store()
    await store.open()
    async with aclosing(store):
        other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnusable, match="is locked by another program"):
            await store.commit(chore(counter("a")))
        other.execute("ROLLBACK")
        other.close()

        await store.commit(chore(counter("a")))


async def test_damage_is_told_when_it_is_read(tmp_path: Path) -> None:
    """A page that went bad while the daemon was down fails the read, with what to do."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        for number in range(200):
            await store.commit(chore(counter(f"{number:03}", bytes(1000))))
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * len(content[len(content) // 2 :])
    path.write_bytes(content)

    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        with pytest.raises(StoreUnusable, match="is damaged"):
            await store.find(RowKind.COUNTER)
        assert await store.check() is not None


# --- opening and closing -------------------------------------------------------------------------


async def test_opening_is_told_to_the_log(tmp_path: Path) -> None:
    """Which file, which schema, which SQLite."""
    told: list[tuple[str, dict[str, object]]] = []

    def log(event: str, /, **fields: object) -> None:
        told.append((event, fields))

    async with aclosing(await open_store(tmp_path, clock=ManualClock(), log=log)):
        pass

    assert told[0] == (
        "store_opened",
        {
            "path": str(tmp_path / FILE_NAME),
            "schema": 1,
            "schema_before": 0,
            "sqlite": sqlite3.sqlite_version,
        },
    )
    assert [event for event, _ in told[1:]] in ([], ["sqlite_found_affected"])


async def test_a_store_that_can_not_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    """The refusal is raised to the caller, and the directory is free again."""
    path = tmp_path / FILE_NAME
    path.write_text("my diary\n" * 1000)
    with pytest.raises(StoreUnusable):
        await open_store(tmp_path, clock=ManualClock())
    path.unlink()

    assert await everything(tmp_path) == {}


async def test_opening_that_is_cancelled_lets_go_of_the_directory(tmp_path: Path) -> None:
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

    assert await everything(tmp_path) == {}


async def test_a_closed_store_refuses(tmp_path: Path) -> None:
    """Late callers are told, not left waiting."""
    store = await open_store(tmp_path, clock=ManualClock())
    await store.aclose()

    with pytest.raises(StoreUnusable, match="the store is closed"):
        await store.commit(chore(counter("a")))
    with pytest.raises(StoreUnusable, match="the store is closed"):
        await store.get(RowKind.COUNTER, "a")
    with pytest.raises(StoreUnusable, match="the store is closed"):
        await store.lease(HERE)


async def test_closing_leaves_one_file(tmp_path: Path) -> None:
    """The write-ahead log is folded in, so a copy of the file is a whole backup."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("a")))

    assert names(tmp_path) == ["lock", FILE_NAME]


async def test_a_fault_in_the_writer_is_told_to_everybody_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug of ours ends the store with a line; it hangs nobody, and its trace is printed."""
    printed = Event()

    def show(_: threading.ExceptHookArgs) -> None:
        printed.set()

    monkeypatch.setattr(threading, "excepthook", show)
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        with pytest.raises(StoreUnusable, match="stopped by a fault; restart zeroclaw"):
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(None,)))  # pyright: ignore[reportArgumentType]  # the fault
        with pytest.raises(StoreUnusable):
            await store.commit(chore(counter("a")))
    await asyncio.to_thread(printed.wait)


async def test_a_fault_in_the_reader_is_told_to_everybody_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads end with a line, commits go on, and closing still closes."""
    printed = Event()

    def show(_: threading.ExceptHookArgs) -> None:
        printed.set()

    def faulty(_: sqlite3.Connection) -> None:
        raise AssertionError

    monkeypatch.setattr(threading, "excepthook", show)
    monkeypatch.setattr(reads, "check", faulty)
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        with pytest.raises(StoreUnusable, match="stopped by a fault; restart zeroclaw"):
            await store.check()
        with pytest.raises(StoreUnusable):
            await store.get(RowKind.COUNTER, "a")
        await store.commit(chore(counter("a")))
    await asyncio.to_thread(printed.wait)
    monkeypatch.undo()

    assert await everything(tmp_path) == {"a": b"1"}


async def test_a_commit_that_is_cancelled_before_its_turn_is_not_written(tmp_path: Path) -> None:
    """Whoever gave up while the writer was busy left nothing, and no place stays taken."""
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

    assert await everything(tmp_path) == {}


# --- claims --------------------------------------------------------------------------------------


async def test_expired_claims_are_forgotten_by_later_commits(tmp_path: Path) -> None:
    """Disk use is bounded without a task of its own."""
    clock = ManualClock()
    async with aclosing(await open_store(tmp_path, clock=clock)) as store:
        old = Claim(
            keys=tuple(str(number) for number in range(600)), until=EPOCH + timedelta(seconds=1)
        )
        await store.commit(chore(old, claim("kept")))
        await clock.advance(2)
        await store.commit(chore(counter("a")))
        await store.commit(chore(counter("a")))

    connection = sqlite3.connect(tmp_path / FILE_NAME)
    keys: list[tuple[str]] = connection.execute("SELECT key FROM claim").fetchall()
    connection.close()
    assert keys == [("kept",)]


async def test_the_statistics_count_since_opening(tmp_path: Path) -> None:
    """Refused commits are counted apart and cost no sync."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("a")))
        with pytest.raises(Conflict):
            await store.commit(chore(counter("a", expect=0)))

        assert store.statistics() == Statistics(commits=1, refused=1, groups=1, commit_s=0.0)


def test_the_test_process_holds_no_descriptor_of_a_closed_store(tmp_path: Path) -> None:
    """Opening and closing leaks no file."""

    async def once() -> None:
        await everything(tmp_path)

    asyncio.run(once())
    before = names(Path("/proc/self/fd"))
    asyncio.run(once())

    assert names(Path("/proc/self/fd")) == before
