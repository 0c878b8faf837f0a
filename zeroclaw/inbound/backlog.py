"""Whether there is room for one more message in a conversation, and how one ends that finds none.

What finds no room until there is some again is one row, which counts it: the first of it is told.
"""

from collections.abc import Callable

from zeroclaw.clock import Ids
from zeroclaw.delivery.rows import note_row
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import RowKind, Store, Write
from zeroclaw.text import catalogue
from zeroclaw.turn.inbox import Item, TooOld, Unread, item_of, item_put
from zeroclaw.value import replace

LOOK_BACK = 8
"""Events of a conversation among which the row of what found no room is looked for."""


class Backlog:
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
        waiting = await self._store.count(RowKind.INBOX, conversation=here, state="queued")
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
            RowKind.INBOX, conversation=item.conversation, newest_first=True, limit=LOOK_BACK
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
