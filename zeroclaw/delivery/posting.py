"""Deliver one outbox row, call by call; each result is committed before the next call."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import takewhile

from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Content, Markdown, is_slow, off_loop
from zeroclaw.delivery.outcomes import Delivered, Rejected, Unknown, Unreachable
from zeroclaw.delivery.reconcile import Failed, Post, Reconciler, RefusedError
from zeroclaw.delivery.split import CUT_AT_ONCE_CHARS, Fits, pieces
from zeroclaw.envelope import MessageRef, OutgoingFile
from zeroclaw.store import DurablePoint
from zeroclaw.text import catalogue
from zeroclaw.value import replace


async def deliver(sender: Reconciler, blob: Callable[[str], Awaitable[bytes | None]]) -> None:
    """Deliver a row, or record that it was refused; called again after each `LaterError`.

    Args:
        sender: Posts its messages, and stores it.
        blob: Returns the bytes of a digest, None if they are gone.

    Raises:
        LaterError: The message did not arrive, or may not have; try again later.
        Conflict: Another writer changed the row; read it again.
    """
    try:
        match sender.item:
            case rows.TextPost() as item:
                await _deliver_text(sender, item)
            case rows.FilePost() as item:
                await _deliver_file(sender, item, await blob(item.digest))
            case rows.ApprovalCard() as item:
                await _deliver_one(sender, item, item.card, item.card, DurablePoint.ASKED)
            case rows.Settle() as item:
                await _deliver_outcome(sender, item)
    except RefusedError as error:
        await sender.put("refused", DurablePoint.REFUSED, reason=str(error))


# --- texts ---------------------------------------------------------------------------------------


async def _deliver_text(sender: Reconciler, item: rows.TextPost) -> None:
    parts = await split_text(item.text, sender.account.fits)
    parts = await off_loop(partial(sender.account.redact_parts, parts), text=item.text)
    if sender.uncertainty.may_stand and 0 < len(parts) <= len(item.refs):
        # If the lookup finds it, there is one more message to delete.
        sender.item = item = await _adopt_draft_message(sender, item, parts[-1])
    # Not the last one, which may lack its receipts.
    stand = takewhile(lambda pair: pair[0] == pair[1], zip(parts[:-1], sender.ended, strict=False))
    item = replace(item, done=max(item.done, len(tuple(stand))))
    while item.done < len(parts):
        receipts = item.receipts if item.done == len(parts) - 1 else ()
        text, key = parts[item.done], sender.row.key
        content = Markdown(text=text, key=key, plain=item.plain, receipts=receipts)
        sender.item = item = await _deliver_part(sender, item, content)
        # The last result goes into the commit that ends the row, unless messages must be
        # deleted first.
        if item.done > 0 and (item.done < len(parts) or len(item.refs) > len(parts)):
            await sender.put("pending", DurablePoint.REF_KNOWN)
    for ref in item.refs[len(parts) :]:
        await _remove(sender, item, ref)
    sender.item = replace(item, refs=item.refs[: len(parts)])
    await sender.put("delivered", DurablePoint.DELIVERED)


async def _deliver_part(
    sender: Reconciler, item: rows.TextPost, content: Markdown
) -> rows.TextPost:
    """Make one call; return the changed item."""
    if item.done >= len(item.refs) or not sender.account.capabilities.can_edit:
        return await _send_part(sender, item, content)
    ref = item.refs[item.done]
    async with sender.account.permitted(ref.address, message=ref.message):
        outcome = await sender.account.edit(ref, content)
    match outcome:
        case Delivered():
            return replace(item, done=item.done + 1)
        case Rejected(gone=True):
            # The next message that still exists takes its place, else a new one. The message that
            # is gone still counts, so that the new one's key is not that of another message.
            refs = tuple(other for other in item.refs if other != ref)
            return replace(item, refs=refs, posted=rows.posted(item))
        case _:
            return _retry_plain(sender, item, outcome)


async def _send_part(sender: Reconciler, item: rows.TextPost, content: Markdown) -> rows.TextPost:
    # A message of the draft may exist, or one that an earlier process sent with another text;
    # then the key finds it.
    may_be_drafts = _may_have_draft(sender, item)
    is_lost = sender.uncertainty.may_stand and may_be_drafts
    outcome = await sender.post(_part(item, content))
    if isinstance(outcome, Delivered):
        # A message that the draft began shows the draft's text, so it is edited next.
        is_old = is_lost or (sender.was_found and may_be_drafts)
        sender.was_found = False  # that process left at most one message unrecorded
        position = len(item.refs) if is_lost else item.done
        return replace(
            item,
            refs=(*item.refs[:position], outcome.value, *item.refs[position:]),
            done=item.done if is_old else item.done + 1,
            posted=rows.posted(item) + 1,
        )
    return _retry_plain(sender, item, outcome)


async def _adopt_draft_message(sender: Reconciler, item: rows.TextPost, text: str) -> rows.TextPost:
    """Return the item with the unrecorded message of its draft, if one is found."""
    content = Markdown(text=text, key=sender.row.key, plain=item.plain)
    if _may_have_draft(sender, item):
        return await _send_part(sender, item, content)
    lookup = await sender.find(_part(item, content))
    found = lookup.value.ref if isinstance(lookup, Delivered) else None
    sender.uncertainty = rows.CERTAIN
    return item if found is None else replace(item, refs=(*item.refs, found))


def _may_have_draft(sender: Reconciler, item: rows.TextPost) -> bool:
    capabilities = sender.account.capabilities
    return item.turn is not None and capabilities.idempotent_send and capabilities.can_edit


def _retry_plain(sender: Reconciler, item: rows.TextPost, failed: Failed) -> rows.TextPost:
    if isinstance(failed, Rejected) and failed.markup and not item.plain:
        return replace(item, plain=True)
    raise sender.error(failed)


async def _remove(sender: Reconciler, item: rows.TextPost, ref: MessageRef) -> None:
    """Delete a message that the final does not need, or edit it to point above."""
    capabilities = sender.account.capabilities
    if capabilities.can_delete:
        async with sender.account.permitted(ref.address, message=ref.message):
            outcome = await sender.account.delete(ref)
        if isinstance(outcome, Delivered) or (isinstance(outcome, Rejected) and outcome.gone):
            return
        if not isinstance(outcome, Rejected):
            raise sender.error(outcome)
    if capabilities.can_edit:
        text = catalogue.CONTINUED_ABOVE.to(item.language)
        async with sender.account.permitted(ref.address, message=ref.message):
            outcome = await sender.account.edit(ref, Markdown(text=text, key=sender.row.key))
        if isinstance(outcome, Unreachable | Unknown):
            raise sender.error(outcome)


# --- files ---------------------------------------------------------------------------------------


async def _deliver_file(sender: Reconciler, item: rows.FilePost, content: bytes | None) -> None:
    if content is None:
        message = "its bytes are no longer stored"
        raise RefusedError(message)
    file = OutgoingFile(
        name=item.name,
        media_type=item.media_type,
        content=content,
        key=sender.row.key,
        caption=item.caption,
        reply_to=item.reply_to or None,
    )
    note = catalogue.POSSIBLE_REPEAT.to(item.language).strip()
    repeat = replace(file, caption="\n\n".join(filter(None, (item.caption, note))))
    await _deliver_one(sender, item, file, repeat, DurablePoint.DELIVERED)


# --- cards ---------------------------------------------------------------------------------------


async def _deliver_one(
    sender: Reconciler,
    item: rows.FilePost | rows.ApprovalCard,
    content: Content,
    repeat: Content,
    point: DurablePoint,
) -> None:
    """Deliver an item that is one message."""
    outcome = await sender.post(Post(to=item.address, content=content, repeat=repeat))
    if not isinstance(outcome, Delivered):
        raise sender.error(outcome)
    sender.item = replace(item, ref=outcome.value)
    await sender.put("delivered", point)


async def _deliver_outcome(sender: Reconciler, item: rows.Settle) -> None:
    async with sender.account.permitted(item.ref.address, message=item.ref.message):
        outcome = await sender.account.settle(item.ref, item.outcome)
    # A card that a person deleted needs no outcome.
    is_gone = isinstance(outcome, Rejected) and outcome.gone
    if not isinstance(outcome, Delivered) and not is_gone:
        raise sender.error(outcome)
    await sender.put("delivered", DurablePoint.SETTLED)


def _part(item: rows.TextPost, content: Markdown) -> Post:
    """Return the next part of a final or a note as a post."""
    reply_to = item.reply_to if item.done == 0 else ""
    content = replace(content, key=rows.part_key(content.key, item), reply_to=reply_to)
    repeat = replace(content, text=content.text + catalogue.POSSIBLE_REPEAT.to(item.language))
    return Post(to=item.address, content=content, repeat=repeat)


async def split_text(markdown: str, fits: Fits) -> tuple[str, ...]:
    """Return the texts of the messages to send, none for a blank text; a long one is cut in a thread."""
    work = partial(pieces, markdown, fits)
    is_long = len(markdown) > CUT_AT_ONCE_CHARS or is_slow(markdown)
    cut = await asyncio.to_thread(work) if is_long else work()
    return tuple(piece.text for piece in cut if piece.text)
