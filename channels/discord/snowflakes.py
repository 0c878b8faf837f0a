"""Ids of Discord's, which are given in order of time; what is none reads as nothing."""

from channels._remote.fields import Json

_MOST_DIGITS = 20  # a snowflake has 64 bits


def snowflake(value: Json, key: str) -> str:
    """Return an id of Discord's, empty for anything else."""
    found = value.get(key)
    return found if isinstance(found, str) and is_snowflake(found) else ""


def is_snowflake(found: str) -> bool:
    """Whether a text can be an id of Discord's."""
    return found.isascii() and found.isdecimal() and len(found) <= _MOST_DIGITS
