"""Whether there is room for one more message in a conversation, and how one ends that finds none."""

from collections.abc import Callable

from zeroclaw import sentences
from zeroclaw.clock import Ids
from zeroclaw.delivery.rows import note_row
from zeroclaw.store import Row, RowKind, Store, Write
from zeroclaw.turn.inbox import Item, TooOld, Unread, item_of, item_put


class Backlog:
    """Bounds what waits; one for the whole daemon."""

    def __init__(self, store: Store, ids: Ids, *, most: Callable[[], int]) -> None:
        """Hold what is needed; `most` messages may wait in one conversation, asked each time."""
        self._store = store
        self._ids = ids
        self._most = most

    async def refusal(self, item: Item) -> tuple[Write, ...] | None:
        """Return how a message ends that comes when too many wait; None when there is room."""
        here = item.conversation
        waiting = await self._store.count(RowKind.INBOX, conversation=here, state="queued")
        if waiting < self._most():
            return None
        failed = item_put(item, "failed", expect=0)
        # There is none where all of it was forgotten just now.
        newest = await self._store.find(
            RowKind.INBOX, conversation=here, newest_first=True, limit=1
        )
        if any(map(_was_told, newest)):
            return (failed,)
        text = sentences.TOO_MANY_WAIT.to(item.principal.language, count=waiting)
        note = note_row(key=self._ids.ulid(), conversation=here, address=item.address, text=text)
        return (failed, note)


def _was_told(newest: Row) -> bool:
    """Whether the writer of the newest message was told so; who was too fast was told that."""
    return newest.state == "failed" and not isinstance(item_of(newest).content, TooOld | Unread)
