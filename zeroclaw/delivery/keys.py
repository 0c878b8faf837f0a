"""The idempotency keys of the messages that a text is posted as."""

from zeroclaw.delivery.draft import message_key
from zeroclaw.delivery.rows import Text
from zeroclaw.value import replace


def part_key(key: str, item: Text) -> str:
    """Return the idempotency key of the next message that a text posts.

    A final goes on with its draft's keys, so that a message of which nobody recorded that it
    arrived is found again instead of standing there twice.

    Args:
        key: The row's.
        item: The row's.
    """
    if item.turn is None:
        return f"{key}:{item.done}"
    return message_key(item.turn, posted(item))


def first_key(key: str, item: Text) -> str:
    """Return the idempotency key of a text's first message, where no message was lost."""
    return part_key(key, replace(item, refs=(), done=0, posted=None))


def posted(item: Text) -> int:
    """Return how many messages the turn of a final has posted."""
    return len(item.refs) if item.posted is None else item.posted
