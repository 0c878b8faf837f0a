"""What ingress turns away: over a rate limit, past the queue limit, or too old to answer.

`rate_limits` decides what is over a limit. A sender who passes holds their own lock and their
conversation's from the look to the commit, so that a crowd is counted. What a day holds is committed
with the message it counts. The buckets are kept in memory only and are empty after a start: they are
about seconds, and counting them as spent would refuse what people wrote while the daemon was down.

An edit counts like a message: the model reads it. What ends a turn or answers a question passes
whatever was written before, and counts when it changed nothing. Operators have no rate limit.

The queue limit bounds the messages that wait in one conversation; message expiry turns away what a
platform kept until it was too old to answer, or to run a call from.

What is turned away until messages are let through again is one row, which counts it, however many a
script sends; its writer is told once. The row knows the newest of them again, so that what a platform
delivers once more after a restart is not taken then.
"""

import asyncio
import hashlib
import itertools
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from weakref import WeakValueDictionary

from zeroclaw.conversation.inbox import INBOX, Item, TooOld, Unread, item_put
from zeroclaw.conversation.message_text import span
from zeroclaw.envelope import Command, Edited, Envelope, Pressed, Principal, Said
from zeroclaw.errors import StoreUnusable
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import OPERATOR
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
from zeroclaw.recent import Recent
from zeroclaw.store import RowKind, Write
from zeroclaw.table import Column, Table, UntilDue, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import LocalizedMessage
from zeroclaw.value import Struct, field, replace

REMEMBERED = 4096
"""Buckets that are kept while they drain, turned away events that are known again, places whose rows were
looked at for those: of more the oldest goes."""
KNOWN_AGAIN = 64
"""Events that one row knows again; a client has no more on their way, nor a batch of a platform many."""
OWN: tuple[Which, ...] = ("person", "day")
"""Limits that a channel may count by itself."""
MOST_DROPPED = 8
"""Buckets that are looked at with each one that is filled, whether they have drained."""
OPENING = frozenset({"tool", "retry", "compact"})
"""Commands that start a turn, and count like messages."""
ALWAYS = frozenset({"stop", "halt", "resume", "approve", "deny", "revoke"})
"""Commands that end something, or that a turn waits for; only those that did nothing count."""
FIRST_LOOK, LOOK_BACK = 4, 50
"""Events of a conversation among which a sender's last one is looked for: of a flood it is near."""
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


Filled = tuple[Bucket, datetime]
"""A bucket, and when it has drained."""


class Passage(Struct, kw_only=True):
    """One event of a known sender, on its way past the limits.

    Attributes:
        lane: What it is counted as; None for an event that is not counted. Answers pass when they
            change something, and count only when they do not.
        conversation: What names its conversation here; `/new` does not change it.
        fills: The buckets as the event leaves them, by key.
        writes: What a day holds now; committed with it, whatever becomes of it.
        refused: It is over a limit.
        known: It was turned away already, before a restart too, and is only counted.
        committed: What it came to, None before that is committed.
    """

    envelope: Envelope
    principal: Principal
    lane: Lane | None
    conversation: str
    fills: dict[str, Filled] = field(default_factory=dict[str, Filled])
    writes: tuple[Write, ...] = ()
    refused: bool = False
    known: bool = False
    committed: Plan | None = None


class RateLimiter(Struct, eq=False):
    """Everybody passes it; one for the whole daemon.

    Attributes:
        refused: How many were over a rate limit since the start, by channel.
    """

    context: InboundContext
    conversations: Conversations
    _buckets: OrderedDict[str, Filled] = field(default_factory=OrderedDict[str, Filled])
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[str, asyncio.Lock]
    )
    _turned_away_before: Recent[str, None] = field(default_factory=lambda: Recent(REMEMBERED))
    _recalled: Recent[str, None] = field(default_factory=lambda: Recent(REMEMBERED))
    refused: Counter[str] = field(default_factory=Counter[str])

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
        known = await self._knows(envelope)
        passage = Passage(
            envelope=envelope,
            principal=principal,
            lane=_lane(envelope, principal),
            conversation=self.conversations.key_of(envelope.address, principal),
            known=known,
        )
        async with AsyncExitStack() as held:
            if passage.lane is not None and not passage.known:
                for name in (f"#{principal.id}", passage.conversation):
                    # Held until the end: the dictionary keeps them weakly.
                    lock = self._locks.setdefault(name, asyncio.Lock())
                    await held.enter_async_context(lock)
            yield passage
            if passage.committed is None:
                return
            if not passage.committed.claimed:
                self._turned_away_before.update(dict.fromkeys(_known_by(envelope)))
            if passage.refused:
                self.refused[envelope.address.channel] += 1
            now = self.context.clock.now()
            for key, filled in passage.fills.items():
                self._buckets[key] = filled
                self._buckets.move_to_end(key)
                for oldest, (_, dry) in list(itertools.islice(self._buckets.items(), MOST_DROPPED)):
                    if len(self._buckets) <= REMEMBERED and dry > now:
                        break
                    del self._buckets[oldest]

    async def refusal(self, passage: Passage) -> Plan | None:
        """Return how an event ends that is too old, or over a rate limit as things stand now."""
        context, envelope, principal = self.context, passage.envelope, passage.principal
        expired = await self._expired(envelope, principal)
        if expired is not None or passage.lane is None:
            return expired
        channel = envelope.address.channel
        limits = limits_of(context.settings.config, channel, passage.lane)
        # Over all channels, or on this one alone.
        own = {one: f"{channel if one in limits.own else ''}#{principal.id}" for one in OWN}
        person_key, day_key = f"{passage.lane}/{own['person']}", own["day"]
        day, version = await ALLOWANCES.read(context.store, day_key) if limits.daily else (None, 0)
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
        passage.refused = over is not None
        for key, bucket, rate in (
            (person_key, tally.person, limits.person),
            (passage.conversation, tally.conversation, limits.conversation),
        ):
            if bucket is not None and rate.per_minute:
                passage.fills[key] = (bucket, dry_at(bucket, rate, now))
        if tally.day is not None and tally.day != day:
            due_at = ends_at(tally.day)
            passage.writes = (ALLOWANCES.put(day_key, tally.day, due_at=due_at, expect=version),)
        if over is None:
            return None
        text = told(over, limits, now).to(principal.language)
        content = Unread(over=over.which)
        if isinstance(envelope.body, Pressed):
            plan = await self._turned_away(envelope, principal, content, "", is_new=over.tell)
            return replace(plan, toast=text)
        # That a sender can't be told this needs no operator.
        return await self._turned_away(
            envelope, principal, content, text, is_new=over.tell, quiet=True
        )

    async def no_room(self, envelope: Envelope, principal: Principal, waiting: int) -> Plan:
        """Return how a message ends that comes when so many wait in its conversation."""
        text = catalogue.TOO_MANY_WAIT.to(principal.language, count=waiting)
        return await self._turned_away(envelope, principal, Unread(over="queue"), text)

    async def _expired(self, envelope: Envelope, principal: Principal) -> Plan | None:
        """Return how a message ends that is too old; None for what is not, or starts no turn."""
        context, channel = self.context, envelope.address.channel
        # A message may wait that came by a channel that was taken out since.
        settings = context.settings.config.channels.get(channel)
        age_s = 0.0 if settings is None else settings.max_age_s
        said = _said(envelope)
        if not said or not age_s or envelope.sent_at is None:
            return None
        waited_s = (context.clock.now() - envelope.sent_at).total_seconds()
        if waited_s <= age_s:
            return None
        # Where it is all of them, the clock of this machine may be wrong.
        context.log("message_too_old", channel=channel, age_s=round(waited_s), level="warning")
        text = catalogue.TOO_OLD.to(principal.language, age=span(age_s))
        content = TooOld(text=said[:MOST_KEPT_CHARS])
        return await self._turned_away(envelope, principal, content, text)

    async def _turned_away(
        self,
        envelope: Envelope,
        principal: Principal,
        content: Unread | TooOld,
        text: str,
        *,
        is_new: bool | None = None,
        quiet: bool = False,
    ) -> Plan:
        """Return the end of an event that is not taken: failed, and told once a stretch.

        Args:
            envelope: The event.
            principal: Whose it is.
            content: Why it is not taken, and what is kept of it.
            text: What its writer is told; empty for nothing.
            is_new: Whether a stretch begins with it; None for what the last row of theirs says.
            quiet: As in `delivery.rows.Text`.
        """
        context, address = self.context, envelope.address
        found = await self.conversations.find(address, principal)
        here = found.conversation
        # An edit's own id may be that of its message, which is not to be looked for here.
        came = address if isinstance(envelope.body, Edited) else envelope
        item = context.item(content, here, came, principal)
        item = replace(item, refused=_known_by(envelope))
        if not is_new and (counted := await self._counted(item)) is not None:
            return Plan(conversation=here, writes=(*found.writes, counted), claimed=False)
        writes = (*found.writes, item_put(item, "failed", expect=0))
        if text and is_new is not False:
            reply_to = "" if address.direct else envelope.message
            note = context.note(text, address, here, quiet=quiet, reply_to=reply_to)
            writes = (*writes, note)
        return Plan(conversation=here, writes=writes)

    async def _counted(self, item: Item) -> Write | None:
        """Return the row of what was turned away with one more; None where none is to be counted up.

        It is the last that its writer wrote here, but for what was turned away for another reason.
        """
        waiting = INBOX.where(conversation=item.conversation, newest_first=True)
        for limit in (FIRST_LOOK, LOOK_BACK):
            for row in await self.context.store.select(replace(waiting, limit=limit)):
                last = INBOX.of(row)
                if last.principal.id != item.principal.id:
                    continue
                match last.content, item.content:
                    case TooOld(text=before, count=count), TooOld(text=text):
                        said = f"{before}\n\n{text}"[:MOST_KEPT_CHARS]
                        content = TooOld(text=said, count=count + 1)
                    case Unread(over=before, count=count), Unread(over=over) if before == over:
                        content = Unread(over=over, count=count + 1)
                    case ((Unread() | TooOld()), _):
                        continue
                    case _:
                        return None
                refused = (*last.refused, *item.refused)[-KNOWN_AGAIN:]
                last = replace(last, content=content, refused=refused)
                return item_put(last, "failed", expect=row.version)
        return None

    async def _knows(self, envelope: Envelope) -> bool:
        place = envelope.address.key()
        if place not in self._recalled:
            rows = await self.context.store.select(
                INBOX.where(place=place, newest_first=True, limit=LOOK_BACK)
            )
            for row in rows:
                # What can't be read is its conversation's trouble, and is told of there.
                with suppress(StoreUnusable):
                    self._turned_away_before.update(dict.fromkeys(INBOX.of(row).refused))
            self._recalled[place] = None
        return not self._turned_away_before.keys().isdisjoint(_known_by(envelope))


def _known_by(envelope: Envelope) -> tuple[str, ...]:
    """Return what an event is known by when it is delivered again, short enough to keep many."""
    account = f"{envelope.address.channel}/{envelope.address.account}"
    keys = (f"{account}/{key}".encode(errors="surrogatepass") for key in envelope.dedup)
    return tuple(hashlib.blake2b(key, digest_size=8).hexdigest() for key in keys)


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
