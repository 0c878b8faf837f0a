"""Messages that come too late to be answered: kept in one row, and their writer is told so once.

A platform may keep what was written while nobody listened. What is older than the configuration
says when it comes would be answered out of its time, and a call that somebody wrote then would be
run out of it.
"""

from collections.abc import Callable

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import Command, ConversationId, Envelope, ItemId, Principal, Said
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.turnstile import OPENING
from zeroclaw.store import RowKind, Store, Write
from zeroclaw.text import catalogue
from zeroclaw.turn.inbox import Item, TooOld, item_of, item_put
from zeroclaw.turn.span import span
from zeroclaw.value import replace

LOOK_BACK = 50
"""Events of a conversation among which somebody's last one is looked for."""
MOST_KEPT_CHARS = 16_000
"""Of what one person wrote that came too late; the rest is only counted."""


class Overdue:
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
