"""Reads the files that came with messages of a conversation, by their numbers."""

from zeroclaw.envelope import ConversationId
from zeroclaw.store import RowKind, Store
from zeroclaw.tools.attachments import File
from zeroclaw.turn.attached import Attached, attached_key, attached_of


async def next_number(store: Store, conversation: ConversationId) -> int:
    """Return the number of a conversation's next file; only its holder may use it."""
    rows = await store.find(
        RowKind.ATTACHMENT, conversation=conversation, newest_first=True, limit=1
    )
    return attached_of(rows[0]).number + 1 if rows else 1


class AttachedFiles:
    """Reads files of conversations; what an `AttachmentsStore` promises."""

    def __init__(self, store: Store) -> None:
        """Read them there."""
        self._store = store

    async def find(self, conversation: ConversationId, number: int) -> File | None:
        """Return a file, None when this conversation has none of that number.

        One whose message was withdrawn before it was answered is none.
        """
        found = await self._find(conversation, number)
        if found is None:
            return None
        name = found.attachment.name
        return File(name=name, size_bytes=found.size_bytes, failed=found.failed)

    async def content(self, conversation: ConversationId, number: int) -> bytes | None:
        """Return a file's bytes, None when they did not come or are no longer kept."""
        found = await self._find(conversation, number)
        return None if found is None or found.failed else await self._store.blob(found.digest)

    async def _find(self, conversation: ConversationId, number: int) -> Attached | None:
        row = await self._store.get(RowKind.ATTACHMENT, attached_key(conversation, number))
        if row is None:
            return None
        item = await self._store.get(RowKind.INBOX, row.place)
        return None if item is not None and item.state == "superseded" else attached_of(row)
