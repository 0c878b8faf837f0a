"""Faults in and around the SQLite store, and the state after a kill."""

import asyncio
import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from threading import Event

import pytest

from tests.contract.store_writes import chore, counter
from tests.fakes.manual_clock import ManualClock
from tests.unit.stores.sqlite import committing_child
from tests.unit.stores.sqlite.committing_child import named
from tests.unit.stores.sqlite.groups import (
    before_work,
    claim,
    counters_on_disk,
    damage,
    grouped,
    impatient,
    small,
)
from zeroclaw.errors import AlreadyClaimed, StoreRefused, StoreUnusable
from zeroclaw.host.places import LOCK
from zeroclaw.store import Append, Commit, Delete, DurablePoint, LogKind, Query, Row, RowKind, Write
from zeroclaw.stores.sqlite import SqliteStore, open_store, statements, writer
from zeroclaw.stores.sqlite.files import FILE_NAME, Opened, open_for_writing
from zeroclaw.stores.sqlite.reader import FAST_STEPS, READS_IN_A_ROW
from zeroclaw.stores.sqlite.statements import rewrite
from zeroclaw.value import replace

# --- caller errors ------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        counter("\ud800"),
        claim("\ud800"),
        Append(log=LogKind.AUDIT, stream="\ud800", body=b""),
        claim("a", datetime(2026, 1, 1)),  # noqa: DTZ001  the fault
    ],
    ids=["surrogate in a key", "in a claim", "in a stream", "a naive instant"],
)
async def test_an_unstorable_value_refuses_only_its_commit(tmp_path: Path, write: Write) -> None:
    """Half a character from a broken platform must not stop the writer."""
    errors = await grouped(tmp_path, chore(counter("1")), chore(counter("2"), write))

    assert [type(error) for error in errors] == [type(None), StoreRefused]
    assert await counters_on_disk(tmp_path) == {"1": b"1"}


async def test_a_query_with_an_unstorable_key_is_refused_alone(tmp_path: Path) -> None:
    """The reader goes on."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("b")))
        with pytest.raises(StoreRefused):
            await store.get(RowKind.COUNTER, "\ud800")

        assert await store.get(RowKind.COUNTER, "a") is None


async def test_kinds_without_rows_are_not_queried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind is queried once it has a row, also one from before the opening."""
    calls = list[str]()

    def noted(_: sqlite3.Connection, kind: RowKind, key: str) -> None:
        calls.append(f"{kind} {key}")

    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("a")))
    monkeypatch.setattr(statements, "get", noted)
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.get(RowKind.NOTE, "a")
        await store.get(RowKind.COUNTER, "a")
        assert calls == ["counter a"]
        assert await store.select(Query(kind=RowKind.NOTE)) == ()
        await store.commit(chore(replace(counter("b"), kind=RowKind.NOTE)))
        assert [row.key for row in await store.select(Query(kind=RowKind.NOTE))] == ["b"]
        await store.get(RowKind.NOTE, "b")
        assert calls == ["counter a", "note b"]


async def test_a_locked_row_is_awaited_on_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop tries it once, and waits for no lock (P9)."""
    get, calls = statements.get, list[str]()

    def locked_at_first(connection: sqlite3.Connection, kind: RowKind, key: str) -> Row | None:
        calls.append(threading.current_thread().name)
        if len(calls) == 1:
            raise sqlite3.OperationalError("database is locked")
        return get(connection, kind, key)

    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("a")))
        monkeypatch.setattr(statements, "get", locked_at_first)
        assert await store.get(RowKind.COUNTER, "a") is not None
    assert calls == ["MainThread", "zeroclaw-store-reader_0"]


async def test_a_long_query_is_interrupted_and_moved_to_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short one stays on the event loop (P9)."""
    select, calls = statements.select, list[str]()

    def noted(connection: sqlite3.Connection, query: Query) -> tuple[Row, ...]:
        calls.append(threading.current_thread().name)
        return select(connection, query)

    rows = [counter(f"{number:04}") for number in range(FAST_STEPS)]
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        monkeypatch.setattr(statements, "select", noted)
        await store.commit(chore(*rows))
        for _ in range(FAST_STEPS):
            assert len(await store.select(Query(kind=RowKind.COUNTER, limit=1))) == 1
        assert calls == ["MainThread"] * FAST_STEPS
        rows_read = await store.select(Query(kind=RowKind.COUNTER, limit=len(rows)))
    assert [row.key for row in rows_read] == [row.key for row in rows]
    assert calls[FAST_STEPS:] == ["MainThread", "zeroclaw-store-reader_0"]


async def test_reading_many_rows_yields_to_other_tasks(tmp_path: Path) -> None:
    """P9."""
    rounds = 0

    async def others() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async with (
        aclosing(await open_store(tmp_path, clock=ManualClock())) as store,
        asyncio.TaskGroup() as group,
    ):
        await store.commit(chore(counter("a")))
        beside = group.create_task(others())
        for number in range(10 * READS_IN_A_ROW):
            await store.get(RowKind.COUNTER, str(number))
        beside.cancel()
        assert rounds >= 10


# --- disks ----------------------------------------------------------------------------------------


async def test_a_full_store_says_so_and_works_again_when_there_is_room(tmp_path: Path) -> None:
    """Nothing is damaged, reads go on, and no restart is needed."""
    async with before_work(tmp_path, small) as store:
        await store.commit(chore(counter("1", bytes(200_000))))
        with pytest.raises(StoreUnusable) as refused:
            await store.commit(chore(counter("2", bytes(300_000))))
        assert str(refused.value) == (
            f"`{tmp_path / FILE_NAME}` can't grow: its disk is full; free space, and start again; "
            "nothing stored is damaged"
        )
        assert await store.get(RowKind.COUNTER, "2") is None

        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="1")))
        await store.commit(chore(counter("2", bytes(300_000))))
    assert damage(tmp_path) == "ok"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (sqlite3.OperationalError("the disk is full"), "the disk is full"),
        (MemoryError(), "no memory is left"),
    ],
)
async def test_a_failed_rewrite_of_the_file_stops_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, reason: str
) -> None:
    """The log is empty by then: filled with a rewritten file, it could not be emptied any more."""
    logged: list[int] = []
    entries: list[object] = []

    def fill(*_: object) -> None:
        logged.append((tmp_path / f"{FILE_NAME}-wal").stat().st_size)
        raise fault

    def note(event: str, **fields: object) -> None:
        entries.append((event, fields.get("reason")))

    monkeypatch.setattr(writer, "rewrite", fill)
    async with aclosing(await open_store(tmp_path, clock=ManualClock(), log=note)) as store:
        for key in "ab":  # opening empties the log, with the first commit
            await store.commit(chore(counter(key)))
        await store.commit(chore(Delete(kind=RowKind.FORGETTING, key="person:ann")))
        await store.commit(chore(counter("c")))
    assert logged == [0]
    assert entries[1:] == [("file_not_rewritten", reason)]


async def test_an_erasure_works_in_a_directory_whose_name_is_not_utf8(tmp_path: Path) -> None:
    """Paths are bytes, such as Latin-1; the daemon used to end there, at every start."""
    directory, logged = tmp_path / os.fsdecode(b"ann\xe9"), list[str]()

    def note(event: str, **_: object) -> None:
        logged.append(event)

    async with aclosing(await open_store(directory, clock=ManualClock(), log=note)) as store:
        await store.commit(chore(Delete(kind=RowKind.FORGETTING, key="person:ann")))
        await store.commit(chore(counter("a")))
    assert logged == ["store_opened", "file_not_rewritten"]


def test_the_file_is_rewritten_on_disk_and_not_in_memory(tmp_path: Path) -> None:
    """A container with less memory than the file's size used to be killed, at every start."""
    directory = tmp_path / "ann's"
    opened = open_for_writing(directory)
    beside = set[str]()

    def look() -> None:
        names = (link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
        beside.update(target.name for target in names if target.parent == directory)

    opened.connection.executemany(
        "INSERT INTO blob (digest, body) VALUES (?, zeroblob(100000))",
        [(str(n),) for n in range(80)],
    )
    opened.connection.set_progress_handler(look, 10)
    rewrite(opened.connection, directory)
    assert opened.connection.execute("PRAGMA temp_store").fetchall() == [(2,)]
    opened.close()
    copies = [name for name in beside if not name.startswith((FILE_NAME, LOCK))]
    assert [name.endswith(" (deleted)") for name in copies] == [True]


@pytest.mark.slow
async def test_an_erasure_says_that_it_did_not_rewrite_a_large_file(tmp_path: Path) -> None:
    """It may hold remains of the words, and only the log can tell an operator so."""
    logged = list[tuple[str, object]]()

    def note(event: str, **fields: object) -> None:
        logged.append((event, fields.get("reason")))

    def fill() -> None:
        opened = open_for_writing(tmp_path)
        opened.connection.execute("INSERT INTO blob (digest, body) VALUES ('', zeroblob(70000000))")
        opened.close()

    await asyncio.to_thread(fill)
    async with aclosing(await open_store(tmp_path, clock=ManualClock(), log=note)) as store:
        await store.commit(chore(Delete(kind=RowKind.FORGETTING, key="person:ann")))
        await store.commit(chore(counter("a")))
    assert logged[1:] == [("file_not_rewritten", "[Errno 27] File too large")]


@pytest.mark.parametrize("fate", ["removed", "replaced"])
async def test_nothing_is_committed_to_a_deleted_file(tmp_path: Path, fate: str) -> None:
    """P1: SQLite would go on writing to the unlinked file, and everything would be lost at the
    end."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        await store.commit(chore(counter("a")))
        await asyncio.to_thread((tmp_path / FILE_NAME).unlink)
        if fate == "replaced":
            await asyncio.to_thread((tmp_path / FILE_NAME).touch)
        with pytest.raises(StoreUnusable, match="was removed or replaced while zeroclaw ran"):
            await store.commit(chore(counter("b")))


async def test_a_file_locked_by_another_program_says_so(tmp_path: Path) -> None:
    """The error names another program that holds the file as the cause."""
    async with before_work(tmp_path, impatient) as store:
        other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnusable, match="is locked by another program"):
            await store.commit(chore(counter("a")))
        other.execute("ROLLBACK")
        other.close()

        await store.commit(chore(counter("a")))


async def test_damage_is_reported_when_it_is_read(tmp_path: Path) -> None:
    """A page that went bad while the daemon was down fails the read with an error that says what
    to do."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        for number in range(200):
            await store.commit(chore(counter(f"{number:03}", bytes(1000))))
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * len(content[len(content) // 2 :])
    path.write_bytes(content)

    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        with pytest.raises(StoreUnusable, match="is damaged"):
            await store.select(Query(kind=RowKind.COUNTER))


# --- bugs in our code ----------------------------------------------------------------------------


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set when the traceback of a thread is printed."""
    event = Event()

    def show(_: threading.ExceptHookArgs) -> None:
        event.set()

    monkeypatch.setattr(threading, "excepthook", show)
    return event


async def test_a_bug_in_the_writer_is_raised_to_every_waiting_caller(
    tmp_path: Path, printed: Event
) -> None:
    """A bug ends the store with one line; no caller hangs, and the traceback is printed."""
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        with pytest.raises(StoreUnusable, match="stopped by a fault; restart zeroclaw"):
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(None,)))  # pyright: ignore[reportArgumentType]  # the fault
        with pytest.raises(StoreUnusable):
            await store.commit(chore(counter("a")))
    await asyncio.to_thread(printed.wait)


async def test_a_start_without_memory_fails_at_once(tmp_path: Path) -> None:
    """It would wait for ever for the thread, and answer no signal."""

    def fail() -> Opened:
        raise MemoryError

    store = SqliteStore(tmp_path, clock=ManualClock(), open_files=fail)
    with pytest.raises(MemoryError):
        async with asyncio.timeout(1):
            await store.open()


async def test_a_database_that_vanishes_while_it_is_opened_fails_the_start_at_once(
    tmp_path: Path, printed: Event
) -> None:
    """No error of the thread leaves the start waiting for it."""

    def opened_and_removed() -> Opened:
        opened = open_for_writing(tmp_path)
        (tmp_path / FILE_NAME).unlink()
        return opened

    store = SqliteStore(tmp_path, clock=ManualClock(), open_files=opened_and_removed)
    with pytest.raises(StoreUnusable, match="stopped by a fault; restart zeroclaw"):
        async with asyncio.timeout(1):
            await store.open()
    await asyncio.to_thread(printed.wait)


async def test_a_bug_in_a_query_is_raised_to_its_caller_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other reads and commits go on."""

    def faulty(_: sqlite3.Connection) -> None:
        raise AssertionError

    monkeypatch.setattr(statements, "used_bytes", faulty)
    async with aclosing(await open_store(tmp_path, clock=ManualClock())) as store:
        with pytest.raises(AssertionError):
            await store.used_bytes()
        await store.commit(chore(counter("a")))
        assert await store.streams(LogKind.AUDIT) == ()

    assert await counters_on_disk(tmp_path) == {"a": b"1"}


# --- kills ----------------------------------------------------------------------------------------

KILLS = 12
TEARS = 40
SEED = 20261121
ROOT = Path(__file__).parents[4]


async def whole_commits(directory: Path) -> set[str]:
    """The names that were committed; fails where one was committed in part."""
    async with aclosing(await open_store(directory, clock=ManualClock())) as store:
        assert damage(directory) == "ok"
        names = {row.key for row in await store.select(Query(kind=RowKind.COUNTER, limit=100_000))}
        logged: list[str] = []
        for stream in await store.streams(LogKind.JOURNAL):
            entries = await store.read(LogKind.JOURNAL, stream)
            assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
            logged.extend(entry.body.decode() for entry in entries)
        assert sorted(logged) == sorted(names)
        for name in names:
            assert await store.blob(hashlib.sha256(name.encode()).hexdigest()) == name.encode()
        for name in sorted(names)[:20]:
            with pytest.raises(AlreadyClaimed):
                await store.commit(named(name, "again"))
    return names


def killed(directory: Path, start: str, returned: int) -> set[str]:
    """Commit in another process, kill it after `returned` commits; returns their names."""
    command = [sys.executable, "-m", committing_child.__name__, str(directory), start]
    names: set[str] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.endswith(b"\n"):  # the last one may be cut
                names.add(line.decode().strip())
            if len(names) == returned:
                child.kill()
    assert child.returncode == -9
    return names


@pytest.mark.slow
async def test_returned_commits_survive_a_kill_and_none_is_partial(tmp_path: Path) -> None:
    """Killed again and again at any instant, the store keeps every commit that returned (P1)."""
    seeded = random.Random(SEED)
    answered: set[str] = set()
    for start in range(KILLS):
        answered |= killed(tmp_path, str(start), seeded.randrange(1, 120))
        assert answered <= await whole_commits(tmp_path)


@pytest.mark.slow
async def test_a_torn_write_ahead_log_ends_at_a_commit(tmp_path: Path) -> None:
    """After a power failure at any instant the store holds whole commits, in order."""
    seeded = random.Random(SEED)
    names = [f"{number:02}" for number in range(30)]
    source = tmp_path / "source"
    counts: list[int] = []
    async with aclosing(await open_store(source, clock=ManualClock())) as store:
        for name in names:
            await store.commit(named(name, "s"))
        database = (source / FILE_NAME).read_bytes()
        log = (source / f"{FILE_NAME}-wal").read_bytes()
    for tear in range(TEARS):
        torn = tmp_path / "torn"
        torn.mkdir()
        at = seeded.randrange(len(log) + 1)
        rest = bytes(len(log) - at) if tear % 2 else b""  # a hole, or the end of the file
        (torn / FILE_NAME).write_bytes(database)
        (torn / f"{FILE_NAME}-wal").write_bytes(log[:at] + rest)
        try:
            names_left = await whole_commits(torn)
        finally:
            shutil.rmtree(torn)
        assert names_left == set(names[: len(names_left)])
        counts.append(len(names_left))

    assert len(set(counts)) > 10  # the tears really fell between commits
