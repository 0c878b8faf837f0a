"""Notifies open pages of changes; a page then fetches what changed.

Each page has room for one notice, so that nothing piles up: a slow page sees one change instead of
many. The notifier never waits (P9).
"""

from asyncio import Queue
from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

MAX_PAGES = 16


class Notice(IntEnum):
    """The pending notice of a page; the higher one wins."""

    PING = 0
    CHANGED = 1
    END = 2


class Notifier:
    """Notifies all open pages of the console; the daemon has one."""

    def __init__(self) -> None:
        """Start without pages."""
        self._open: set[Queue[Notice]] = set()
        self._is_closed = False

    def notify(self) -> None:
        """Tell every page that something has changed; never waits."""
        self._put(Notice.CHANGED)

    def ping(self) -> None:
        """Send a ping on every connection, which detects dead ones."""
        self._put(Notice.PING)

    def close(self) -> None:
        """End the streams of all pages, and of pages that open later; safe twice."""
        self._is_closed = True
        self._put(Notice.END)

    def has_room(self) -> bool:
        """Whether another page may subscribe."""
        return not self._is_closed and len(self._open) < MAX_PAGES

    @contextmanager
    def subscribe(self) -> Generator[Queue[Notice]]:
        """Subscribe one page while the block runs."""
        queue = Queue[Notice](maxsize=1)
        self._open.add(queue)
        if self._is_closed:
            queue.put_nowait(Notice.END)
        try:
            yield queue
        finally:
            self._open.discard(queue)

    def _put(self, notice: Notice) -> None:
        for queue in self._open:
            pending = notice if queue.empty() else queue.get_nowait()
            queue.put_nowait(max(pending, notice))
