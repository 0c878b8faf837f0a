"""The files of a store: its directory and lock, its database, and the errors of opening them.

One connection writes and checkpoints; the others only read. That is not only for speed: if two
connections checkpoint, SQLite 3.7.0 to 3.51.2 can corrupt the file (sqlite.org/wal.html, "the
WAL-reset bug", read 2026-11).

The lock is `flock` on a separate file. The kernel releases it however its holder dies, and it also
works between two openings within one process.
"""

import errno
import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from datetime import datetime
from pathlib import Path

from zeroclaw.errors import StoreUnusable, refused_as
from zeroclaw.host.atomic_file import closing_descriptor
from zeroclaw.host.places import LOCK, holder_of
from zeroclaw.stores.sqlite.schema import Migration, migrate, number, schema_of, shipped
from zeroclaw.value import Value

_PRIMARY_CODE = 0xFF  # mask; the other bits of a result code are details, sqlite.org/rescode.html

_BY_CODE = {
    sqlite3.SQLITE_FULL: "`{path}` can't grow: its disk is full; free space, and start again; "
    "nothing stored is damaged",
    sqlite3.SQLITE_CORRUPT: "`{path}` is damaged; stop zeroclaw, keep a copy of the directory, and "
    "put a backup in its place: `zeroclaw restore --force BACKUP`",
    sqlite3.SQLITE_NOTADB: "`{path}` is not an SQLite database; move it away, or name another data "
    "directory",
    sqlite3.SQLITE_READONLY: "`{path}` can't be written; give zeroclaw's user the right to write it",
    sqlite3.SQLITE_PERM: "`{path}` can't be opened; give zeroclaw's user the right to write it",
    sqlite3.SQLITE_CANTOPEN: "`{path}` can't be opened; check that its directory exists, that "
    "zeroclaw's user may write there, and that `ulimit -n` is not too low",
    sqlite3.SQLITE_BUSY: "`{path}` is locked by another program; close what has it open",
    sqlite3.SQLITE_LOCKED: "`{path}` is locked by another program; close what has it open",
    sqlite3.SQLITE_IOERR: "the disk of `{path}` failed to read or write; check the disk and its "
    "free space",
}

_BY_ERRNO = {
    errno.ENOSPC: "the disk of `{path}` is full; free space",
    errno.EDQUOT: "the disk quota for `{path}` is used up; free space or raise it",
    errno.EACCES: "`{path}` can't be used; give zeroclaw's user the right to read and write it",
    errno.EPERM: "`{path}` can't be used; give zeroclaw's user the right to read and write it",
    errno.EROFS: "`{path}` is on a read-only file system; name another directory",
    errno.ENOTDIR: "`{path}` is not a directory; name another directory",
    errno.EEXIST: "`{path}` is not a directory; name another directory",
}


def primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code, None for an error of the Python module itself."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & _PRIMARY_CODE if isinstance(code, int) else None


def unusable(error: sqlite3.Error | OSError, path: Path) -> StoreUnusable:
    """Return an error that names the fault of `path`, or of the file that failed, and its remedy.

    It quotes SQLite's text only for errors without a line in the tables above.
    """
    if isinstance(error, OSError):
        path = error.filename or path
        line = _BY_ERRNO.get(error.errno) if error.errno is not None else None
        text = (error.strerror or "unknown reason").lower()
    else:
        code = primary_code(error)
        line = _BY_CODE.get(code) if code is not None else None
        text = " ".join(str(error).split())
    return StoreUnusable((line or f"`{{path}}` can't be used: {text}").format(path=path))


def lock_directory(directory: Path) -> int:
    """Lock the directory until the returned file descriptor is closed.

    Raises:
        StoreUnusable: Another process has the lock, or it can't be taken.
    """
    path = directory / LOCK
    with ExitStack() as stack:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            pid = f" (pid {holder})" if (holder := holder_of(directory)) else ""
            message = (
                f"another zeroclaw{pid} runs on `{directory}`; stop it, or name another data "
                "directory"
            )
            raise StoreUnusable(message) from error
        except OSError as error:
            raise unusable(error, path) from error
        stack.pop_all()
    return descriptor


FILE_NAME = "zeroclaw.db"
RESTORING = f"{FILE_NAME}.restoring"
"""A backup that is about to replace the database."""
LOG_SUFFIX = "-wal"
SIDE_SUFFIXES = (LOG_SUFFIX, "-shm", "-journal")
"""Suffixes of SQLite's files next to a database."""
OLDEST_SQLITE = (3, 37, 0)  # STRICT tables
_FIXED_SQLITE = (3, 51, 3)
_BACKPORTS = ((3, 50, 7), (3, 44, 6))
_BUSY_TIMEOUT_MS = 5000
_JOURNAL_LIMIT_BYTES = 64 * 2**20  # the write-ahead log is truncated to this after a burst


def discard(directory: Path) -> None:
    """Remove the files of a `restore` that was interrupted."""
    for suffix in ("", *SIDE_SUFFIXES):
        (directory / f"{RESTORING}{suffix}").unlink(missing_ok=True)


def drop_copies(directory: Path, before: datetime) -> int:
    """Delete the copies that migrations made before an instant; return how many; blocks.

    Raises:
        OSError: One can't be deleted.
    """
    dropped = 0
    for copy in directory.glob(f"{FILE_NAME}.schema-*"):  # those that a kill cut off, too
        with suppress(FileNotFoundError):  # the sweep and an erasure may meet here
            if copy.stat().st_mtime < before.timestamp():
                copy.unlink()
                dropped += 1
    return dropped


class Opened(Value):
    """An open database; close the connection before the descriptor.

    Attributes:
        connection: The only one that writes; belongs to the thread that opened it.
        lock: The descriptor that keeps the directory locked.
        epoch: One more than at any earlier opening.
        schema_before: The schema before migration; 0 for a new file.
        schema: The schema now.
    """

    connection: sqlite3.Connection
    lock: int
    epoch: int
    schema_before: int
    schema: int

    def close(self) -> None:
        """Close the database, then unlock the directory. Call it once."""
        self.connection.close()
        os.close(self.lock)


def has_wal_reset_bug(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite may corrupt a file that two connections write."""
    patched = any(version[:2] == fixed[:2] and version >= fixed for fixed in _BACKPORTS)
    return version < _FIXED_SQLITE and not patched


def open_for_writing(
    directory: Path, *, migrations: Callable[[], tuple[Migration, ...]] = shipped
) -> Opened:
    """Create the directory if missing, lock it, open and migrate the file in it.

    Args:
        directory: The data directory.
        migrations: Returns the migration steps.

    Raises:
        StoreUnusable: One line that says what to do; nothing was damaged.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        message = f"SQLite {sqlite3.sqlite_version} is too old; zeroclaw needs 3.37 or newer"
        raise StoreUnusable(message)
    path = directory / FILE_NAME
    _make_private(directory)
    with ExitStack() as stack:
        lock = lock_directory(directory)
        stack.callback(os.close, lock)
        try:
            discard(directory)
            _keep_private(path)
            connection = sqlite3.connect(path, isolation_level=None)
            stack.callback(connection.close)
            steps = migrations()
            before = schema_of(connection, path, steps)  # first: it may be another program's
            _configure(connection, directory)
            after = migrate(connection, path, before, steps)
            epoch = number(connection, "UPDATE boot SET epoch = epoch + 1 RETURNING epoch")
        except (sqlite3.Error, OSError) as error:
            raise unusable(error, path) from error
        stack.pop_all()
    return Opened(connection=connection, lock=lock, epoch=epoch, schema_before=before, schema=after)


def open_for_reading(directory: Path, *, waits: bool = True) -> sqlite3.Connection:
    """Open a connection for reading; it never writes and never checkpoints.

    Args:
        directory: The directory of the database.
        waits: True for a connection that belongs to the calling thread and waits for locks. False
            for one that any thread may use, one at a time, and that raises at once if the file is
            locked.

    Raises:
        StoreUnusable: One line that says what to do.
    """
    path = directory / FILE_NAME
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=waits)
        connection.executescript(
            f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS if waits else 0};"
            "PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF;"
            "PRAGMA temp_store = MEMORY; PRAGMA query_only = ON;"
        )
    except sqlite3.Error as error:
        raise unusable(error, path) from error
    return connection


def has_database(directory: Path) -> bool:
    """Return whether a data directory has a database; blocks.

    Raises:
        StoreUnusable: This user can't look.
    """
    with (
        refused_as(StoreUnusable, f"`{directory}` can't be read", "try again as its user"),
        suppress(FileNotFoundError, NotADirectoryError),
    ):
        (directory / FILE_NAME).stat()  # `Path.exists` is False for any error from Python 3.14 on
        return True
    return False


def check_is_there(directory: Path) -> None:
    """Refuse a data directory without a database that this release can read; blocks.

    A first start that ran out of disk space leaves a database without tables.

    Raises:
        StoreUnusable: One line that says what to do.
    """
    path, schema = directory / FILE_NAME, 0
    if has_database(directory):
        with closing(open_for_reading(directory)) as connection:
            try:
                schema = schema_of(connection, path, shipped())
            except sqlite3.Error as error:
                raise unusable(error, path) from error
    if not schema:
        message = f"`{directory}` holds no data yet; start zeroclaw with `zeroclaw run`"
        raise StoreUnusable(message)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
        # Leave a directory alone that another user owns (a mounted volume) or that everyone shares
        # (/tmp); the files in it are private anyway.
        is_ours = status.st_uid == os.getuid() and not status.st_mode & stat.S_ISVTX
        if is_ours and status.st_mode & 0o077:
            directory.chmod(0o700)
    except OSError as error:
        raise unusable(error, directory) from error


def _keep_private(path: Path) -> None:
    # SQLite gives the files next to the database the same permissions.
    with closing_descriptor(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as descriptor:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)


def _configure(connection: sqlite3.Connection, directory: Path) -> None:
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    # Before `journal_mode`, which creates the first page; after that it has no effect.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    rows: list[tuple[str]] = connection.execute("PRAGMA journal_mode = WAL").fetchall()
    if rows[0][0] != "wal":
        message = (
            f"the file system of `{directory}` can't hold a write-ahead log; "
            "name a data directory on a local disk"
        )
        raise StoreUnusable(message)
    connection.executescript(
        # FULL: with NORMAL, a power failure may lose the last commits.
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
        # Debian's default, but not that of every build: else deleted words stay in free pages.
        "PRAGMA secure_delete = ON;"
        f"PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = {_JOURNAL_LIMIT_BYTES};"
    )
