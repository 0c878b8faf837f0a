"""The policy a third time, through Cedar, whose own semantics are proven elsewhere.

Cedar knows permit and forbid only, so each query is asked twice: may it `run`, and may it
`run_unattended`? Allow is both, ask is only the first, deny is neither. An ask statement permits
the one and forbids the other; a deny forbids both. Cedar skips a policy whose condition errors,
which would open a door, so every attribute is guarded by `context has`, an error fails the test,
and a missing decision counts as no.
"""

import json
from collections.abc import Iterable
from random import Random

import cedarpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.policy_cases import RESOURCES, Case, draw_case
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet, Statement

pytestmark = pytest.mark.slow  # comparisons, hundreds of examples each

# Without grants such as `host:*`: Cedar can't tell whether two patterns overlap.
cases = st.randoms(use_true_random=False).map(lambda random: draw_case(random, RESOURCES))

MAX_RESOURCES = 2
CONTEXT_NAMES = {"own": "own", "channel_is_direct": "direct"}


def cedar(statement: Statement) -> str:
    """Return a statement as Cedar policies."""
    guard = " && ".join(
        [_principals(statement), _actions(statement), _resources(statement)]
        + [_condition(statement, name) for name in statement.when]
    )
    heads = {
        "allow": ("permit(principal, action, resource)",),
        "ask": (
            'permit(principal, action == Action::"run", resource)',
            'forbid(principal, action == Action::"run_unattended", resource)',
        ),
        "deny": ("forbid(principal, action, resource)",),
    }[statement.effect]
    return "\n".join(f"{head} when {{ {guard} }};" for head in heads)


def _principals(statement: Statement) -> str:
    return _any_of(f"principal in Name::{json.dumps(name)}" for name in statement.principals)


def _actions(statement: Statement) -> str:
    return _any_of(f"context.action like {json.dumps(action)}" for action in statement.actions)


def _resources(statement: Statement) -> str:
    """Unrolled, because Cedar has no `any` and `all` over a set of texts."""
    if statement.effect == "allow":
        fits = _all_of(
            f"(!(context has r{number}) || {_named(statement, number)})"
            for number in range(MAX_RESOURCES)
        )
        some = "true" if not statement.resources else f"(context has r0 && {fits})"
        return f"(!context.unresolved && {some})"
    fits = _any_of(
        f"(context has r{number} && {_named(statement, number)})" for number in range(MAX_RESOURCES)
    )
    return f"(context.unresolved || {fits if statement.resources else 'true'})"


def _named(statement: Statement, number: int) -> str:
    return _any_of(
        f"context.r{number} like {json.dumps(resource)}" for resource in statement.resources
    )


def _condition(statement: Statement, name: str) -> str:
    field, value = CONTEXT_NAMES[name], json.dumps(statement.when[name])
    if statement.effect == "allow":
        return f"(context has {field} && context.{field} == {value})"
    return f"(!(context has {field}) || context.{field} == {value})"


def _any_of(parts: Iterable[str]) -> str:
    return "(" + " || ".join([*parts] or ["false"]) + ")"


def _all_of(parts: Iterable[str]) -> str:
    return "(" + " && ".join([*parts] or ["true"]) + ")"


def cedar_decision(statements: list[Statement], query: Query) -> str:
    """Return allow, ask or deny, as Cedar decides it."""
    names = ["anyone", f"channel:{query.principal.channel}"]
    names += [f"role:{role}" for role in query.principal.roles]
    if query.principal.id.partition(":")[0] not in {"role", "channel"}:
        names.append(query.principal.id)
    user = {"uid": ASKER, "attrs": {}, "parents": [{"type": "Name", "id": n} for n in names]}
    entities = json.dumps([user])
    policies = cedarpy.PolicySet.from_str("\n".join(cedar(statement) for statement in statements))
    run = _permits("run", query, policies, entities)
    unattended = _permits("run_unattended", query, policies, entities)
    return {(True, True): "allow", (True, False): "ask", (False, False): "deny"}[run, unattended]


ASKER = {"type": "User", "id": "asker"}


def _permits(action: str, query: Query, policies: cedarpy.PolicySet, entities: str) -> bool:
    # The library's annotations say `dict` without saying of what.
    result = cedarpy.is_authorized(  # pyright: ignore[reportUnknownMemberType]
        {
            "principal": ASKER,
            "action": {"type": "Action", "id": action},
            "resource": {"type": "Call", "id": "call"},
            "context": _context(query),
        },
        policies,
        entities,
    )
    assert result.diagnostics.errors == []  # a guard is missing, or the translation is wrong
    return result.decision == cedarpy.Decision.Allow


def _context(query: Query) -> dict[str, object]:
    context: dict[str, object] = {
        "action": query.action,
        "unresolved": query.resources is None,
        "own": query.own,
        "direct": query.direct,
    }
    resources = query.resources or ()
    assert len(resources) <= MAX_RESOURCES
    context |= {f"r{number}": resource for number, resource in enumerate(resources)}
    return {name: value for name, value in context.items() if value is not None}


@given(case=cases)
def test_the_policy_decides_as_cedar_does(case: Case) -> None:
    """Allow, ask and deny equal what Cedar says of the same statements."""
    statements, query = case
    assert PolicySet(statements).decide(query).effect == cedar_decision(statements, query)


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_the_comparison_meets_every_answer(effect: str) -> None:
    """Cases that all ended alike would prove nothing: each answer comes up often."""
    random = Random(20261121)
    answers = [cedar_decision(*draw_case(random, RESOURCES)) for _ in range(150)]
    assert answers.count(effect) >= 10
