"""What ingress turns away: over a rate limit, past the queue limit, or too old to answer.

`rate_limits` decides what is over a limit. Whoever passes holds their own lock and their
conversation's from the look to the commit, so that a crowd is counted. What a day holds is committed
with the message it counts. The buckets are kept in memory only and are empty after a start: they are
about seconds, and counting them as spent would refuse what people wrote while the daemon was down.

An edit counts like a message: the model reads it. What ends a turn or answers a question passes
whatever was written before, and counts when it changed nothing. Operators have no rate limit.

The queue limit bounds the messages that wait in one conversation; message expiry turns away what a
platform kept until it was too old to answer, or to run a call from.

What is turned away until messages are let through again is one row, which counts it, however many a
script sends; its writer is told once.
"""

import asyncio
import itertools
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from weakref import WeakValueDictionary

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.codec import decode, encode
from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import (
    Command,
    ConversationId,
    Edited,
    Envelope,
    ItemId,
    Pressed,
    Principal,
    Said,
)
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.rate_limits import (
    Bucket,
    Day,
    Limits,
    Over,
    Rate,
    Tally,
    Which,
    dry_at,
    ends_at,
    step,
)
from zeroclaw.store import Put, Query, RowKind, Store, Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import LocalizedMessage
from zeroclaw.turn.inbox import Item, TooOld, Unread, item_of, item_put
from zeroclaw.turn.span import span
from zeroclaw.value import replace

REMEMBERED = 4096
"""Buckets that are kept while they drain; of more the one that was filled least recently goes."""
STRETCHES = 4096
"""Rows of what was turned away that are still counted up; of more the oldest stays as it is."""
MOST_DROPPED = 8
"""Buckets that are looked at with each one that is filled, whether they have drained."""
OPENING = frozenset({"tool", "retry"})
"""Commands that start a turn, and count like messages."""
ALWAYS = frozenset({"stop", "halt", "resume", "approve", "deny", "revoke"})
"""Commands that end something, or that somebody waits for; only those that did nothing count."""


@dataclass(slots=True, kw_only=True)
class Passage:
    """One event on its way past the limits.

    Attributes:
        limits: None for an event that is not counted.
        pressing: It passes when it changes something, and counts only when it does not.
        conversation: What names its conversation here; `/new` does not change it.
        tally: As the event would leave it.
        over: What it is over, None for nothing.
        stretch: The row of what is turned away until then, and when that is.
        writes: What a day holds now.
    """

    envelope: Envelope
    principal: Principal
    limits: Limits | None
    conversation: str
    pressing: bool = False
    tally: Tally = field(default_factory=Tally)
    over: Over | None = None
    stretch: tuple[Item, datetime] | None = None
    writes: tuple[Write, ...] = ()

    @property
    def person(self) -> str:
        """What names the bucket of its sender."""
        return f"{self.limits.lane if self.limits else ''}/{self.counted_by('person')}"

    @property
    def stretch_key(self) -> str:
        """What names the row of what is turned away: of one person in one chat."""
        over = self.over.which if self.over else ""
        return f"{over}/{self.person}/{self.envelope.address.key()}"

    def counted_by(self, which: Which) -> str:
        """Return what names a count of its sender: over all channels, or on this one alone."""
        own = self.limits is not None and which in self.limits.own
        return f"{self.envelope.address.channel if own else ''}#{self.principal.id}"


class RateLimiter:
    """Everybody passes it; one for the whole daemon.

    Attributes:
        refused: How many were turned away since the start, by channel.
    """

    def __init__(
        self,
        *,
        store: Store,
        conversations: Conversations,
        limits: Callable[[str], Limits],
        clock: Clock,
        ids: Ids,
    ) -> None:
        """Hold what is needed; `limits` returns those of a channel, and is asked each time."""
        self._store = store
        self._conversations = conversations
        self._limits = limits
        self._clock = clock
        self._ids = ids
        self._buckets: OrderedDict[str, tuple[Bucket, datetime]] = OrderedDict()
        self._stretches: OrderedDict[str, tuple[Item, datetime]] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.refused: Counter[str] = Counter()

    @property
    def filled(self) -> int:
        """How many buckets had not drained when the newest message passed."""
        return len(self._buckets)

    @asynccontextmanager
    async def passing(self, envelope: Envelope, principal: Principal) -> AsyncGenerator[Passage]:
        """Wait until those before have passed; leave it when the event is committed."""
        passage = Passage(
            envelope=envelope,
            principal=principal,
            limits=self._limits_for(envelope, principal),
            conversation=self._conversations.key_of(envelope.address, principal),
            pressing=_is_pressing(envelope),
        )
        if passage.limits is None:
            yield passage
            return
        person, conversation = self._lock(f"#{principal.id}"), self._lock(passage.conversation)
        async with person, conversation:
            yield passage

    async def refusal(self, passage: Passage) -> Plan | None:
        """Count the event as things stand now; return how it ends if it is over a limit.

        `passage.writes` are to be committed with it, whatever becomes of it.
        """
        limits = passage.limits
        if limits is None:
            return None
        key = passage.counted_by("day")
        row = await self._store.get(RowKind.ALLOWANCE, key) if limits.daily else None
        day = None if row is None else decode(Day, row.body)
        before = Tally(
            person=self._bucket(passage.person),
            conversation=self._bucket(passage.conversation),
            day=day,
        )
        passage.tally, passage.over = step(
            before,
            limits,
            now=self._clock.now(),
            place=passage.envelope.address.key(),
            sent_at=passage.envelope.sent_at,
        )
        passage.writes, passage.stretch = (), None
        if passage.tally.day is not None and passage.tally.day != day:
            version = 0 if row is None else row.version
            passage.writes = (_day_put(key, passage.tally.day, version),)
        return None if passage.over is None else await self._turned_away(passage, passage.over)

    def passed(self, passage: Passage) -> None:
        """Remember what was counted: the event is committed, and was none that was known."""
        if passage.limits is not None:
            self._fill(passage.person, passage.tally.person, passage.limits.person)
            conversation = passage.limits.conversation
            self._fill(passage.conversation, passage.tally.conversation, conversation)
        if passage.over is not None:
            self.refused[passage.envelope.address.channel] += 1
        if passage.stretch is not None:
            key = passage.stretch_key
            self._stretches[key] = passage.stretch
            self._stretches.move_to_end(key)
            if len(self._stretches) > STRETCHES:
                self._stretches.popitem(last=False)

    def _limits_for(self, envelope: Envelope, principal: Principal) -> Limits | None:
        """Return what an event is counted against, None for what is not."""
        if OPERATOR in principal.roles:
            return None
        limits = self._limits(envelope.address.channel)
        match envelope.body:
            case Said() | Edited():
                return limits
            case Command(name=name) if name in OPENING:
                return limits
            case Command(name=name):
                return limits.for_answers if name in ALWAYS else limits.for_commands
            case Pressed():
                return limits.for_answers
            case _:
                return None

    def _lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _bucket(self, key: str) -> Bucket | None:
        found, _ = self._buckets.get(key, (None, None))
        return found

    def _fill(self, key: str, bucket: Bucket | None, rate: Rate) -> None:
        if bucket is None or not rate.per_minute:
            return  # it was not counted against this one
        now = self._clock.now()
        self._buckets[key] = (bucket, dry_at(bucket, rate, now))
        self._buckets.move_to_end(key)
        for oldest, (_, dry) in list(itertools.islice(self._buckets.items(), MOST_DROPPED)):
            if len(self._buckets) <= REMEMBERED and dry > now:
                return
            del self._buckets[oldest]

    async def _turned_away(self, passage: Passage, over: Over) -> Plan:
        """Return the end of an event that is over a limit: failed, and told once a stretch."""
        envelope, principal, now = passage.envelope, passage.principal, self._clock.now()
        address = envelope.address
        text = told(over, passage.limits or Limits(), now).to(principal.language)
        toast = text if isinstance(envelope.body, Pressed) else ""
        before, until = self._stretches.get(passage.stretch_key, (None, now))
        if before is not None and now < until and isinstance(before.content, Unread):
            counted = replace(before.content, count=before.content.count + 1)
            item = replace(before, content=counted)
            passage.stretch = (item, until)
            return Plan(
                conversation=item.conversation,
                writes=(item_put(item, "failed"),),
                toast=toast,
                claimed=False,
            )
        found = await self._conversations.find(address, principal)
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=found.conversation,
            address=address,
            principal=principal,
            content=Unread(over=over.which),
            admitted_at=now,
        )
        passage.stretch = (item, over.until)
        writes: tuple[Write, ...] = (*found.writes, item_put(item, "failed", expect=0))
        if over.tell and not toast:
            note = note_row(
                key=self._ids.ulid(),
                conversation=found.conversation,
                address=address,
                text=text,
                # That somebody can't be told this is nobody's trouble.
                quiet=True,
                reply_to="" if address.direct else envelope.message,
            )
            writes = (*writes, note)
        return Plan(conversation=found.conversation, writes=writes, toast=toast)


def _is_pressing(envelope: Envelope) -> bool:
    match envelope.body:
        case Command(name=name):
            return name in ALWAYS
        case body:
            return isinstance(body, Pressed)


def _day_put(key: str, day: Day, version: int) -> Put:
    return Put(
        kind=RowKind.ALLOWANCE, key=key, body=encode(day), due_at=ends_at(day), expect=version
    )


def told(over: Over, limits: Limits, now: datetime) -> LocalizedMessage:
    """Return what the writer of a message that was not taken is told."""
    wait = span((over.until - now).total_seconds())
    match over.which:
        case "person":
            return catalogue.WRITES_TOO_FAST.about(rate=limits.person.per_minute, wait=wait)
        case "conversation":
            return catalogue.CHAT_TOO_FAST.about(rate=limits.conversation.per_minute, wait=wait)
        case "day":
            return catalogue.DAY_IS_FULL.about(most=limits.daily, wait=wait)


REFUSALS_READ = 8
"""Events of a conversation among which the row of what found no room is looked for."""


class QueueLimit:
    """Bounds what waits; one for the whole daemon."""

    def __init__(self, store: Store, ids: Ids, *, most: Callable[[], int]) -> None:
        """Hold what is needed; `most` messages may wait in one conversation, asked each time."""
        self._store = store
        self._ids = ids
        self._most = most

    async def refusal(self, item: Item, also: tuple[Write, ...]) -> Plan | None:
        """Return how a message ends that comes when too many wait; None when there is room.

        Args:
            item: The message.
            also: What is written with it.
        """
        here = item.conversation
        waiting = await self._store.count(
            Query(kind=RowKind.INBOX, conversation=here, state="queued")
        )
        if waiting < self._most():
            return None
        if (counted := await self._counted_up(item)) is not None:
            return Plan(conversation=here, writes=(*also, counted), claimed=False)
        # What was not taken is no message of the conversation: an edit of it finds nothing.
        refused = replace(item, content=Unread(over="queue"), message="")
        text = catalogue.TOO_MANY_WAIT.to(item.principal.language, count=waiting)
        note = note_row(key=self._ids.ulid(), conversation=here, address=item.address, text=text)
        return Plan(conversation=here, writes=(*also, item_put(refused, "failed", expect=0), note))

    async def _counted_up(self, item: Item) -> Write | None:
        """Return the row of what found no room, with one more; None where nothing did so yet."""
        rows = await self._store.find(
            RowKind.INBOX, conversation=item.conversation, newest_first=True, limit=REFUSALS_READ
        )
        for row in rows:
            before = item_of(row)
            match before.content:
                case Unread(over="queue", count=count):
                    content = Unread(over="queue", count=count + 1)
                    return item_put(replace(before, content=content), "failed", expect=row.version)
                case Unread() | TooOld():
                    continue  # turned away for another reason in between
                case _:
                    return None
        return None


LOOK_BACK = 50
"""Events of a conversation among which somebody's last one is looked for."""
MOST_KEPT_CHARS = 16_000
"""Of what one person wrote that came too late; the rest is only counted."""


class MessageExpiry:
    """Turns away what is too old; one for the whole daemon."""

    def __init__(
        self,
        *,
        store: Store,
        conversations: Conversations,
        max_age_s: Callable[[str], float],
        clock: Clock,
        ids: Ids,
        log: ChannelLog,
    ) -> None:
        """Hold what is needed; `max_age_s` is a channel's bound in seconds, 0 for none."""
        self._store = store
        self._conversations = conversations
        self._max_age_s = max_age_s
        self._clock = clock
        self._ids = ids
        self._log = log

    async def refusal(self, envelope: Envelope, principal: Principal) -> Plan | None:
        """Return how a message ends that is too old; None for what is not, or starts no turn."""
        said = _said(envelope)
        age_s = self._max_age_s(envelope.address.channel)
        if not said or not age_s or envelope.sent_at is None:
            return None
        now = self._clock.now()
        waited_s = (now - envelope.sent_at).total_seconds()
        if waited_s <= age_s:
            return None
        # Where it is all of them, the clock of this machine may be wrong.
        channel = envelope.address.channel
        self._log("message_too_old", channel=channel, age_s=round(waited_s), level="warning")
        address = envelope.address
        found = await self._conversations.find(address, principal)
        here = found.conversation
        if (counted := await self._counted_up(here, principal, said)) is not None:
            return Plan(conversation=here, writes=(*found.writes, counted), claimed=False)
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=here,
            address=address,
            principal=principal,
            content=TooOld(text=said[:MOST_KEPT_CHARS]),
            admitted_at=now,
            message=envelope.message,
            sent_at=envelope.sent_at,
        )
        writes: tuple[Write, ...] = (*found.writes, item_put(item, "failed", expect=0))
        note = note_row(
            key=self._ids.ulid(),
            conversation=here,
            address=address,
            text=catalogue.TOO_OLD.to(principal.language, age=span(age_s)),
            reply_to="" if address.direct else envelope.message,
        )
        return Plan(conversation=here, writes=(*writes, note))

    async def _counted_up(
        self, conversation: ConversationId, principal: Principal, said: str
    ) -> Write | None:
        """Return the row of what came too late, with one more; None where they were not told yet.

        They were told when the last that they wrote here came too late as well.
        """
        rows = await self._store.find(
            RowKind.INBOX, conversation=conversation, newest_first=True, limit=LOOK_BACK
        )
        theirs = (
            (row, item) for row in rows if (item := item_of(row)).principal.id == principal.id
        )
        row, item = next(theirs, (None, None))
        if row is None or item is None or not isinstance(item.content, TooOld):
            return None
        before = item.content
        text = f"{before.text}\n\n{said}"[:MOST_KEPT_CHARS]
        content = TooOld(text=text, count=before.count + 1)
        return item_put(replace(item, content=content), "failed", expect=row.version)


def _said(envelope: Envelope) -> str:
    """Return what would start a turn, as it was written; empty for all else."""
    match envelope.body:
        case Said(text=text):
            # Of a file alone there is nothing else to keep.
            return text or ", ".join(one.name for one in envelope.attachments)
        case Command(name=name, rest=rest) if name in OPENING:
            return f"/{name} {rest}".rstrip()
        case _:
            return ""
