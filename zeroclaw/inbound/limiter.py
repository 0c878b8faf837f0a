"""Events that ingress refuses: over a rate limit, over the queue limit, or too old to answer.

`rate_limits` decides whether an event is over a limit. An event holds the locks of its sender and
its conversation from the check to the commit, so that concurrent events are counted. The count of a
day is committed with the message it counts. The buckets are in memory only and are empty after a
start: they cover seconds, and starting them full would refuse the messages that people wrote while
the daemon was down.

An edit counts like a message: the model reads it. An event that ends a turn or answers a request
always passes, and counts only if it changed nothing. Operators have no rate limit.

The queue limit bounds the messages that wait in one conversation. Message expiry refuses messages
and tool calls that a platform delivers too late.

Consecutive refusals, until a message is admitted again, share one row with a count, however many
messages a script sends, and the sender gets one notice. The row stores keys of the newest refused
events, so that a redelivery after a restart is not admitted.
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
from zeroclaw.envelope import Command, Edited, Envelope, Pressed, Principal, Reader, Said
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.inbound.rate_limits import (
    Bucket,
    Counters,
    Day,
    Lane,
    LimitName,
    Over,
    RateLimits,
    count_message,
    ends_at,
    limits_of,
)
from zeroclaw.recent import Recent
from zeroclaw.store import Reads, RowKind, Write, readable_of
from zeroclaw.table import Column, Table, UntilDue, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import LocalizedMessage
from zeroclaw.value import Struct, field, replace

MAX_BUCKETS = 4096
"""Buckets in memory; the one filled least recently goes first."""
MAX_REFUSED_KEYS = 4096
"""Refused events that are recognised when they come again; the oldest go first."""
MAX_PLACES_READ = 4096
"""Chats whose rows were read for refused events; the oldest go first, and are read again."""
MAX_KEYS_PER_ROW = 64
"""Events that one row recognises; clients and platforms rarely redeliver more."""
PER_CHANNEL: tuple[LimitName, ...] = ("person", "day")
"""Limits that a channel may count separately."""
TURN_COMMANDS = frozenset({"tool", "retry", "compact"})
"""Commands that start a turn, and count like messages."""
EXEMPT_COMMANDS = frozenset({"stop", "halt", "resume", "approve", "deny", "revoke"})
"""Commands that end something, or that a turn waits for; they count only if they did nothing."""
SHORT_SEARCH, LONG_SEARCH = 4, 50
"""How many of a conversation's newest events are searched for a sender's last one; in a flood it is
among the first."""
MAX_STORED_CHARS = 16_000
"""Stored characters of one person's late messages; further ones are only counted."""


ALLOWANCES = Table(
    kind=RowKind.ALLOWANCE,
    codec=json_codec(Day),
    columns=frozenset({Column.DUE_AT}),
    keeps=UntilDue(),
)


class InboundEvent(Struct, kw_only=True):
    """An event of an admitted sender, from the limits to its commit.

    Attributes:
        lane: The lane in which it counts; None for an event that is not counted. Answers pass if they change
            something, and count only if they do not.
        conversation: The key of its conversation; `/new` does not change it.
        reads: The reads of its newest plan.
        buckets: The buckets after the event, by key.
        writes: The new count of the day; committed with the event, whatever its plan.
        over_limit: Whether it is over a rate limit.
        is_duplicate: Whether it was refused before, perhaps before a restart.
        committed: Its plan once that is committed, else None.
        remaining_command: The rest of its command, once the first part is committed.
    """

    envelope: Envelope
    principal: Principal
    lane: Lane | None
    conversation: str
    reads: Reads
    buckets: dict[str, Bucket] = field(default_factory=dict[str, Bucket])
    writes: tuple[Write, ...] = ()
    over_limit: bool = False
    is_duplicate: bool = False
    committed: Plan | None = None
    remaining_command: Command | None = None

    @property
    def reader(self) -> Reader:
        """The reader of replies to it."""
        return Reader(address=self.envelope.address, language=self.principal.language)


class RateLimiter(Struct, eq=False):
    """Applies the limits to every event; one for the whole daemon.

    Attributes:
        refused: Events over a rate limit since the start, by channel.
    """

    context: InboundContext
    conversations: Conversations
    _buckets: Recent[str, Bucket] = field(default_factory=lambda: Recent(MAX_BUCKETS))
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[str, asyncio.Lock]
    )
    _refused_keys: Recent[str, None] = field(default_factory=lambda: Recent(MAX_REFUSED_KEYS))
    _places_read: Recent[str, None] = field(default_factory=lambda: Recent(MAX_PLACES_READ))
    refused: Counter[str] = field(default_factory=Counter[str])

    @asynccontextmanager
    async def track(
        self, envelope: Envelope, principal: Principal | None
    ) -> AsyncGenerator[InboundEvent | None]:
        """Hold the event's locks within this context, and count it at the end if it is committed.

        Yields None for a stranger: pairing has its own limits.
        """
        if principal is None:
            yield None
            return
        is_duplicate = await self._is_duplicate(envelope)
        event = InboundEvent(
            envelope=envelope,
            principal=principal,
            lane=_lane(envelope, principal),
            conversation=self.conversations.key_of(envelope.address, principal),
            reads=Reads(self.context.store),
            is_duplicate=is_duplicate,
        )
        # The variables keep the locks alive: the dictionary is weak.
        person_lock = chat_lock = nullcontext()
        if event.lane is not None and not is_duplicate:
            person_lock = self._locks.setdefault(f"#{principal.id}", asyncio.Lock())
            chat_lock = self._locks.setdefault(event.conversation, asyncio.Lock())
        async with person_lock, chat_lock:
            yield event
            if event.committed is None:
                return
            if not event.committed.claimed:
                self._refused_keys.update(dict.fromkeys(_event_keys(envelope)))
            if event.over_limit:
                self.refused[envelope.address.channel] += 1
            self._buckets.update(event.buckets)

    async def refusal(self, event: InboundEvent) -> Plan | None:
        """Return the plan for an event that is too old or over a rate limit, else None."""
        context, envelope, principal = self.context, event.envelope, event.principal
        expired = await self._expired(event)
        if expired is not None or event.lane is None:
            return expired
        channel = envelope.address.channel
        limits = limits_of(context.settings.config, channel, event.lane)
        # Counted over all channels, or on this one alone.
        scopes = dict.fromkeys(limits.per_channel, channel)
        person_key, day_key = (f"{scopes.get(name, '')}#{principal.id}" for name in PER_CHANNEL)
        person_key = f"{event.lane}/{person_key}"
        day = await ALLOWANCES.find(event.reads, day_key) if limits.daily else None
        person, conversation = map(self._buckets.get, (person_key, event.conversation))
        now = context.clock.now()
        counters, over = count_message(
            Counters(person=person, conversation=conversation, day=day),
            limits,
            now=now,
            place=envelope.address.key(),
            sent_at=envelope.sent_at,
        )
        event.over_limit = over is not None
        counted = {person_key: counters.person, event.conversation: counters.conversation}
        event.buckets.update((key, bucket) for key, bucket in counted.items() if bucket is not None)
        if counters.day is not None and counters.day != day:
            due_at = ends_at(counters.day)
            event.writes = (ALLOWANCES.put(day_key, counters.day, due_at=due_at),)
        if over is None:
            return None
        says = refusal_message(over, limits, now)
        content = Unread(over=over.limit)
        if isinstance(envelope.body, Pressed):
            plan = await self._refuse(event, content, None, is_new=over.notify)
            return replace(plan, toast=says.to(principal.language))
        # Quiet: if this notice can't be sent, no operator has to know.
        return await self._refuse(event, content, says, is_new=over.notify, quiet=True)

    async def queue_full(self, event: InboundEvent, waiting: int) -> Plan:
        """Return the plan for a message whose conversation has too many waiting ones."""
        says = catalogue.TOO_MANY_WAIT.about(count=waiting)
        return await self._refuse(event, Unread(over="queue"), says)

    async def _expired(self, event: InboundEvent) -> Plan | None:
        """Return the plan for a message that is too old; None for others."""
        context, envelope = self.context, event.envelope
        channel = envelope.address.channel
        age_s = context.settings.config.settings_of(channel).max_age_s
        typed = _typed(envelope)
        if not typed or not age_s or envelope.sent_at is None:
            return None
        waited_s = (context.clock.now() - envelope.sent_at).total_seconds()
        if waited_s <= age_s:
            return None
        says = catalogue.TOO_OLD.about(age=span(age_s))
        plan = await self._refuse(event, TooOld(text=typed[:MAX_STORED_CHARS]), says)
        fields = {"channel": channel, "conversation": plan.conversation}
        # If it affects all messages, this machine's clock may be wrong.
        context.log("message_too_old", **fields, age_s=round(waited_s), level="warning")
        return plan

    async def _refuse(
        self,
        event: InboundEvent,
        content: Unread | TooOld,
        says: LocalizedMessage | None,
        *,
        is_new: bool | None = None,
        quiet: bool = False,
    ) -> Plan:
        """Return the plan that stores an event as failed, with a notice to the sender if it is due.

        Args:
            event: The event.
            content: The stored content, with the reason.
            says: The notice, None for none.
            is_new: Whether it is the first of consecutive refusals; None to decide by the sender's
                last row.
            quiet: As in `delivery.rows.TextPost`.
        """
        context, envelope, principal = self.context, event.envelope, event.principal
        address = envelope.address
        found = await self.conversations.find(event.reads, address, principal)
        conversation = found.conversation
        # An edit's own id may be that of its message, which must not be found under this item.
        source = address if isinstance(envelope.body, Edited) else envelope
        item = context.item(content, conversation, source, principal)
        item = replace(item, refused=_event_keys(envelope))
        if not is_new and (counted := await _counted(event.reads, item)) is not None:
            return Plan(conversation=conversation, writes=(*found.writes, counted), claimed=False)
        writes = (*found.writes, item_put(item, "failed"))
        if says is not None and is_new is not False:
            reply_to = "" if address.direct else envelope.message
            note = context.note(says, event.reader, conversation, quiet=quiet, reply_to=reply_to)
            writes = (*writes, note)
        return Plan(conversation=conversation, writes=writes)

    async def _is_duplicate(self, envelope: Envelope) -> bool:
        place = envelope.address.key()
        if place not in self._places_read:
            rows = await self.context.store.select(
                INBOX.where(place=place, newest_first=True, limit=LONG_SEARCH)
            )
            for item in readable_of(rows, INBOX.of):
                self._refused_keys.update(dict.fromkeys(item.refused))
            self._places_read[place] = None
        return not self._refused_keys.keys().isdisjoint(_event_keys(envelope))


async def _counted(reads: Reads, item: Item) -> Write | None:
    """Return the write that counts one more event in a refusal row; None if there is no such row.

    The row must be the sender's newest in this conversation, not counting refusals for other
    reasons.
    """
    waiting = INBOX.where(conversation=item.conversation, newest_first=True)
    for limit in (SHORT_SEARCH, LONG_SEARCH):
        newest = await reads.select(replace(waiting, limit=limit))
        for last in readable_of(newest, INBOX.of):
            if last.principal.id != item.principal.id:
                continue
            match last.content, item.content:
                case TooOld(text=before, count=count), TooOld(text=text):
                    text = f"{before}\n\n{text}"[:MAX_STORED_CHARS]
                    content = TooOld(text=text, count=count + 1)
                case Unread(over=before, count=count), Unread(over=over) if before == over:
                    content = Unread(over=over, count=count + 1)
                case ((Unread() | TooOld()), _):
                    continue
                case _:
                    return None
            refused = (*last.refused, *item.refused)[-MAX_KEYS_PER_ROW:]
            counted = replace(last, content=content, refused=refused)
            return item_put(counted, "failed")
    return None


def _event_keys(envelope: Envelope) -> tuple[str, ...]:
    """Return an event's dedup keys, hashed so that many can be stored."""
    keys = (key.encode(errors="surrogatepass") for key in envelope.keys)
    return tuple(hashlib.blake2b(key, digest_size=8).hexdigest() for key in keys)


def _lane(envelope: Envelope, principal: Principal) -> Lane | None:
    """Return the lane in which an event counts; None if it is not counted."""
    if OPERATOR in principal.roles:
        return None
    match envelope.body:
        case Said() | Edited():
            return "messages"
        case Command(name=name) if name in TURN_COMMANDS:
            return "messages"
        case Command(name=name):
            return "answers" if name in EXEMPT_COMMANDS else "commands"
        case Pressed():
            return "answers"
        case _:
            return None


def _typed(envelope: Envelope) -> str:
    """Return the text of an event that would start a turn, as written; empty for others."""
    match envelope.body:
        case Said(text=text):
            # A message without text has only its files' names to store.
            return text or ", ".join(file.name for file in envelope.attachments)
        case Command(name=name, rest=rest) if name in TURN_COMMANDS:
            return f"/{name} {rest}".rstrip()
        case _:
            return ""


def refusal_message(over: Over, limits: RateLimits, now: datetime) -> LocalizedMessage:
    """Return the notice to the sender of a refused message."""
    wait = span((over.until - now).total_seconds())
    match over.limit:
        case "person":
            return catalogue.WRITES_TOO_FAST.about(rate=limits.person.per_minute, wait=wait)
        case "conversation":
            return catalogue.CHAT_TOO_FAST.about(rate=limits.conversation.per_minute, wait=wait)
        case "day":
            return catalogue.DAY_IS_FULL.about(most=limits.daily, wait=wait)
