"""Formats policy statements and decisions as text and as JSON."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import get_args

from msgspec.structs import asdict

from zeroclaw.cli.policy.explain import offered_here
from zeroclaw.codec import to_json
from zeroclaw.config.model import Config
from zeroclaw.daemon.config_check import vocabulary_of
from zeroclaw.gate.conditions import Query, ToolFacts, facts_of
from zeroclaw.gate.policy import Statement, configured
from zeroclaw.gate.ruling import Explained
from zeroclaw.gate.shipped import BASE, Autonomy, approver_statement, autonomy_statements
from zeroclaw.gate.vocabulary import Vocabulary, actions_today, people_today
from zeroclaw.value import Value


class Shown(Value):
    """A set of statements under a heading; not every set is in force."""

    name: str
    in_force: bool
    statements: tuple[Statement, ...]


class Today(Value):
    """The names that statements can match now.

    Attributes:
        known: All the names that exist.
        facts: The declared facts of the tools that are offered here.
    """

    known: Vocabulary
    facts: Mapping[str, ToolFacts]

    def matched(self, statement: Statement) -> dict[str, tuple[str, ...]]:
        """Return what a statement matches, by kind: tools, commands, approvals, people."""
        found: dict[str, tuple[str, ...]] = {"tool": (), "command": (), "approve": ()}
        for action in actions_today(statement, self.known, self.facts):
            kind, _, name = action.partition(":")
            if kind == "command" or name in self.facts:
                found[kind] = (*found[kind], name)
        return {
            "tools": found["tool"],
            "commands": found["command"],
            "approvals": found["approve"],
            "people": people_today(statement, self.known),
        }


async def today_of(config: Config) -> Today:
    """Return what this machine offers today."""
    async with AsyncExitStack() as stack:
        offered, _ = await offered_here(config, stack)
        facts = {name: facts_of(tool.spec) for name, tool in offered.items()}
    return Today(known=await asyncio.to_thread(vocabulary_of, config), facts=facts)


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
                statements=autonomy_statements(
                    one, ask_when_untrusted=config.policy.ask_when_untrusted
                ),
            )
            for one in autonomies
        ),
        Shown(
            name="[[policy.statement]]",
            in_force=True,
            statements=configured(config.policy.statement),
        ),
    )


def in_words(sets: Iterable[Shown], today: Today) -> Iterator[str]:
    """Yield the sets as lines for a person."""
    for shown in sets:
        yield f"{shown.name}{'' if shown.in_force else '  (not in force)'}"
        yield from _table(shown.statements, today)
        yield ""
    yield "Deny beats ask beats allow. What nothing matches is denied."


def set_json(shown: Shown, today: Today) -> dict[str, object]:
    """Return a set as JSON."""
    told = [_statement_json(one, today) for one in shown.statements]
    return {**asdict(shown), "statements": told}


def _table(statements: tuple[Statement, ...], today: Today) -> Iterator[str]:
    if not statements:
        yield "  none"
    widest = max((len(one.id) for one in statements), default=0)
    for one in statements:
        yield f"  {one.id:<{widest}}  {one.effect:<5}  {_scope(one)}"
        if one.note:
            yield f"  {'':<{widest}}         {one.note}"
        yield f"  {'':<{widest}}         today: {_today(one, today)}"


def _today(one: Statement, today: Today) -> str:
    matched = today.matched(one)
    totals = {"tools": len(today.facts), "commands": len(today.known.commands)}
    totals["approvals"] = totals["tools"]
    does = [
        f"{len(names)} of {totals[kind]} {kind}"
        + (f" ({', '.join(names)})" if len(names) < totals[kind] else "")
        for kind, names in matched.items()
        if kind in totals and names
    ]
    who = ", ".join(matched["people"]) or "nobody"
    return f"{'; '.join(does) or 'nothing'}; for {who}"


def _scope(one: Statement) -> str:
    words = [", ".join(one.principals), "→", ", ".join(one.actions)]
    if one.resources:
        words += ["on", ", ".join(one.resources)]
    if one.when:
        words += ["when", ", ".join(f"{name} = {value}" for name, value in one.when.items())]
    return " ".join(words)


def explanation(one: Explained) -> Iterator[str]:
    """Yield a decision and the result of every statement as lines for a person."""
    query, decision = one.query, one.ruling.decision
    verb = "may not" if decision.effect == "deny" else "may"
    if_approved = ", if an approver agrees" if decision.effect == "ask" else ""
    yield f"{one.who} {verb} use `{query.action}`{if_approved}: {decision.effect}"
    yield f"decided by: {one.ruling.by}"
    yield f"why: {decision.why}"
    yield f"touches: {_touched(query)}"
    for note in one.notes:
        yield f"note: {note}"
    widest = max((len(each.statement.id) for each in one.considered), default=0)
    yield ""
    for each in one.considered:
        sign = "matches" if each.matched else "no"
        why = f"  {each.why}" if each.why else ""
        line = f"  {each.statement.id:<{widest}}  {each.statement.effect:<5}  {sign:<7}{why}"
        yield line.rstrip()


def explanation_json(one: Explained) -> dict[str, object]:
    """Return the same as JSON."""
    considered = [
        {"id": it.statement.id, "effect": it.statement.effect, "matched": it.matched, "why": it.why}
        for it in one.considered
    ]
    return {
        **asdict(one.ruling.decision),
        "by": one.ruling.by,
        "resources": one.query.resources,
        "notes": one.notes,
        "considered": considered,
    }


def _touched(query: Query) -> str:
    if query.resources is None:
        return "what it would touch can't be told"
    return ", ".join(query.resources) or "nothing"


def _statement_json(one: Statement, today: Today) -> dict[str, object]:
    when = {name: to_json(value) for name, value in one.when.items()}
    return {**asdict(one), "when": when, "today": today.matched(one)}
