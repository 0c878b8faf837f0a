"""Reads the store's file while the daemon writes it, without the product's own queries.

The connection can neither write nor checkpoint, so it does not affect the daemon.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from zeroclaw.store import LogKind, RowKind
from zeroclaw.stores.sqlite.files import FILE_NAME


class Ledger:
    """The store of one data directory; empty if there is no file."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._known: set[str] = set()

    def states(self, kind: RowKind) -> set[str]:
        """Return every state of the rows of a kind."""
        return {state for (state,) in self._read(_STATES, kind.value)}

    def keys(self, kind: RowKind, state: str, containing: str = "") -> list[str]:
        """Return the keys of rows in a state whose bodies contain a text."""
        return [key for (key,) in self._read(_KEYS, kind.value, state, containing)]

    def count(self, kind: RowKind, state: str) -> int:
        """Return the number of rows in a state."""
        return len(self.keys(kind, state))

    def ends(self, message: str) -> list[str]:
        """Return the inbox states of a message, without those of its edits."""
        return [state for (state,) in self._read(_ENDS, RowKind.INBOX.value, message)]

    def streams(self, log: LogKind) -> list[str]:
        """Return the names of a log's streams."""
        return [stream for (stream,) in self._read(_STREAMS, log.value)]

    def log(self, log: LogKind, stream: str) -> list[bytes]:
        """Return the bodies of a stream, in order."""
        return [bytes.fromhex(body) for (body,) in self._read(_LOG, log.value, stream)]

    def holds(self, text: str) -> bool:
        """Tell whether a row, a log or a blob contains a text."""
        return bool(self._read(_HOLDS, text))

    def knows_message(self, message: str) -> bool:
        """Tell whether the store ever recorded a message of the bot with this id, in any chat.

        A message that it never recorded is the beginning of an answer, or will be looked up.
        """
        if message not in self._known and self._read(_MESSAGE, f'"message":"{message}"'):
            self._known.add(message)
        return message in self._known

    def has_claimed(self, key: str) -> bool:
        """Tell whether an event with this key was admitted."""
        return bool(self._read("SELECT 'claimed' FROM claim WHERE key = ?", key))

    def damage(self) -> str:
        """Return the first fault in the whole file, `ok` if there is none."""
        ((found,),) = self._read("PRAGMA integrity_check(1)")
        return str(found)

    def _read(self, sql: str, *values: str) -> list[tuple[str]]:
        if not self._path.exists():
            return []
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()


_STATES = "SELECT DISTINCT state FROM stored_row WHERE kind = ?"
_KEYS = (
    "SELECT key FROM stored_row WHERE kind = ? AND state = ?"
    " AND CAST(body AS TEXT) LIKE '%' || ? || '%' ORDER BY key"
)
_ENDS = (
    "SELECT state FROM stored_row WHERE kind = ?"
    " AND json_extract(CAST(body AS TEXT), '$.message') = ? ORDER BY key"
)
_HOLDS = (
    "WITH held(body) AS (SELECT body FROM stored_row UNION ALL SELECT body FROM log_entry"
    " UNION ALL SELECT body FROM blob)"
    " SELECT 'held' FROM held WHERE instr(CAST(body AS TEXT), ?) LIMIT 1"
)
_MESSAGE = (
    "SELECT 'known' FROM stored_row WHERE kind IN ('outbox', 'turn')"
    " AND instr(CAST(body AS TEXT), ?) LIMIT 1"
)
_STREAMS = "SELECT DISTINCT stream FROM log_entry WHERE log = ?"
_LOG = "SELECT hex(body) FROM log_entry WHERE log = ? AND stream = ? ORDER BY sequence"
