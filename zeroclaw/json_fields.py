"""Read fields of JSON, or of a file's TOML, that may have any shape.

Pure. Endpoints differ in what they leave out, set to null or type otherwise; a wrong shape reads as
absent here, so that the rooms above hold no shape checks.
"""

import json
from collections.abc import Mapping
from typing import TypeGuard

import msgspec


def parse(text: str) -> object:
    """Parse JSON.

    Raises:
        ValueError: It is none, holds NaN or infinity, or is nested too deep to read.
    """
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        pass  # none, or what only the other one reads: half of a surrogate pair
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        message = "nested too deep"
        raise ValueError(message) from error


def parse_bytes(body: bytes) -> object:
    """Parse an answer that may be anything; what is no JSON is None."""
    try:
        return parse(body.decode(errors="replace"))
    except ValueError:
        return None


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether parsed JSON is an object; the names in one are always texts."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Whether parsed JSON is an array."""
    return isinstance(value, list)


def object_at(fields: Mapping[str, object], name: str) -> dict[str, object]:
    """Return an object, empty when there is none."""
    value = fields.get(name)
    return value if is_object(value) else {}


def array_at(fields: Mapping[str, object], name: str) -> list[object]:
    """Return an array, empty when there is none."""
    value = fields.get(name)
    return value if is_array(value) else []


def objects_at(fields: Mapping[str, object], name: str) -> list[dict[str, object]]:
    """Return the objects of an array."""
    return [one for one in array_at(fields, name) if is_object(one)]


def text_at(fields: Mapping[str, object], name: str) -> str:
    """Return a text, empty when there is none."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def int_at(fields: Mapping[str, object], name: str) -> int | None:
    """Return a whole number, None when there is none."""
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def whole(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON escapes can carry and UTF-8 can't.

    Two halves that stand together become their character.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refuse(constant: str) -> object:
    message = f"`{constant}` is not JSON"
    raise ValueError(message)


_decode = msgspec.json.Decoder().decode
# One decoder for all: `json.loads` with an option makes a new one for every text.
_DECODER = json.JSONDecoder(parse_constant=_refuse)
