"""One proposed call, frozen: the gate decides it, an approval binds it, a receipt proves it.

The arguments are stored as canonical JSON text, so nothing that reads an `Action` can change it:
`arguments` returns a fresh copy each time. Canonical means sorted by code point, without spaces, in
UTF-8, without NaN, Infinity or half surrogate pairs. So equal values have the same text and the
same hash (S3-22).
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Literal, cast

import msgspec

from zeroclaw import codec
from zeroclaw.envelope import ActionId, ConversationId, Principal, TurnId
from zeroclaw.errors import RecordUnreadable, ToolArgumentsInvalid
from zeroclaw.store import Put, Row, RowKind
from zeroclaw.table import Age, Ages, Codec, Column, Owner, Table
from zeroclaw.value import TAG, Value, field, replace

# Deeper than any schema needs, and far from the recursion limit of later readers.
MAX_DEPTH = 64

MAX_ARGUMENTS_CHARS = 131_072
"""Limit of one call's arguments, as the model writes them. Twice what 16,384 tokens of four characters
make, the longest answer of most endpoints."""


_read = msgspec.json.Decoder(dict[str, object]).decode


class Action(Value):
    """One call before the gate; made only by `propose` or `decode`.

    Attributes:
        id: A ulid that the gate makes; it never uses the model's id of the call (K9).
        conversation: The conversation of the call.
        principal: The person for whom the model calls.
        turn: The turn of the call.
        tool: The tool's name.
        canonical_arguments: The validated arguments as canonical JSON, an object.
        resources: The resources it would touch, sorted, without repeats; None if unknown.
        version: The version of its stored form.
    """

    id: ActionId
    conversation: ConversationId
    principal: Principal
    turn: TurnId
    tool: str
    canonical_arguments: str = field(name="arguments")
    resources: tuple[str, ...] | None
    version: Literal[1] = 1

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments, decoded each time; changing them does not change the action."""
        return _read(self.canonical_arguments)


def propose(
    *,
    id: ActionId,  # noqa: A002  the field's own name
    conversation: ConversationId,
    principal: Principal,
    turn: TurnId,
    tool: str,
    arguments: Mapping[str, object],
    resources: tuple[str, ...] | None,
) -> Action:
    """Freeze a call; the order of arguments and of resources doesn't matter.

    Raises:
        ValueError: The arguments contain a value that is not JSON, or are not an object.
    """
    canonical = canonical_json(arguments)
    if not canonical.startswith("{"):
        message = "arguments must be an object"
        raise ValueError(message)
    return Action(
        id=id,
        conversation=conversation,
        # A person's language is not part of the call, nor of its hash.
        principal=replace(principal, language="en"),
        turn=turn,
        tool=tool,
        canonical_arguments=canonical,
        resources=normal_order(resources),
    )


def normal_order(resources: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return resources in the form an action stores: sorted, without repeats."""
    return None if resources is None else tuple(sorted(set(resources)))


# One shared encoder: `json.dumps` with options makes a new one for every value.
_write = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


canonical_bytes = msgspec.json.Encoder(order="sorted").encode
"""Like `canonical_json`, but only for values made of texts, whole numbers, lists and tables keyed by
text. Raises a `ValueError` for half a surrogate pair, and checks nothing else."""


def canonical_json(value: object) -> str:
    """Return the canonical JSON text of a value; tuples count as lists.

    Raises:
        ValueError: NaN or Infinity, a half surrogate pair, a key that is not text, another value
            that is not JSON, or nesting deeper than `MAX_DEPTH`.
    """
    return _write(_plain(value, MAX_DEPTH))


def _plain(value: object, depth: int) -> object:
    """Return the value as dicts, lists and scalars only; raise for anything else."""
    if depth < 0:
        message = f"nested deeper than {MAX_DEPTH} levels"
        raise ValueError(message)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            message = "NaN and Infinity are not JSON"
            raise ValueError(message)
        return value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {_encodable(key): _plain(item, depth - 1) for key, item in pairs.items()}
    if isinstance(value, list | tuple):
        items = cast("list[object] | tuple[object, ...]", value)
        return [_plain(item, depth - 1) for item in items]
    message = f"JSON can't say a value of type {type(value).__name__}"
    raise ValueError(message)


def _encodable(text: object) -> str:
    """Refuse half surrogate pairs: they have no UTF-8, so they can't be hashed or stored."""
    if not isinstance(text, str):
        message = "a key is not a text"
        raise ValueError(message)  # noqa: TRY004  as for every value that is not JSON
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = "a text holds half a surrogate pair"
        raise ValueError(message) from error
    return text


def parse_arguments(raw: str) -> dict[str, object]:
    """Return the arguments that a model wrote; a blank text counts as `{}`.

    Raises:
        ToolArgumentsInvalid: Longer than `MAX_ARGUMENTS_CHARS`, not JSON, not an object, a repeated
            key, a number that is NaN or Infinity or out of range, half a surrogate pair, or nesting
            deeper than `MAX_DEPTH`.
    """
    if len(raw) > MAX_ARGUMENTS_CHARS:
        raise ToolArgumentsInvalid((f"arguments: longer than {MAX_ARGUMENTS_CHARS} characters",))
    if not raw.strip():
        return {}
    try:
        value = _plain(_read_strict(raw), MAX_DEPTH)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno} column {error.colno}"
        raise ToolArgumentsInvalid((f"arguments: not valid JSON at {position}",)) from error
    except RecursionError as error:
        fault = f"arguments: nested deeper than {MAX_DEPTH} levels"
        raise ToolArgumentsInvalid((fault,)) from error
    except ValueError as error:
        raise ToolArgumentsInvalid((f"arguments: {_first_line(error)}",)) from error
    if not isinstance(value, dict):
        raise ToolArgumentsInvalid(("arguments: must be a JSON object",))
    return cast("dict[str, object]", value)


def _first_line(error: ValueError) -> str:
    """Return the fault; of Python's text on an over-long integer only the first clause."""
    return str(error).partition(";")[0].splitlines()[0]


def _object_without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for key, value in pairs:
        if key in fields:
            message = f"the key {key[:80]!a} is given twice"
            raise ValueError(message)
        fields[key] = value
    return fields


def _refuse_constant(name: str) -> object:
    message = f"{name} is not JSON"
    raise ValueError(message)


# One shared decoder, as for `_write`.
_read_strict = json.JSONDecoder(
    object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant
).decode


class Frozen(Value):
    """An action and its hash when it was gated.

    They are stored separately, so that the gate notices a change of either before the call runs (S3-25).
    """

    action: Action
    hash: str


def freeze(action: Action) -> Frozen:
    """Return the action with its current hash."""
    return Frozen(action=action, hash=action_hash(action))


def action_hash(action: Action) -> str:
    """Return the SHA-256 in hex of the canonical JSON of every field (S3-22)."""
    return hashlib.sha256(encode(action)).hexdigest()


def encode(action: Action) -> bytes:
    """Return the action as canonical JSON in UTF-8; `decode` returns an equal one.

    It has every field, but no names of classes, and not the person's language; see `propose`.
    """
    fields: dict[str, object] = msgspec.to_builtins(action, order="sorted")
    principal: dict[str, object] = msgspec.to_builtins(action.principal, order="sorted")
    del fields[TAG], principal[TAG], principal["language"]
    return canonical_bytes({**fields, "principal": principal})


def decode(body: bytes) -> Action:
    """Return the action that `encode` wrote; does not parse or check long arguments.

    Raises:
        RecordUnreadable: The bytes are not a whole encoded action of this version.
    """
    message = "a stored action can't be read: it is not an encoded action of this version"
    try:
        action = codec.decode(Action, body)
    except RecordUnreadable as error:
        raise RecordUnreadable(message) from error
    # Decoding accepts what `encode` never writes: another order, a missing field, unsorted
    # resources.
    if normal_order(action.resources) != action.resources or encode(action) != body:
        raise RecordUnreadable(message)
    return action


def _row_body(frozen: Frozen) -> bytes:
    return frozen.hash.encode() + b"\n" + encode(frozen.action)


def to_put(frozen: Frozen) -> Put:
    """Return the write that stores a gated call until its batch is over; its key is the id."""
    action = frozen.action
    return ACTIONS.put(action.id, frozen, conversation=action.conversation)


def _from_row_body(body: bytes) -> Frozen:
    """Return what `_row_body` wrote; the last check compares the hash.

    Raises:
        RecordUnreadable: The body is not such a row.
    """
    stored_hash, _, encoded = body.partition(b"\n")
    return Frozen(action=decode(encoded), hash=stored_hash.decode(errors="replace"))


def _owner_of(row: Row) -> Owner:
    action = ACTIONS.of(row).action
    return Owner(person=action.principal.id, turn=action.turn)


ACTIONS = Table(
    kind=RowKind.ACTION,
    codec=Codec(encode=_row_body, decode=_from_row_body),
    columns=frozenset({Column.CONVERSATION}),
    keeps=Ages(age=Age.APPROVALS),
    owner=_owner_of,
)
