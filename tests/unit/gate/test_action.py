"""An action is one frozen call with one canonical text and one hash."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.loop_steps import calls_made
from zeroclaw.envelope import ActionId, ConversationId, Principal, TurnId
from zeroclaw.errors import StoreUnusable, ToolArgumentsInvalid
from zeroclaw.gate.action import (
    ACTIONS,
    MAX_ARGUMENTS_CHARS,
    MAX_DEPTH,
    Action,
    action_hash,
    canonical_bytes,
    canonical_json,
    decode,
    encode,
    freeze,
    parse_arguments,
    propose,
    to_put,
)
from zeroclaw.store import Put, RowKind
from zeroclaw.value import replace

ANN = Principal(
    id="person:ann", roles=frozenset({"operator", "family"}), channel="web", sender="7", display="A"
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)


def action(
    arguments: Mapping[str, object] | None = None,
    resources: tuple[str, ...] | None = ("file:/ws/b", "file:/ws/a"),
) -> Action:
    return propose(
        id=ActionId("01A"),
        conversation=ConversationId("01C"),
        principal=ANN,
        turn=TurnId("01T"),
        tool="write_file",
        arguments={"path": "b", "text": "é"} if arguments is None else arguments,
        resources=resources,
    )


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


# --- canonical JSON ------------------------------------------------------------------------------


def test_canonical_json_is_sorted_without_spaces_and_in_utf8() -> None:
    """One value has one text, in any order of its keys (S3-22)."""
    assert canonical_json({"b": (1, 2.5), "a": {"é": None, "d": True}}) == (
        '{"a":{"d":true,"é":null},"b":[1,2.5]}'
    )


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        pytest.param(float("nan"), "NaN and Infinity are not JSON", id="nan"),
        pytest.param([float("-inf")], "NaN and Infinity are not JSON", id="infinity"),
        pytest.param({1: "a"}, "a key is not a text", id="number as key"),
        pytest.param("\ud800", "a text holds half a surrogate pair", id="half a pair"),
        pytest.param({"\udfff": 1}, "a text holds half a surrogate pair", id="half a pair as key"),
        pytest.param(Decimal(1), "JSON can't say a value of type Decimal", id="foreign type"),
        pytest.param(b"a", "JSON can't say a value of type bytes", id="bytes"),
        pytest.param(json.loads(nested(MAX_DEPTH + 1)), "nested deeper than 64 levels", id="deep"),
    ],
)
def test_what_json_cannot_say_has_no_canonical_text(value: object, fault: str) -> None:
    """A value without a canonical text is refused, never approximated."""
    with pytest.raises(ValueError, match=fault):
        canonical_json(value)


@given(value=objects)
def test_canonical_json_reads_back_as_the_same_value(value: dict[str, object]) -> None:
    """Canonical text loses nothing, and parsing then writing it again changes nothing."""
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(parse_arguments(text)) == text
    assert repr(action(value).arguments) == repr(json.loads(text))


plain = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(value=plain)
def test_what_holds_texts_and_whole_numbers_is_written_the_same_by_the_quick_way(
    value: object,
) -> None:
    """Hashes of actions and of the audit stand in stores: no byte of them may ever change."""
    assert canonical_bytes(value) == canonical_json(value).encode()


def test_the_quick_way_refuses_half_a_surrogate_pair_too() -> None:
    """It has no UTF-8, so no hash and no place in the store."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        canonical_bytes({"a": "\ud800"})


# --- what a model wrote --------------------------------------------------------------------------


@pytest.mark.parametrize("raw", ["", " \n\t", "{}", " { } "])
def test_no_arguments_at_all_count_as_an_empty_object(raw: str) -> None:
    """A model that has nothing to say writes nothing; that is a call without arguments."""
    assert parse_arguments(raw) == {}


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        pytest.param('{"a":1', "not valid JSON at line 1 column 7", id="cut off"),
        pytest.param('{"a":1} {"b":2}', "not valid JSON at line 1 column 9", id="two objects"),
        pytest.param("[1]", "must be a JSON object", id="a list"),
        pytest.param("null", "must be a JSON object", id="null"),
        pytest.param('{"a":1,"a":1}', "the key 'a' is given twice", id="a key twice"),
        pytest.param('{"x":{"a":1,"a":2}}', "the key 'a' is given twice", id="a key twice inside"),
        pytest.param('{"a":NaN}', "NaN is not JSON", id="NaN"),
        pytest.param('{"a":-Infinity}', "-Infinity is not JSON", id="minus Infinity"),
        pytest.param('{"a":1e999}', "NaN and Infinity are not JSON", id="too large a float"),
        pytest.param('{"a":"\\ud83d"}', "half a surrogate pair", id="half a surrogate pair"),
        pytest.param(nested(MAX_DEPTH + 1), "nested deeper than 64 levels", id="a level too deep"),
        pytest.param(nested(20_000), "nested deeper than 64 levels", id="far too deep"),
        pytest.param('{"a":' + "9" * 5000 + "}", "Exceeds the limit", id="too long an integer"),
        pytest.param(" " * (MAX_ARGUMENTS_CHARS + 1), "longer than 131072 char", id="too long"),
    ],
)
def test_broken_arguments_are_refused_with_one_line(raw: str, fault: str) -> None:
    """Bad JSON, duplicate keys and NaN are invalid, and the model reads what is wrong."""
    with pytest.raises(ToolArgumentsInvalid, match=fault) as refused:
        parse_arguments(raw)
    assert [line.startswith("arguments: ") for line in refused.value.faults] == [True]
    assert "\n" not in str(refused.value)


@given(raw=st.text())
def test_any_text_at_all_parses_or_is_refused(raw: str) -> None:
    """Whatever a model writes ends as an object or as `ToolArgumentsInvalid`."""
    try:
        parsed = parse_arguments(raw)
    except ToolArgumentsInvalid:
        return
    assert isinstance(parsed, dict)


def test_arguments_as_deep_as_the_limit_are_taken() -> None:
    """The limit itself is allowed."""
    assert parse_arguments(nested(MAX_DEPTH)) == json.loads(nested(MAX_DEPTH))


# --- the frozen call -----------------------------------------------------------------------------


def test_changing_a_copy_of_the_arguments_changes_nothing() -> None:
    """Arguments are frozen before the gate; a tool that edits its copy edits only that (K7)."""
    call = action()
    before = action_hash(call)
    call.arguments["path"] = "/etc/passwd"
    assert call.arguments == {"path": "b", "text": "é"}
    assert action_hash(call) == before


def test_the_order_of_keys_roles_and_resources_does_not_matter() -> None:
    """Equal calls are equal values with one hash (S3-22)."""
    other = action({"text": "é", "path": "b"}, ("file:/ws/a", "file:/ws/b", "file:/ws/a"))
    assert other == action()
    assert other.resources == ("file:/ws/a", "file:/ws/b")
    assert action_hash(other) == action_hash(action())
    person = replace(ANN, roles=frozenset("abcdefgh"))
    assert b'"roles":["a","b","c","d","e","f","g","h"]' in encode(replace(other, principal=person))


@pytest.mark.parametrize(
    "other",
    [
        replace(action(), id=ActionId("01B")),
        replace(action(), conversation=ConversationId("01D")),
        replace(action(), principal=replace(ANN, id="person:bob")),
        replace(action(), principal=replace(ANN, roles=frozenset({"family"}))),
        replace(action(), principal=replace(ANN, channel="telegram")),
        replace(action(), principal=replace(ANN, sender="8")),
        replace(action(), principal=replace(ANN, display="B")),
        replace(action(), turn=TurnId("01U")),
        replace(action(), tool="edit_file"),
        action({"path": "c", "text": "é"}),
        action({"path": "b", "text": "é", "more": None}),
        action(resources=("file:/ws/a",)),
        action(resources=()),
        action(resources=None),
    ],
    # A set prints in another order in each process, and workers must agree on the names.
    ids=lambda other: action_hash(other)[:8],
)
def test_any_change_of_any_field_changes_the_hash(other: Action) -> None:
    """The hash covers every field (S3-22)."""
    assert action_hash(other) != action_hash(action())


def test_one_and_true_and_one_point_zero_hash_differently() -> None:
    """Python calls them equal; a card that shows one of them does not."""
    hashes = {action_hash(action({"n": number})) for number in (1, True, 1.0, "1")}
    assert len(hashes) == 4


def test_the_hash_is_stable_across_releases() -> None:
    """Stored approvals hold this hash, so a change of it must be a decision, not an accident."""
    assert action_hash(action()) == HASH_OF_VERSION_1


HASH_OF_VERSION_1 = "e9110f203ce9b19063c15eba8ddfc819406ff85f0683cdf9ed7d362a1083932d"


@given(arguments=objects, resources=st.none() | st.lists(texts, max_size=3).map(tuple))
def test_an_action_reads_back_from_its_bytes(
    arguments: dict[str, object], resources: tuple[str, ...] | None
) -> None:
    """Written and read again it is the same call with the same hash."""
    call = action(arguments, resources)
    again = decode(encode(call))
    assert again == call
    assert action_hash(again) == action_hash(call)


def test_a_kept_call_reads_back_however_long_it_is() -> None:
    """The bound is for what models write from now on: rows of an older release are longer."""
    frozen = action({"text": "a" * MAX_ARGUMENTS_CHARS})
    assert decode(encode(frozen)) == frozen


def test_a_kept_call_is_read_in_few_steps_however_many_arguments_it_has() -> None:
    """Rows are read on the event loop, and every chat would wait for that."""
    row = to_put(freeze(action({"a": [["b"]] * 10_000}))).body
    assert calls_made(lambda: ACTIONS.codec.decode(row)) < 500


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="no fields"),
        pytest.param(b"[" * 100_000, id="very deep"),
        pytest.param(encode(action()).replace(b'"version":1', b'"version":2'), id="other version"),
        pytest.param(encode(action()).replace(b'"tool"', b'"x":1,"tool"'), id="one field more"),
        pytest.param(encode(action()).replace(b'":', b'": '), id="spaces"),
        pytest.param(
            encode(action({}, ("a", "b"))).replace(b'["a","b"]', b'["b","a"]'),
            id="resources out of order",
        ),
    ],
)
def test_bytes_that_we_did_not_write_are_refused(body: bytes) -> None:
    """Only what `encode` writes is read, to the byte."""
    with pytest.raises(StoreUnusable, match="not an encoded action of this version"):
        decode(body)


def test_a_gated_call_is_kept_with_the_hash_it_had() -> None:
    """A row of its own until the batch is over, found by the action's id (S3-25)."""
    frozen = freeze(action())
    put = to_put(frozen)
    assert frozen.hash == action_hash(action())
    assert put == Put(
        kind=RowKind.ACTION, key="01A", body=put.body, conversation=ConversationId("01C")
    )
    assert ACTIONS.codec.decode(put.body) == frozen


@pytest.mark.parametrize("body", [b"", b"\xff\n{}", encode(action())])
def test_a_row_that_holds_no_action_is_not_guessed_at(body: bytes) -> None:
    """A record of another format is a fault of the store."""
    with pytest.raises(StoreUnusable, match="a stored action can't be read"):
        ACTIONS.codec.decode(body)


def test_arguments_that_are_no_object_are_no_arguments() -> None:
    """A tool's check may return anything; only an object is frozen."""
    wrong = cast("Mapping[str, object]", ["a"])
    with pytest.raises(ValueError, match="must be an object"):
        action(wrong)
