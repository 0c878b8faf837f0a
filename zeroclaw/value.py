"""What values are made of: frozen records whose fields are given by name.

`class Size(Value): ...` reads like a frozen dataclass and is checked like one; msgspec makes it. A
dataclass writes the source of its methods and compiles it, each class anew in each process: four
hundred of them were half of the daemon's start. A record of msgspec is made without, is smaller,
and is made and changed in a tenth of the time, which every streamed piece of an answer pays.

What changes as work goes on, or holds rooms in place of facts, is a `Struct` of msgspec's own.
"""

from functools import cache
from inspect import get_annotations
from typing import Annotated, TypeVar, dataclass_transform

from msgspec import Struct, StructMeta, field
from msgspec.structs import replace

__all__ = ["Hidden", "Struct", "Value", "field", "replace"]

T = TypeVar("T")

TAG = "is"
"""The key that holds a record's class where it is stored; no field may be called so."""


_HIDDEN = "not shown"
Hidden = Annotated[T, _HIDDEN]
"""A field that its value's representation leaves out: a secret, or somebody's whole file."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Frozen(StructMeta):
    """Makes each class frozen, its fields named, and its stored form say its class."""

    def __new__(  # noqa: PYI034  what a metaclass makes is a class
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        /,
        *,
        weakref: bool = False,
    ) -> "_Frozen":
        return super().__new__(
            cls,
            name,
            bases,
            namespace,
            frozen=True,
            kw_only=True,
            tag=True,
            tag_field=TAG,
            forbid_unknown_fields=True,
            weakref=weakref,
        )


class Value(Struct, metaclass=_Frozen):
    """A frozen record; two of one class are equal when their fields are.

    One that others hold weakly says so: `class Fence(Value, weakref=True)`.
    """

    def __repr__(self) -> str:
        kind = type(self)
        shown = (f"{name}={getattr(self, name)!r}" for name in _shown(kind))
        return f"{kind.__name__}({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        # msgspec has one of its own, for the printers that ask for it, which hides nothing.
        return [(name, getattr(self, name)) for name in _shown(type(self))]


@cache
def _shown(kind: type[Value]) -> tuple[str, ...]:
    hidden = {
        name
        for one in kind.__mro__
        for name, annotation in get_annotations(one).items()
        if _HIDDEN in getattr(annotation, "__metadata__", ())
    }
    return tuple(name for name in kind.__struct_fields__ if name not in hidden)
