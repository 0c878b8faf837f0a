"""The items of a turn: the fragments of one message, or several messages that debounce joins.

`fragments` decides which event continues which message. Each fragment is committed when it arrives,
as an item of its own that names the first: a kill between two loses nothing. Waiting uses the
monotonic clock, so that setting the clock delays no message. After a start the wait begins again,
because the platform can deliver the rest only from then on.

A turn about a message in fragments begins when the last one has arrived, or the wait is over. With
`while_busy = "collect"` a person who writes three messages in a row gets one answer: the turn begins
once they pause, and takes all of them.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from zeroclaw.conversation.inbox import INBOX, Fragment, Item, PersonMessage, Stop
from zeroclaw.conversation.message_text import first_id, fragment_of
from zeroclaw.envelope import Command, ConversationId, Envelope, ItemId, Pressed, Principal, Said
from zeroclaw.host.clock import wait_at_most
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.fragments import MAX_FRAGMENTS, PartialMessage, extend, is_next
from zeroclaw.recent import Recent
from zeroclaw.store import Reads, Row, RowKind
from zeroclaw.value import Struct, field, replace

AFTER_START_S = 10.0
"""The shortest wait for a rest after a start: the platform must be reached first."""
MAX_COLLECTED = 50
"""Messages that one turn takes; the others wait for the next turn."""
MAX_OVERHEARD = 32
"""Albums that may turn out to be for the bot, in memory; the newest."""
MAX_WINDOWS = 5
"""Debounce windows after which a turn begins even if the person still writes."""

Key = tuple[str, str, str]
"""An address's key, a sender there, and a message group; each has at most one partial message."""


class Reassembly(Struct, eq=False):
    """Tracks the partial messages, and picks the items of the next turn; the daemon has one."""

    context: InboundContext
    _partial: dict[Key, PartialMessage] = field(default_factory=dict[Key, PartialMessage])
    _coming: dict[tuple[str, ...], Fragment] = field(
        default_factory=dict[tuple[str, ...], Fragment]
    )

    _overheard: Recent[Key, tuple[Envelope, ...]] = field(
        default_factory=lambda: Recent[Key, tuple[Envelope, ...]](MAX_OVERHEARD)
    )

    async def remember(self) -> None:
        """Load the partial messages of an earlier process; once, before the first event."""
        async for item in INBOX.readable(self.context.store, state="queued"):
            self.learn(item, rest_s=AFTER_START_S)

    def remaining_s(self, first: str) -> float:
        """Return for how many seconds the rest of a message may come; 0 if it is complete."""
        found = self._find(first)
        left_s = 0.0 if found is None else found.until - self.context.clock.monotonic()
        coming = (part.more_s for part in self._coming.values() if part.run == first)
        return max(left_s, *coming, 0.0)

    def as_fragment(self, envelope: Envelope, first: ItemId) -> Fragment | None:
        """Return an event's place in a message that its client split; None for a complete message.

        The turn waits for the rest from now on, not only once it is `committed`: a reader may see
        the fragment before its commit has returned, and must not take it for a complete message.
        """
        if (hint := envelope.continues) is None:
            return None
        fragment = self._coming[envelope.dedup] = Fragment(
            run=first, group=hint.group, more_s=hint.within_s, room=hint.room, lead=hint.lead
        )
        return fragment

    def committed(self, envelope: Envelope, plan: Plan | None) -> None:
        """Learn the committed plan of an event, None for none.

        A text is complete when its writer does something else.
        """
        self._coming.pop(envelope.dedup, None)
        if plan is not None and plan.fragment_item is not None:
            self.learn(plan.fragment_item)
        elif plan is not None and isinstance(envelope.body, Said | Command | Pressed):
            self._complete_text(envelope.address.key(), envelope.sender.id)

    def expects(self, envelope: Envelope) -> bool:
        """Whether the event's sender has a partial message there that it could continue."""
        return _sender_key(envelope) in self._partial

    def overhear(self, envelope: Envelope, principal: Principal | None) -> None:
        """Remember a known person's picture: a later one of its album may mention the bot."""
        hint, key = envelope.continues, _sender_key(envelope)
        if principal is not None and hint is not None and hint.group:
            self._overheard[key] = (*self._overheard.get(key, ()), envelope)[-MAX_FRAGMENTS:]

    def take_overheard(self, envelope: Envelope) -> tuple[Envelope, ...]:
        """Return the earlier pictures of an album that now mentions the bot, and forget them.

        If an edit mentions it, perhaps much later, the edited message takes its place among them.
        """
        found, at = self._overheard.pop(_sender_key(envelope), ()), envelope.sent_at
        album = (envelope if item.dedup == envelope.dedup else item for item in found)
        return tuple(replace(item, overheard=False, position=None, sent_at=at) for item in album)

    async def continued(
        self, reads: Reads, envelope: Envelope
    ) -> tuple[PartialMessage, Item] | None:
        """Return the message that an event continues, and its newest fragment; else None."""
        partial = self._partial.get(_sender_key(envelope))
        if partial is None or not is_next(partial, envelope, now=self.context.clock.monotonic()):
            return None
        row = await reads.get(RowKind.INBOX, partial.last)
        if row is None or row.state != "queued":
            return None  # its turn has begun, or it was withdrawn
        return partial, INBOX.of(row)

    def learn(self, item: Item, *, rest_s: float = 0.0) -> None:
        """Learn of a queued item: a fragment extends its message, any other item completes a text.

        Args:
            item: The queued item.
            rest_s: The shortest wait for a rest, if one is expected.
        """
        message, now = item.content, self.context.clock.monotonic()
        if not isinstance(message, PersonMessage) or message.piece is None:
            self._complete_text(item.address.key(), item.principal.sender)
            return
        fragment = message.piece
        if fragment.more_s:
            fragment = replace(fragment, more_s=max(fragment.more_s, rest_s))
        before = self._find(fragment.run)
        if before is None:
            self._complete_text(item.address.key(), item.principal.sender)
        partial = extend(before, item, message, fragment, now=now)
        # Partial messages whose wait is over are dropped, too.
        runs = [run for run in self._partial.values() if run is not before and run.until > now]
        if partial is not None:
            runs.append(partial)
        self._partial = {(run.place, run.sender, run.group): run for run in runs}

    def _find(self, first: str) -> PartialMessage | None:
        return next((partial for partial in self._partial.values() if partial.id == first), None)

    def _complete_text(self, place: str, sender: str) -> None:
        self._partial.pop((place, sender, ""), None)

    # --- the next turn -------------------------------------------------------------------------

    async def next_items(
        self, conversation: ConversationId, wakeup: asyncio.Event, is_wanted: Callable[[], bool]
    ) -> tuple[Item, ...]:
        """Return the items of the next turn, the oldest first; empty if none wait.

        Args:
            conversation: The conversation.
            wakeup: Set when the inbox changes; still set afterwards if it was.
            is_wanted: Whether a turn is still to begin; `wakeup` is set when that changes.
        """
        was_woken = False
        complete: set[str] = set()
        while True:
            rows = await self._queued(conversation, 1)
            items = items_of_next_turn(rows)
            if items and (_collects(items[0]) or fragment_of(items[0]) is not None):
                rows = await self._queued(conversation, MAX_COLLECTED + MAX_FRAGMENTS)
                items = items_of_next_turn(rows, await self._stops(conversation))
            wait_s = self._wait_s(items, self.context.clock.now())
            if not is_wanted():
                break
            if wait_s > 0:
                await wait_at_most(wait_s, wakeup.wait(), clock=self.context.clock)
                was_woken = wakeup.is_set() or was_woken  # it may be the awaited fragment
                wakeup.clear()
                continue
            split = {first_id(item) for item in items if fragment_of(item) is not None}
            if split <= complete:
                break
            # Read again: the last fragment may have been committed after the others were read.
            complete = split
        if was_woken:
            wakeup.set()
        return items

    async def _queued(self, conversation: ConversationId, limit: int) -> tuple[Row, ...]:
        return await self.context.store.select(
            INBOX.where(conversation=conversation, state="queued", limit=limit)
        )

    async def _stops(self, conversation: ConversationId) -> tuple[ItemId, ...]:
        """Return the stops that wait for the next turn: it takes nothing written after them."""
        controls = INBOX.all(self.context.store, conversation=conversation, state="control")
        return tuple([item.id async for item in controls if isinstance(item.content, Stop)])

    def _wait_s(self, items: tuple[Item, ...], now: datetime) -> float:
        """Return for how long one more message, or fragment, may still join."""
        rest_s = max(map(self.remaining_s, set(map(first_id, items))), default=0.0)
        if not items or not _collects(items[0]) or len(items) >= MAX_COLLECTED:
            return rest_s
        channel = items[0].address.channel
        window_s = self.context.settings.config.settings_of(channel).collect_s
        since_newest = (now - items[-1].admitted_at).total_seconds()
        since_oldest = (now - items[0].admitted_at).total_seconds()
        if since_newest < 0:
            return rest_s  # the clock was set back; don't wait until it has caught up
        return max(min(window_s - since_newest, MAX_WINDOWS * window_s - since_oldest), rest_s)


def _sender_key(envelope: Envelope) -> Key:
    group = "" if envelope.continues is None else envelope.continues.group
    return envelope.address.key(), envelope.sender.id, group


def items_of_next_turn(rows: Sequence[Row], stops: Sequence[ItemId] = ()) -> tuple[Item, ...]:
    """Return the oldest item, and the items that are answered with it, in order.

    Those are the other fragments of its message, and the items directly after it that it collects,
    up to a stop.
    """
    items = [INBOX.of(row) for row in rows]
    collected = items[: _collected(items, stops)]
    messages = set(map(first_id, collected))
    return (*collected, *(item for item in items[len(collected) :] if first_id(item) in messages))


def _collected(items: Sequence[Item], stops: Sequence[ItemId]) -> int:
    """Return how many of the first items are answered together; at least one."""
    for count, item in enumerate(items[:MAX_COLLECTED]):
        first = items[0]
        is_same = item.principal.id == first.principal.id and item.address == first.address
        is_before = not any(first.id < stop < item.id for stop in stops)
        if count and not (is_same and is_before and _collects(item) and _collects(first)):
            return count
    return min(len(items), MAX_COLLECTED)


def _collects(item: Item) -> bool:
    return isinstance(item.content, PersonMessage) and item.content.while_busy == "collect"
