"""What nobody knows about a row: whether a message that was sent for it stands."""

from typing import TypeVar

from zeroclaw.delivery.rows import Ask, File, Item, Second, Settle, Text
from zeroclaw.value import replace

Sent = TypeVar("Sent", bound=Text | File | Ask)


def certain(item: Sent) -> Sent:
    """Return the item once nothing that was sent for it is uncertain any more."""
    return replace(item, uncertain=False, mark="", late=False, second=None)


def is_late(item: Item) -> bool:
    """Tell whether what was sent for it may come yet, after any look."""
    return not isinstance(item, Settle) and item.late


def second_of(item: Item) -> Second | None:
    """Return the message that was sent again, None for none."""
    return None if isinstance(item, Settle) else item.second


def with_second(item: Item, second: Second) -> Item:
    """Return the item with a message that was sent again."""
    return item if isinstance(item, Settle) else replace(item, second=second)


def mark_of(item: Item) -> str:
    """Return from where to look for what is uncertain, empty where that can't be done."""
    return "" if isinstance(item, Settle) else item.mark


def looked(item: Item, since: str) -> Item:
    """Return the item after a look that saw nothing: from where to look on."""
    if isinstance(item, Settle):
        return item
    if item.second is None:
        return replace(item, mark=since)
    return replace(item, second=replace(item.second, since=since))


def after_loss(item: Sent, *, late: bool) -> Sent:
    """Return the item after a send of which nobody heard; what was late once may always come."""
    return replace(item, uncertain=True, late=late or item.late)
