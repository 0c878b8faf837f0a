"""Statements, and questions for a policy, as tests write them."""

from datetime import UTC, datetime

from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import Query, ToolFacts
from zeroclaw.gate.policy import Statement, StatementEffect

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANN = Principal(id="person:ann", roles=frozenset({"operator"}), channel="web", sender="7")
BOB = Principal(id="web:8", roles=frozenset(), channel="web", sender="8")


def statement(
    name: str,
    effect: StatementEffect,
    *,
    principals: tuple[str, ...] = ("anyone",),
    actions: tuple[str, ...] = ("tool:*",),
    resources: tuple[str, ...] = (),
    when: dict[str, object] | None = None,
    note: str = "",
) -> Statement:
    return Statement(
        id=name,
        effect=effect,
        principals=principals,
        actions=actions,
        resources=resources,
        when=when or {},
        note=note,
    )


def query(
    action: str = "tool:write_file",
    *,
    principal: Principal = ANN,
    resources: tuple[str, ...] | None = (),
    facts: ToolFacts | None = None,
    own: bool | None = None,
) -> Query:
    return Query(
        principal=principal, action=action, now=NOW, resources=resources, facts=facts, own=own
    )
