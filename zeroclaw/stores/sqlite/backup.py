"""Backs up a store while it is in use, and restores a backup while it is not.

A backup is a directory with a consistent snapshot of the database, and further files. All of it is
private. The directory gets its final name only once it is complete.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from stat import S_ISREG

import msgspec

from zeroclaw.errors import RecordUnreadable, StoreUnusable
from zeroclaw.host.atomic_file import closing_descriptor, sync_directory
from zeroclaw.store import Put, Query, Row, RowKind
from zeroclaw.stores.sqlite.files import (
    FILE_NAME,
    LOG_SUFFIX,
    RESTORING,
    SIDE_SUFFIXES,
    check_is_there,
    discard,
    has_database,
    lock_directory,
    primary_code,
    unusable,
)
from zeroclaw.stores.sqlite.schema import copy_database, number, schema_of, shipped
from zeroclaw.stores.sqlite.statements import empty_log, put, select

_PAGES_AT_ONCE = 1024  # small enough to show progress; the snapshot is the same throughout
_UNREADABLE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

Progress = Callable[[int, int], None]
"""Called with the number of bytes done and the total."""
Kept = tuple[Query, Callable[[Row], object]]
"""Selects rows, and reads one; raises `RecordUnreadable` if it is damaged."""


def back_up(directory: Path, to: Path, *, files: Iterable[str], progress: Progress) -> None:
    """Copy the store of a data directory to a new directory; a daemon may be running.

    Args:
        directory: The data directory.
        to: The directory to create; must not exist.
        files: Names of files and directories in the data directory to copy, if they exist.
        progress: Called repeatedly, last with all bytes done.

    Raises:
        StoreUnusable: One line that says what to do; nothing is left behind.
    """
    source = directory / FILE_NAME
    check_is_there(directory)
    if to.exists():
        message = f"`{to}` already exists; name a new directory"
        raise StoreUnusable(message)
    unfinished = to.with_name(f"{to.name}.unfinished")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700, parents=True)
        _copy_database(source, unfinished / FILE_NAME, progress)
        remedy = "put an older one in its place, `zeroclaw restore --force BACKUP`; none was made"
        _check(unfinished / FILE_NAME, source, remedy)
        for name in files:
            with suppress(FileNotFoundError):
                _copy(directory / name, unfinished / name)
        sync_directory(unfinished)
        unfinished.rename(to)
        sync_directory(to.parent)
    except (sqlite3.Error, OSError) as error:
        # The reading side never writes, so any other error comes from the copy.
        is_read = isinstance(error, sqlite3.Error) and primary_code(error) in _UNREADABLE_CODES
        raise unusable(error, source if is_read else to) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)  # also after Ctrl-C


def restore(
    backup: Path,
    directory: Path,
    *,
    files: Iterable[str],
    rows: Iterable[Put] = (),
    drops: Iterable[RowKind] = (),
    keeps: Iterable[Kept] = (),
    overwrite: bool = False,
) -> bool:
    """Replace a store that is not in use by a backup.

    The whole backup is checked before anything is changed. Files that belong to the database are
    replaced if the backup has them, and deleted if it has not, since they belonged to the old
    store. An existing directory stays: the channels' notes in it are newer than the backup's.

    Args:
        backup: A directory made by `back_up`.
        directory: The data directory; created if missing.
        files: As for `back_up`.
        rows: Rows to add to the restored store before it is put in place.
        drops: Kinds of rows to remove from the restored store.
        keeps: Rows of the replaced store to copy into the restored one, but for damaged ones, with
            which no daemon would start.
        overwrite: Whether to replace an existing store, which is lost.

    Returns:
        False if some or all of these rows are unreadable.

    Raises:
        StoreUnusable: One line that says what to do; the old store is unchanged unless the disk
            failed half-way.
    """
    copy = backup / FILE_NAME
    if not copy.is_file():
        message = f"`{backup}` is no backup: it holds no `{FILE_NAME}`"
        raise StoreUnusable(message)
    log = copy.with_name(f"{FILE_NAME}{LOG_SUFFIX}")
    if log.exists() and log.stat().st_size:
        message = (
            f"`{backup}` was copied by hand while its database was open, and a part of it is in "
            f"`{log.name}`; make a backup of it with `backup --data-dir {backup} BACKUP`, and restore "
            "that"
        )
        raise StoreUnusable(message)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = lock_directory(directory)
    target = directory / FILE_NAME
    new = directory / RESTORING
    try:
        _leave_to_owner(lock, directory)
        if not overwrite and has_database(directory):
            message = f"`{directory}` holds data already; `--force` replaces it, and it is lost"
            raise StoreUnusable(message)
        _check(copy, copy, "take another backup, nothing was replaced")
        discard(directory)  # SQLite would apply a log that a kill has left to the new copy
        _copy(copy, new)
        kept_rows, is_whole = _rows_of(target, keeps)
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            for kind in drops:
                connection.execute("DELETE FROM stored_row WHERE kind = ?", (kind,))
            for row in (*rows, *kept_rows):
                put(connection, row)
            empty_log(connection)  # closing does so too, but hides a full disk
        _put_away_log(target)
        new.replace(target)
        for name in files:
            _put_back(backup / name, directory / name)
        sync_directory(directory)
    except (sqlite3.Error, OSError) as error:
        raise unusable(error, directory) from error
    finally:
        discard(directory)
        os.close(lock)
    return is_whole


def _rows_of(target: Path, keeps: Iterable[Kept]) -> tuple[list[Put], bool]:
    """Return rows of the database that is about to be replaced, and whether all are readable."""
    if not target.exists():
        return [], True
    with suppress(sqlite3.Error), closing(_open_read_only(target)) as connection:
        found = [(row, read) for query, read in keeps for row in select(connection, query)]
        rows: list[Row] = []
        for row, read in found:
            with suppress(RecordUnreadable):
                read(row)
                rows.append(row)
        return msgspec.convert(rows, list[Put], from_attributes=True), len(rows) == len(found)
    return [], False


def _copy_database(source: Path, to: Path, progress: Progress) -> None:
    with closing(_open_read_only(source)) as reading:
        # Otherwise every commit of the daemon would restart the copy.
        reading.execute("BEGIN")
        number(reading, "SELECT count(*) FROM sqlite_schema")
        size = number(reading, "PRAGMA page_size")
        copy_database(
            reading,
            to,
            pages=_PAGES_AT_ONCE,
            progress=lambda _, left, total: progress((total - left) * size, total * size),
        )


def _open_read_only(path: Path) -> sqlite3.Connection:
    """Open a database read-only, so that its write-ahead log is not checkpointed either."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _check(copy: Path, name: Path, remedy: str) -> None:
    """Reject a database that is damaged, another program's, or of a newer release.

    Args:
        copy: The file to check.
        name: The file to name in the error.
        remedy: What to do if it is damaged.
    """
    try:
        # `immutable`: SQLite must not create files next to it, as the disk may be read-only.
        uri = f"{copy.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            schema = schema_of(connection, name, shipped())
            results: list[tuple[str]] = connection.execute("PRAGMA integrity_check(1)").fetchall()
        is_damaged = results[0][0] != "ok" or schema == 0
    except sqlite3.Error as error:
        is_damaged = primary_code(error) in _UNREADABLE_CODES
        if not is_damaged:
            raise unusable(error, name) from error
    if is_damaged:
        message = f"`{name}` is damaged; {remedy}"
        raise StoreUnusable(message)


def _put_away_log(target: Path) -> None:
    """Remove SQLite's files next to a database, which would be applied to the new one."""
    if target.exists():
        # Checkpoint the old database first, so that a kill right here loses none of it.
        with suppress(sqlite3.Error), closing(sqlite3.connect(target)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in SIDE_SUFFIXES:
        target.with_name(f"{target.name}{suffix}").unlink(missing_ok=True)


def _put_back(copy: Path, target: Path) -> None:
    if target.is_dir():
        return
    new = target.with_name(f"{target.name}.restoring")
    shutil.rmtree(new, ignore_errors=True)
    try:
        _copy(copy, new)
    except FileNotFoundError:
        target.unlink(missing_ok=True)
    else:
        new.replace(target)


def _copy(source: Path, to: Path) -> None:
    """Copy a file, or a directory with all that is in it, but no pipe or socket.

    Raises:
        FileNotFoundError: There is none.
    """
    if source.is_dir():
        to.mkdir(mode=0o700)
        with closing_descriptor(os.open(to, os.O_RDONLY)) as descriptor:
            _leave_to_owner(descriptor, to.parent)
        for path in source.iterdir():  # `rglob` leaves out what it can't read
            with suppress(FileNotFoundError):  # a running daemon has replaced or removed it
                _copy(path, to / path.name)
        return
    if not S_ISREG(source.stat().st_mode):
        raise FileNotFoundError(source)
    to.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with source.open("rb") as reading, os.fdopen(os.open(to, flags, 0o600), "wb") as writing:
        _leave_to_owner(writing.fileno(), to.parent)
        shutil.copyfileobj(reading, writing)
        writing.flush()
        os.fsync(writing.fileno())


def _leave_to_owner(descriptor: int, directory: Path) -> None:
    """Give root's new file to the user whose directory it is in, who has to open it."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
