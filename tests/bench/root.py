"""The daemon as `zeroclaw run` starts it, and it tells what its store has written when asked.

Run as `python -m tests.bench.root CONFIG`; at SIGUSR1 it prints the store's statistics, one line.
"""

import asyncio
import gc
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from zeroclaw import daemon
from zeroclaw.channel import Log
from zeroclaw.cli.configuration import load, start_of
from zeroclaw.clock import Clock
from zeroclaw.host import logs
from zeroclaw.store import Commit, Store
from zeroclaw.stores.sqlite import SqliteStore
from zeroclaw.stores.sqlite.files import Opened, open_for_writing
from zeroclaw.value import replace


class Timed:
    """The writer's connection, whose commits are timed; each that changes something is one sync."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Stand in for it."""
        self.groups, self.commit_s = 0, 0.0
        self._connection = connection
        self._changes = connection.total_changes

    def __getattr__(self, name: str) -> object:
        """Leave all else to it."""
        return getattr(self._connection, name)

    def execute(self, sql: str, *parameters: Sequence[object]) -> sqlite3.Cursor:
        """As SQLite's own."""
        if sql != "COMMIT":
            return self._connection.execute(sql, *parameters)
        changes, self._changes = self._changes, self._connection.total_changes
        began = time.monotonic()
        done = self._connection.execute(sql)
        self.commit_s += time.monotonic() - began
        self.groups += changes != self._changes
        return done


class Counted(SqliteStore):
    """A store that counts what it writes."""

    def __init__(self, directory: Path, *, clock: Clock) -> None:
        """Open nothing yet."""
        self._commits = 0
        self._timed: Timed | None = None

        def files() -> Opened:
            opened = open_for_writing(directory)
            self._timed = Timed(opened.connection)
            return replace(opened, connection=self._timed)

        super().__init__(directory, clock=clock, open_files=files)

    async def commit(self, commit: Commit) -> None:
        """As the store's, counted."""
        await super().commit(commit)
        self._commits += 1

    def tell(self) -> None:
        """Print it."""
        assert self._timed is not None
        figures = {"groups": self._timed.groups, "commit_s": self._timed.commit_s}
        print(json.dumps({"commits": self._commits, **figures}), flush=True)


def main(config: Path) -> None:
    """Run the daemon until a signal stops it."""

    async def store(directory: Path, *, clock: Clock, log: Log) -> Store:
        opened = Counted(directory, clock=clock)
        facts = await opened.open()
        log("store_opened", schema=facts.schema)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, opened.tell)
        return opened

    def ready(_facts: daemon.ReadyFacts) -> None:
        gc.freeze()  # as `zeroclaw run` does
        print("zeroclaw is ready", flush=True)

    start = start_of(load(config), os.environ)
    stop_logging = logs.set_up(redact=start.checked.redactor.redact)
    try:
        daemon.run(start, on_ready=ready, openers=daemon.Openers(store=store))
    finally:
        stop_logging()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
