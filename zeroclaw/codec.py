"""How values are written to disk: as JSON, and back, checked.

One codec for every row and log entry, so that a room owns the meaning of its records and nothing
of their form. A record says its class by name; unions are told apart by that name. Reading checks
every field against its annotation, and unknown fields are faults: what was not written by this
code is not guessed at.

msgspec does both, but for one thing: half a surrogate pair, which JSON escapes of a platform or a
model can make, is no UTF-8. A message must not be lost for it, so such a record goes by `json`.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from types import NoneType
from typing import TypeVar, cast

import msgspec

from zeroclaw.errors import StoreUnusable
from zeroclaw.value import TAG, Value

T = TypeVar("T")
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

# Made once: each makes a new one for every call that asks for more than its defaults. A set has no
# order of its own, so one is given to it: equal values are equal bytes.
_write = msgspec.json.Encoder(order="deterministic").encode
_write_odd = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_PLAIN = frozenset({NoneType, bool, int, float, str})


def encode(value: object) -> bytes:
    """Return a value as JSON, one line; UTF-8, but for half a surrogate pair."""
    try:
        return _write(value)
    except UnicodeEncodeError:
        return _write_odd(to_json(value)).encode("utf-8", "surrogatepass")


def decode(kind: type[T], body: bytes) -> T:
    """Read a record back.

    Args:
        kind: The class, or a union of classes, that it must be.
        body: As `encode` wrote it.

    Raises:
        StoreUnusable: It is not such a record; the text names the field.
    """
    try:
        return cast("T", _reader(kind)(body))
    except UnicodeDecodeError:
        return _odd(kind, body)
    except (msgspec.MsgspecError, RecursionError) as error:  # the second for what nests too deep
        message = f"a stored record can't be read: {error}"
        raise StoreUnusable(message) from error


def _odd(kind: type[T], body: bytes) -> T:
    try:
        loaded: Json = json.loads(body.decode("utf-8", "surrogatepass"))
        return msgspec.convert(loaded, kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        message = f"a stored record can't be read: {error}"
        raise StoreUnusable(message) from error


@cache
def _reader(kind: type[object]) -> Callable[[bytes], object]:
    return msgspec.json.Decoder(kind).decode


def to_json(value: object) -> Json:
    """Return a value as plain JSON, its times in UTC; the same for ever, for what is hashed."""
    match value:
        case _ if type(value) in _PLAIN:
            return cast("Json", value)
        case Value():
            record: dict[str, Json] = {TAG: type(value).__name__}
            for name in value.__struct_fields__:
                record[name] = to_json(getattr(value, name))
            return record
        case str():
            return value
        case datetime():
            return value.astimezone(UTC).isoformat()
        case tuple() | list():
            return [to_json(item) for item in cast("tuple[object, ...]", value)]
        case frozenset():
            return [*sorted(str(item) for item in cast("frozenset[object]", value))]
        case Mapping():
            table = cast("Mapping[object, object]", value)
            return {str(key): to_json(item) for key, item in table.items()}
        case _:
            message = f"`{type(value).__name__}` can't be stored"
            raise TypeError(message)
