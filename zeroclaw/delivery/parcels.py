"""What the outbox posts, as messages that may have to be looked for and sent again."""

from collections.abc import Awaitable, Callable

from zeroclaw.channel import Postable
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.keys import part_key
from zeroclaw.delivery.outcomes import CallOutcome
from zeroclaw.delivery.rows import Ask, File, Text
from zeroclaw.envelope import Address, MessageRef, OutgoingFile
from zeroclaw.text import catalogue
from zeroclaw.value import Value, replace


class Parcel(Value):
    """One message that is to be posted.

    Attributes:
        to: The chat.
        content: Makes what is looked for where it may stand already; told whether that one says that
            it may be a repeat.
        send: Posts it; told whether it must say that it may be a repeat.
        clear: Has one that says so say it no more; None where none says so, or it can't be changed.
    """

    to: Address
    content: Callable[[bool], Postable]
    send: Callable[[bool], Awaitable[CallOutcome[MessageRef]]]
    clear: Callable[[MessageRef], Awaitable[CallOutcome[None]]] | None = None


def of_text(account: Account, item: Text, text: str, *, key: str) -> Parcel:
    """Return the next part of a final or a note.

    Args:
        account: Where it goes out.
        item: Whose part it is.
        text: The part.
        key: The row's.
    """
    key, plain = part_key(key, item), item.plain
    reply_to = item.reply_to if item.done == 0 else ""
    receipts = item.receipts if item.done == 0 else ()
    repeat = text + catalogue.POSSIBLE_REPEAT.to(item.language)
    return Parcel(
        to=item.address,
        content=lambda is_repeat: account.outgoing(
            repeat if is_repeat else text,
            key=key,
            plain=plain,
            reply_to=reply_to,
            receipts=receipts,
        ),
        send=lambda is_repeat: account.send(
            item.address,
            repeat if is_repeat else text,
            key=key,
            plain=plain,
            reply_to=reply_to,
            receipts=receipts,
        ),
        clear=lambda ref: account.edit(ref, text, key=key, plain=plain, receipts=receipts),
    )


def of_file(account: Account, item: File, content: bytes, *, key: str) -> Parcel:
    """Return a file; what says that it may be a repeat is its caption.

    Args:
        account: Where it goes out.
        item: The file.
        content: Its bytes.
        key: The row's.
    """
    repeat = catalogue.POSSIBLE_REPEAT.to(item.language).strip()
    file = OutgoingFile(
        name=item.name,
        media_type=item.media_type,
        content=content,
        key=key,
        caption=item.caption,
        reply_to=item.reply_to or None,
    )
    again = replace(file, caption="\n\n".join(filter(None, (item.caption, repeat))))
    return Parcel(
        to=item.address,
        content=lambda is_repeat: again if is_repeat else file,
        send=lambda is_repeat: account.send_file(item.address, again if is_repeat else file),
        clear=lambda ref: account.caption(ref, item.caption, key=key),
    )


def of_card(account: Account, item: Ask) -> Parcel:
    """Return a card, which says nothing of being a repeat; pressed on either, both are settled.

    Args:
        account: Where it goes out.
        item: The card.
    """
    return Parcel(
        to=item.address,
        content=lambda _: item.card,
        send=lambda _: account.ask(item.address, item.card),
    )
