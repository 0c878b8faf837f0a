"""The embedded store: one SQLite file, one process, durable against power loss."""

from zeroclaw.stores.sqlite.store import SqliteStore, open_store
from zeroclaw.stores.sqlite.writer import Statistics

__all__ = ["SqliteStore", "Statistics", "open_store"]
