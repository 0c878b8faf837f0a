"""The JSON codec of everything that is stored: values to bytes and back, checked.

One codec serves every row and log entry, so a room owns the meaning of its records but not their
format. A record names its class, which also tells the members of a union apart. Reading checks
every field against its annotation and rejects unknown fields: the codec does not guess at what
other code has written.

msgspec does both directions with one exception: an unpaired surrogate, which the JSON escapes of a
platform or a model can produce, is not valid UTF-8. No message may be lost because of one, so such
a record goes through `json`.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

import msgspec

from zeroclaw.errors import RecordUnreadable

T = TypeVar("T")

# Made once: the module-level functions build a new encoder for each call with options. `order`
# sorts sets, which have no order of their own, so that equal values give equal bytes.
_write = msgspec.json.Encoder(order="deterministic").encode
_encode_unpaired = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(value: object) -> bytes:
    """Return a value as one line of JSON in UTF-8; unpaired surrogates pass through."""
    try:
        return _write(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, order="deterministic")
        return _encode_unpaired(plain).encode("utf-8", "surrogatepass")


def decode(kind: type[T], body: bytes) -> T:
    """Decode a record.

    Args:
        kind: The expected class, or a union of classes.
        body: The bytes that `encode` wrote.

    Raises:
        RecordUnreadable: The bytes are no such record; the text names the field.
    """
    try:
        try:
            return cast("T", _reader(kind)(body))
        except UnicodeDecodeError:  # it has an unpaired surrogate
            loaded: object = json.loads(body.decode("utf-8", "surrogatepass"))
            return msgspec.convert(loaded, kind)
    # A `RecursionError` means that it is nested too deep.
    except (ValueError, RecursionError) as error:
        message = f"a stored record can't be read: {error}"
        raise RecordUnreadable(message) from error


@cache
def _reader(kind: type[object]) -> Callable[[bytes], object]:
    return msgspec.json.Decoder(kind).decode
