"""What belongs together: the fragments of one message, and the messages that debounce joins in a turn.

`fragments` decides what joins what. Each fragment is committed when it arrives, as a message of its
own that names the first: a kill between two loses nothing. Waiting uses the monotonic clock, so
that setting the clock delays no message. After a start it begins again, because the platform can
deliver the rest only from then on.

A message in fragments is one message; its turn begins when the last fragment has arrived, or the
wait is over. With `while_busy = "collect"` a person who writes three messages in a row gets one
answer: the turn begins when nothing more came for a moment, and takes all of them.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from zeroclaw.conversation.inbox import INBOX, Fragment, Item, PersonMessage
from zeroclaw.conversation.message_text import piece_of, run_of
from zeroclaw.envelope import Command, ConversationId, Envelope, ItemId, Pressed, Principal, Said
from zeroclaw.host.clock import wait_at_most
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.fragments import MOST_PIECES, PartialMessage, extended, takes
from zeroclaw.recent import Recent
from zeroclaw.store import Reads, Row, RowKind
from zeroclaw.value import Struct, Value, field, replace

AFTER_START_S = 10.0
"""Seconds after a start to wait for a rest at least: the platform must be reached first."""
MAX_COLLECTED = 50
"""Messages that one turn takes together; the others wait for the next turn."""
MOST_OVERHEARD = 32
"""Albums that may turn out to be for the bot, in memory; the newest."""
MAX_WINDOWS = 5
"""Windows after which a turn begins even if the person still writes."""

Where = tuple[str, str, str]
"""An address's key, the sender there, and the group of the message; each has one incomplete message."""


class Continuation(Value):
    """The message that an event continues.

    Attributes:
        last: The piece before it.
    """

    run: PartialMessage
    last: Item


class Reassembly(Struct, eq=False):
    """Knows the incomplete messages, and so what the next turn answers; the daemon has one.

    None is known before `remember`.
    """

    context: InboundContext
    _runs: dict[Where, PartialMessage] = field(default_factory=dict[Where, PartialMessage])
    _coming: dict[tuple[str, ...], Fragment] = field(
        default_factory=dict[tuple[str, ...], Fragment]
    )

    _overheard: Recent[Where, tuple[Envelope, ...]] = field(
        default_factory=lambda: Recent[Where, tuple[Envelope, ...]](MOST_OVERHEARD)
    )

    async def remember(self) -> None:
        """Load the incomplete messages of an earlier process; once, before anything is admitted."""
        async for item in INBOX.readable(self.context.store, state="queued"):
            self.admitted(item, rest_s=AFTER_START_S)

    def left_s(self, run: str) -> float:
        """Return for how many seconds the rest of a message may come, 0 for a whole one."""
        found = self._find(run)
        left_s = 0.0 if found is None else found.until - self.context.clock.monotonic()
        return max(left_s, *(one.more_s for one in self._coming.values() if one.run == run), 0.0)

    def piece(self, envelope: Envelope, run: ItemId) -> Fragment | None:
        """Return the place of a message in one that its client split; None for a whole message.

        Until it is `settled`, its rest is waited for: a reader may see the fragment before its
        commit has returned, and must not take it for a whole message.
        """
        if (more := envelope.continues) is None:
            return None
        piece = self._coming[envelope.dedup] = Fragment(
            run=run, group=more.group, more_s=more.within_s, room=more.room, lead=more.lead
        )
        return piece

    def settled(self, envelope: Envelope, plan: Plan | None) -> None:
        """Learn what was committed for an event, None for nothing.

        A text is whole when its writer does something else.
        """
        self._coming.pop(envelope.dedup, None)
        if plan is not None and plan.fragment_item is not None:
            self.admitted(plan.fragment_item)
        elif plan is not None and isinstance(envelope.body, Said | Command | Pressed):
            self._ends_text(envelope.address.key(), envelope.sender.id)

    def expects(self, envelope: Envelope) -> bool:
        """Whether the event's sender has an incomplete message there that it could continue."""
        return _where(envelope) in self._runs

    def overhear(self, envelope: Envelope, principal: Principal | None) -> None:
        """Remember a known person's picture: a later one of its album may mention the bot."""
        more, where = envelope.continues, _where(envelope)
        if principal is not None and more is not None and more.group:
            self._overheard[where] = (*self._overheard.get(where, ()), envelope)[-MOST_PIECES:]

    def overheard(self, envelope: Envelope) -> tuple[Envelope, ...]:
        """Return the earlier pictures of a message's album, now that they are for the bot.

        If an edit mentions it, perhaps long after, the edited message is in its place among them.
        """
        found, at = self._overheard.pop(_where(envelope), ()), envelope.sent_at
        album = (envelope if one.dedup == envelope.dedup else one for one in found)
        return tuple(replace(one, overheard=False, position=None, sent_at=at) for one in album)

    async def continuation(self, reads: Reads, envelope: Envelope) -> Continuation | None:
        """Return the message that an event continues, None for an event on its own."""
        run = self._runs.get(_where(envelope))
        if run is None or not takes(run, envelope, now=self.context.clock.monotonic()):
            return None
        row = await reads.get(RowKind.INBOX, run.last)
        if row is None or row.state != "queued":
            return None  # its turn has begun, or it was withdrawn
        return Continuation(run=run, last=INBOX.of(row))

    def admitted(self, item: Item, *, rest_s: float = 0.0) -> None:
        """Learn of a queued item: a piece opens, continues or ends a run, anything else ends a text.

        Args:
            item: The queued item.
            rest_s: The shortest wait for a rest, if one is expected.
        """
        ask, now = item.content, self.context.clock.monotonic()
        if not isinstance(ask, PersonMessage) or ask.piece is None:
            self._ends_text(item.address.key(), item.principal.sender)
            return
        piece = ask.piece
        if piece.more_s:
            piece = replace(piece, more_s=max(piece.more_s, rest_s))
        before = self._find(piece.run)
        if before is None:
            self._ends_text(item.address.key(), item.principal.sender)
        run = extended(before, item, ask, piece, now=now)
        # Those whose rest is too late are forgotten, too.
        kept = (one for one in self._runs.values() if one is not before and one.until > now)
        opened = () if run is None else (run,)
        self._runs = {(one.place, one.sender, one.group): one for one in (*kept, *opened)}

    def _find(self, run: str) -> PartialMessage | None:
        return next((one for one in self._runs.values() if one.id == run), None)

    def _ends_text(self, place: str, sender: str) -> None:
        self._runs.pop((place, sender, ""), None)

    # --- the next turn -------------------------------------------------------------------------

    async def next_items(
        self, conversation: ConversationId, news: asyncio.Event, is_wanted: Callable[[], bool]
    ) -> tuple[Item, ...]:
        """Return the items of the next turn, the oldest first; none when nothing waits.

        Args:
            conversation: The conversation.
            news: Set when there is something new; still set afterwards if it was.
            is_wanted: Whether a turn is still to begin; `news` is set when that changes.
        """
        has_rung = False
        whole: set[str] = set()
        while True:
            rows = await self._queued(conversation, 1)
            items = items_of_next_turn(rows)
            if items and (_collects(items[0]) or piece_of(items[0]) is not None):
                rows = await self._queued(conversation, MAX_COLLECTED + MOST_PIECES)
                items = items_of_next_turn(rows)
            wait_s = self._wait_s(items, self.context.clock.now())
            if not is_wanted():
                break
            if wait_s > 0:
                await wait_at_most(wait_s, news.wait(), clock=self.context.clock)
                has_rung = news.is_set() or has_rung  # it may be what was waited for
                news.clear()
                continue
            in_pieces = {run_of(one) for one in items if piece_of(one) is not None}
            if in_pieces <= whole:
                break
            # The last piece may have been committed after the others were read.
            whole = in_pieces
        if has_rung:
            news.set()
        return items

    async def _queued(self, conversation: ConversationId, limit: int) -> tuple[Row, ...]:
        return await self.context.store.select(
            INBOX.where(conversation=conversation, state="queued", limit=limit)
        )

    def _wait_s(self, items: tuple[Item, ...], now: datetime) -> float:
        """Return for how long one more message, or piece of one, may still join."""
        rest_s = max((self.left_s(run) for run in set(map(run_of, items))), default=0.0)
        if not items or not _collects(items[0]) or len(items) >= MAX_COLLECTED:
            return rest_s
        channel = items[0].address.channel
        window_s = self.context.settings.config.settings_of(channel).collect_s
        since_newest = (now - items[-1].admitted_at).total_seconds()
        since_oldest = (now - items[0].admitted_at).total_seconds()
        if since_newest < 0:
            return rest_s  # the clock was set back; don't wait until it has caught up
        return max(min(window_s - since_newest, MAX_WINDOWS * window_s - since_oldest), rest_s)


def _where(envelope: Envelope) -> Where:
    group = "" if envelope.continues is None else envelope.continues.group
    return envelope.address.key(), envelope.sender.id, group


def items_of_next_turn(rows: Sequence[Row]) -> tuple[Item, ...]:
    """Return the oldest item, and those that are answered with it, in order.

    Those are the other pieces of its message, and the items directly after it that it collects.
    """
    items = [INBOX.of(row) for row in rows]
    taken = items[: _collected(items)]
    runs = set(map(run_of, taken))
    return (*taken, *(one for one in items[len(taken) :] if run_of(one) in runs))


def _collected(items: Sequence[Item]) -> int:
    """Return how many of the first items are answered together; at least one."""
    for place, item in enumerate(items):
        first = items[0]
        same = item.principal.id == first.principal.id and item.address == first.address
        if place and (
            place == MAX_COLLECTED or not same or not _collects(item) or not _collects(first)
        ):
            return place
    return len(items)


def _collects(item: Item) -> bool:
    return isinstance(item.content, PersonMessage) and item.content.while_busy == "collect"
