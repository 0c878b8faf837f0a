"""Holds the writer back, so that a test decides what becomes one group."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, closing
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreRefused, StoreUnusable
from zeroclaw.store import Claim, Commit, Query, RowKind
from zeroclaw.stores.sqlite import SqliteStore, open_store
from zeroclaw.stores.sqlite.files import FILE_NAME, Opened, open_for_writing

CONVERSATION = ConversationId("01HERE")


def claim(key: str, until: datetime = EPOCH + timedelta(days=1)) -> Claim:
    return Claim(keys=(key,), until=until)


class Gate:
    """Holds the writer's thread back from opening, so that the commits handed in become one
    group."""

    def __init__(
        self, directory: Path, before_work: Callable[[sqlite3.Connection], None] = lambda _: None
    ) -> None:
        self._directory = directory
        self.open = Event()
        self._before_work = before_work

    def files(self) -> Opened:
        opened = open_for_writing(self._directory)
        self._before_work(opened.connection)
        self.open.wait()
        return opened

    def store(self) -> SqliteStore:
        """A store whose thread waits; it works off its queue after `open.set()`."""
        return SqliteStore(self._directory, clock=ManualClock(), open_files=self.files)


@asynccontextmanager
async def before_work(
    directory: Path, work: Callable[[sqlite3.Connection], None]
) -> AsyncGenerator[SqliteStore]:
    """An open store; `work` is done to its connection before anything else."""
    gate = Gate(directory, work)
    gate.open.set()
    store = gate.store()
    await store.open()
    async with aclosing(store):
        yield store


async def grouped(
    directory: Path,
    *commits: Commit,
    full: bool = False,
    trace: Callable[[str], None] | None = None,
) -> list[Exception | None]:
    """Commit all of these in one group, several together with a lease; returns each one's error.

    Args:
        directory: Of the store.
        commits: The commits of the group.
        full: The file may not grow any more.
        trace: Is called with each statement that SQLite runs for them.
    """
    gate = Gate(
        directory, fill if full else lambda connection: connection.set_trace_callback(trace)
    )
    store = gate.store()
    errors: list[Exception | None] = [None] * len(commits)

    async def commit_one(number: int) -> None:
        try:
            await store.commit(commits[number])
        except (StoreRefused, StoreUnusable) as error:
            errors[number] = error

    async with asyncio.TaskGroup() as group:
        group.create_task(store.open())
        for number in range(len(commits)):
            group.create_task(commit_one(number))
        if len(commits) > 1:
            group.create_task(store.lease(CONVERSATION))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.open.set()
    await store.aclose()
    return errors


def fill(connection: sqlite3.Connection) -> None:
    """Let the file grow no further than it is."""
    connection.execute("PRAGMA max_page_count = 1")


def small(connection: sqlite3.Connection) -> None:
    """Let the file grow to 400 kB."""
    connection.execute("PRAGMA max_page_count = 100")


def impatient(connection: sqlite3.Connection) -> None:
    """Wait for no other program."""
    connection.execute("PRAGMA busy_timeout = 0")


def names(directory: Path) -> list[str]:
    """What is in a directory, sorted."""
    return sorted(path.name for path in directory.iterdir())


async def counters_on_disk(directory: Path) -> dict[str, bytes]:
    """The counters that are on disk."""
    async with aclosing(await open_store(directory, clock=ManualClock())) as store:
        return {row.key: row.body for row in await store.select(Query(kind=RowKind.COUNTER))}


def damage(directory: Path) -> str:
    """Return the fault that SQLite finds in a store's file; `ok` for none."""
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
        found: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
    return found[0][0]
