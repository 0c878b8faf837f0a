"""Tells open pages that something has changed; what, they ask for themselves.

A notice is one bit for each page, so that nothing can pile up: a page that reads slowly finds one
notice in place of many. No notifier ever waits (P9).
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

MOST_PAGES = 16


class Subscription:
    """What waits for one page."""

    def __init__(self) -> None:
        self._wake = asyncio.Event()
        self._is_new = False
        self._is_over = False

    async def take(self) -> bool | None:
        """Wait; True for a change, False when the connection should be tried, None at the end."""
        await self._wake.wait()
        self._wake.clear()
        is_new, self._is_new = self._is_new, False
        return None if self._is_over else is_new

    def put(self, *, is_new: bool) -> None:
        """Let `take` return."""
        self._is_new = self._is_new or is_new
        self._wake.set()

    def end(self) -> None:
        """Let `take` return None."""
        self._is_over = True
        self._wake.set()


class Notifier:
    """All open pages of the console; one for the whole daemon."""

    def __init__(self) -> None:
        """Begin with no page."""
        self._open: set[Subscription] = set()
        self._is_closed = False

    def notify(self) -> None:
        """Tell every page that something has changed; never waits."""
        for one in self._open:
            one.put(is_new=True)

    def ping(self) -> None:
        """Have every connection tried."""
        for one in self._open:
            one.put(is_new=False)

    def has_room(self) -> bool:
        """Tell whether another page may listen."""
        return not self._is_closed and len(self._open) < MOST_PAGES

    @contextmanager
    def subscribe(self) -> Generator[Subscription]:
        """Listen for one page while the block runs."""
        one = Subscription()
        if self._is_closed:
            one.end()
        self._open.add(one)
        try:
            yield one
        finally:
            self._open.discard(one)

    def close(self) -> None:
        """End every page's line, now and from now on; safe twice."""
        self._is_closed = True
        for one in self._open:
            one.end()
