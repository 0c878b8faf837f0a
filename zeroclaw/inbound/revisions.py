"""What becomes of a message that its writer edits or withdraws.

What still waits is changed in its place; what a turn has taken gets a control item.
"""

from zeroclaw.envelope import Deleted, Edited, Envelope, Principal
from zeroclaw.inbound.plan import InboundContext, Plan
from zeroclaw.store import Row
from zeroclaw.turn.inbox import (
    INBOX,
    Amend,
    Ask,
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


async def revised(
    context: InboundContext, envelope: Envelope, principal: Principal, revision: Edited | Deleted
) -> Plan | None:
    """Replace or withdraw what still waits; None for a message that nobody took."""
    row = await _original(context, envelope, revision.message)
    if row is None:
        return None
    item = item_of(row)
    here, content, version = item.conversation, item.content, row.version
    match revision:
        case Edited(message=message, text=text, own=own):
            own = text if own is None else own
            if row.state == "queued" and isinstance(content, Ask):
                changed = replace(item, content=replace(content, text=text, own=own))
                write = item_put(changed, "queued", expect=version)
                return Plan(conversation=here, writes=(write,))
            late = Amend(message=message, text=text, own=own)
        case Deleted(message=message):
            if row.state == "queued":
                write = item_put(item, "superseded", expect=version)
                # Its files may be on their way.
                return Plan(conversation=here, writes=(write,), wake=(here,))
            late = Withdraw(message=message)
    made = context.item(late, here, envelope.address, principal, turn=item.turn)
    return Plan(conversation=here, writes=(item_put(made, "control", expect=0),), wake=(here,))


async def _original(context: InboundContext, envelope: Envelope, message: str) -> Row | None:
    """Find the message that this sender wrote; somebody else's edit finds nothing.

    Nor does the edit of a command that was obeyed, for what it did is done, or of what was turned
    away: nobody took it, over a limit or while too many waited.
    """
    rows = await context.store.select(
        INBOX.where(place=envelope.address.key(), newest_first=True, limit=LOOK_BACK)
    )
    for row in rows:
        item = item_of(row)
        if item.message == message and item.principal.sender == envelope.sender.id:
            # What failed before any turn was begun for it was not taken.
            was_refused = row.state == "failed" and item.turn is None
            is_past = isinstance(item.content, Obeyed | TooOld | Unread) or was_refused
            return None if is_past else row
    return None
