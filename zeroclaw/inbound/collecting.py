"""What the next turn is about: the oldest waiting message, and those that belong to it.

A message that came in pieces is one; the turn begins when the last one is there, or when no more
was to be waited for. All others wait for nothing.

With `while_busy = "collect"` a person who writes three messages in a row is answered once: the
turn begins when nothing more came for a moment, and takes what they wrote until then.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from zeroclaw.clock import Clock
from zeroclaw.envelope import ConversationId
from zeroclaw.inbound.runs import MOST_PIECES
from zeroclaw.store import Row, RowKind, Store
from zeroclaw.turn.bell import Bell
from zeroclaw.turn.inbox import Ask, Item, item_of
from zeroclaw.turn.pieces import piece_of, run_of

MOST = 50
"""Messages that one turn takes together; the others are the next turn's."""
LONGEST = 5
"""Windows after which a turn begins although its person goes on writing."""


class Collecting:
    """Finds what a conversation's next turn is about."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        window_s: Callable[[str], float],
        left_s: Callable[[str], float],
    ) -> None:
        """Hold the store.

        Args:
            store: Where messages wait.
            clock: For waits.
            window_s: Says of a channel how long to wait for one more message.
            left_s: Says of a message that came in pieces for how long more of them may come.
        """
        self._store = store
        self._clock = clock
        self._window_s = window_s
        self._left_s = left_s

    async def next(
        self, conversation: ConversationId, bell: Bell, is_wanted: Callable[[], bool]
    ) -> tuple[Item, ...]:
        """Return the items of the next turn, the oldest first; nothing when nothing waits.

        Args:
            conversation: Whose turn.
            bell: Rings when there is something new; it still does afterwards.
            is_wanted: Whether a turn is still to begin; the bell rings when that changes.
        """
        has_rung = False
        while True:
            items = together(await self._queued(conversation, 1))
            if items and (_collects(items[0]) or piece_of(items[0]) is not None):
                items = together(await self._queued(conversation, MOST + MOST_PIECES))
            wait_s = self._wait_s(items, self._clock.now())
            if wait_s <= 0 or not is_wanted():
                break
            has_rung = await self._has_rung(bell, wait_s) or has_rung
        if has_rung:
            bell.ring()
        return items

    async def _queued(self, conversation: ConversationId, limit: int) -> tuple[Row, ...]:
        return await self._store.find(
            RowKind.INBOX, conversation=conversation, state="queued", limit=limit
        )

    async def _has_rung(self, bell: Bell, wait_s: float) -> bool:
        """Wait until it is time, or something is new, which may be what was waited for."""
        async with asyncio.TaskGroup() as group:
            ringing = group.create_task(bell.wait(), name="one more piece")
            sleeping = group.create_task(self._clock.sleep(wait_s), name="the last piece")
            ringing.add_done_callback(lambda _: sleeping.cancel())
            sleeping.add_done_callback(lambda _: ringing.cancel())
        has_rung = bell.rings
        bell.silence()
        return has_rung

    def _wait_s(self, items: tuple[Item, ...], now: datetime) -> float:
        """Return for how long one more message, or piece of one, may still join."""
        rest_s = max((self._left_s(run) for run in set(map(run_of, items))), default=0.0)
        if not items or not _collects(items[0]) or len(items) >= MOST:
            return rest_s
        window_s = self._window_s(items[0].address.channel)
        since_newest = (now - items[-1].admitted_at).total_seconds()
        since_oldest = (now - items[0].admitted_at).total_seconds()
        if since_newest < 0:
            return rest_s  # the clock was set back; nobody waits until it has caught up
        return max(min(window_s - since_newest, LONGEST * window_s - since_oldest), rest_s)


def together(rows: Sequence[Row]) -> tuple[Item, ...]:
    """Return the oldest item, and those that are answered with it, in order.

    Those are the other pieces of its message, and what is right behind it and collected with it.
    """
    items = [item_of(row) for row in rows]
    taken = items[: _collected(items)]
    runs = set(map(run_of, taken))
    return (*taken, *(one for one in items[len(taken) :] if run_of(one) in runs))


def _collected(items: Sequence[Item]) -> int:
    """Return how many of the first items are collected, at least the first of them."""
    for place, item in enumerate(items):
        first = items[0]
        same = item.principal.id == first.principal.id and item.address == first.address
        if place and (place == MOST or not same or not _collects(item) or not _collects(first)):
            return place
    return len(items)


def _collects(item: Item) -> bool:
    return isinstance(item.content, Ask) and item.content.while_busy == "collect"
