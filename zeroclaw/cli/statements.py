"""Tells policy statements and decisions in words and as JSON."""

from collections.abc import Iterable, Iterator
from typing import get_args

from zeroclaw.config import Config
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet
from zeroclaw.gate.shipped import (
    BASE,
    Autonomy,
    approver_statement,
    assemble,
    autonomy_statements,
)
from zeroclaw.gate.statement import Statement, configured
from zeroclaw.record import to_json
from zeroclaw.value import Value


class Shown(Value):
    """A set of statements under a heading; not every set is in force."""

    name: str
    in_force: bool
    statements: tuple[Statement, ...]

    def as_json(self) -> dict[str, object]:
        """Return it for machines."""
        told = [_statement_json(one) for one in self.statements]
        return {"name": self.name, "in_force": self.in_force, "statements": told}


def sets_of(config: Config) -> tuple[Shown, ...]:
    """Return the shipped sets and the configured one.

    Raises:
        ConfigError: A configured statement has a fault.
    """
    always = (*BASE, approver_statement(config.approvals.approvers))
    autonomies: tuple[Autonomy, ...] = get_args(Autonomy)
    return (
        Shown(name="commands and approvers", in_force=True, statements=always),
        *(
            Shown(
                name=f'autonomy = "{one}"',
                in_force=one == config.autonomy,
                statements=autonomy_statements(one),
            )
            for one in autonomies
        ),
        Shown(
            name="[[policy.statement]]",
            in_force=True,
            statements=configured(config.policy.statement),
        ),
    )


def in_force(config: Config) -> PolicySet:
    """Return the policy of a configuration; `/halt` is not part of it.

    Raises:
        ConfigError: A statement has a fault.
    """
    return assemble(
        config.autonomy,
        configured(config.policy.statement),
        approvers=config.approvals.approvers,
    )


def in_words(sets: Iterable[Shown]) -> Iterator[str]:
    """Return sets as a person reads them."""
    for shown in sets:
        yield f"{shown.name}{'' if shown.in_force else '  (not in force)'}"
        yield from _table(shown.statements)
        yield ""
    yield "Deny beats ask beats allow. What nothing matches is denied."


def _table(statements: tuple[Statement, ...]) -> Iterator[str]:
    if not statements:
        yield "  none"
    widest = max((len(one.id) for one in statements), default=0)
    for one in statements:
        yield f"  {one.id:<{widest}}  {one.effect:<5}  {_scope(one)}"
        if one.note:
            yield f"  {'':<{widest}}         {one.note}"


def _scope(one: Statement) -> str:
    words = [", ".join(one.principals), "→", ", ".join(one.actions)]
    if one.resources:
        words += ["on", ", ".join(one.resources)]
    if one.when:
        words += ["when", ", ".join(f"{name} = {value}" for name, value in one.when.items())]
    return " ".join(words)


def explanation(policy: PolicySet, query: Query, notes: tuple[str, ...]) -> Iterator[str]:
    """Return a decision and how every statement stood to it."""
    decision = policy.decide(query)
    verb = {"allow": "may", "ask": "may, if an approver says yes,", "deny": "may not"}
    who = query.principal.id or ", ".join(f"role:{role}" for role in query.principal.roles)
    yield f"{who} {verb[decision.effect]} use `{query.action}`: {decision.effect}"
    yield f"why: {decision.why}"
    yield f"touches: {_touched(query)}"
    for note in notes:
        yield f"note: {note}"
    considered = policy.explain(query)
    widest = max((len(one.statement.id) for one in considered), default=0)
    yield ""
    for one in considered:
        sign = "matches" if one.matched else "no"
        why = f"  {one.why}" if one.why else ""
        yield f"  {one.statement.id:<{widest}}  {one.statement.effect:<5}  {sign:<7}{why}".rstrip()


def explanation_json(policy: PolicySet, query: Query, notes: tuple[str, ...]) -> dict[str, object]:
    """Return the same for machines."""
    decision = policy.decide(query)
    return {
        "effect": decision.effect,
        "why": decision.why,
        "statements": list(decision.statements),
        "resources": None if query.resources is None else list(query.resources),
        "notes": list(notes),
        "considered": [
            {
                "id": one.statement.id,
                "effect": one.statement.effect,
                "matched": one.matched,
                "why": one.why,
            }
            for one in policy.explain(query)
        ],
    }


def _touched(query: Query) -> str:
    if query.resources is None:
        return "what it would touch can't be told"
    return ", ".join(query.resources) or "nothing"


def _statement_json(one: Statement) -> dict[str, object]:
    return {
        "id": one.id,
        "effect": one.effect,
        "principals": list(one.principals),
        "actions": list(one.actions),
        "resources": list(one.resources),
        "when": {name: to_json(value) for name, value in one.when.items()},
        "note": one.note,
    }
