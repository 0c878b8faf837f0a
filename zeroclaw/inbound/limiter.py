"""Events that ingress refuses: over a rate limit, over the queue limit, or too old to answer.

`rate_limits` decides what is over a limit. A sender's event holds their own lock and the
conversation's from the check to the commit, so that concurrent events are counted. The count of a
day is committed with the message it counts. The buckets are kept in memory only and are empty after
a start: they cover seconds, and starting them full would refuse what people wrote while the daemon
was down.

An edit counts like a message: the model reads it. An event that ends a turn or answers a question
always passes, and counts only if it changed nothing. Operators have no rate limit.

The queue limit bounds the messages that wait in one conversation. Message expiry refuses messages
that a platform delivers too late to answer, or to run a call for.

The refusals of one stretch, until messages are let through again, share one row with a count,
however many a script sends; the sender is told once. The row stores keys of the newest refused
events, so that a redelivery after a restart is not taken.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from weakref import WeakValueDictionary

from zeroclaw.conversation.inbox import INBOX, Item, TooOld, Unread, item_put
from zeroclaw.conversation.message_text import span
from zeroclaw.envelope import Command, Edited, Envelope, Pressed, Principal, Said
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.inbound.rate_limits import (
    Bucket,
    Day,
    Lane,
    Over,
    RateLimits,
    Tally,
    Which,
    ends_at,
    limits_of,
    step,
)
from zeroclaw.recent import Recent
from zeroclaw.store import Reads, RowKind, Write, readable_of
from zeroclaw.table import Column, Table, UntilDue, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import LocalizedMessage
from zeroclaw.value import Struct, field, replace

MOST_BUCKETS = 4096
"""Buckets kept; the one filled least recently goes first."""
MOST_REFUSED = 4096
"""Refused events that are recognised; the oldest go first."""
MOST_PLACES_READ = 4096
"""Places whose rows were read for refused events; the oldest go first, and are read again."""
KNOWN_AGAIN = 64
"""Events that one row recognises; clients and platforms rarely have more on their way."""
OWN: tuple[Which, ...] = ("person", "day")
"""Limits that a channel may count separately."""
OPENING = frozenset({"tool", "retry", "compact"})
"""Commands that start a turn, and count like messages."""
ALWAYS = frozenset({"stop", "halt", "resume", "approve", "deny", "revoke"})
"""Commands that end something, or that a turn waits for; they count only if they did nothing."""
FIRST_LOOK, LOOK_BACK = 4, 50
"""How many of a conversation's newest events are searched for a sender's last one; in a flood it is
near."""
MOST_KEPT_CHARS = 16_000
"""Limit of the stored text of one person's late messages; further ones are only counted."""


ALLOWANCES = Table(
    kind=RowKind.ALLOWANCE,
    codec=json_codec(Day),
    columns=frozenset({Column.DUE_AT}),
    keeps=UntilDue(),
    words=Words.NOBODY,
)


class Passage(Struct, kw_only=True):
    """One event of a known sender, while it passes the limits.

    Attributes:
        lane: What it counts as; None for an event that is not counted. Answers pass if they change
            something, and count only if they do not.
        conversation: The key of its conversation; `/new` does not change it.
        reads: What the newest plan for it reads through.
        fills: The buckets as the event leaves them, by key.
        writes: The new count of the day; committed with the event, whatever its plan.
        refused: It is over a limit.
        known: It was refused before, perhaps before a restart, and is only counted.
        committed: Its plan once that is committed, else None.
    """

    envelope: Envelope
    principal: Principal
    lane: Lane | None
    conversation: str
    reads: Reads
    fills: dict[str, Bucket] = field(default_factory=dict[str, Bucket])
    writes: tuple[Write, ...] = ()
    refused: bool = False
    known: bool = False
    committed: Plan | None = None


class RateLimiter(Struct, eq=False):
    """The limits that every event passes; one for the whole daemon.

    Attributes:
        refused: Events over a rate limit since the start, by channel.
    """

    context: InboundContext
    conversations: Conversations
    _buckets: Recent[str, Bucket] = field(default_factory=lambda: Recent(MOST_BUCKETS))
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[str, asyncio.Lock]
    )
    _turned_away_before: Recent[str, None] = field(default_factory=lambda: Recent(MOST_REFUSED))
    _places_read: Recent[str, None] = field(default_factory=lambda: Recent(MOST_PLACES_READ))
    refused: Counter[str] = field(default_factory=Counter[str])

    @asynccontextmanager
    async def passing(
        self, envelope: Envelope, principal: Principal | None
    ) -> AsyncGenerator[Passage | None]:
        """Wait for earlier events to pass; leave the context when the event is committed.

        Strangers are not limited here: they have limits of their own.
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
            reads=Reads(self.context.store),
            known=known,
        )
        # The variables keep the locks alive: the dictionary is weak.
        theirs = chats = nullcontext()
        if passage.lane is not None and not passage.known:
            theirs = self._locks.setdefault(f"#{principal.id}", asyncio.Lock())
            chats = self._locks.setdefault(passage.conversation, asyncio.Lock())
        async with theirs, chats:
            yield passage
            if passage.committed is None:
                return
            if not passage.committed.claimed:
                self._turned_away_before.update(dict.fromkeys(_known_by(envelope)))
            if passage.refused:
                self.refused[envelope.address.channel] += 1
            self._buckets.update(passage.fills)

    async def refusal(self, passage: Passage) -> Plan | None:
        """Return the plan for an event that is too old, or currently over a rate limit, else None."""
        context, envelope, principal = self.context, passage.envelope, passage.principal
        expired = await self._expired(passage)
        if expired is not None or passage.lane is None:
            return expired
        channel = envelope.address.channel
        limits = limits_of(context.settings.config, channel, passage.lane)
        # Counted over all channels, or on this one alone.
        own = {one: f"{channel if one in limits.own else ''}#{principal.id}" for one in OWN}
        person_key, day_key = f"{passage.lane}/{own['person']}", own["day"]
        day = await ALLOWANCES.get(passage.reads, day_key) if limits.daily else None
        person, conversation = map(self._buckets.get, (person_key, passage.conversation))
        now = context.clock.now()
        tally, over = step(
            Tally(person=person, conversation=conversation, day=day),
            limits,
            now=now,
            place=envelope.address.key(),
            sent_at=envelope.sent_at,
        )
        passage.refused = over is not None
        counted = {person_key: tally.person, passage.conversation: tally.conversation}
        passage.fills.update((key, one) for key, one in counted.items() if one is not None)
        if tally.day is not None and tally.day != day:
            due_at = ends_at(tally.day)
            passage.writes = (ALLOWANCES.put(day_key, tally.day, due_at=due_at),)
        if over is None:
            return None
        text = refusal_message(over, limits, now).to(principal.language)
        content = Unread(over=over.which)
        if isinstance(envelope.body, Pressed):
            plan = await self._turned_away(passage, content, "", is_new=over.tell)
            return replace(plan, toast=text)
        # If the sender can't be told, that needs no operator.
        return await self._turned_away(passage, content, text, is_new=over.tell, quiet=True)

    async def no_room(self, passage: Passage, waiting: int) -> Plan:
        """Return the plan for a message that arrives when too many wait in its conversation."""
        text = catalogue.TOO_MANY_WAIT.to(passage.principal.language, count=waiting)
        return await self._turned_away(passage, Unread(over="queue"), text)

    async def _expired(self, passage: Passage) -> Plan | None:
        """Return the plan for a message that is too old; None if it is not, or starts no turn."""
        context, envelope = self.context, passage.envelope
        channel = envelope.address.channel
        age_s = context.settings.config.settings_of(channel).max_age_s
        said = _said(envelope)
        if not said or not age_s or envelope.sent_at is None:
            return None
        waited_s = (context.clock.now() - envelope.sent_at).total_seconds()
        if waited_s <= age_s:
            return None
        text = catalogue.TOO_OLD.to(passage.principal.language, age=span(age_s))
        plan = await self._turned_away(passage, TooOld(text=said[:MOST_KEPT_CHARS]), text)
        whose = {"channel": channel, "conversation": plan.conversation}
        # If it affects all messages, this machine's clock may be wrong.
        context.log("message_too_old", **whose, age_s=round(waited_s), level="warning")
        return plan

    async def _turned_away(
        self,
        passage: Passage,
        content: Unread | TooOld,
        text: str,
        *,
        is_new: bool | None = None,
        quiet: bool = False,
    ) -> Plan:
        """Return the plan for a refused event: it has failed, and the sender is told once a stretch.

        Args:
            passage: The event.
            content: Why it is refused, and what is stored of it.
            text: What the sender is told; empty for nothing.
            is_new: Whether it starts a stretch; None to decide by the sender's last row.
            quiet: As in `delivery.rows.Text`.
        """
        context, envelope, principal = self.context, passage.envelope, passage.principal
        address = envelope.address
        found = await self.conversations.find(passage.reads, address, principal)
        here = found.conversation
        # An edit's own id may be that of its message, which must not be found under this item.
        came = address if isinstance(envelope.body, Edited) else envelope
        item = context.item(content, here, came, principal)
        item = replace(item, refused=_known_by(envelope))
        if not is_new and (counted := await _counted(passage.reads, item)) is not None:
            return Plan(conversation=here, writes=(*found.writes, counted), claimed=False)
        writes = (*found.writes, item_put(item, "failed"))
        if text and is_new is not False:
            reply_to = "" if address.direct else envelope.message
            note = context.note(text, address, here, quiet=quiet, reply_to=reply_to)
            writes = (*writes, note)
        return Plan(conversation=here, writes=writes)

    async def _knows(self, envelope: Envelope) -> bool:
        place = envelope.address.key()
        if place not in self._places_read:
            rows = await self.context.store.select(
                INBOX.where(place=place, newest_first=True, limit=LOOK_BACK)
            )
            for item in readable_of(rows, INBOX.of):
                self._turned_away_before.update(dict.fromkeys(item.refused))
            self._places_read[place] = None
        return not self._turned_away_before.keys().isdisjoint(_known_by(envelope))


async def _counted(reads: Reads, item: Item) -> Write | None:
    """Return the write that counts one more event in a refusal row; None if there is no such row.

    The row must be the last that the sender wrote here, ignoring those refused for other
    reasons.
    """
    waiting = INBOX.where(conversation=item.conversation, newest_first=True)
    for limit in (FIRST_LOOK, LOOK_BACK):
        newest = await reads.select(replace(waiting, limit=limit))
        for last in readable_of(newest, INBOX.of):
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
            counted = replace(last, content=content, refused=refused)
            return item_put(counted, "failed")
    return None


def _known_by(envelope: Envelope) -> tuple[str, ...]:
    """Return the keys of an event for recognising a redelivery, hashed so that many can be stored."""
    keys = (key.encode(errors="surrogatepass") for key in envelope.keys)
    return tuple(hashlib.blake2b(key, digest_size=8).hexdigest() for key in keys)


def _lane(envelope: Envelope, principal: Principal) -> Lane | None:
    """Return what an event counts as, None if it is not counted."""
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
    """Return the text of an event that would start a turn, as written; empty for others."""
    match envelope.body:
        case Said(text=text):
            # A message without text has only its files' names to store.
            return text or ", ".join(one.name for one in envelope.attachments)
        case Command(name=name, rest=rest) if name in OPENING:
            return f"/{name} {rest}".rstrip()
        case _:
            return ""


def refusal_message(over: Over, limits: RateLimits, now: datetime) -> LocalizedMessage:
    """Return what the sender of a refused message is told."""
    wait = span((over.until - now).total_seconds())
    match over.which:
        case "person":
            return catalogue.WRITES_TOO_FAST.about(rate=limits.person.per_minute, wait=wait)
        case "conversation":
            return catalogue.CHAT_TOO_FAST.about(rate=limits.conversation.per_minute, wait=wait)
        case "day":
            return catalogue.DAY_IS_FULL.about(most=limits.daily, wait=wait)
