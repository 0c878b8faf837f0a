"""Hand live events to every reader, a page or a client; a slow one holds up neither others nor the sender.

Events wait for each reader apart, one a thing in the chat: a newer one takes the older one's place,
so that a reader that is slow skips frames of a draft. A reader that lets too many wait is cut,
comes back, and begins with a snapshot.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from channels._local.render import Event, Happening, slot
from zeroclaw import Value

MOST_READERS = 32
MOST_WAITING = 256


class Numbered(Value):
    """An event and its place in the order of all of them."""

    event: Event
    number: int


class Subscription:
    """What waits for one reader."""

    def __init__(self) -> None:
        self._waiting: dict[str, Numbered] = {}
        self._wake = asyncio.Event()
        self._over = asyncio.Event()

    async def take(self) -> tuple[Numbered, ...] | None:
        """Wait for events; empty when the connection should be tried, None at the end."""
        await self._wake.wait()
        self._wake.clear()
        if self._over.is_set():
            return None
        taken = tuple(self._waiting.values())
        self._waiting.clear()
        return taken

    def put(self, event: Numbered) -> None:
        """Add an event, or cut the reader."""
        waiting_for = slot(event.event)
        if waiting_for not in self._waiting and len(self._waiting) >= MOST_WAITING:
            self.end()
        elif not self._over.is_set():
            self._waiting[waiting_for] = event
            self._wake.set()

    def nudge(self) -> None:
        """Let `take` return even if nothing waits."""
        self._wake.set()

    def end(self) -> None:
        """Let `take` return None, and `over` return; what waits is dropped."""
        self._waiting.clear()
        self._over.set()
        self._wake.set()

    async def over(self) -> None:
        """Wait until the reader is cut or gone, or the channel closes."""
        await self._over.wait()


class Feed:
    """All readers of one channel.

    Attributes:
        number: Of the newest event.
    """

    def __init__(self) -> None:
        self._open: set[Subscription] = set()
        self._closed = False
        self.number = 0

    def has_room(self) -> bool:
        """Tell whether another reader may be served."""
        return not self._closed and len(self._open) < MOST_READERS

    def publish(self, event: Happening) -> None:
        """Hand an event to every reader; never waits."""
        self.number += 1
        for subscription in self._open:
            subscription.put(Numbered(event=event, number=self.number))

    def ping(self) -> None:
        """Have every connection tried."""
        for subscription in self._open:
            subscription.nudge()

    @contextmanager
    def subscribe(self) -> Generator[Subscription]:
        """Collect events for one reader while the block runs."""
        subscription = Subscription()
        if self._closed:
            subscription.end()
        self._open.add(subscription)
        try:
            yield subscription
        finally:
            self._open.discard(subscription)

    def open(self) -> None:
        """Serve readers again after `close`."""
        self._closed = False

    def close(self) -> None:
        """End every reader's subscription, now and from now on; safe twice."""
        self._closed = True
        for subscription in self._open:
            subscription.end()
