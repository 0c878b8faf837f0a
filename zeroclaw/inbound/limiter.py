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
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from weakref import WeakValueDictionary

from zeroclaw.envelope import Command, Edited, Envelope, Pressed, Principal, Said
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.inbound.plan import InboundContext, Plan
from zeroclaw.inbound.rate_limits import (
    Bucket,
    Day,
    Lane,
    Limits,
    Over,
    Tally,
    Which,
    dry_at,
    ends_at,
    limits_of,
    step,
)
from zeroclaw.store import RowKind, Write
from zeroclaw.table import Column, Table, UntilDue, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import LocalizedMessage
from zeroclaw.turn.inbox import INBOX, Item, TooOld, Unread, item_of, item_put
from zeroclaw.turn.message_text import span
from zeroclaw.value import replace

REMEMBERED = 4096
"""Buckets that are kept while they drain; of more the one that was filled least recently goes."""
STRETCHES = 4096
"""Rows of what was turned away that are still counted up; of more the oldest stays as it is."""
OWN: tuple[Which, ...] = ("person", "day")
"""Limits that a channel may count by itself."""
MOST_DROPPED = 8
"""Buckets that are looked at with each one that is filled, whether they have drained."""
OPENING = frozenset({"tool", "retry"})
"""Commands that start a turn, and count like messages."""
ALWAYS = frozenset({"stop", "halt", "resume", "approve", "deny", "revoke"})
"""Commands that end something, or that somebody waits for; only those that did nothing count."""
NO_ROOM_LOOK_BACK = 8
"""Events of a conversation among which the row of what found no room is looked for."""
TOO_OLD_LOOK_BACK = 50
"""Events of a conversation among which somebody's last one is looked for."""
MOST_KEPT_CHARS = 16_000
"""Of what one person wrote that came too late; the rest is only counted."""


ALLOWANCES = Table(
    kind=RowKind.ALLOWANCE,
    owner="inbound",
    codec=json_codec(Day),
    columns=frozenset({Column.DUE_AT}),
    keeps=UntilDue(),
    words=Words.NOBODY,
)


@dataclass(slots=True, kw_only=True)
class Passage:
    """One event of somebody who is known, on its way past the limits.

    Attributes:
        lane: What it is counted as; None for an event that is not counted.
        pressing: It passes when it changes something, and counts only when it does not.
        conversation: What names its conversation here; `/new` does not change it.
        fills: The buckets as the event leaves them, by key, and when they have drained.
        stretch: What names the row of what is turned away, the row, and until when it counts up.
        writes: What a day holds now; committed with it, whatever becomes of it.
        joined: It is the rest of a message that was counted with its beginning.
        passed: It is committed, and counts.
    """

    envelope: Envelope
    principal: Principal
    lane: Lane | None
    conversation: str
    pressing: bool = False
    fills: dict[str, tuple[Bucket, datetime]] = field(
        default_factory=dict[str, tuple[Bucket, datetime]]
    )
    stretch: tuple[str, Item, datetime] | None = None
    writes: tuple[Write, ...] = ()
    joined: bool = False
    passed: bool = False


class RateLimiter:
    """Everybody passes it; one for the whole daemon.

    Attributes:
        refused: How many were over a rate limit since the start, by channel.
    """

    def __init__(self, context: InboundContext, conversations: Conversations) -> None:
        """Begin with empty buckets."""
        self._context = context
        self._conversations = conversations
        self._buckets: OrderedDict[str, tuple[Bucket, datetime]] = OrderedDict()
        self._stretches: OrderedDict[str, tuple[Item, datetime]] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.refused: Counter[str] = Counter()

    @property
    def filled(self) -> int:
        """How many buckets had not drained when the newest message passed."""
        return len(self._buckets)

    @asynccontextmanager
    async def passing(
        self, envelope: Envelope, principal: Principal | None
    ) -> AsyncGenerator[Passage | None]:
        """Wait until those before have passed; leave it when the event is committed.

        Strangers pass: they have limits of their own.
        """
        if principal is None:
            yield None
            return
        passage = Passage(
            envelope=envelope,
            principal=principal,
            lane=_lane(envelope, principal),
            pressing=_is_pressing(envelope),
            conversation=self._conversations.key_of(envelope.address, principal),
        )
        if passage.lane is None:
            yield passage
            return
        # Held until the end: nobody else keeps them.
        person = self._locks.setdefault(f"#{principal.id}", asyncio.Lock())
        conversation = self._locks.setdefault(passage.conversation, asyncio.Lock())
        async with person, conversation:
            yield passage
            if not passage.passed:
                return
            if passage.stretch is not None:
                self.refused[envelope.address.channel] += 1
            now = self._context.clock.now()
            for key, filled in passage.fills.items():
                self._buckets[key] = filled
                self._buckets.move_to_end(key)
                for oldest, (_, dry) in list(itertools.islice(self._buckets.items(), MOST_DROPPED)):
                    if len(self._buckets) <= REMEMBERED and dry > now:
                        break
                    del self._buckets[oldest]
            if passage.stretch is not None:
                key, item, until = passage.stretch
                self._stretches[key] = (item, until)
                self._stretches.move_to_end(key)
                if len(self._stretches) > STRETCHES:
                    self._stretches.popitem(last=False)

    async def refusal(self, passage: Passage) -> Plan | None:
        """Return how an event ends that is too old, or over a rate limit as things stand now."""
        context, envelope, principal = self._context, passage.envelope, passage.principal
        expired = await self._expired(envelope, principal)
        if expired is not None or passage.lane is None:
            return expired
        channel = envelope.address.channel
        limits = limits_of(context.settings.config, channel, passage.lane)
        # Over all channels, or on this one alone.
        own = {one: f"{channel if one in limits.own else ''}#{principal.id}" for one in OWN}
        person_key, day_key = f"{passage.lane}/{own['person']}", own["day"]
        row = await context.store.get(RowKind.ALLOWANCE, day_key) if limits.daily else None
        day = None if row is None else ALLOWANCES.of(row)
        person, _ = self._buckets.get(person_key, (None, None))
        conversation, _ = self._buckets.get(passage.conversation, (None, None))
        now = context.clock.now()
        tally, over = step(
            Tally(person=person, conversation=conversation, day=day),
            limits,
            now=now,
            place=envelope.address.key(),
            sent_at=envelope.sent_at,
        )
        passage.writes, passage.stretch, passage.fills = (), None, {}
        for key, bucket, rate in (
            (person_key, tally.person, limits.person),
            (passage.conversation, tally.conversation, limits.conversation),
        ):
            if bucket is not None and rate.per_minute:
                passage.fills[key] = (bucket, dry_at(bucket, rate, now))
        if tally.day is not None and tally.day != day:
            put = ALLOWANCES.put(
                day_key,
                tally.day,
                due_at=ends_at(tally.day),
                expect=0 if row is None else row.version,
            )
            passage.writes = (put,)
        if over is None:
            return None
        stretch = f"{over.which}/{person_key}/{envelope.address.key()}"
        return await self._turned_away(passage, stretch, limits, over)

    # --- rate limits ---------------------------------------------------------------------------

    async def _turned_away(
        self, passage: Passage, stretch: str, limits: Limits, over: Over
    ) -> Plan:
        """Return the end of an event that is over a limit: failed, and told once a stretch."""
        context, envelope, principal = self._context, passage.envelope, passage.principal
        address, now = envelope.address, context.clock.now()
        text = told(over, limits, now).to(principal.language)
        toast = text if isinstance(envelope.body, Pressed) else ""
        before, until = self._stretches.get(stretch, (None, now))
        if before is not None and now < until and isinstance(before.content, Unread):
            counted = replace(before.content, count=before.content.count + 1)
            item = replace(before, content=counted)
            passage.stretch = (stretch, item, until)
            write = item_put(item, "failed")
            return Plan(conversation=item.conversation, writes=(write,), toast=toast, claimed=False)
        found = await self._conversations.find(address, principal)
        item = context.item(Unread(over=over.which), found.conversation, address, principal)
        passage.stretch = (stretch, item, over.until)
        writes: tuple[Write, ...] = (*found.writes, item_put(item, "failed", expect=0))
        if over.tell and not toast:
            # That somebody can't be told this is nobody's trouble.
            reply_to = "" if address.direct else envelope.message
            note = context.note(text, address, found.conversation, quiet=True, reply_to=reply_to)
            writes = (*writes, note)
        return Plan(conversation=found.conversation, writes=writes, toast=toast)

    # --- message expiry ------------------------------------------------------------------------

    async def _expired(self, envelope: Envelope, principal: Principal) -> Plan | None:
        """Return how a message ends that is too old; None for what is not, or starts no turn."""
        context, channel = self._context, envelope.address.channel
        # A message may wait that came by a channel that was taken out since.
        settings = context.settings.config.channels.get(channel)
        age_s = 0.0 if settings is None else settings.max_age_s
        said = _said(envelope)
        if not said or not age_s or envelope.sent_at is None:
            return None
        now = context.clock.now()
        waited_s = (now - envelope.sent_at).total_seconds()
        if waited_s <= age_s:
            return None
        # Where it is all of them, the clock of this machine may be wrong.
        context.log("message_too_old", channel=channel, age_s=round(waited_s), level="warning")
        address = envelope.address
        found = await self._conversations.find(address, principal)
        here = found.conversation
        content = TooOld(text=said[:MOST_KEPT_CHARS])
        item = context.item(content, here, envelope, principal)
        if (counted := await self._counted_as_too_old(item, said)) is not None:
            return Plan(conversation=here, writes=(*found.writes, counted), claimed=False)
        text = catalogue.TOO_OLD.to(principal.language, age=span(age_s))
        reply_to = "" if address.direct else envelope.message
        note = context.note(text, address, here, reply_to=reply_to)
        failed = item_put(item, "failed", expect=0)
        return Plan(conversation=here, writes=(*found.writes, failed, note))

    async def _counted_as_too_old(self, item: Item, said: str) -> Write | None:
        """Return the row of what came too late, with one more; None where they were not told yet.

        They were told when the last that they wrote here came too late as well.
        """
        rows = await self._context.store.select(
            INBOX.where(conversation=item.conversation, newest_first=True, limit=TOO_OLD_LOOK_BACK)
        )
        for row in rows:
            last = item_of(row)
            if last.principal.id == item.principal.id:
                if not isinstance(last.content, TooOld):
                    return None
                text = f"{last.content.text}\n\n{said}"[:MOST_KEPT_CHARS]
                content = TooOld(text=text, count=last.content.count + 1)
                return item_put(replace(last, content=content), "failed", expect=row.version)
        return None

    # --- the queue limit -----------------------------------------------------------------------

    async def no_room(self, item: Item, waiting: int, also: tuple[Write, ...]) -> Plan:
        """Return how a message ends that comes when too many wait in its conversation.

        Args:
            item: The message.
            waiting: How many wait.
            also: What is written with it.
        """
        here = item.conversation
        if (counted := await self._counted_as_no_room(item)) is not None:
            return Plan(conversation=here, writes=(*also, counted), claimed=False)
        # What was not taken is no message of the conversation: an edit of it finds nothing.
        refused = replace(item, content=Unread(over="queue"), message="")
        text = catalogue.TOO_MANY_WAIT.to(item.principal.language, count=waiting)
        note = self._context.note(text, item.address, here)
        return Plan(conversation=here, writes=(*also, item_put(refused, "failed", expect=0), note))

    async def _counted_as_no_room(self, item: Item) -> Write | None:
        """Return the row of what found no room, with one more; None where nothing did so yet."""
        rows = await self._context.store.select(
            INBOX.where(conversation=item.conversation, newest_first=True, limit=NO_ROOM_LOOK_BACK)
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


def _lane(envelope: Envelope, principal: Principal) -> Lane | None:
    """Return what an event is counted as, None for what is not counted."""
    if OPERATOR in principal.roles:
        return None
    match envelope.body:
        case Said() | Edited():
            return "messages"
        case Command(name=name) if name in OPENING:
            return "messages"
        case Command(name=name):
            return "answers" if name in ALWAYS else "commands"
        case Pressed():
            return "answers"
        case _:
            return None


def _is_pressing(envelope: Envelope) -> bool:
    match envelope.body:
        case Command(name=name):
            return name in ALWAYS
        case body:
            return isinstance(body, Pressed)


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
