"""The base of all values: frozen records with keyword-only fields.

`class Size(Value): ...` reads like a frozen dataclass and is type-checked like one, but msgspec
builds it. A dataclass generates and compiles the source of its methods, for each class in each
process: four hundred of them took half of the daemon's start time. A msgspec record skips that, is
smaller, and is created and copied in a tenth of the time, which matters for every streamed chunk of
an answer.

An object that is mutable, or holds services and not data, is a plain msgspec `Struct`.
"""

from functools import cache
from inspect import get_annotations
from typing import Annotated, TypeVar, dataclass_transform

from msgspec import Struct, StructMeta, field
from msgspec.structs import replace

__all__ = ["Hidden", "Struct", "Value", "field", "replace"]

T = TypeVar("T")

TAG = "is"
"""The key that stores a record's tag; no field may use this name."""


_HIDDEN = "not shown"
Hidden = Annotated[T, _HIDDEN]
"""A field that the `repr` leaves out: a secret, or the bytes of a whole file."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Frozen(StructMeta):
    """Makes each class frozen and keyword-only, and tags its stored form."""

    def __new__(  # noqa: PYI034  a metaclass returns a class
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        /,
        *,
        weakref: bool = False,
        stored_as: str = "",
    ) -> "_Frozen":
        return super().__new__(
            cls,
            name,
            bases,
            namespace,
            frozen=True,
            kw_only=True,
            tag=stored_as or name,
            tag_field=TAG,
            forbid_unknown_fields=True,
            weakref=weakref,
        )


class Value(Struct, metaclass=_Frozen):
    """A frozen record; equal to another of the same class with equal fields.

    A class that needs weak references declares it: `class Fence(Value, weakref=True)`. The tag of
    its stored form is its name; a renamed class keeps its old one: `stored_as="OldName"`.
    """

    def __repr__(self) -> str:
        kind = type(self)
        fields = (f"{name}={getattr(self, name)!r}" for name in _visible_fields(kind))
        return f"{kind.__name__}({', '.join(fields)})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        # Replaces msgspec's own, which would show hidden fields.
        return [(name, getattr(self, name)) for name in _visible_fields(type(self))]


@cache
def _visible_fields(kind: type[Value]) -> tuple[str, ...]:
    hidden = {
        name
        for base in kind.__mro__
        for name, annotation in get_annotations(base).items()
        if _HIDDEN in getattr(annotation, "__metadata__", ())
    }
    return tuple(name for name in kind.__struct_fields__ if name not in hidden)
