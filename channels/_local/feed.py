"""Delivers live events to every reader (a page or a client); a slow one delays no other.

Each reader has a queue of its own with one entry per item of the chat. A newer event replaces the
older one, so a slow reader skips frames of a draft. A reader whose queue is full is disconnected;
it reconnects and begins with a snapshot.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from channels._local.render import Event, SharedEvent, slot

MAX_READERS = 32
MAX_WAITING = 256


class Subscription:
    """The queue of one reader."""

    def __init__(self) -> None:
        self._waiting: dict[str, Event] = {}
        self._wake = asyncio.Event()
        self._over = asyncio.Event()

    async def take(self) -> tuple[Event, ...] | None:
        """Wait for events; returns an empty tuple to ask for a ping, None at the end."""
        await self._wake.wait()
        self._wake.clear()
        if self._over.is_set():
            return None
        events = tuple(self._waiting.values())
        self._waiting.clear()
        return events

    def put(self, event: Event) -> None:
        """Queue an event, or end the subscription if the queue is full."""
        key = slot(event)
        if key not in self._waiting and len(self._waiting) >= MAX_WAITING:
            self.end()
        elif not self._over.is_set():
            self._waiting[key] = event
            self._wake.set()

    def keep(self, is_wanted: Callable[[Event], bool]) -> None:
        """Drop the queued events that are not wanted."""
        self._waiting = {key: event for key, event in self._waiting.items() if is_wanted(event)}

    def nudge(self) -> None:
        """Make `take` return even if no event waits."""
        self._wake.set()

    def end(self) -> None:
        """Drop queued events; make `take` return None and `over` return."""
        self._waiting.clear()
        self._over.set()
        self._wake.set()

    async def over(self) -> None:
        """Wait until the subscription ends: by either side, or because the channel closes."""
        await self._over.wait()


class Feed:
    """All readers of one channel."""

    def __init__(self) -> None:
        self._open: set[Subscription] = set()
        self._closed = False

    def has_room(self) -> bool:
        """Whether another reader may subscribe."""
        return not self._closed and len(self._open) < MAX_READERS

    def publish(self, event: SharedEvent) -> None:
        """Queue an event for every reader; never waits."""
        for subscription in self._open:
            subscription.put(event)

    def ping(self) -> None:
        """Make every reader send a ping."""
        for subscription in self._open:
            subscription.nudge()

    @contextmanager
    def subscribe(self) -> Generator[Subscription]:
        """Queue events for one reader while the block runs."""
        subscription = Subscription()
        if self._closed:
            subscription.end()
        self._open.add(subscription)
        try:
            yield subscription
        finally:
            self._open.discard(subscription)

    def open(self) -> None:
        """Accept readers again after `close`."""
        self._closed = False

    def close(self) -> None:
        """End every subscription, and all new ones at once until `open`; safe to call twice."""
        self._closed = True
        for subscription in self._open:
            subscription.end()
