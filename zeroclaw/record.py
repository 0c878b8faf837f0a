"""How values are written to disk: frozen dataclasses as JSON, and back, checked.

One codec for every row and log entry, so that a room owns the meaning of its records and nothing
of their form. A record says its class by name; unions are told apart by that name. Reading checks
every field against its annotation, and unknown fields are faults: what was not written by this
code is not guessed at.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from zeroclaw.errors import StoreUnusable

T = TypeVar("T")
_REFUSED = object()
Mapping_ = cast("object", Mapping)
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

TYPE = "is"
"""The key that holds a record's class; no field may be called so."""


def encode(value: object) -> bytes:
    """Return a dataclass instance as UTF-8 JSON, one line."""
    text = json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))
    # Half a surrogate pair, which JSON escapes of a platform or a model can make, is kept: a
    # message must not be lost for it, and plain UTF-8 would refuse it.
    return text.encode("utf-8", "surrogatepass")


def decode(kind: type[T], body: bytes) -> T:
    """Read a record back.

    Args:
        kind: The dataclass, or a union of dataclasses, that it must be.
        body: As `encode` wrote it.

    Raises:
        StoreUnusable: It is not such a record; the text names the field.
    """
    try:
        loaded: Json = json.loads(body.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        message = f"a stored record is not JSON: {error}"
        raise StoreUnusable(message) from error
    try:
        # from_json returns an instance of `kind` or raises.
        return cast("T", from_json(kind, loaded, "record"))
    except ValueError as error:
        # A date or a word of a closed set that is none.
        message = f"a stored record can't be read: {error}"
        raise StoreUnusable(message) from error


def to_json(value: object) -> Json:
    """Return a value as plain JSON."""
    match value:
        case None | bool() | int() | float() | str():
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
            if not is_dataclass(value) or isinstance(value, type):
                message = f"`{type(value).__name__}` can't be stored"
                raise TypeError(message)
            record: dict[str, Json] = {TYPE: type(value).__name__}
            for name in _hints(type(value)):
                record[name] = to_json(getattr(value, name))
            return record


def from_json(kind: object, value: Json, where: str) -> object:
    """Return `value` as an instance of `kind`, or raise `StoreUnusable` that names `where`."""
    while isinstance(kind, NewType):
        kind = cast("object", kind.__supertype__)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        found = _from_union(get_args(kind), value, where)
    elif origin in (tuple, frozenset):
        found = _from_list(kind, value, where)
    elif record := _record_class(kind):
        found = _from_record(record, value, where)
    else:
        found = _plain(kind, origin, value, where)
    return found


def _plain(kind: object, origin: object, value: Json, where: str) -> object:
    found: object = _REFUSED
    if origin is Literal:
        found = value if value in get_args(kind) else _REFUSED
    elif kind is object or origin is dict or origin is Mapping_:
        found = value
    elif kind is datetime and isinstance(value, str):
        found = datetime.fromisoformat(value)
    elif kind is float and type(value) is int:
        found = float(value)
    elif isinstance(kind, type) and issubclass(kind, StrEnum) and isinstance(value, str):
        found = kind(value)
    elif type(value) is kind:
        # Exact: a bool never passes for an int.
        found = value
    return _refuse(where, cast("object", kind)) if found is _REFUSED else found


def _from_union(members: tuple[object, ...], value: Json, where: str) -> object:
    if value is None and NoneType in members:
        return None
    name = value.get(TYPE) if isinstance(value, dict) else None
    others: list[object] = []
    for member in members:
        if record := _record_class(member):
            if name == record.__name__:
                return from_json(member, value, where)
        elif member is not NoneType:
            others.append(member)
    if len(others) == 1:
        return from_json(others[0], value, where)
    return _refuse(where, members)


def _from_list(kind: object, value: Json, where: str) -> object:
    if not isinstance(value, list):
        return _refuse(where, kind)
    item = get_args(kind)[0]
    found = (from_json(item, part, f"{where}[{at}]") for at, part in enumerate(value))
    return tuple(found) if get_origin(kind) is tuple else frozenset(found)


def _record_class(kind: object) -> type | None:
    return cast("type", kind) if isinstance(kind, type) and is_dataclass(kind) else None


def _from_record(kind: type, value: Json, where: str) -> object:
    if not isinstance(value, dict) or value.get(TYPE) != kind.__name__:
        return _refuse(where, kind)
    hints = _hints(kind)
    unknown = value.keys() - hints.keys() - {TYPE}
    if unknown:
        return _refuse(f"{where}.{min(unknown)}", kind)
    missing = _required(kind) - value.keys()
    if missing:
        return _refuse(f"{where}.{min(missing)}", kind)
    return kind(
        **{
            name: from_json(hints[name], value[name], f"{where}.{name}")
            for name in hints
            if name in value
        }
    )


def _refuse(where: str, kind: object) -> object:
    name = getattr(kind, "__name__", str(kind))
    message = f"a stored record can't be read: `{where}` is not `{name}`"
    raise StoreUnusable(message)


@cache
def _hints(kind: type) -> dict[str, object]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _required(kind: type) -> frozenset[str]:
    return frozenset(
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    )
