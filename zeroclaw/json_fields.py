"""Read fields from JSON, or from parsed TOML, that may have any shape.

Pure. Endpoints differ in what they omit, set to null or give another type. A value of the wrong
type reads as absent, so that callers need no type checks.
"""

import json
from collections.abc import Mapping
from math import isfinite
from typing import TypeGuard

import msgspec


def parse(text: str) -> object:
    """Parse JSON.

    Raises:
        ValueError: It is not JSON, contains NaN or infinity or a number that would become it, or is
            nested too deep.
    """
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        pass  # not JSON, or an unpaired surrogate, which only the slower decoder accepts
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        message = "nested too deep"
        raise ValueError(message) from error


def parse_bytes(body: bytes) -> object:
    """Parse a response body; return None if it is not JSON."""
    try:
        return parse(body.decode(errors="replace"))
    except ValueError:
        return None


def is_object_text(text: str) -> bool:
    """Whether a text is one JSON object."""
    try:
        return is_object(parse(text))
    except ValueError:
        return False


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether parsed JSON is an object; its keys are always strings."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Whether parsed JSON is an array."""
    return isinstance(value, list)


def object_at(fields: Mapping[str, object], name: str) -> dict[str, object]:
    """Return the object at `name`, or an empty one."""
    value = fields.get(name)
    return value if is_object(value) else {}


def array_at(fields: Mapping[str, object], name: str) -> list[object]:
    """Return the array at `name`, or an empty one."""
    value = fields.get(name)
    return value if is_array(value) else []


def objects_at(fields: Mapping[str, object], name: str) -> list[dict[str, object]]:
    """Return the objects in the array at `name`; skip its other items."""
    return [item for item in array_at(fields, name) if is_object(item)]


def text_at(fields: Mapping[str, object], name: str) -> str:
    """Return the string at `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def int_at(fields: Mapping[str, object], name: str) -> int | None:
    """Return the integer at `name`, or None."""
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def whole(text: str) -> str:
    """Replace unpaired surrogates, which JSON escapes can carry and UTF-8 can't.

    A valid surrogate pair becomes its character.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refuse(constant: str) -> object:
    message = f"`{constant}` is not JSON"
    raise ValueError(message)


def _finite(number: str) -> object:
    value = float(number)
    return value if isfinite(value) else _refuse(number)


_decode = msgspec.json.Decoder().decode
# Shared: `json.loads` with an option builds a new decoder for every call.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
