"""The statements and decisions of `zeroclaw policy`, as text and as JSON.

The gate itself decides, with this machine's tools and the store's state.
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
from zeroclaw.config.edit import on_one_line
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
"""The kinds of actions, each with its heading in a listing."""


async def offered_here(config: Config, stack: AsyncExitStack) -> tuple[dict[str, Tool], str]:
    """Return the tools that a daemon would offer here, to inspect, and why there is no shell."""
    await asyncio.to_thread(plugins.names, plugins.TOOLS)  # reads every package, once
    # The tools are inspected, not run, so an empty store is enough.
    folder = await asyncio.to_thread(TemporaryDirectory, prefix="zeroclaw-policy-")
    stack.push_async_callback(asyncio.to_thread, folder.cleanup)
    empty = await open_store(Path(folder.name), clock=SystemClock())
    stack.push_async_callback(empty.aclose)
    groups, no_shell = await open_tools(
        LiveConfig(config, ()), store=empty, hidden=(), redact=str, stack=stack
    )
    loaders = loading.tools(lambda _principal, _chat: (), lambda _principal, _chat: {})
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
            store = await stack.enter_async_context(open_read_only(places.data))
            await people.load(store)
            policy.halt(await last_halt(store))
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
            explained = await explainer.explain(
                subject=who, action=tool, arguments=arguments, resources=resources
            )
        except ConfigError as error:
            raise ConfigError(tuple(f"--who: {fault}" for fault in error.faults)) from error
        except ToolArgumentsInvalid as error:
            raise ConfigError((f"--args: {'; '.join(error.faults)}",)) from error
    sandbox = (f"there is no sandbox here: {no_shell}",) if no_shell else ()
    return replace(explained, notes=(*sandbox, *explained.notes))


def _people(config: Config) -> People:
    kinds = kinds_of([])
    channels = {
        name: kinds[kind][0]
        for name, settings in config.channels.items()
        if settings.enabled and (kind := config.kind_of(name)) in kinds
    }
    return People(config, channels)


# --- statements ------------------------------------------------------------------------------------


class StatementSet(Value):
    """A set of statements under a heading; not every set is in force."""

    name: str
    in_force: bool
    statements: tuple[Statement, ...]


class Today(Value):
    """The names that statements can match now.

    Attributes:
        vocabulary: All the names that exist.
        facts: The declared facts of the tools that are offered here.
    """

    vocabulary: Vocabulary
    facts: Mapping[str, ToolFacts]

    def matched(self, statement: Statement) -> dict[str, tuple[str, ...]]:
        """Return what a statement matches, by kind: tools, commands, approvals, people."""
        matches: dict[str, tuple[str, ...]] = dict.fromkeys(_KINDS.values(), ())
        for action in actions_today(statement, self.vocabulary, self.facts):
            kind, _, name = action.partition(":")
            if kind == "command" or name in self.facts:
                matches[_KINDS[kind]] += (name,)
        return {**matches, "people": people_today(statement, self.vocabulary)}


async def today_of(config: Config) -> Today:
    """Return what this machine offers today."""
    async with AsyncExitStack() as stack:
        offered, _ = await offered_here(config, stack)
        facts = {name: facts_of(tool.spec) for name, tool in offered.items()}
    return Today(vocabulary=await asyncio.to_thread(vocabulary_of, config, []), facts=facts)


def sets_of(config: Config) -> tuple[StatementSet, ...]:
    """Return the shipped sets and the configured one.

    Raises:
        ConfigError: A configured statement has a fault.
    """
    always = (*BASE, approver_statement(config.approvals.approvers))
    autonomies: tuple[Autonomy, ...] = get_args(Autonomy)
    asks = config.policy.ask_when_untrusted
    return (
        StatementSet(name="commands and approvers", in_force=True, statements=always),
        *(
            StatementSet(
                name=f'autonomy = "{autonomy}"',
                in_force=autonomy == config.autonomy,
                statements=autonomy_statements(autonomy, ask_when_untrusted=asks),
            )
            for autonomy in autonomies
        ),
        StatementSet(
            name="[[policy.statement]]",
            in_force=True,
            statements=configured(config.policy.statement),
        ),
    )


def in_words(sets: Iterable[StatementSet], today: Today) -> Iterator[str]:
    """Yield the sets as lines for a person."""
    for group in sets:
        yield f"{group.name}{'' if group.in_force else '  (not in force)'}"
        yield from _table(group.statements, today)
        yield ""
    yield "Deny beats ask beats allow. A call that no statement matches is denied."


def set_json(group: StatementSet, today: Today) -> dict[str, object]:
    """Return a set as JSON."""
    statements = [
        {**asdict(it), "when": to_builtins(it.when), "today": today.matched(it)}
        for it in group.statements
    ]
    return {**asdict(group), "statements": statements}


def _table(statements: tuple[Statement, ...], today: Today) -> Iterator[str]:
    if not statements:
        yield "  none"
    width = max((len(statement.id) for statement in statements), default=0)
    for statement in statements:
        yield f"  {statement.id:<{width}}  {statement.effect:<5}  {_scope(statement)}"
        if statement.note:
            yield f"  {'':<{width}}         {statement.note}"
        yield f"  {'':<{width}}         today: {_today(statement, today)}"


def _today(statement: Statement, today: Today) -> str:
    matched = today.matched(statement)
    totals = {"tools": len(today.facts), "commands": len(today.vocabulary.commands)}
    totals["approvals"] = totals["tools"]
    matches = [
        f"{len(names)} of {totals[kind]} {kind}"
        + (f" ({', '.join(names)})" if len(names) < totals[kind] else "")
        for kind, names in matched.items()
        if kind in totals and names
    ]
    people = ", ".join(matched["people"]) or "nobody"
    return f"{'; '.join(matches) or 'nothing'}; for {people}"


def _scope(statement: Statement) -> str:
    parts = [", ".join(statement.principals), "→", ", ".join(statement.actions)]
    if statement.resources:
        parts += ["on", ", ".join(statement.resources)]
    if statement.when:
        parts += ["when =", on_one_line(to_builtins(statement.when))]
    return " ".join(parts)


def explanation(explained: Explained) -> Iterator[str]:
    """Yield a decision and the result of every statement as lines for a person."""
    query, decision = explained.query, explained.ruling.decision
    verb = "may not" if decision.effect == "deny" else "may"
    if_approved = ", if an approver agrees" if decision.effect == "ask" else ""
    yield f"{explained.subject} {verb} use `{query.action}`{if_approved}: {decision.effect}"
    yield f"decided by: {explained.ruling.by}"
    yield f"why: {decision.reason}"
    yield f"touches: {_touched(query)}"
    for note in explained.notes:
        yield f"note: {note}"
    width = max((len(result.statement.id) for result in explained.considered), default=0)
    yield ""
    for result in explained.considered:
        sign = "matches" if result.matched else "no"
        reason = f"  {result.reason}" if result.reason else ""
        statement = result.statement
        yield f"  {statement.id:<{width}}  {statement.effect:<5}  {sign:<7}{reason}".rstrip()


def explanation_json(explained: Explained) -> dict[str, object]:
    """Return the same as JSON."""
    considered = [
        {
            "id": it.statement.id,
            "effect": it.statement.effect,
            "matched": it.matched,
            "why": it.reason,
        }
        for it in explained.considered
    ]
    decision = explained.ruling.decision
    return {
        "effect": decision.effect,
        "statements": decision.statements,
        "why": decision.reason,
        "by": explained.ruling.by,
        "resources": explained.query.resources,
        "notes": explained.notes,
        "considered": considered,
    }


def _touched(query: Query) -> str:
    if query.resources is None:
        return "its resources are unknown"
    return ", ".join(query.resources) or "nothing"
