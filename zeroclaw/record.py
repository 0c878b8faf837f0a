"""How values are written to disk: frozen dataclasses as JSON, and back, checked.

One codec for every row and log entry, so that a room owns the meaning of its records and nothing
of their form. A record says its class by name; unions are told apart by that name. Reading checks
every field against its annotation, and unknown fields are faults: what was not written by this
code is not guessed at.

A class's annotations are looked at once; what follows from them is kept as functions, because a
conversation is read back at every turn.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Literal,
    Never,
    NewType,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from zeroclaw.errors import StoreUnusable

T = TypeVar("T")
Mapping_ = cast("object", Mapping)
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
_Reader = Callable[[Json], object]

TYPE = "is"
"""The key that holds a record's class; no field may be called so."""

# Made once: `json.dumps` makes a new one for each call that asks for more than its defaults.
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_PLAIN = frozenset({NoneType, bool, int, float, str})


class _Unlike(Exception):
    """A value is not of its kind; the place is put together on the way out."""

    def __init__(self, kind: object) -> None:
        super().__init__()
        self.kind = kind
        self.place = ""

    def within(self, field: str | int) -> "_Unlike":
        """Say in which field, or at which item, of what holds it the value stands."""
        self.place = f".{field}{self.place}" if isinstance(field, str) else f"[{field}]{self.place}"
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What a record's class says about its stored form."""

    readers: Mapping[str, _Reader]
    known: frozenset[str]
    required: frozenset[str]


def encode(value: object) -> bytes:
    """Return a dataclass instance as UTF-8 JSON, one line."""
    return to_bytes(to_json(value))


def to_bytes(value: Json) -> bytes:
    """Return plain JSON as UTF-8, one line."""
    # Half a surrogate pair, which JSON escapes of a platform or a model can make, is kept: a
    # message must not be lost for it, and plain UTF-8 would refuse it.
    return _write(value).encode("utf-8", "surrogatepass")


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
    except (ValueError, RecursionError) as error:  # the second for what is nested beyond reading
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
    if type(value) in _PLAIN:
        return cast("Json", value)
    names = _names(type(value))
    if names is not None:
        record: dict[str, Json] = {TYPE: type(value).__name__}
        for name in names:
            record[name] = to_json(getattr(value, name))
        return record
    return _structure(value)


def _structure(value: object) -> Json:
    match value:
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


def from_json(kind: object, value: Json, where: str) -> object:
    """Return `value` as an instance of `kind`, or raise `StoreUnusable` that names `where`."""
    try:
        return _reader(kind)(value)
    except _Unlike as unlike:
        name = getattr(unlike.kind, "__name__", str(unlike.kind))
        message = f"a stored record can't be read: `{where}{unlike.place}` is not `{name}`"
        raise StoreUnusable(message) from None


@cache
def _reader(kind: object) -> _Reader:
    """Return what reads a value of a kind."""
    if isinstance(kind, NewType):
        return _reader(cast("object", kind.__supertype__))
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _union(kind)
    if origin in (tuple, frozenset):
        return _list(kind, _reader(get_args(kind)[0]), tuple if origin is tuple else frozenset)
    if record := _record_class(kind):
        return _record(record)
    return _plain(kind, origin)


def _plain(kind: object, origin: object) -> _Reader:
    if kind is object or origin is dict or origin is Mapping_:
        return lambda value: value
    if origin is Literal:
        words = get_args(kind)
        return lambda value: value if value in words else _refuse(kind)
    if kind is datetime:
        return lambda value: (
            datetime.fromisoformat(value) if isinstance(value, str) else _refuse(kind)
        )
    if word := _word_class(kind):
        return lambda value: word(value) if isinstance(value, str) else _refuse(word)
    if kind is float:
        return lambda value: (
            float(value) if type(value) is float or type(value) is int else _refuse(kind)
        )
    exact = cast("type[object]", kind)  # a bool never passes for an int
    return lambda value: value if type(value) is exact else _refuse(exact)


def _union(kind: object) -> _Reader:
    members = get_args(kind)
    # Read when used: a record may hold a union that holds the record.
    records = {one.__name__: one for member in members if (one := _record_class(member))}
    others = [one for one in members if one is not NoneType and _record_class(one) is None]
    other = _reader(others[0]) if len(others) == 1 else None
    has_none = NoneType in members

    def read(value: Json) -> object:
        if value is None and has_none:
            return None
        name = value.get(TYPE) if isinstance(value, dict) else None
        if isinstance(name, str) and name in records:
            return _record(records[name])(value)
        return _refuse(kind) if other is None else other(value)

    return read


def _list(kind: object, item: _Reader, make: Callable[[list[object]], object]) -> _Reader:
    def read(value: Json) -> object:
        if not isinstance(value, list):
            return _refuse(kind)
        found: list[object] = []
        try:
            for part in value:
                found.append(item(part))  # noqa: PERF401  its length names the place of a fault
        except _Unlike as unlike:
            raise unlike.within(len(found)) from None
        return make(found)

    return read


def _record_class(kind: object) -> type | None:
    return cast("type", kind) if isinstance(kind, type) and is_dataclass(kind) else None


def _word_class(kind: object) -> type[StrEnum] | None:
    return kind if isinstance(kind, type) and issubclass(kind, StrEnum) else None


@cache
def _record(kind: type) -> _Reader:
    def read(value: Json) -> object:
        if not isinstance(value, dict) or value.get(TYPE) != kind.__name__:
            return _refuse(kind)
        form = _form(kind)
        readers = form.readers
        given: dict[str, object] = {}
        name = ""
        if not value.keys() <= form.known:
            raise _Unlike(kind).within(min(value.keys() - form.known))
        if not value.keys() >= form.required:
            raise _Unlike(kind).within(min(form.required - value.keys()))
        try:
            for name, part in value.items():
                if name != TYPE:
                    given[name] = readers[name](part)
        except _Unlike as unlike:
            raise unlike.within(name) from None
        return kind(**given)

    return read


def _refuse(kind: object) -> Never:
    raise _Unlike(kind)


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a record's class in order, None for other classes."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


@cache
def _form(kind: type) -> _Form:
    hints = get_type_hints(kind)
    names = _names(kind) or ()
    return _Form(
        readers={name: _reader(hints[name]) for name in names},
        known=frozenset((*names, TYPE)),
        required=frozenset(
            field.name
            for field in fields(kind)
            if field.default is MISSING and field.default_factory is MISSING
        ),
    )
