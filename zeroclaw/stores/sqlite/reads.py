"""The reads of a store as SQL; each is one statement, so each sees one moment."""

import sqlite3
from datetime import datetime

from zeroclaw.envelope import ConversationId
from zeroclaw.store import LogEntry, LogKind, Query, Row, RowKind
from zeroclaw.stores.sqlite.instants import from_microseconds, to_microseconds

_Columns = tuple[str, int, bytes, str | None, str, str, int | None]
_SELECT = "SELECT key, version, body, conversation, state, place, due_at FROM stored_row WHERE "
_BEYOND = "\U0010ffff"  # sorted behind every name
_COUNT = "SELECT count(*) FROM stored_row WHERE "


def get(connection: sqlite3.Connection, kind: RowKind, key: str) -> Row | None:
    """Read one row."""
    found: list[_Columns] = connection.execute(
        _SELECT + "kind = ? AND key = ?", (kind, key)
    ).fetchall()
    return _row(kind, found[0]) if found else None


def select(connection: sqlite3.Connection, query: Query) -> tuple[Row, ...]:
    """Read the rows that fit; `after` is a key, empty for the beginning."""
    where, values = _filters(query)
    if query.after:
        where += " AND key < ?" if query.newest_first else " AND key > ?"
        values.append(query.after)
    order = " ORDER BY key DESC LIMIT ?" if query.newest_first else " ORDER BY key LIMIT ?"
    values.append(max(query.limit, 0))  # SQLite takes a negative limit for none
    found: list[_Columns] = connection.execute(_SELECT + where + order, values).fetchall()
    return tuple(_row(query.kind, columns) for columns in found)


def count(connection: sqlite3.Connection, query: Query) -> int:
    """Count the rows that fit."""
    where, values = _filters(query)
    found: list[tuple[int]] = connection.execute(_COUNT + where, values).fetchall()
    return found[0][0]


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


def streams(connection: sqlite3.Connection, log: LogKind) -> tuple[str, ...]:
    """Read the names of a log's streams, jumping from one to the next over their entries."""
    found: list[tuple[str]] = connection.execute(
        "WITH RECURSIVE name (stream) AS ("
        " SELECT min(stream) FROM log_entry WHERE log = ?"
        " UNION ALL SELECT (SELECT min(stream) FROM log_entry WHERE log = ? AND"
        " stream > name.stream) FROM name WHERE name.stream IS NOT NULL)"
        " SELECT stream FROM name WHERE stream IS NOT NULL",
        (log, log),
    ).fetchall()
    return tuple(stream for (stream,) in found)


def last_streams(
    connection: sqlite3.Connection, log: LogKind, *, last: int, before: str
) -> tuple[str, ...]:
    """Read so many of the last names, jumping backwards over their entries."""
    found: list[tuple[str]] = connection.execute(
        "WITH RECURSIVE name (stream) AS ("
        " SELECT max(stream) FROM log_entry WHERE log = ? AND stream < ?"
        " UNION ALL SELECT (SELECT max(stream) FROM log_entry WHERE log = ? AND"
        " stream < name.stream) FROM name WHERE name.stream IS NOT NULL LIMIT ?)"
        " SELECT stream FROM name WHERE stream IS NOT NULL",
        (log, before or _BEYOND, log, last),
    ).fetchall()
    return tuple(stream for (stream,) in reversed(found))


def blob(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """Read a blob's bytes."""
    found: list[tuple[bytes]] = connection.execute(
        "SELECT body FROM blob WHERE digest = ?", (digest,)
    ).fetchall()
    return found[0][0] if found else None


def blobs(
    connection: sqlite3.Connection, *, put_before: datetime, after: str, limit: int
) -> tuple[str, ...]:
    """Read the digests of blobs last put before an instant."""
    found: list[tuple[str]] = connection.execute(
        "SELECT digest FROM blob WHERE put_at < ? AND digest > ? ORDER BY digest LIMIT ?",
        (to_microseconds(put_before), after, max(limit, 0)),
    ).fetchall()
    return tuple(digest for (digest,) in found)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Read how much the pages take that are not free."""
    found: list[tuple[int]] = connection.execute(
        "SELECT (pages.page_count - free.freelist_count) * size.page_size"
        " FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size"
    ).fetchall()
    return found[0][0]


def check(connection: sqlite3.Connection) -> str | None:
    """Look through the whole file for damage; None when there is none."""
    found: list[tuple[str]] = connection.execute("PRAGMA quick_check(1)").fetchall()
    return None if found[0][0] == "ok" else found[0][0]


def _filters(query: Query) -> tuple[str, list[str | int]]:
    """Return the condition of a query, and its values."""
    clauses = ["kind = ?"]
    values: list[str | int] = [query.kind]
    if query.conversation is not None:
        clauses.append("conversation = ?")
        values.append(query.conversation)
    for column, wanted in (("state", query.state), ("place", query.place)):
        if wanted is not None:
            # The index holds only rows that have one; this tells SQLite that it will do.
            clauses.append(f"{column} = ? AND {column} <> ''" if wanted else f"{column} = ?")
            values.append(wanted)
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
