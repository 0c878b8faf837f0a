"""Tells open pages that something has changed; what, they ask for themselves.

A page has room for one notice, so that nothing can pile up: one that reads slowly finds one change
in place of many. No notifier ever waits (P9).
"""

from asyncio import Queue
from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

MOST_PAGES = 16


class Notice(IntEnum):
    """What waits for a page; of two the higher one."""

    PING = 0
    CHANGED = 1
    END = 2


class Notifier:
    """All open pages of the console; one for the whole daemon."""

    def __init__(self) -> None:
        """Begin with no page."""
        self._open: set[Queue[Notice]] = set()
        self._is_closed = False

    def notify(self) -> None:
        """Tell every page that something has changed; never waits."""
        self._put(Notice.CHANGED)

    def ping(self) -> None:
        """Have every connection tried."""
        self._put(Notice.PING)

    def close(self) -> None:
        """End every page's line, now and from now on; safe twice."""
        self._is_closed = True
        self._put(Notice.END)

    def has_room(self) -> bool:
        """Tell whether another page may listen."""
        return not self._is_closed and len(self._open) < MOST_PAGES

    @contextmanager
    def subscribe(self) -> Generator[Queue[Notice]]:
        """Listen for one page while the block runs."""
        one = Queue[Notice](maxsize=1)
        self._open.add(one)
        if self._is_closed:
            one.put_nowait(Notice.END)
        try:
            yield one
        finally:
            self._open.discard(one)

    def _put(self, notice: Notice) -> None:
        for one in self._open:
            waiting = notice if one.empty() else one.get_nowait()
            one.put_nowait(max(waiting, notice))
