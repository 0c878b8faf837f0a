"""Turns what SQLite and the file system raise into one line for the operator."""

import errno
import sqlite3
from pathlib import Path

from zeroclaw.errors import StoreUnusable

_PRIMARY_CODE = 0xFF  # the rest of an extended result code says where, sqlite.org/rescode.html

_BY_CODE = {
    sqlite3.SQLITE_FULL: "`{path}` can't grow: its disk is full, or the store is at its cap; "
    "free space or raise the cap, nothing stored is damaged",
    sqlite3.SQLITE_CORRUPT: "`{path}` is damaged; stop zeroclaw, keep a copy of the file, and put "
    "a backup in its place",
    sqlite3.SQLITE_NOTADB: "`{path}` is not an SQLite database; move it away, or name another data "
    "directory",
    sqlite3.SQLITE_READONLY: "`{path}` can't be written; give zeroclaw's user the right to write it",
    sqlite3.SQLITE_PERM: "`{path}` can't be opened; give zeroclaw's user the right to write it",
    sqlite3.SQLITE_CANTOPEN: "`{path}` can't be opened; check that its directory exists and that "
    "zeroclaw's user may write there",
    sqlite3.SQLITE_BUSY: "`{path}` is locked by another program; close what has it open",
    sqlite3.SQLITE_LOCKED: "`{path}` is locked by another program; close what has it open",
    sqlite3.SQLITE_IOERR: "the disk of `{path}` failed to read or write; check the disk and its "
    "free space",
}

_BY_ERRNO = {
    errno.ENOSPC: "the disk of `{path}` is full; free space",
    errno.EDQUOT: "the disk quota for `{path}` is used up; free space or raise it",
    errno.EACCES: "`{path}` can't be written; give zeroclaw's user the right to write it",
    errno.EPERM: "`{path}` can't be written; give zeroclaw's user the right to write it",
    errno.EROFS: "`{path}` is on a read-only file system; name another data directory",
    errno.ENOTDIR: "`{path}` is not a directory; name another data directory",
    errno.EEXIST: "`{path}` is not a directory; name another data directory",
}


def primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code, None for what the Python module raises by itself."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & _PRIMARY_CODE if isinstance(code, int) else None


def is_full(error: sqlite3.Error) -> bool:
    """Whether there was no room, so that a smaller write may still fit."""
    return primary_code(error) == sqlite3.SQLITE_FULL


def unusable(error: sqlite3.Error | OSError, path: Path) -> StoreUnusable:
    """Say what is wrong with `path` and what to do; SQLite's own words only where we have none."""
    if isinstance(error, OSError):
        known = _BY_ERRNO.get(error.errno) if error.errno is not None else None
        own = (error.strerror or "unknown reason").lower()
    else:
        code = primary_code(error)
        known = _BY_CODE.get(code) if code is not None else None
        own = " ".join(str(error).split())
    return StoreUnusable((known or f"`{{path}}` can't be used: {own}").format(path=path))
