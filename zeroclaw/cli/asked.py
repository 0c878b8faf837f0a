"""What `policy explain` asks the policy: who, which tool, with which arguments, on what.

The tools are asked themselves what they are and what a call would touch, so that the answer is
about this machine: where no sandbox works there is no shell.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from zeroclaw.config import Config
from zeroclaw.daemon.tools import Kept, open_tools
from zeroclaw.envelope import Address, ConversationId, Principal, Sender
from zeroclaw.errors import ConfigError, ResourcesUnresolved
from zeroclaw.gate.action import parse_arguments
from zeroclaw.gate.conditions import Query, ToolFacts, facts_of
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.protected import Protected
from zeroclaw.inbound.people import OPERATOR, People
from zeroclaw.tool import Spawned, Tool, ToolContext
from zeroclaw.tools import notes

EXAMPLE = "CONVERSATION"
"""Stands for a conversation's id in the path of its workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and what was found out to put it.

    Attributes:
        notes: What the person should know besides, one line each.
    """

    query: Query
    notes: tuple[str, ...]


async def ask(
    config: Config,
    *,
    who: str,
    tool: str,
    arguments: str,
    resources: tuple[str, ...],
    workspaces: Path,
    now: datetime,
) -> Asked:
    """Return the question.

    Args:
        config: For people and for the tools' settings.
        who: `operator`, `person:<name>`, `role:<name>` or `<channel>:<sender id>`.
        tool: Its name.
        arguments: JSON; empty for none.
        resources: What the call touches; when empty the tool is asked, if it can say.
        workspaces: Where conversations have theirs.
        now: For conditions on time.

    Raises:
        ConfigError: Nobody is called so.
        ToolArgumentsInvalid: The arguments don't fit the tool.
    """
    notes: list[str] = []
    asking = principal(config, who)
    given = parse_arguments(arguments) if arguments else None
    touched: tuple[str, ...] | None = resources
    async with AsyncExitStack() as stack:
        found = await _tool(config, tool, notes, stack)
        if found is not None and given is not None:
            given = dict(found.check(given))
            if not resources:
                touched = await _touched(found, given, asking, workspaces)
        elif not resources:
            notes.append("without --args and --resource the call counts as touching nothing")
    return Asked(
        query=Query(
            principal=asking,
            action=f"tool:{tool}",
            now=now,
            resources=touched,
            facts=_facts(found),
            arguments=given or {},
            direct=True,
            own=True,
        ),
        notes=tuple(notes),
    )


def principal(config: Config, who: str) -> Principal:
    """Return who is meant.

    Raises:
        ConfigError: Nobody is called so.
    """
    kind, colon, name = who.partition(":")
    if who == OPERATOR or (kind, name) == ("person", OPERATOR):
        return Principal(
            id="person:operator", roles=frozenset({OPERATOR}), channel="terminal", sender=OPERATOR
        )
    if kind == "role" and name:
        # Somebody whom no statement can name but by this role.
        return Principal(id="", roles=frozenset({name}), channel="", sender="")
    if kind == "person" and name:
        return _person(config, name)
    if colon and kind and name:
        people = People(config.people, allowed={kind: (name,)}, local=())
        found = people.admit(kind, Sender(id=name, verified=True))
        if found is not None:
            return found
    fault = (
        f"--who: `{who}` is nobody; give `operator`, `person:<name>`, `role:<name>` or "
        "`<channel>:<sender id>`"
    )
    raise ConfigError((fault,))


def _person(config: Config, name: str) -> Principal:
    for person in config.people:
        if person.name == name:
            channel, _, sender = (person.ids or (":",))[0].partition(":")
            return Principal(
                id=f"person:{name}",
                roles=frozenset(person.roles),
                channel=channel,
                sender=sender,
                display=name,
            )
    known = ", ".join(f"`{person.name}`" for person in config.people) or "nobody"
    fault = f"--who: `[[people]]` has no `{name}`; it names {known}"
    raise ConfigError((fault,))


async def _tool(config: Config, name: str, told: list[str], stack: AsyncExitStack) -> Tool | None:
    """Return the tool, None where there is none of that name."""
    offered, no_shell = await open_tools(
        config,
        kept=Kept(notes=_NothingKept(), results=_NothingKept()),
        shielded=Protected(hidden=()),
        redact=str,
        version="",
        stack=stack,
    )
    if no_shell:
        told.append(f"there is no sandbox here: {no_shell}")
    if name in offered:
        return offered[name]
    known = ", ".join(f"`{other}`" for other in offered) or "none"
    told.append(f"no tool is called `{name}` here, so it counts as undeclared; known are {known}")
    return None


class _NothingKept:
    """Stands for the store of a daemon; tools that are only asked don't touch it."""

    async def all(self, _owner: str) -> tuple[notes.Note, ...]:
        """Return no notes."""
        return ()

    async def add(self, _owner: str, _note: notes.Note, *, most: int) -> Literal["full"]:  # noqa: ARG002  the contract's
        """Keep nothing."""
        return "full"

    async def forget(self, _owner: str, _number: int) -> notes.Note | None:
        """Find nothing to forget."""
        return None

    async def has(self, _conversation: ConversationId, _name: str) -> bool:
        """Know no result."""
        return False

    async def text(self, _conversation: ConversationId, _name: str) -> str | None:
        """Know no result."""
        return None


def _facts(tool: Tool | None) -> ToolFacts:
    return _UNDECLARED if tool is None else facts_of(tool.spec)


_UNDECLARED = ToolFacts(
    effects=frozenset({"read", "write", "network", "exec"}), risk="high", declared=False
)


async def _touched(
    tool: Tool, arguments: Mapping[str, object], who: Principal, workspaces: Path
) -> tuple[str, ...] | None:
    """Return what the tool says it would touch in a direct chat with an empty workspace.

    None when it can't say.
    """
    empty = await asyncio.to_thread(tempfile.TemporaryDirectory)
    try:
        workspace = await asyncio.to_thread(Path(empty.name).resolve)
        context = ToolContext(
            conversation=ConversationId(EXAMPLE),
            principal=who,
            address=Address(channel=who.channel, account="", chat=who.sender, direct=True),
            workspace=workspace,
            clock=SystemClock(),
            spawned=_nothing_is_started,
        )
        named = await tool.resources(arguments, context)
    except ResourcesUnresolved:
        return None
    finally:
        await asyncio.to_thread(empty.cleanup)
    real = str(workspaces / EXAMPLE)
    return tuple(one.replace(str(workspace), real) for one in named)


async def _nothing_is_started(_spawned: Spawned | None) -> None:
    """Naming resources runs nothing."""
