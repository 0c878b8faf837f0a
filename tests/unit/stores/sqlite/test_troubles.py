"""Every trouble with a file is one line that names it and says what to do (P10)."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from zeroclaw.stores.sqlite.files import unusable

PATH = Path("/data/zeroclaw.db")


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (errno.ENOSPC, "the disk of `/data/zeroclaw.db` is full; free space"),
        (
            errno.EACCES,
            "`/data/zeroclaw.db` can't be written; give zeroclaw's user the right to write it",
        ),
        (
            errno.EROFS,
            "`/data/zeroclaw.db` is on a read-only file system; name another data directory",
        ),
        (errno.ENOLCK, "`/data/zeroclaw.db` can't be used: no locks available"),
    ],
)
def test_what_the_file_system_refuses_is_told_in_a_line(number: int, line: str) -> None:
    """The operator reads what to do, not an errno."""
    assert str(unusable(OSError(number, os.strerror(number)), PATH)) == line


def test_what_sqlite_alone_knows_is_passed_on_in_a_line() -> None:
    """An error that nobody foresaw keeps SQLite's words, and the file's name."""
    error = sqlite3.OperationalError("strange\nthing")

    assert str(unusable(error, PATH)) == "`/data/zeroclaw.db` can't be used: strange thing"
