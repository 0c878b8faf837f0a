"""The transcript of a chat, in order: messages of people, answers, cards, the open draft."""

import asyncio
from contextlib import suppress
from functools import partial

from zeroclaw.channel import Outcome, SentFile, TranscriptItem
from zeroclaw.clock import made_at
from zeroclaw.conversation.inbox import INBOX, Obeyed, Opening, PersonMessage, TooOld, words_of
from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Screen, off_loop
from zeroclaw.delivery.live import Live
from zeroclaw.delivery.rows import OUTBOX
from zeroclaw.delivery.split import in_one
from zeroclaw.envelope import Address, ConversationId, OutgoingFile, is_off_the_record
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate import approval as approvals
from zeroclaw.inbound.approvals import requests_of
from zeroclaw.inbound.conversations import POINTERS
from zeroclaw.store import Row, RowKind, Store, scan
from zeroclaw.table import Declaration
from zeroclaw.text.escape import without_markup
from zeroclaw.value import Struct, Value, replace

NEWEST = 200
"""Rows of each kind that the first read returns."""


class Page(Value):
    """A part of a conversation, in order.

    Attributes:
        before: Pass this as `before` to read the part before this one; empty if there is none.
    """

    items: tuple[TranscriptItem, ...]
    before: str


class Transcript(Struct, eq=False):
    """Reads chats from the inbox, the outbox and the open drafts.

    Attributes:
        screen: Redacts the bot's texts once more before people see them.
    """

    store: Store
    live: Live
    screen: Screen

    async def read(self, address: Address, after: str) -> tuple[TranscriptItem, ...]:
        """Return the items of a chat after a cursor; for an empty cursor the newest."""
        found = [
            row for table in (INBOX, OUTBOX) for row in await self._rows(table, address, after)
        ]
        open_drafts = self.live.open_drafts(address)  # after the rows, so that none is in both
        items = [
            item
            for row in sorted(found, key=lambda row: row.key)
            if (item := await self._item(row)) is not None
        ]
        cursor = items[-1].cursor if items else after
        drafts = (self._screened(replace(draft, cursor=cursor)) for draft in open_drafts)
        return (*items, *drafts)

    async def sent_file(self, address: Address, key: str) -> OutgoingFile | None:
        """Return a file that was sent to a chat; None if there is none, or it is no longer stored."""
        row = await self.store.get(RowKind.OUTBOX, key)
        item = None if row is None or row.place != address.key() else OUTBOX.of(row)
        if not isinstance(item, rows.FilePost):
            return None
        blob, kind, caption = await self.store.blob(item.digest), item.media_type, item.caption
        if blob is None:
            return None
        return OutgoingFile(name=item.name, media_type=kind, content=blob, key=key, caption=caption)

    async def is_off_the_record(self, address: Address) -> bool:
        """Whether a chat is off the record; with several conversations, whether one of them is."""
        pointers = await self.store.select(POINTERS.where(place=address.key()))
        return any(is_off_the_record(POINTERS.of(row).conversation) for row in pointers)

    async def part(self, conversation: ConversationId, *, before: str, limit: int) -> Page:
        """Return the newest part of a conversation, in all its chats; without open drafts.

        Args:
            conversation: The conversation.
            before: Only items before this cursor; empty for the newest.
            limit: Rows to read; some of them are no items of a transcript.
        """
        found: list[Row] = []
        for table in (INBOX, OUTBOX):
            query = table.where(
                conversation=conversation, after=before, newest_first=True, limit=limit + 1
            )
            found += await self.store.select(query)
        newest = sorted(found, key=lambda row: row.key)[-limit:]
        items: list[TranscriptItem] = []
        cards: set[str] = set()  # each approver has their own card
        for row in newest:
            item = await self._item(row)
            if item is None or (item.kind == "card" and item.key in cards):
                continue
            cards.add(item.key)
            by = INBOX.of(row).principal.label if row.kind is RowKind.INBOX else ""
            items.append(replace(item, by=by))
        is_oldest = len(found) <= limit
        return Page(items=tuple(items), before="" if is_oldest else newest[0].key)

    async def _rows(self, table: Declaration, address: Address, after: str) -> tuple[Row, ...]:
        place = address.key()
        if after:
            found = scan(self.store, table.where(place=place, after=after))
            return tuple([row async for row in found])
        return await self.store.select(table.where(place=place, newest_first=True, limit=NEWEST))

    def _screened(self, item: TranscriptItem) -> TranscriptItem:
        """Return the bot's text as it may be shown, like `Account.outgoing`."""
        if item.sent is not None:
            sent = replace(item.sent, name=self.screen(item.sent.name))
            return replace(item, text=self.screen(item.text), sent=sent)
        text = without_markup(item.text)
        screened = self.screen(text, growing=item.draft)
        if screened == text:
            text = item.text
            screened = self.screen(text, growing=item.draft)
        return item if screened == text else replace(item, text=screened, plain=True)

    async def _item(self, row: Row) -> TranscriptItem | None:
        """Return the item of a row; None for a row that is no item, or is damaged."""
        with suppress(RecordUnreadable):
            return await self._read(row)
        return None

    async def _read(self, row: Row) -> TranscriptItem | None:
        if row.kind is RowKind.INBOX:
            return _person_item(row)
        item = OUTBOX.of(row)
        ref = next((ref.message for ref in rows.messages(item)), "")
        shown = TranscriptItem(
            cursor=row.key, kind="bot", key=row.key, ref=ref, text="", at=made_at(row.key)
        )
        match item:
            case rows.TextPost():
                shown = replace(
                    shown,
                    kind="note" if item.turn is None else "bot",
                    # The key of its first part, as the outbox sends it.
                    key=rows.first_key(row.key, item),
                    text=in_one(item.text),
                    receipts=item.receipts,
                )
            case rows.FilePost():
                sent = SentFile(name=item.name, size_bytes=item.size_bytes)
                shown = replace(shown, text=item.caption, sent=sent)
            case rows.ApprovalCard():
                outcome = await self._outcome(item)
                shown = replace(shown, kind="card", key=item.card.key, outcome=outcome)
            case rows.Settle():
                return None
        await asyncio.sleep(0)  # a chat may have hundreds of texts
        return await off_loop(partial(self._screened, shown), text=shown.text)

    async def _outcome(self, item: rows.ApprovalCard) -> Outcome:
        """Return the card with the outcomes of its requests so far."""
        found = await requests_of(self.store, item.approvals)
        endings = (approvals.ending_of(request) for request in found)
        return Outcome(card=item.card, endings=tuple(filter(None, endings)))


def _person_item(row: Row) -> TranscriptItem | None:
    item = INBOX.of(row)
    content = item.content
    if not isinstance(content, Opening | Obeyed | TooOld) or row.state == "superseded":
        return None
    files = content.attachments if isinstance(content, PersonMessage) else ()
    return TranscriptItem(
        cursor=row.key,
        kind="person",
        key="",
        ref=item.message,
        text=words_of(content),
        at=item.admitted_at,
        files=tuple(file.name for file in files if not file.quoted),
    )
