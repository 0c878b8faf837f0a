"""Migrates a database file to the newest schema, or rejects it.

Migrations are numbered SQL files in `migrations/`. All missing ones run in one transaction together
with `PRAGMA user_version`, so a file has one schema or the next, never half. An existing file is
copied first.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from zeroclaw.errors import StoreUnusable
from zeroclaw.host.atomic_file import closing_descriptor, sync_directory
from zeroclaw.value import Value

APPLICATION_ID = 0x5A434C57  # "ZCLW"; distinguishes zeroclaw's files from other programs'


class Migration(Value):
    """One migration step.

    Attributes:
        number: The schema that it produces; counts from 1 without gaps.
        sql: Statements without BEGIN, COMMIT and PRAGMA.
    """

    number: int
    sql: str


def shipped() -> tuple[Migration, ...]:
    """Return the migrations of this release, in order."""
    folder = files("zeroclaw.stores.sqlite").joinpath("migrations")
    return tuple(
        Migration(number=int(file.name.partition("_")[0]), sql=file.read_text(encoding="utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    )


def schema_of(connection: sqlite3.Connection, path: Path, migrations: tuple[Migration, ...]) -> int:
    """Return a file's schema number, 0 for a new file; only reads.

    Raises:
        StoreUnusable: The file is another program's, or newer than this release.
        sqlite3.Error: Passed through.
    """
    schema = number(connection, "PRAGMA user_version")
    is_ours = number(connection, "PRAGMA application_id") == APPLICATION_ID
    is_new = schema == 0 and number(connection, "SELECT count(*) FROM sqlite_schema") == 0
    if not (is_ours or is_new):
        message = f"`{path}` belongs to another program; name another data directory"
        raise StoreUnusable(message)
    newest = migrations[-1].number
    if schema > newest:
        message = (
            f"`{path}` was written by a newer zeroclaw: it has schema {schema} and this release "
            f"knows {newest}; install a release that knows schema {schema}"
        )
        raise StoreUnusable(message)
    return schema


def migrate(
    connection: sqlite3.Connection, path: Path, schema: int, migrations: tuple[Migration, ...]
) -> int:
    """Run the migrations above `schema`; return the new schema number.

    Raises:
        sqlite3.Error: Passed through; the file is unchanged once the caller closes the connection.
        OSError: The copy could not be made; the file is unchanged.
    """
    missing = [migration for migration in migrations if migration.number > schema]
    if not missing:
        return schema
    if schema > 0:
        _back_up(connection, path, schema)
    newest = missing[-1].number
    steps = "\n".join(migration.sql for migration in missing)
    connection.executescript(
        f"BEGIN IMMEDIATE;\n{steps}\nPRAGMA application_id = {APPLICATION_ID};\n"
        f"PRAGMA user_version = {newest};\nCOMMIT;"
    )
    return newest


def backup_path(path: Path, number: int) -> Path:
    """Return the path of the copy made before migrating away from schema `number`."""
    return path.with_name(f"{path.name}.schema-{number}.backup")


def _back_up(connection: sqlite3.Connection, path: Path, number: int) -> None:
    copy = backup_path(path, number)
    unfinished = copy.with_name(f"{copy.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    copy_database(connection, unfinished)
    unfinished.replace(copy)
    sync_directory(path.parent)


def copy_database(
    connection: sqlite3.Connection,
    to: Path,
    *,
    pages: int = -1,
    progress: Callable[[int, int, int], None] | None = None,
) -> None:
    """Copy a database to a new file, private from its first byte, and wait for the disk.

    Args:
        connection: Its transaction, if it has one, pins the snapshot.
        to: The file to create.
        pages: Copied between two calls of `progress`; negative for all of them.
        progress: See `sqlite3.Connection.backup`.
    """
    # Not VACUUM INTO: SQLite is told that file's name as text, and not every name is one.
    with closing_descriptor(os.open(to, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)) as descriptor:
        with closing(sqlite3.connect(to, isolation_level=None)) as copying:
            connection.backup(copying, pages=pages, progress=progress, sleep=0)
        os.fsync(descriptor)


def number(connection: sqlite3.Connection, sql: str, values: Sequence[str | int] = ()) -> int:
    """Return the one number that a statement selects."""
    rows: list[tuple[int]] = connection.execute(sql, values).fetchall()
    return rows[0][0]
