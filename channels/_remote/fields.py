"""Read fields of parsed JSON that may have any shape: what is missing or odd reads as nothing."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

Json = Mapping[str, object]

_NOTHING: Json = {}


def parsed(body: bytes) -> object:
    """Return what JSON says, None for what is none."""
    try:
        return cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return None


def as_object(value: object) -> Json:
    """Return an object, an empty one for anything else."""
    return cast("Json", value) if isinstance(value, dict) else _NOTHING


def inner(value: object, *keys: str) -> Json:
    """Return the object that stands at a path of keys, an empty one for anything else."""
    for key in keys:
        value = as_object(value).get(key)
    return as_object(value)


def objects(value: Json, key: str) -> Sequence[Json]:
    """Return the objects of an array, none for anything else."""
    found = value.get(key)
    items = cast("list[object]", found) if isinstance(found, list) else []
    return [as_object(one) for one in items]


def text(value: Json, key: str) -> str:
    """Return a text that can be stored, empty for anything else."""
    found = value.get(key)
    if not isinstance(found, str):
        return ""
    # JSON can hold halves of characters, UTF-8 can't.
    return (
        found
        if found.isascii()
        else found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def whole(value: Json, key: str) -> int | None:
    """Return an integer, None for anything else."""
    found = value.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def number(value: Json, key: str) -> float | None:
    """Return a number, None for anything else."""
    found = value.get(key)
    return found if isinstance(found, float) else whole(value, key)
