"""The codec of stored records: what goes in comes out, and nothing else is guessed at."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.codec import decode, encode
from zeroclaw.envelope import Address, ConversationId, MessageRef, Principal
from zeroclaw.errors import StoreUnusable
from zeroclaw.value import Value, replace


class Colour(StrEnum):
    RED = "red"


class Inner(Value):
    text: str


class Other(Value):
    number: int


class Bare(Value):
    """A word that needs no more to be said; unions hold such."""


class Everything(Value):
    conversation: ConversationId
    colour: Colour
    how: Literal["a", "b"]
    at: datetime
    ratio: float
    flag: bool
    either: Inner | Other
    maybe: Inner | None
    text_or_nothing: str | None
    many: tuple[Inner | Other, ...]
    names: frozenset[str]
    table: Mapping[str, object]
    anything: object = 1


WHOLE = Everything(
    conversation=ConversationId("c"),
    colour=Colour.RED,
    how="b",
    at=datetime(2026, 11, 21, 23, 0, 0, 5, tzinfo=UTC),
    ratio=2.0,
    flag=True,
    either=Other(number=3),
    maybe=None,
    text_or_nothing="x",
    many=(Inner(text="ö\ud83d"[:1]), Other(number=-1)),
    names=frozenset({"a"}),
    table={"k": [1, None, {"n": 1.5}]},
)


def test_every_kind_of_field_comes_back_as_it_was() -> None:
    """A record read back equals the one that was written."""
    assert decode(Everything, encode(WHOLE)) == WHOLE


def test_the_members_of_a_union_differ_by_class_name() -> None:
    """Two classes of the same shape never pass for one another."""
    assert decode(Inner | Other, encode(Other(number=3))) == Other(number=3)  # pyright: ignore[reportArgumentType]  a union is not a type to the checker


class Renamed(Value, stored_as="Before"):
    name: str


def test_a_renamed_class_is_stored_as_before() -> None:
    """Records of an older release are read, and their hashes stay the same."""
    stored = b'{"is":"Before","name":"a"}'
    assert encode(Renamed(name="a")) == stored
    assert decode(Renamed, stored) == Renamed(name="a")
    assert encode(Renamed(name="\ud800")) == b'{"is":"Before","name":"\xed\xa0\x80"}'


def test_a_field_that_has_a_default_may_be_missing() -> None:
    """A record written before a field with a default existed is read with the default."""
    body = encode(WHOLE).replace(b',"anything":1', b"")
    assert decode(Everything, body) == WHOLE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b'"flag":true', b'"flag":1', id="a number for a flag"),
        pytest.param(b'"number":3', b'"number":true', id="a flag for a number"),
        pytest.param(b'"how":"b"', b'"how":"c"', id="not one of the literals"),
        pytest.param(b'"colour":"red"', b'"colour":3', id="a number for a word"),
        pytest.param(b'"is":"Other","number":3', b'"is":"Nobody"', id="a class nobody knows"),
        pytest.param(b'"names":["a"]', b'"names":"a"', id="a text for a list"),
        pytest.param(b'"maybe":null', b'"maybe":7', id="a number for a record"),
        pytest.param(b'"ratio":2.0,', b"", id="a field is missing"),
        pytest.param(b'"ratio":2.0', b'"ratio":2.0,"more":1', id="a field too many"),
        pytest.param(b'"is":"Everything"', b'"is":"Inner"', id="another class"),
        pytest.param(b'"text_or_nothing":"x"', b'"text_or_nothing":[]', id="a list for a text"),
        pytest.param(b'"colour":"red"', b'"colour":"rad"', id="a word of no closed set"),
        pytest.param(b'"at":"20', b'"at":"xx', id="a date that is none"),
        pytest.param(b'"anything":1', b'"anything":' + b"[" * 100_000, id="nested too deep"),
        pytest.param(b"{", b"[", id="not JSON"),
    ],
)
def test_a_record_of_another_format_is_refused(old: bytes, new: bytes) -> None:
    """A damaged or foreign record is an error that names the place, never a guess."""
    body = encode(WHOLE)
    assert old in body
    with pytest.raises(StoreUnusable, match="stored record"):
        decode(Everything, body.replace(old, new, 1))


class Chain(Value):
    number: int
    rest: "tuple[Chain, ...] | Chain | None" = None


def test_a_record_may_hold_its_own_kind() -> None:
    """A class that names itself is read to any depth."""
    chain = Chain(number=1, rest=(Chain(number=2, rest=Chain(number=3)),))
    assert decode(Chain, encode(chain)) == chain


def test_a_refusal_names_the_place() -> None:
    """The repairer of a damaged record reads which field of which item it is."""
    chain = Chain(number=1, rest=(Chain(number=2), Chain(number=3, rest=Chain(number=4))))
    body = encode(chain).replace(b'"number":4', b'"number":"4"')
    with pytest.raises(
        StoreUnusable, match=r"Expected `int`, got `str` - at `\$\.rest\[1\]\.rest\.number`"
    ):
        decode(Chain, body)


def test_what_cannot_be_stored_is_a_fault_of_the_caller() -> None:
    """Handles and other live things never reach the disk."""
    with pytest.raises(TypeError, match="unsupported"):
        encode(object())


@given(st.text(), st.text(), st.booleans(), st.none() | st.text())
def test_any_text_survives(chat: str, message: str, direct: bool, thread: str | None) -> None:
    """Any text that UTF-8 can hold comes back unchanged."""
    ref = MessageRef(
        address=Address(channel="c", account="a", chat=chat, thread=thread, direct=direct),
        message=message,
    )
    assert decode(MessageRef, encode(ref)) == ref


def test_half_a_surrogate_pair_survives() -> None:
    """What JSON escapes can make is stored as it is, because no message is lost for it."""
    assert decode(Inner, encode(Inner(text="a\ud83d"))) == Inner(text="a\ud83d")


class Pair(Value):
    text: str
    flag: bool


def test_a_record_with_half_a_pair_holds_all_else_too() -> None:
    """Each kind of field comes back from the way that such a record takes."""
    damaged = replace(WHOLE, text_or_nothing="\ud83d")
    assert decode(Everything, encode(damaged)) == damaged
    with pytest.raises(TypeError, match="unsupported"):
        encode(replace(damaged, anything=object()))
    broken = encode(damaged).replace(b'"flag":true', b'"flag":1')
    with pytest.raises(StoreUnusable, match="stored record"):
        decode(Everything, broken)
    broken = encode(Pair(text="\ud83d", flag=True)).replace(b"true", b"1")
    with pytest.raises(StoreUnusable, match="stored record"):
        decode(Pair, broken)


def test_roles_come_back_as_a_set() -> None:
    """A principal's roles are a set before and after."""
    principal = Principal(
        id="person:ann", roles=frozenset({"operator", "x"}), channel="web", sender="ann"
    )
    assert decode(Principal, encode(principal)) == principal


def test_equal_sets_are_equal_bytes() -> None:
    """A set's own order is another in each process; what is stored has one that stays."""
    names = [f"role {number:02}" for number in range(64)]
    principal = Principal(id="person:ann", roles=frozenset(names), channel="web", sender="ann")
    written = ",".join(f'"{name}"' for name in names)
    assert written in encode(principal).decode()


def test_a_record_without_fields_comes_back() -> None:
    """Its name alone distinguishes it from others."""
    assert decode(Bare, encode(Bare())) == Bare()
    assert encode(Bare()) == b'{"is":"Bare"}'
