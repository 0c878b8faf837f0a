"""What becomes of a message that its writer edits or withdraws.

What still waits is changed in its place; what a turn has taken gets a control item.
"""

from zeroclaw.clock import Clock, Ids
from zeroclaw.envelope import Edited, Envelope, ItemId, Principal
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import Row, Store
from zeroclaw.turn.inbox import (
    INBOX,
    Amend,
    Ask,
    Control,
    Item,
    Obeyed,
    TooOld,
    Unread,
    Withdraw,
    item_of,
    item_put,
)
from zeroclaw.value import replace

LOOK_BACK = 200
"""Messages of a chat among which an edit finds its original."""


class Revisions:
    """Plans edits and withdrawals; one for the whole daemon."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        """Hold where messages are kept."""
        self._store = store
        self._clock = clock
        self._ids = ids

    async def edited(self, envelope: Envelope, principal: Principal, edited: Edited) -> Plan | None:
        """Replace what still waits; None for a message that nobody took."""
        text, own = edited.text, edited.text if edited.own is None else edited.own
        row = await self._original(envelope, edited.message)
        if row is None:
            return None
        item = item_of(row)
        if row.state == "queued" and isinstance(item.content, Ask):
            changed = replace(item, content=replace(item.content, text=text, own=own))
            write = item_put(changed, "queued", expect=row.version)
            return Plan(conversation=item.conversation, writes=(write,))
        return self._late(
            envelope, principal, item, Amend(message=edited.message, text=text, own=own)
        )

    async def deleted(self, envelope: Envelope, principal: Principal, message: str) -> Plan | None:
        """Withdraw what still waits; None for a message that nobody took."""
        row = await self._original(envelope, message)
        if row is None:
            return None
        item = item_of(row)
        if row.state == "queued":
            write = item_put(item, "superseded", expect=row.version)
            # Its files may be on their way.
            here = item.conversation
            return Plan(conversation=here, writes=(write,), wake=(here,))
        return self._late(envelope, principal, item, Withdraw(message=message))

    def _late(
        self, envelope: Envelope, principal: Principal, original: Item, content: Control
    ) -> Plan:
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=original.conversation,
            address=envelope.address,
            principal=principal,
            content=content,
            admitted_at=self._clock.now(),
            turn=original.turn,
        )
        return Plan(
            conversation=original.conversation,
            writes=(item_put(item, "control", expect=0),),
            wake=(original.conversation,),
        )

    async def _original(self, envelope: Envelope, message: str) -> Row | None:
        """Find the message that this sender wrote; somebody else's edit finds nothing.

        Nor does the edit of a command that was obeyed, for what it did is done, or of what was
        turned away: nobody took it, over a limit or while too many waited.
        """
        rows = await self._store.select(
            INBOX.where(place=envelope.address.key(), newest_first=True, limit=LOOK_BACK)
        )
        for row in rows:
            item = item_of(row)
            if item.message == message and item.principal.sender == envelope.sender.id:
                is_past = isinstance(item.content, Obeyed | TooOld | Unread) or _was_refused(
                    row, item
                )
                return None if is_past else row
        return None


def _was_refused(row: Row, item: Item) -> bool:
    """Whether a message was not taken: it failed before any turn was begun for it."""
    return row.state == "failed" and item.turn is None
