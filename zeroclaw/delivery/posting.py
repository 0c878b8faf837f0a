"""Deliver one outbox row, call by call; each result is committed before the next call."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from zeroclaw.delivery.account import Account, Content, Markdown, is_much, off_loop
from zeroclaw.delivery.outcomes import Delivered, Rejected, Unknown, Unreachable
from zeroclaw.delivery.reconcile import Failed, Post, Reconciler, RefusedError
from zeroclaw.delivery.rows import (
    CERTAIN,
    ApprovalCard,
    FilePost,
    Item,
    Settle,
    State,
    TextPost,
    part_key,
    posted,
)
from zeroclaw.delivery.split import CUT_AT_ONCE_CHARS, Fits, pieces
from zeroclaw.envelope import MessageRef, OutgoingFile
from zeroclaw.store import DurablePoint
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, replace

Save = Callable[[Item, State, DurablePoint, str], Awaitable[None]]
"""Commits an item in a state, with the reason if refused; raises if another writer changed the row."""


class Posting(Struct, eq=False, kw_only=True):
    """One row being delivered; `run` is called again after each `LaterError`.

    Attributes:
        key: The row's key.
        item: The item as it was read, then as the calls have changed it.
        was_found: The process that wrote the row, or began its draft, is gone; a message may exist
            with another text.
        account: Where it goes out.
        sends: Posts its messages.
        save: Commits the item.
        blob: Returns the bytes of a digest, None if they are gone.
    """

    key: str
    item: Item
    was_found: bool
    account: Account
    sends: Reconciler
    save: Save
    blob: Callable[[str], Awaitable[bytes | None]]

    async def run(self) -> None:
        """Deliver the row, or record that it was refused.

        Raises:
            LaterError: Nothing arrived, or that is unknown; try again later.
            Conflict: Another writer changed the row; read it again.
        """
        try:
            match self.item:
                case TextPost() as item:
                    await self._deliver_text(item)
                case FilePost() as item:
                    await self._deliver_file(item)
                case ApprovalCard() as item:
                    await self._deliver_one(item, item.card, item.card, DurablePoint.ASKED)
                case Settle() as item:
                    await self._deliver_outcome(item)
        except RefusedError as error:
            await self.put("refused", DurablePoint.REFUSED, why=str(error))

    # --- texts -----------------------------------------------------------------------------------

    async def _deliver_text(self, item: TextPost) -> None:
        parts = await parted(item.text, self.account.fits)
        parts = await off_loop(partial(self.account.redact_across_parts, parts), text=item.text)
        if self.sends.uncertainty.may_stand and 0 < len(parts) <= len(item.refs):
            # If the lookup finds it, there is one more message to delete.
            self.item = item = await self._take_in(item, parts[-1])
        while item.done < len(parts):
            item = await self._show_part(item, parts[item.done])
            self.item = item
            # The last result goes into the commit that ends the row, unless messages must be
            # deleted first.
            if item.done > 0 and (item.done < len(parts) or len(item.refs) > len(parts)):
                await self.put("pending", DurablePoint.REF_KNOWN)
        for ref in item.refs[len(parts) :]:
            await self._take_away(item, ref)
        self.item = replace(item, refs=item.refs[: len(parts)])
        await self.put("delivered", DurablePoint.DELIVERED)

    async def _show_part(self, item: TextPost, text: str) -> TextPost:
        """Make one call; return the changed item."""
        if item.done < len(item.refs) and self.account.capabilities.can_edit:
            return await self._edit_part(item, item.refs[item.done], text)
        return await self._send_part(item, text)

    async def _edit_part(self, item: TextPost, ref: MessageRef, text: str) -> TextPost:
        receipts = item.receipts if item.done == 0 else ()
        content = Markdown(text=text, key=self.key, plain=item.plain, receipts=receipts)
        async with self.account.permitted(ref.address, message=ref.message):
            outcome = await self.account.edit(ref, content)
        match outcome:
            case Delivered():
                return replace(item, done=item.done + 1)
            case Rejected(gone=True):
                # The next message that still exists takes its place, else a new one, whose key no
                # process has used before.
                self.was_found = False
                return replace(item, refs=tuple(one for one in item.refs if one != ref))
            case _:
                return self._plain_or_stop(item, outcome)

    async def _send_part(self, item: TextPost, text: str) -> TextPost:
        # A message of the draft may exist, or one that an earlier process sent with another text;
        # then the key finds it.
        may_be_drafts = self._may_have_draft(item)
        is_lost = self.sends.uncertainty.may_stand and may_be_drafts
        outcome = await self.sends.post(_part(item, text, key=self.key))
        if isinstance(outcome, Delivered):
            # A message that the draft began shows the draft's text, so it is edited next.
            is_old = is_lost or (self.was_found and may_be_drafts)
            at = len(item.refs) if is_lost else item.done
            return replace(
                item,
                refs=(*item.refs[:at], outcome.value, *item.refs[at:]),
                done=item.done if is_old else item.done + 1,
                posted=None if item.turn is None else posted(item) + 1,
            )
        return self._plain_or_stop(item, outcome)

    async def _take_in(self, item: TextPost, text: str) -> TextPost:
        """Return the item with the unrecorded message of its draft, if one is found."""
        if self._may_have_draft(item):
            return await self._send_part(item, text)
        seen = await self.sends.find(_part(item, text, key=self.key))
        found = seen.value.ref if isinstance(seen, Delivered) else None
        self.sends.uncertainty = CERTAIN
        return item if found is None else replace(item, refs=(*item.refs, found))

    def _may_have_draft(self, item: TextPost) -> bool:
        capabilities = self.account.capabilities
        return item.turn is not None and capabilities.idempotent_send and capabilities.can_edit

    def _plain_or_stop(self, item: TextPost, failed: Failed) -> TextPost:
        if isinstance(failed, Rejected) and failed.markup and not item.plain:
            return replace(item, plain=True)
        raise self.sends.error(failed)

    async def _take_away(self, item: TextPost, ref: MessageRef) -> None:
        """Delete a message that the final does not need, or edit it to say so."""
        capabilities = self.account.capabilities
        if capabilities.can_delete:
            async with self.account.permitted(ref.address, message=ref.message):
                outcome = await self.account.delete(ref)
            if isinstance(outcome, Delivered) or (isinstance(outcome, Rejected) and outcome.gone):
                return
            if not isinstance(outcome, Rejected):
                raise self.sends.error(outcome)
        if capabilities.can_edit:
            text = catalogue.CONTINUED_ABOVE.to(item.language)
            async with self.account.permitted(ref.address, message=ref.message):
                outcome = await self.account.edit(ref, Markdown(text=text, key=self.key))
            if isinstance(outcome, Unreachable | Unknown):
                raise self.sends.error(outcome)

    # --- files -----------------------------------------------------------------------------------

    async def _deliver_file(self, item: FilePost) -> None:
        content = await self.blob(item.digest)
        if content is None:
            message = "its bytes are no longer kept"
            raise RefusedError(message)
        file = OutgoingFile(
            name=item.name,
            media_type=item.media_type,
            content=content,
            key=self.key,
            caption=item.caption,
            reply_to=item.reply_to or None,
        )
        note = catalogue.POSSIBLE_REPEAT.to(item.language).strip()
        repeat = replace(file, caption="\n\n".join(filter(None, (item.caption, note))))
        await self._deliver_one(item, file, repeat, DurablePoint.DELIVERED)

    # --- cards -----------------------------------------------------------------------------------

    async def _deliver_one(
        self, item: FilePost | ApprovalCard, content: Content, repeat: Content, point: DurablePoint
    ) -> None:
        """Deliver an item that is one message."""
        outcome = await self.sends.post(Post(to=item.address, content=content, repeat=repeat))
        if not isinstance(outcome, Delivered):
            raise self.sends.error(outcome)
        self.item = replace(item, ref=outcome.value)
        await self.put("delivered", point)

    async def _deliver_outcome(self, item: Settle) -> None:
        async with self.account.permitted(item.ref.address, message=item.ref.message):
            outcome = await self.account.settle(item.ref, item.outcome)
        # A card that a person deleted has nothing left to show.
        gone = isinstance(outcome, Rejected) and outcome.gone
        if not isinstance(outcome, Delivered) and not gone:
            raise self.sends.error(outcome)
        await self.put("delivered", DurablePoint.SETTLED)

    async def put(self, state: State, point: DurablePoint, *, why: str = "") -> None:
        """Commit the row in a state, with what is now known about its sends."""
        if not isinstance(self.item, Settle):
            self.item = replace(self.item, uncertainty=self.sends.uncertainty)
        await self.save(self.item, state, point, why)
        self.sends.is_sending = state == "sending"


def _part(item: TextPost, text: str, *, key: str) -> Post:
    """Return the next part of a final or a note as a post."""
    is_first = item.done == 0
    content = Markdown(
        text=text,
        key=part_key(key, item),
        plain=item.plain,
        reply_to=item.reply_to if is_first else "",
        receipts=item.receipts if is_first else (),
    )
    repeat = replace(content, text=text + catalogue.POSSIBLE_REPEAT.to(item.language))
    return Post(to=item.address, content=content, repeat=repeat)


async def parted(markdown: str, fits: Fits) -> tuple[str, ...]:
    """Return the texts of the messages to send, none for a blank text; a long one is cut in a thread."""
    work = partial(pieces, markdown, fits)
    is_long = len(markdown) > CUT_AT_ONCE_CHARS or is_much(markdown)
    found = await asyncio.to_thread(work) if is_long else work()
    return tuple(piece.text for piece in found if piece.text)
