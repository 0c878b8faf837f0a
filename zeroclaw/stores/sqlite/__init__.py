"""The embedded store: one SQLite file, one process, durable against power loss."""

from zeroclaw.stores.sqlite.store import SqliteStore, open_store

__all__ = ["SqliteStore", "open_store"]
