"""What the next turn is about: the oldest waiting message, and those that belong to it.

With `while_busy = "collect"` a person who writes three messages in a row is answered once: the
turn begins when nothing more came for a moment, and takes what they wrote until then.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from zeroclaw.clock import Clock
from zeroclaw.envelope import ConversationId
from zeroclaw.store import Row, RowKind, Store
from zeroclaw.turn.inbox import Ask, Item, item_of

MOST = 50
"""Messages that one turn takes together; the others are the next turn's."""
LONGEST = 5
"""Windows after which a turn begins although its person goes on writing."""


class Collecting:
    """Finds what a conversation's next turn is about."""

    def __init__(self, store: Store, clock: Clock, window_s: Callable[[str], float]) -> None:
        """Hold the store; `window_s` says of a channel how long to wait for one more message."""
        self._store = store
        self._clock = clock
        self._window_s = window_s

    async def next(self, conversation: ConversationId) -> tuple[Item, ...]:
        """Return the items of the next turn, the oldest first; nothing when nothing waits."""
        while True:
            items = together(await self._queued(conversation, 1))
            if items and _collects(items[0]):
                items = together(await self._queued(conversation, MOST))
            wait_s = self._wait_s(items, self._clock.now())
            if wait_s <= 0:
                return items
            await self._clock.sleep(wait_s)

    async def _queued(self, conversation: ConversationId, limit: int) -> tuple[Row, ...]:
        return await self._store.find(
            RowKind.INBOX, conversation=conversation, state="queued", limit=limit
        )

    def _wait_s(self, items: tuple[Item, ...], now: datetime) -> float:
        """Return for how long one more message may still join."""
        if not items or not _collects(items[0]) or len(items) == MOST:
            return 0.0
        window_s = self._window_s(items[0].address.channel)
        since_newest = (now - items[-1].admitted_at).total_seconds()
        since_oldest = (now - items[0].admitted_at).total_seconds()
        if since_newest < 0:
            return 0.0  # the clock was set back; nobody waits until it has caught up
        return min(window_s - since_newest, LONGEST * window_s - since_oldest)


def together(rows: Sequence[Row]) -> tuple[Item, ...]:
    """Return the oldest item, and those right behind it that are collected with it."""
    items = [item_of(row) for row in rows]
    if not items or not _collects(items[0]):
        return tuple(items[:1])
    first = items[0]
    for place, item in enumerate(items):
        same = item.principal.id == first.principal.id and item.address == first.address
        if not _collects(item) or not same:
            return tuple(items[:place])
    return tuple(items)


def _collects(item: Item) -> bool:
    return isinstance(item.content, Ask) and item.content.while_busy == "collect"
