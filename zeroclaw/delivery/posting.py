"""Deliver one outbox row, call by call; each result is committed before the next call."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Content, Markdown, is_much, off_loop
from zeroclaw.delivery.outcomes import Delivered, Rejected, Unknown, Unreachable
from zeroclaw.delivery.reconcile import Failed, Post, Reconciler, RefusedError
from zeroclaw.delivery.split import CUT_AT_ONCE_CHARS, Fits, pieces
from zeroclaw.envelope import MessageRef, OutgoingFile
from zeroclaw.store import DurablePoint
from zeroclaw.text import catalogue
from zeroclaw.value import replace


async def deliver(sends: Reconciler, blob: Callable[[str], Awaitable[bytes | None]]) -> None:
    """Deliver a row, or record that it was refused; called again after each `LaterError`.

    Args:
        sends: Posts its messages, and stores it.
        blob: Returns the bytes of a digest, None if they are gone.

    Raises:
        LaterError: Nothing arrived, or that is unknown; try again later.
        Conflict: Another writer changed the row; read it again.
    """
    try:
        match sends.item:
            case rows.TextPost() as item:
                await _deliver_text(sends, item)
            case rows.FilePost() as item:
                await _deliver_file(sends, item, await blob(item.digest))
            case rows.ApprovalCard() as item:
                await _deliver_one(sends, item, item.card, item.card, DurablePoint.ASKED)
            case rows.Settle() as item:
                await _deliver_outcome(sends, item)
    except RefusedError as error:
        await sends.put("refused", DurablePoint.REFUSED, why=str(error))


# --- texts ---------------------------------------------------------------------------------------


async def _deliver_text(sends: Reconciler, item: rows.TextPost) -> None:
    parts = await parted(item.text, sends.account.fits)
    parts = await off_loop(partial(sends.account.redact_across_parts, parts), text=item.text)
    if sends.uncertainty.may_stand and 0 < len(parts) <= len(item.refs):
        # If the lookup finds it, there is one more message to delete.
        sends.item = item = await _take_in(sends, item, parts[-1])
    while item.done < len(parts):
        item = await _show_part(sends, item, parts[item.done])
        sends.item = item
        # The last result goes into the commit that ends the row, unless messages must be
        # deleted first.
        if item.done > 0 and (item.done < len(parts) or len(item.refs) > len(parts)):
            await sends.put("pending", DurablePoint.REF_KNOWN)
    for ref in item.refs[len(parts) :]:
        await _take_away(sends, item, ref)
    sends.item = replace(item, refs=item.refs[: len(parts)])
    await sends.put("delivered", DurablePoint.DELIVERED)


async def _show_part(sends: Reconciler, item: rows.TextPost, text: str) -> rows.TextPost:
    """Make one call; return the changed item."""
    if item.done < len(item.refs) and sends.account.capabilities.can_edit:
        return await _edit_part(sends, item, item.refs[item.done], text)
    return await _send_part(sends, item, text)


async def _edit_part(
    sends: Reconciler, item: rows.TextPost, ref: MessageRef, text: str
) -> rows.TextPost:
    receipts = item.receipts if item.done == 0 else ()
    content = Markdown(text=text, key=sends.row.key, plain=item.plain, receipts=receipts)
    async with sends.account.permitted(ref.address, message=ref.message):
        outcome = await sends.account.edit(ref, content)
    match outcome:
        case Delivered():
            return replace(item, done=item.done + 1)
        case Rejected(gone=True):
            # The next message that still exists takes its place, else a new one, whose key no
            # process has used before.
            sends.was_found = False
            return replace(item, refs=tuple(one for one in item.refs if one != ref))
        case _:
            return _plain_or_stop(sends, item, outcome)


async def _send_part(sends: Reconciler, item: rows.TextPost, text: str) -> rows.TextPost:
    # A message of the draft may exist, or one that an earlier process sent with another text;
    # then the key finds it.
    may_be_drafts = _may_have_draft(sends, item)
    is_lost = sends.uncertainty.may_stand and may_be_drafts
    outcome = await sends.post(_part(item, text, key=sends.row.key))
    if isinstance(outcome, Delivered):
        # A message that the draft began shows the draft's text, so it is edited next.
        is_old = is_lost or (sends.was_found and may_be_drafts)
        at = len(item.refs) if is_lost else item.done
        return replace(
            item,
            refs=(*item.refs[:at], outcome.value, *item.refs[at:]),
            done=item.done if is_old else item.done + 1,
            posted=None if item.turn is None else rows.posted(item) + 1,
        )
    return _plain_or_stop(sends, item, outcome)


async def _take_in(sends: Reconciler, item: rows.TextPost, text: str) -> rows.TextPost:
    """Return the item with the unrecorded message of its draft, if one is found."""
    if _may_have_draft(sends, item):
        return await _send_part(sends, item, text)
    seen = await sends.find(_part(item, text, key=sends.row.key))
    found = seen.value.ref if isinstance(seen, Delivered) else None
    sends.uncertainty = rows.CERTAIN
    return item if found is None else replace(item, refs=(*item.refs, found))


def _may_have_draft(sends: Reconciler, item: rows.TextPost) -> bool:
    capabilities = sends.account.capabilities
    return item.turn is not None and capabilities.idempotent_send and capabilities.can_edit


def _plain_or_stop(sends: Reconciler, item: rows.TextPost, failed: Failed) -> rows.TextPost:
    if isinstance(failed, Rejected) and failed.markup and not item.plain:
        return replace(item, plain=True)
    raise sends.error(failed)


async def _take_away(sends: Reconciler, item: rows.TextPost, ref: MessageRef) -> None:
    """Delete a message that the final does not need, or edit it to say so."""
    capabilities = sends.account.capabilities
    if capabilities.can_delete:
        async with sends.account.permitted(ref.address, message=ref.message):
            outcome = await sends.account.delete(ref)
        if isinstance(outcome, Delivered) or (isinstance(outcome, Rejected) and outcome.gone):
            return
        if not isinstance(outcome, Rejected):
            raise sends.error(outcome)
    if capabilities.can_edit:
        text = catalogue.CONTINUED_ABOVE.to(item.language)
        async with sends.account.permitted(ref.address, message=ref.message):
            outcome = await sends.account.edit(ref, Markdown(text=text, key=sends.row.key))
        if isinstance(outcome, Unreachable | Unknown):
            raise sends.error(outcome)


# --- files ---------------------------------------------------------------------------------------


async def _deliver_file(sends: Reconciler, item: rows.FilePost, content: bytes | None) -> None:
    if content is None:
        message = "its bytes are no longer kept"
        raise RefusedError(message)
    file = OutgoingFile(
        name=item.name,
        media_type=item.media_type,
        content=content,
        key=sends.row.key,
        caption=item.caption,
        reply_to=item.reply_to or None,
    )
    note = catalogue.POSSIBLE_REPEAT.to(item.language).strip()
    repeat = replace(file, caption="\n\n".join(filter(None, (item.caption, note))))
    await _deliver_one(sends, item, file, repeat, DurablePoint.DELIVERED)


# --- cards ---------------------------------------------------------------------------------------


async def _deliver_one(
    sends: Reconciler,
    item: rows.FilePost | rows.ApprovalCard,
    content: Content,
    repeat: Content,
    point: DurablePoint,
) -> None:
    """Deliver an item that is one message."""
    outcome = await sends.post(Post(to=item.address, content=content, repeat=repeat))
    if not isinstance(outcome, Delivered):
        raise sends.error(outcome)
    sends.item = replace(item, ref=outcome.value)
    await sends.put("delivered", point)


async def _deliver_outcome(sends: Reconciler, item: rows.Settle) -> None:
    async with sends.account.permitted(item.ref.address, message=item.ref.message):
        outcome = await sends.account.settle(item.ref, item.outcome)
    # A card that a person deleted has nothing left to show.
    gone = isinstance(outcome, Rejected) and outcome.gone
    if not isinstance(outcome, Delivered) and not gone:
        raise sends.error(outcome)
    await sends.put("delivered", DurablePoint.SETTLED)


def _part(item: rows.TextPost, text: str, *, key: str) -> Post:
    """Return the next part of a final or a note as a post."""
    is_first = item.done == 0
    content = Markdown(
        text=text,
        key=rows.part_key(key, item),
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
