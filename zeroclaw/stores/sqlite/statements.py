"""The reads and writes of a store as SQL.

Each read is a single statement, so it sees a consistent snapshot. The writes of a commit run inside
a transaction; a rejected write raises, and the caller rolls back the whole commit. Instants are
stored exactly, as microseconds since 1970, UTC.
"""

import errno
import hashlib
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import assert_never

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import AlreadyClaimed, Conflict, StoreRefused
from zeroclaw.store import (
    LARGEST_BLOB_BYTES,
    Append,
    Claim,
    Commit,
    Delete,
    DropBlob,
    Expect,
    LogEntry,
    LogKind,
    Put,
    PutBlob,
    Query,
    Row,
    RowKind,
    Trim,
    Write,
)
from zeroclaw.stores.sqlite.schema import number

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(at: datetime) -> int:
    """Encode an aware instant; a naive one is the caller's mistake (`TypeError`)."""
    return (at - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """Decode to UTC."""
    return _EPOCH + microseconds * _MICROSECOND


_Columns = tuple[str, int, bytes, str | None, str, str, int | None]
_SELECT = "SELECT key, version, body, conversation, state, place, due_at FROM stored_row WHERE "
_BEYOND = "\U0010ffff"  # sorts after every name
_COUNT = "SELECT count(*) FROM stored_row WHERE "


def get(connection: sqlite3.Connection, kind: RowKind, key: str) -> Row | None:
    """Read one row."""
    found: list[_Columns] = connection.execute(
        _SELECT + "kind = ? AND key = ?", (kind, key)
    ).fetchall()
    return _row(kind, found[0]) if found else None


def select(connection: sqlite3.Connection, query: Query) -> tuple[Row, ...]:
    """Read the rows that match; `after` is a key, empty to start at the beginning."""
    where, values = _filters(query)
    if query.after:
        where += " AND key < ?" if query.newest_first else " AND key > ?"
        values.append(query.after)
    order = " ORDER BY key DESC LIMIT ?" if query.newest_first else " ORDER BY key LIMIT ?"
    values.append(max(query.limit, 0))  # for SQLite, a negative limit means no limit
    found: list[_Columns] = connection.execute(_SELECT + where + order, values).fetchall()
    return tuple(_row(query.kind, columns) for columns in found)


def count(connection: sqlite3.Connection, query: Query) -> int:
    """Count the rows that match."""
    where, values = _filters(query)
    return number(connection, _COUNT + where, values)


def absent(connection: sqlite3.Connection) -> frozenset[RowKind]:
    """Return the kinds that have no rows."""
    return frozenset(kind for kind in RowKind if not select(connection, Query(kind=kind, limit=1)))


def read_log(
    connection: sqlite3.Connection, log: LogKind, stream: str, *, after: int, limit: int
) -> tuple[LogEntry, ...]:
    """Read a stream's entries in order."""
    found: list[tuple[int, bytes]] = connection.execute(
        "SELECT sequence, body FROM log_entry WHERE log = ? AND stream = ? AND sequence > ?"
        " ORDER BY sequence LIMIT ?",
        (log, stream, after, max(limit, 0)),
    ).fetchall()
    return tuple(LogEntry(sequence=sequence, body=body) for sequence, body in found)


def last_entry(connection: sqlite3.Connection, log: LogKind, stream: str) -> LogEntry | None:
    """Read a stream's newest entry."""
    found: list[tuple[int, bytes]] = connection.execute(
        "SELECT sequence, body FROM log_entry WHERE log = ? AND stream = ?"
        " ORDER BY sequence DESC LIMIT 1",
        (log, stream),
    ).fetchall()
    return LogEntry(sequence=found[0][0], body=found[0][1]) if found else None


def streams(
    connection: sqlite3.Connection, log: LogKind, *, last: int, before: str
) -> tuple[str, ...]:
    """Read the names of a log's streams, skipping backwards without scanning entries.

    For SQLite, a negative limit means no limit.
    """
    found: list[tuple[str]] = connection.execute(
        "WITH RECURSIVE name (stream) AS ("
        " SELECT max(stream) FROM log_entry WHERE log = ? AND stream < ?"
        " UNION ALL SELECT (SELECT max(stream) FROM log_entry WHERE log = ? AND"
        " stream < name.stream) FROM name WHERE name.stream IS NOT NULL LIMIT ?)"
        " SELECT stream FROM name WHERE stream IS NOT NULL",
        (log, before or _BEYOND, log, last or -1),
    ).fetchall()
    return tuple(stream for (stream,) in reversed(found))


def blob(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """Read a blob's bytes."""
    found: list[tuple[bytes]] = connection.execute(
        "SELECT body FROM blob WHERE digest = ?", (digest,)
    ).fetchall()
    return found[0][0] if found else None


def blobs(connection: sqlite3.Connection, *, put_before: datetime, limit: int) -> tuple[str, ...]:
    """Read the digests of blobs last put before an instant, in the order of their index."""
    found: list[tuple[str]] = connection.execute(
        "SELECT digest FROM blob WHERE put_at < ? ORDER BY put_at, digest LIMIT ?",
        (to_microseconds(put_before), max(limit, 0)),
    ).fetchall()
    return tuple(digest for (digest,) in found)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of all pages that are not free."""
    return number(
        connection,
        "SELECT (pages.page_count - free.freelist_count) * size.page_size"
        " FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size",
    )


def _filters(query: Query) -> tuple[str, list[str | int]]:
    """Return a query's condition, and its values."""
    clauses = ["kind = ?"]
    values: list[str | int] = [query.kind]
    if query.conversation is not None:
        clauses.append("conversation = ?")
        values.append(query.conversation)
    for column, value in (("state", query.state), ("place", query.place)):
        if value is not None:
            # The index is partial: this term tells SQLite that it may use it.
            clauses.append(f"{column} = ? AND {column} <> ''" if value else f"{column} = ?")
            values.append(value)
    if query.due_before is not None:
        clauses.append("due_at < ?")
        values.append(to_microseconds(query.due_before))
    return " AND ".join(clauses), values


def _row(kind: RowKind, columns: _Columns) -> Row:
    key, version, body, conversation, state, place, due_us = columns
    return Row(
        kind=kind,
        key=key,
        version=version,
        body=body,
        conversation=None if conversation is None else ConversationId(conversation),
        state=state,
        place=place,
        due_at=None if due_us is None else from_microseconds(due_us),
    )


_SPARE_PAGES = 256  # kept for the writes that follow
_REWRITTEN_BYTES = 64 * 2**20  # commits wait for it
_RELEASE_AT_ONCE = 1024  # each page costs a write, during which other jobs wait
_PURGE_AT_ONCE = 512  # more than a full group usually claims, so that the table shrinks again

# sqlite3's errors for a value that can't be bound or has the wrong type for its column. Only the
# commit with that value fails, not the others in its group.
_UNSTORABLE = (
    OverflowError,
    TypeError,
    UnicodeEncodeError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)


def apply(connection: sqlite3.Connection, commit: Commit, *, now_us: int) -> None:
    """Run a commit's writes in order, inside the open transaction.

    Raises:
        StoreRefused: Roll back this commit, and only this one.
        sqlite3.Error: Roll back the transaction.
    """
    try:
        for write in commit.writes:
            _apply(connection, write, now_us)
    except _UNSTORABLE as error:
        message = f"a value of commit `{commit.point}` can't be stored"
        raise StoreRefused(message) from error


def purge_claims(connection: sqlite3.Connection, *, now_us: int) -> None:
    """Delete some expired claims."""
    connection.execute(
        "DELETE FROM claim WHERE key IN (SELECT key FROM claim WHERE until <= ? LIMIT ?)",
        (now_us, _PURGE_AT_ONCE),
    )


def release_pages(connection: sqlite3.Connection) -> None:
    """Return some free pages to the disk, if the file was created in a mode that allows it.

    An older file reuses them, and so stops growing. Call it between transactions.
    """
    free = number(connection, "PRAGMA freelist_count")
    surplus = min(free - _SPARE_PAGES, _RELEASE_AT_ONCE)
    if surplus > 0:
        # As a script, because `execute` does not run a statement without rows to its end.
        connection.executescript(f"PRAGMA incremental_vacuum({surplus})")


def rewrite(connection: sqlite3.Connection, directory: Path) -> None:
    """Rewrite the file in this directory; call it between transactions.

    A page that was split keeps copies of rows that moved away, which `secure_delete` does not reach.

    Raises:
        OSError: The file is too large.
        sqlite3.Error: Passed through.
    """
    pages = number(connection, "PRAGMA page_count")
    if pages * number(connection, "PRAGMA page_size") > _REWRITTEN_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    folder = str(directory).replace("'", "''")
    try:
        # With the copy in memory, a small container is killed, and again at each start.
        connection.executescript(
            f"PRAGMA temp_store_directory = '{folder}'; PRAGMA temp_store = FILE; VACUUM"
        )
    finally:
        connection.executescript("PRAGMA temp_store_directory = ''; PRAGMA temp_store = MEMORY")


def empty_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log; return False, at once, while a reader needs it."""
    waits_ms = number(connection, "PRAGMA busy_timeout")
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        return not number(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {waits_ms}")


def _claim(connection: sqlite3.Connection, claim: Claim, now_us: int) -> None:
    until_us = to_microseconds(claim.until)
    for key in dict.fromkeys(claim.keys):  # an event may list the same key twice
        claimed = connection.execute(
            "INSERT INTO claim (key, until) VALUES (?, ?) ON CONFLICT (key)"
            " DO UPDATE SET until = excluded.until WHERE until <= ?",
            (key, until_us, now_us),
        )
        if claimed.rowcount == 0:
            raise AlreadyClaimed(key)


def put(connection: sqlite3.Connection, put: Put) -> None:
    """Insert or replace a row.

    Raises:
        sqlite3.Error: Passed through.
    """
    due_us = None if put.due_at is None else to_microseconds(put.due_at)
    row, found_by = (put.kind, put.key), (put.conversation, put.place, due_us)
    if not connection.execute(_CHANGE, (put.state, put.body, *row, *found_by)).rowcount:
        connection.execute(_INSERT, (*found_by, put.state, put.body, *row))


# No numbered parameters: Python 3.12 before 3.12.4 warns about them as if they were named (CPython
# issue 117995). SQLite rewrites an index if any of its columns is set, even to the same value. Most
# updates change only state and body; leaving the other columns out writes a third fewer pages, in
# three fifths of the time.
_CHANGE = (
    "UPDATE stored_row SET version = version + 1, state = ?, body = ? WHERE kind = ? AND key = ?"
    " AND conversation IS ? AND place = ? AND due_at IS ?"
)
_INSERT = (
    "INSERT INTO stored_row (conversation, place, due_at, state, body, kind, key, version)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (kind, key) DO UPDATE SET"
    " version = version + 1, conversation = excluded.conversation, place = excluded.place,"
    " due_at = excluded.due_at, state = excluded.state, body = excluded.body"
)


def _apply(connection: sqlite3.Connection, write: Write, now_us: int) -> None:
    match write:
        case Claim():
            _claim(connection, write, now_us)
        case Put():
            put(connection, write)
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
            before_us = None if before is None else to_microseconds(before)
            connection.execute(
                "DELETE FROM blob WHERE digest = ? AND (? IS NULL OR put_at < ? OR put_at > ?)",
                (write.digest, before_us, before_us, now_us),
            )
        case Expect():
            _expect(connection, write)
        case Append():
            _append(connection, write)
        case PutBlob():
            _put_blob(connection, write, now_us)
        case _:
            assert_never(write)


def _expect(connection: sqlite3.Connection, row: Expect) -> None:
    # An aggregate, so that there is a number if there is no row.
    sql = "SELECT coalesce(max(version), 0) FROM stored_row WHERE kind = ? AND key = ?"
    found = number(connection, sql, (row.kind, row.key))
    if found != row.version:
        message = f"{row.kind} `{row.key}` is at version {found}, not {row.version}"
        raise Conflict(message)


def _append(connection: sqlite3.Connection, append: Append) -> None:
    if append.after is not None:
        sql = "SELECT coalesce(max(sequence), 0) FROM log_entry WHERE log = ? AND stream = ?"
        last = number(connection, sql, (append.log, append.stream))
        if append.after != last:
            message = f"{append.log} `{append.stream}` ends at {last}, not {append.after}"
            raise Conflict(message)
    connection.execute(
        "INSERT INTO log_entry (log, stream, sequence, body)"
        " SELECT ?, ?, coalesce(max(sequence), 0) + 1, ? FROM log_entry"
        " WHERE log = ? AND stream = ?",
        (append.log, append.stream, append.body, append.log, append.stream),
    )


def _put_blob(connection: sqlite3.Connection, blob: PutBlob, now_us: int) -> None:
    if len(blob.body) > LARGEST_BLOB_BYTES:
        message = f"a blob of {len(blob.body)} bytes is larger than {LARGEST_BLOB_BYTES} bytes"
        raise StoreRefused(message)
    if hashlib.sha256(blob.body).hexdigest() != blob.digest:
        message = f"the blob named `{blob.digest}` has another SHA-256"
        raise StoreRefused(message)
    connection.execute(
        "INSERT INTO blob (digest, body, put_at) VALUES (?, ?, ?) ON CONFLICT (digest)"
        " DO UPDATE SET put_at = excluded.put_at",
        (blob.digest, blob.body, now_us),
    )
