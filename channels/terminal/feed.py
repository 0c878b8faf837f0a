"""Hand live events to every attached client; a slow one never holds up another, nor the sender.

Events wait for each client apart, one a thing in the chat: a newer one takes the older one's
place, so that a client that reads slowly skips frames of a draft. A client that lets too many wait
is cut, comes back, and begins with a snapshot.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from channels.terminal.render import Event, Happening, slot
from zeroclaw import Value

MOST_CLIENTS = 32
MOST_WAITING = 256


class Numbered(Value):
    """An event and its place in the order of all of them."""

    event: Event
    number: int


class Subscription:
    """What waits for one client."""

    def __init__(self) -> None:
        self._waiting: dict[str, Numbered] = {}
        self._wake = asyncio.Event()
        self._over = asyncio.Event()
        self._begun = asyncio.Event()
        self._after = ""

    def begin(self, after: str) -> None:
        """The client said hello; a second time changes nothing."""
        if not self._begun.is_set():
            self._after = after
            self._begun.set()

    async def begun(self) -> str:
        """Wait for the client's hello and return the cursor that it named."""
        await self._begun.wait()
        return self._after

    async def take(self) -> tuple[Numbered, ...]:
        """Wait for events and return them in order; never returns after the end."""
        await self._wake.wait()
        self._wake.clear()
        taken = tuple(self._waiting.values())
        self._waiting.clear()
        return taken

    def put(self, event: Numbered) -> None:
        """Add an event, or cut the client."""
        waiting_for = slot(event.event)
        is_new = waiting_for not in self._waiting
        if is_new and len(self._waiting) >= MOST_WAITING:
            self.end()
        elif not self._over.is_set():
            self._waiting[waiting_for] = event
            self._wake.set()

    def end(self) -> None:
        """Let `over` return; what waits is dropped."""
        self._waiting.clear()
        self._wake.clear()
        self._over.set()

    async def over(self) -> None:
        """Wait until the client is cut or gone, or the channel closes."""
        await self._over.wait()


class Feed:
    """All attached clients of one channel."""

    def __init__(self) -> None:
        self._open: set[Subscription] = set()
        self._closed = False
        self._number = 0

    @property
    def number(self) -> int:
        """The number of the newest event."""
        return self._number

    def has_room(self) -> bool:
        """Tell whether another client may attach."""
        return not self._closed and len(self._open) < MOST_CLIENTS

    def publish(self, event: Happening) -> None:
        """Hand an event to every client; never waits."""
        self._number += 1
        for subscription in self._open:
            subscription.put(Numbered(event=event, number=self._number))

    @contextmanager
    def subscribe(self) -> Generator[Subscription]:
        """Collect events for one client while the block runs."""
        subscription = Subscription()
        if self._closed:
            subscription.end()
        self._open.add(subscription)
        try:
            yield subscription
        finally:
            self._open.discard(subscription)

    def open(self) -> None:
        """Serve clients again after `close`."""
        self._closed = False

    def close(self) -> None:
        """Cut every client, now and from now on; safe twice."""
        self._closed = True
        for subscription in self._open:
            subscription.end()
