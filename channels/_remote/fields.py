"""Reads fields of untrusted JSON; a missing field or one of the wrong type reads as empty."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

Json = Mapping[str, object]

_EMPTY: Json = {}
_MAX = 2**63  # platforms' ids fit 64 bits
_LAST_SECOND = 253_402_300_799  # the end of the year 9999, the last that `datetime` supports


def parse_json(body: bytes) -> object:
    """Parse JSON; None if it is invalid."""
    try:
        return cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return None


def inner(value: object, *keys: str) -> Json:
    """Return the object at a path of keys, an empty one if there is none."""
    found = as_object(value)
    for key in keys:
        if not found:
            break
        found = as_object(found.get(key))
    return found


def as_object(value: object) -> Json:
    """Return an object, an empty one for anything else."""
    if isinstance(value, dict):
        # No `cast`: it is a function call, and this runs some fifty times per update. JSON keys are
        # always strings.
        return value  # pyright: ignore[reportUnknownVariableType]
    return _EMPTY


def array(value: Json, key: str) -> Sequence[object]:
    """Return an array, an empty one for anything else."""
    found = value.get(key)
    return cast("list[object]", found) if isinstance(found, list) else ()


def objects(value: Json, key: str) -> Sequence[Json]:
    """Return an array's items as objects, none for anything else."""
    return [as_object(item) for item in array(value, key)]


def text(value: Json, key: str) -> str:
    """Return a string that can be stored as UTF-8, an empty one for anything else."""
    found = value.get(key)
    return storable(found) if isinstance(found, str) else ""


def integer(value: Json, key: str) -> int | None:
    """Return an integer of at most 64 bits, None for anything else."""
    found = value.get(key)
    return found if type(found) is int and -_MAX <= found < _MAX else None


def number(value: Json, key: str) -> float | None:
    """Return a number, None for anything else."""
    found = value.get(key)
    return found if isinstance(found, float) else integer(value, key)


def flag(value: Json, key: str) -> bool:
    """Whether the value is `true`."""
    return value.get(key) is True


def storable(value: str) -> str:
    """Replace lone surrogates, which JSON can contain but UTF-8 can't."""
    if value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def from_unix(seconds: int | None) -> datetime | None:
    """Convert Unix time; None if it is missing or `datetime` does not support it."""
    if seconds is None or not 0 < seconds <= _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, tz=UTC)


def utc_time(value: str, parse: Callable[[str], datetime]) -> datetime | None:
    """Parse a time and convert it to UTC; a time without a zone counts as UTC.

    Args:
        value: The text; untrusted.
        parse: Parses it; raises `ValueError` if it is not a time.

    Returns:
        None if it is not a time, or if `datetime` does not support its year in UTC.
    """
    try:
        at = parse(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
