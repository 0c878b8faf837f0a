"""What may run, and why: the statements and decisions of `zeroclaw policy`, as text and as JSON.

A decision is that of the gate, with this machine's tools and the store's state.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from msgspec import to_builtins
from msgspec.structs import asdict

from zeroclaw.cli.configuration import Loaded
from zeroclaw.config.model import Autonomy, Config
from zeroclaw.daemon.config_check import kinds_of, vocabulary_of
from zeroclaw.daemon.extensions import by_name, open_tools
from zeroclaw.daemon.foundation import protected_in
from zeroclaw.errors import ConfigError, ToolArgumentsInvalid
from zeroclaw.gate.conditions import Query, ToolFacts, facts_of
from zeroclaw.gate.policy import Statement, configured
from zeroclaw.gate.ruling import Explained
from zeroclaw.gate.shipped import BASE, approver_statement, autonomy_statements
from zeroclaw.gate.vocabulary import Vocabulary, actions_today, people_today
from zeroclaw.host import plugins
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.places import real
from zeroclaw.inbound.commands.explain import Explainer
from zeroclaw.inbound.identity import People
from zeroclaw.inbound.live_config import LiveConfig, LivePolicy, last_halt
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.files import FILE_NAME
from zeroclaw.stores.sqlite.reader import open_read_only
from zeroclaw.tool import Tool
from zeroclaw.tools import loading
from zeroclaw.value import Value, replace

_KINDS = {"tool": "tools", "command": "commands", "approve": "approvals"}
"""The kinds of actions, each with what a listing calls them."""


async def offered_here(config: Config, stack: AsyncExitStack) -> tuple[dict[str, Tool], str]:
    """Return the tools that a daemon would offer here, only to be inspected, and why no shell."""
    await asyncio.to_thread(plugins.names, plugins.TOOLS)  # reads every package, once
    # The tools are inspected, not run, so an empty store is enough.
    folder = await asyncio.to_thread(TemporaryDirectory, prefix="zeroclaw-policy-")
    stack.push_async_callback(asyncio.to_thread, folder.cleanup)
    empty = await open_store(Path(folder.name), clock=SystemClock())
    stack.push_async_callback(empty.aclose)
    groups, no_shell = await open_tools(
        LiveConfig(config, ()), store=empty, hidden=(), redact=str, version="", stack=stack
    )
    loaders = loading.tools(lambda _who, _where: (), lambda _who, _where: {})
    return by_name({**groups, "loading": loaders}), no_shell


async def ruling_of(
    loaded: Loaded, *, who: str, tool: str, arguments: str, resources: tuple[str, ...]
) -> Explained:
    """Return the decision that would be made; see `Explainer.explain`.

    Raises:
        ConfigError: No person has this name, the arguments don't fit the tool, or a statement has
            a fault.
        StoreUnusable: There is a store, but it can't be read.
    """
    config, places = loaded.config, loaded.places
    settings = LiveConfig(config, configured(config.policy.statement))
    policy = LivePolicy(settings)
    async with AsyncExitStack() as stack:
        offered, no_shell = await offered_here(config, stack)
        people = await asyncio.to_thread(_people, config)
        # A halt and revoked people are in the store, if there is one.
        if await asyncio.to_thread((places.data / FILE_NAME).is_file):
            kept = await stack.enter_async_context(open_read_only(places.data))
            await people.remember(kept)
            policy.halt(await last_halt(kept))
        policy.revoke(people.revoked)
        explainer = Explainer(
            settings=settings,
            people=people,
            policy=policy,
            protected=await asyncio.to_thread(protected_in, places),
            tools=offered,
            workspaces=await asyncio.to_thread(real, places.workspaces),
            clock=SystemClock(),
        )
        try:
            found = await explainer.explain(
                who=who, action=tool, arguments=arguments, resources=resources
            )
        except ConfigError as error:
            raise ConfigError(tuple(f"--who: {fault}" for fault in error.faults)) from error
        except ToolArgumentsInvalid as error:
            raise ConfigError((f"--args: {'; '.join(error.faults)}",)) from error
    sandbox = (f"there is no sandbox here: {no_shell}",) if no_shell else ()
    return replace(found, notes=(*sandbox, *found.notes))


def _people(config: Config) -> People:
    kinds = kinds_of([])
    channels = {
        name: kinds[kind][0]
        for name, settings in config.channels.items()
        if settings.enabled and (kind := config.kind_of(name)) in kinds
    }
    return People(config, channels)


# --- what the statements say -----------------------------------------------------------------------


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
        found: dict[str, tuple[str, ...]] = dict.fromkeys(_KINDS.values(), ())
        for action in actions_today(statement, self.known, self.facts):
            kind, _, name = action.partition(":")
            if kind == "command" or name in self.facts:
                found[_KINDS[kind]] += (name,)
        return {**found, "people": people_today(statement, self.known)}


async def today_of(config: Config) -> Today:
    """Return what this machine offers today."""
    async with AsyncExitStack() as stack:
        offered, _ = await offered_here(config, stack)
        facts = {name: facts_of(tool.spec) for name, tool in offered.items()}
    return Today(known=await asyncio.to_thread(vocabulary_of, config, []), facts=facts)


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
    when: object = to_builtins(one.when)
    return {**asdict(one), "when": when, "today": today.matched(one)}
