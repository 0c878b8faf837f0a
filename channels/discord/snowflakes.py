"""Discord's ids (snowflakes), which increase with time."""

from channels._remote.fields import Json

_MAX_DIGITS = 20  # a snowflake has 64 bits


def snowflake(value: Json, key: str) -> str:
    """Return the id in a field, empty for anything else."""
    found = value.get(key)
    return found if isinstance(found, str) and is_snowflake(found) else ""


def number_of(message: Json) -> int:
    """Return a message's id as a number, which orders messages by time; 0 for none."""
    return int(snowflake(message, "id") or 0)


def is_snowflake(value: str) -> bool:
    """Whether a text has the form of a Discord id."""
    return value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS
