"""The writes of a commit as SQL; a refused one raises, and its caller undoes the whole commit."""

import hashlib
import sqlite3
from typing import assert_never

from zeroclaw.errors import AlreadyClaimed, Conflict, StoreRefused
from zeroclaw.store import (
    Append,
    Claim,
    Commit,
    Delete,
    DropBlob,
    Expect,
    Put,
    PutBlob,
    RowKind,
    Trim,
)
from zeroclaw.stores.sqlite.instants import to_microseconds

_SPARE_PAGES = 256  # what comes next needs room again
_RELEASE_AT_ONCE = 1024  # each page costs a write, and others wait meanwhile
_PURGE_AT_ONCE = 512  # more than a full group usually claims, so that the table shrinks again

# What sqlite3 raises for a value that can't be bound or breaks a column's type: the fault of one
# commit, whose neighbours in the group must not suffer.
_UNSTORABLE = (
    OverflowError,
    TypeError,
    UnicodeEncodeError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)


def apply(
    connection: sqlite3.Connection, commit: Commit, *, now_us: int, blob_cap_bytes: int
) -> None:
    """Run the writes in order, inside the transaction that is open.

    Raises:
        StoreRefused: Undo this commit, and only this one.
        sqlite3.Error: Undo the transaction.
    """
    try:
        for write in commit.writes:
            match write:
                case Claim():
                    _claim(connection, write, now_us)
                case Put():
                    _put(connection, write)
                case Delete() | Trim() | DropBlob():
                    _remove(connection, write)
                case Expect():
                    _expect(connection, write.kind, write.key, write.version)
                case Append():
                    _append(connection, write)
                case PutBlob():
                    _put_blob(connection, write, now_us, blob_cap_bytes)
                case _:
                    assert_never(write)
    except _UNSTORABLE as error:
        message = f"a value of commit `{commit.point}` can't be stored"
        raise StoreRefused(message) from error


def purge_claims(connection: sqlite3.Connection, *, now_us: int) -> None:
    """Forget some claims that have expired."""
    connection.execute(
        "DELETE FROM claim WHERE key IN (SELECT key FROM claim WHERE until <= ? LIMIT ?)",
        (now_us, _PURGE_AT_ONCE),
    )


def release_pages(connection: sqlite3.Connection) -> None:
    """Hand some free pages back to the disk, in a file that was made so that it can.

    In an older file they are used again, and it stops growing. Called between transactions.
    """
    rows: list[tuple[int]] = connection.execute("PRAGMA freelist_count").fetchall()
    surplus = min(rows[0][0] - _SPARE_PAGES, _RELEASE_AT_ONCE)
    if surplus > 0:
        # As a script, because a statement without rows is not run to its end.
        connection.executescript(f"PRAGMA incremental_vacuum({surplus})")


def _claim(connection: sqlite3.Connection, claim: Claim, now_us: int) -> None:
    until_us = to_microseconds(claim.until)
    for key in dict.fromkeys(claim.keys):  # a platform that names a key twice means one event
        claimed = connection.execute(
            "INSERT INTO claim (key, until) VALUES (?, ?) ON CONFLICT (key)"
            " DO UPDATE SET until = excluded.until WHERE until <= ?",
            (key, until_us, now_us),
        )
        if claimed.rowcount == 0:
            raise AlreadyClaimed(key)


def _put(connection: sqlite3.Connection, put: Put) -> None:
    values = (
        put.kind,
        put.key,
        put.conversation,
        put.state,
        put.place,
        None if put.due_at is None else to_microseconds(put.due_at),
        put.body,
    )
    if put.expect is not None:
        _expect(connection, put.kind, put.key, put.expect)
    connection.execute(
        "INSERT INTO stored_row (kind, key, conversation, state, place, due_at, body, version)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (kind, key) DO UPDATE SET"
        " version = version + 1, conversation = excluded.conversation, state = excluded.state,"
        " place = excluded.place, due_at = excluded.due_at, body = excluded.body",
        values,
    )


def _remove(connection: sqlite3.Connection, write: Delete | Trim | DropBlob) -> None:
    match write:
        case Delete():
            connection.execute(
                "DELETE FROM stored_row WHERE kind = ? AND key = ?", (write.kind, write.key)
            )
        case Trim():
            connection.execute(
                "DELETE FROM log_entry WHERE log = ? AND stream = ? AND sequence < ?",
                (write.log, write.stream, write.before),
            )
        case DropBlob():
            before = write.put_before
            connection.execute(
                "DELETE FROM blob WHERE digest = ? AND (? IS NULL OR put_at < ?)",
                (write.digest, *[None if before is None else to_microseconds(before)] * 2),
            )


def _expect(connection: sqlite3.Connection, kind: RowKind, key: str, version: int) -> None:
    rows: list[tuple[int]] = connection.execute(
        "SELECT version FROM stored_row WHERE kind = ? AND key = ?", (kind, key)
    ).fetchall()
    found = rows[0][0] if rows else 0
    if found != version:
        message = f"{kind} `{key}` is at version {found}, not {version}"
        raise Conflict(message)


def _append(connection: sqlite3.Connection, append: Append) -> None:
    rows: list[tuple[int | None]] = connection.execute(
        "SELECT max(sequence) FROM log_entry WHERE log = ? AND stream = ?",
        (append.log, append.stream),
    ).fetchall()
    last = rows[0][0] or 0
    if append.after is not None and append.after != last:
        message = f"{append.log} `{append.stream}` ends at {last}, not {append.after}"
        raise Conflict(message)
    connection.execute(
        "INSERT INTO log_entry (log, stream, sequence, body) VALUES (?, ?, ?, ?)",
        (append.log, append.stream, last + 1, append.body),
    )


def _put_blob(connection: sqlite3.Connection, blob: PutBlob, now_us: int, cap_bytes: int) -> None:
    if len(blob.body) > cap_bytes:
        message = f"a blob of {len(blob.body)} bytes is larger than the store's cap of {cap_bytes}"
        raise StoreRefused(message)
    if hashlib.sha256(blob.body).hexdigest() != blob.digest:
        message = f"the blob named `{blob.digest}` has another SHA-256"
        raise StoreRefused(message)
    connection.execute(
        "INSERT INTO blob (digest, body, put_at) VALUES (?, ?, ?) ON CONFLICT (digest)"
        " DO UPDATE SET put_at = max(put_at, excluded.put_at)",
        (blob.digest, blob.body, now_us),
    )
