"""The values that each policy condition accepts, and when it holds."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

import pytest

from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import (
    CONDITIONS,
    EFFECTS,
    TIMELESS,
    Query,
    ToolFacts,
    facts_of,
    leaves_no_trace,
)
from zeroclaw.tool import Effect, Risk, ToolSpec
from zeroclaw.value import replace

# A Saturday.
NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
ANN = Principal(id="person:ann", roles=frozenset(), channel="web", sender="7")


def spec(*effects: Effect, risk: Risk = "low") -> ToolSpec:
    return ToolSpec(
        name="any", description="", parameters={}, effects=frozenset(effects), risk=risk
    )


def query(
    facts: ToolFacts | None = None,
    *,
    at: datetime = NOW,
    arguments: Mapping[str, object] | None = None,
    direct: bool | None = None,
    own: bool | None = None,
) -> Query:
    return Query(
        principal=ANN,
        action="tool:any",
        now=at,
        facts=facts,
        arguments=arguments,
        direct=direct,
        own=own,
    )


def at(hour: int) -> Query:
    return query(at=NOW.replace(hour=hour))


READS = facts_of(spec("read"))
WRITES = facts_of(spec("read", "write", risk="medium"))
UNDECLARED = facts_of(spec())


def test_a_tool_that_declares_nothing_counts_as_the_worst() -> None:
    """Undeclared means every effect at high risk, with any claimed risk (K26)."""
    assert facts_of(spec(risk="low")) == ToolFacts(effects=EFFECTS, risk="high", declared=False)
    assert facts_of(spec("read")) == ToolFacts(
        effects=frozenset({"read"}), risk="low", declared=True
    )


@pytest.mark.parametrize(
    ("name", "value", "query_", "expected"),
    [
        ("effects_within", ["read"], query(READS), True),
        ("effects_within", ["read"], query(WRITES), False),
        ("effects_within", ["read", "write"], query(WRITES), True),
        ("effects_within", ["read"], query(UNDECLARED), False),
        ("effects_any_of", ["write", "exec"], query(READS), False),
        ("effects_any_of", ["write", "exec"], query(WRITES), True),
        ("effects_any_of", ["network"], query(UNDECLARED), True),
        ("risk_at_most", "low", query(READS), True),
        ("risk_at_most", "low", query(WRITES), False),
        ("risk_at_most", "medium", query(WRITES), True),
        ("risk_at_least", "medium", query(READS), False),
        ("risk_at_least", "medium", query(WRITES), True),
        ("risk_at_least", "medium", query(UNDECLARED), True),
        ("declared", True, query(READS), True),
        ("declared", True, query(UNDECLARED), False),
        ("declared", False, query(UNDECLARED), True),
        ("hour_between", [9, 17], at(8), False),
        ("hour_between", [9, 17], at(9), True),
        ("hour_between", [9, 17], at(16), True),
        ("hour_between", [9, 17], at(17), False),
        ("hour_between", [22, 6], at(21), False),
        ("hour_between", [22, 6], at(22), True),
        ("hour_between", [22, 6], at(5), True),
        ("hour_between", [22, 6], at(6), False),
        ("hour_between", [23, 6], at(23), True),
        ("hour_between", [0, 24], at(0), True),
        ("weekday_in", ["sat", "sun"], query(), True),
        ("weekday_in", ["mon"], query(), False),
        ("argument_equals", {"n": 1}, query(arguments={"n": 1, "m": 2}), True),
        ("argument_equals", {"n": 1}, query(arguments={"n": True}), False),
        ("argument_equals", {"n": 1}, query(arguments={"n": 1.0}), False),
        ("argument_equals", {"n": True}, query(arguments={"n": 1}), False),
        ("argument_equals", {"n": None}, query(arguments={}), False),
        ("argument_equals", {"n": {"b": [1], "a": 2}}, query(arguments={"n": {"a": 2, "b": [1]}}), True),
        ("argument_equals", {"n": 1, "m": 3}, query(arguments={"n": 1, "m": 2}), False),
        ("channel_is_direct", True, query(direct=True), True),
        ("channel_is_direct", True, query(direct=False), False),
        ("own", True, query(own=True), True),
        ("own", False, query(own=True), False),
        ("untrusted", True, replace(query(), untrusted=True), True),
        ("untrusted", True, replace(query(), untrusted=False), False),
        ("in_message", False, replace(query(), in_message=False), True),
        ("in_message", False, replace(query(), in_message=True), False),
        ("compaction", True, replace(query(), compaction=True), True),
        ("compaction", False, replace(query(), compaction=True), False),
        ("compaction", False, query(), True),
    ],
)  # fmt: skip
def test_when_a_condition_holds(name: str, value: object, query_: Query, expected: bool) -> None:
    """Each condition answers what its docstring says; one and true are not the same.

    And the same at any time, if it says so.
    """
    test = CONDITIONS[name](value)
    assert test(query_) is expected
    hours = (replace(query_, now=query_.now + timedelta(hours=hour)) for hour in range(7 * 24))
    assert name not in TIMELESS or {*map(test, hours)} == {expected}


def test_hours_and_days_are_those_of_utc() -> None:
    """Wherever the clock's zone is: 00:30 on Sunday there is still Saturday in UTC."""
    east = NOW.replace(hour=22).astimezone(timezone(timedelta(hours=2)))
    assert east.hour == 0
    assert CONDITIONS["hour_between"]([22, 23])(query(at=east))
    assert CONDITIONS["weekday_in"](["sat"])(query(at=east))


EFFECT_LIST = "must be a list without repeats of read, write, network, exec"
RISK_NAME = "must be one of low, medium, high"
TRUTH = "must be true or false"
HOURS = "must be two different hours, such as"
DAYS = "must be a list without repeats of mon, tue, wed, thu, fri, sat, sun"
TABLE = "must be a table of argument names and their values"


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("effects_within", "read", EFFECT_LIST),
        ("effects_within", [], EFFECT_LIST),
        ("effects_within", ["fly"], EFFECT_LIST),
        ("effects_within", ["read", "read"], EFFECT_LIST),
        ("effects_any_of", [1], EFFECT_LIST),
        ("risk_at_most", "none", RISK_NAME),
        ("risk_at_least", 2, RISK_NAME),
        ("declared", 1, TRUTH),
        ("declared", "true", TRUTH),
        ("untrusted", 1, TRUTH),
        ("in_message", "no", TRUTH),
        ("compaction", "no", TRUTH),
        ("hour_between", 9, HOURS),
        ("hour_between", [9], HOURS),
        ("hour_between", [9, 9], HOURS),
        ("hour_between", [24, 6], HOURS),
        ("hour_between", [9, 25], HOURS),
        ("hour_between", [-1, 6], HOURS),
        ("hour_between", [9.0, 17], HOURS),
        ("hour_between", [True, 5], HOURS),
        ("hour_between", [5, True], HOURS),
        ("weekday_in", ["Saturday"], DAYS),
        ("argument_equals", {}, TABLE),
        ("argument_equals", "n", TABLE),
        ("argument_equals", {"n": NOW}, "JSON can't say a value of type datetime"),
        ("channel_is_direct", 0, TRUTH),
        ("own", None, TRUTH),
    ],
)
def test_a_wrong_value_is_refused_when_it_is_loaded(name: str, value: object, fault: str) -> None:
    """A value of the wrong type or range is a fault of the configuration, not of a decision."""
    with pytest.raises(ValueError, match=fault):
        CONDITIONS[name](value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("effects_within", ["read"]),
        ("effects_any_of", ["read"]),
        ("risk_at_most", "low"),
        ("risk_at_least", "low"),
        ("declared", True),
        ("argument_equals", {"n": 1}),
        ("channel_is_direct", True),
        ("own", True),
    ],
)
def test_a_condition_on_a_fact_that_is_not_there_raises(name: str, value: object) -> None:
    """It neither holds nor fails; the policy then decides against the call."""
    with pytest.raises(LookupError, match="is not known"):
        CONDITIONS[name](value)(query())


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        (("read",), True),
        (("read", "network"), True),
        (("write",), False),
        (("exec",), False),
        ((), False),
    ],
)
def test_a_tool_leaves_no_trace_where_it_says_so(
    effects: tuple[Effect, ...], expected: bool
) -> None:
    """One that declares nothing may do anything (K23)."""
    assert leaves_no_trace(facts_of(spec(*effects))) is expected
