"""The query that a policy answers, and the conditions that a statement may set on it.

To add a condition, write a function here and name it in `CONDITIONS`, or name a boolean fact
there with `_is`; a condition that reads the time must be left out of `TIMELESS`. The function
takes the value from the configuration, raises `ValueError` with the allowed values if it doesn't
fit, and returns the test. A test that needs a fact the query doesn't have raises; the policy then
counts it as true for deny and ask, and as false for allow. No test reads `resources`: a walk runs
each test once for all files that it meets.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar, cast, get_args

from zeroclaw.envelope import Principal
from zeroclaw.gate.action import canonical_json
from zeroclaw.tool import Effect, Risk, ToolSpec
from zeroclaw.value import Value

EFFECTS: frozenset[Effect] = frozenset(get_args(Effect))
RISKS: tuple[Risk, ...] = get_args(Risk)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

T = TypeVar("T")


class ToolFacts(Value):
    """The facts of a tool that policy and protection use, all as the tool declares them.

    Attributes:
        effects: Every effect that a call may have; all of them when undeclared.
        risk: `high` when undeclared.
        declared: Whether the tool declares its effects; if not, the worst is assumed (K26).
    """

    effects: frozenset[Effect]
    risk: Risk
    declared: bool


UNDECLARED = ToolFacts(effects=EFFECTS, risk="high", declared=False)
"""The facts of a tool that declares no effects."""


def facts_of(spec: ToolSpec) -> ToolFacts:
    """Return the declared facts of a tool; for one without effects the worst is assumed."""
    if spec.effects:
        return ToolFacts(effects=spec.effects, risk=spec.risk, declared=True)
    return UNDECLARED


def leaves_no_trace(facts: ToolFacts) -> bool:
    """Whether a tool may be used off the record: it declares that it changes nothing (K23)."""
    return facts.effects.isdisjoint({"write", "exec"})


class Query(Value):
    """One question to the policy: may this principal do this, to these resources, now.

    Attributes:
        principal: The person who wants it.
        action: `tool:<name>`, `command:<name>`, or `approve:<tool>`.
        resources: The resources it touches, normalised; empty if it touches none with a name, None
            if unknown.
        now: The time; aware.
        facts: The tool's facts; None where no tool is involved.
        arguments: The call's arguments; None where there is no call.
        direct: Exactly one person reads the chat; None when not known.
        own: The object belongs to the principal (their own turn); None when not known.
        untrusted: The model request behind the call contains text that no person here vouches for;
            None when not known.
        in_message: The call contains only text that the principal wrote in this turn; None when not
            known.
        compaction: The bot itself stores a fact from messages that a summary will replace.
    """

    principal: Principal
    action: str
    now: datetime
    resources: tuple[str, ...] | None = ()
    facts: ToolFacts | None = None
    arguments: Mapping[str, object] | None = None
    direct: bool | None = None
    own: bool | None = None
    untrusted: bool | None = None
    in_message: bool | None = None
    compaction: bool = False


def any_call(spec: ToolSpec, principal: Principal, *, now: datetime, direct: bool) -> Query:
    """Return the query about a possible call of a tool, whose arguments are unknown."""
    return Query(
        principal=principal,
        action=f"tool:{spec.name}",
        now=now,
        facts=facts_of(spec),
        direct=direct,
    )


Test = Callable[[Query], bool]
Condition = Callable[[object], Test]


def effects_within(value: object) -> Test:
    """All effects of the tool are on the list: of `read`, `write`, `network`, `exec`."""
    allowed = _choices(value, get_args(Effect))
    return lambda query: _require(query.facts, "tool").effects <= allowed


def effects_any_of(value: object) -> Test:
    """An effect of the tool is on the list: of `read`, `write`, `network`, `exec`."""
    listed = _choices(value, get_args(Effect))
    return lambda query: bool(_require(query.facts, "tool").effects & listed)


def risk_at_most(value: object) -> Test:
    """The tool's risk is this or lower: `low`, `medium`, `high`."""
    highest = _rank(value)
    return lambda query: RISKS.index(_require(query.facts, "tool").risk) <= highest


def risk_at_least(value: object) -> Test:
    """The tool's risk is this or higher: `low`, `medium`, `high`."""
    lowest = _rank(value)
    return lambda query: RISKS.index(_require(query.facts, "tool").risk) >= lowest


def hour_between(value: object) -> Test:
    """The hour in UTC is from the first up to, but not, the second: `[22, 6]` is the night."""
    match _list(value):
        case [int() as start, int() as end] if (
            start in range(24)
            and end in range(25)
            and start != end
            and bool not in (type(start), type(end))  # Python takes bools for 1 and 0
        ):
            pass
        case _:
            message = "must be two different hours, such as [9, 17] or [22, 6]"
            raise ValueError(message)
    if start < end:
        return lambda query: start <= query.now.astimezone(UTC).hour < end
    return lambda query: not end <= query.now.astimezone(UTC).hour < start


def weekday_in(value: object) -> Test:
    """The day in UTC is on the list: of `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`."""
    days = _choices(value, WEEKDAYS)
    return lambda query: WEEKDAYS[query.now.astimezone(UTC).weekday()] in days


def argument_equals(value: object) -> Test:
    """The call has these arguments, type and value alike: `{ name = value, … }`."""
    if not isinstance(value, Mapping) or not value:
        message = "must be a table of argument names and their values"
        raise ValueError(message)
    # Canonical text and not `==`, because in Python `True == 1 == 1.0`.
    expected = {
        str(name): canonical_json(item)
        for name, item in cast("Mapping[object, object]", value).items()
    }

    def test(query: Query) -> bool:
        arguments = _require(query.arguments, "arguments")
        return all(
            name in arguments and canonical_json(arguments[name]) == text
            for name, text in expected.items()
        )

    return test


def _is(fact: Callable[[Query], bool]) -> Condition:
    """Return the condition that a fact equals the configured `true` or `false`."""

    def condition(value: object) -> Test:
        if not isinstance(value, bool):
            message = "must be true or false"
            raise ValueError(message)  # noqa: TRY004  as for every value that doesn't fit
        return lambda query: fact(query) is value

    return condition


CONDITIONS: Mapping[str, Condition] = {
    "effects_within": effects_within,
    "effects_any_of": effects_any_of,
    "risk_at_most": risk_at_most,
    "risk_at_least": risk_at_least,
    # Whether the tool declares its effects.
    "declared": _is(lambda query: _require(query.facts, "tool").declared),
    "hour_between": hour_between,
    "weekday_in": weekday_in,
    "argument_equals": argument_equals,
    # Whether exactly one person reads the chat.
    "channel_is_direct": _is(lambda query: _require(query.direct, "chat")),
    # Whether the object (turn, status) belongs to the principal.
    "own": _is(lambda query: _require(query.own, "owner")),
    # Whether the turn contains text that no person here vouches for, such as a page.
    "untrusted": _is(lambda query: _require(query.untrusted, "origin")),
    # Whether the person's own message dictates the call.
    "in_message": _is(lambda query: _require(query.in_message, "message")),
    # Whether the bot itself stores a fact before a summary, without a model that asks.
    "compaction": _is(lambda query: query.compaction),
}

TIMELESS = frozenset(CONDITIONS) - {"hour_between", "weekday_in"}
"""Conditions that do not read the time; with any other, the tools on offer are recomputed each time."""


def _require(fact: T | None, name: str) -> T:
    if fact is None:
        message = f"the {name} is not known"
        raise LookupError(message)
    return fact


def _list(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _choices(value: object, allowed: Sequence[str]) -> frozenset[str]:
    items = _list(value)
    chosen = frozenset(item for item in items if isinstance(item, str) and item in allowed)
    if not items or len(chosen) != len(items):
        message = f"must be a list without repeats of {', '.join(allowed)}"
        raise ValueError(message)
    return chosen


def _rank(value: object) -> int:
    if isinstance(value, str) and value in RISKS:
        return RISKS.index(value)
    message = f"must be one of {', '.join(RISKS)}"
    raise ValueError(message)
