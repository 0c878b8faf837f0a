"""Puts a question to the policy: who, which tool or action, with which arguments, on what.

`zeroclaw policy explain` and the console ask through here. A tool is asked itself what a call would
touch, so that the answer is about this machine: where no sandbox works there is no shell.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from zeroclaw.clock import Clock
from zeroclaw.config import Config
from zeroclaw.envelope import Address, ConversationId, Principal, Sender
from zeroclaw.errors import ConfigError, ToolArgumentsInvalid
from zeroclaw.foreign import Raised, call, call_now
from zeroclaw.gate.action import parse_arguments
from zeroclaw.gate.conditions import EFFECTS, Query, ToolFacts, facts_of
from zeroclaw.inbound.people import OPERATOR, People
from zeroclaw.tool import Arguments, Spawned, Tool, ToolContext
from zeroclaw.value import Value

EXAMPLE = "CONVERSATION"
"""Stands for a conversation's id in the path of its workspace."""
RESOLVE_S = 10.0
"""Seconds that a tool gets to say what it would touch."""
_OTHER = ("command:", "approve:")
_UNDECLARED = ToolFacts(effects=EFFECTS, risk="high", declared=False)


class Asked(Value):
    """A question, and what was found out to put it.

    Attributes:
        notes: What the person should know besides, one line each.
    """

    query: Query
    notes: tuple[str, ...] = ()


async def ask(
    config: Config,
    tools: Mapping[str, Tool],
    *,
    who: str,
    action: str,
    arguments: str,
    resources: tuple[str, ...],
    workspaces: Path,
    clock: Clock,
) -> Asked:
    """Return the question.

    Args:
        config: For people.
        tools: Those that are offered, by name.
        who: `operator`, `person:<name>`, `role:<name>` or `<channel>:<sender id>`.
        action: A tool's name, or `tool:<name>`, `command:<name>`, `approve:<tool>`.
        arguments: JSON; empty for none.
        resources: What the call touches; when empty the tool is asked, if it can say.
        workspaces: Where conversations have theirs.
        clock: For conditions on time, and for the tool.

    Raises:
        ConfigError: Nobody is called so.
        ToolArgumentsInvalid: The arguments don't fit the tool.
    """
    asking = principal(config, who)
    if action.startswith(_OTHER):
        return Asked(
            query=Query(principal=asking, action=action, now=clock.now(), direct=True, own=True)
        )
    name = action.removeprefix("tool:")
    notes: list[str] = []
    tool = tools.get(name)
    if tool is None:
        known = ", ".join(f"`{other}`" for other in tools) or "none"
        notes.append(
            f"no tool is called `{name}` here, so it counts as undeclared; known are {known}"
        )
    given = parse_arguments(arguments) if arguments else None
    touched: tuple[str, ...] | None = resources
    if tool is not None and given is not None:
        given = _checked(tool, given)
        if not resources:
            touched = await _touched(tool, given, asking, workspaces, clock)
    elif not resources:
        notes.append("without arguments and resources the call counts as touching nothing")
    return Asked(
        query=Query(
            principal=asking,
            action=f"tool:{name}",
            now=clock.now(),
            resources=touched,
            facts=_UNDECLARED if tool is None else facts_of(tool.spec),
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
        f"`{who}` is nobody; give `operator`, `person:<name>`, `role:<name>` or "
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
    fault = f"`[[people]]` has no `{name}`; it names {known}"
    raise ConfigError((fault,))


def _checked(tool: Tool, given: Arguments) -> dict[str, object]:
    """Return the arguments as the tool takes them.

    Raises:
        ToolArgumentsInvalid: It does not.
    """
    found = call_now(lambda: dict(tool.check(given)))
    if not isinstance(found, Raised):
        return found
    if isinstance(found.error, ToolArgumentsInvalid):
        raise found.error
    fault = f"the tool could not check them: {found.line}"
    raise ToolArgumentsInvalid((fault,)) from found.error


async def _touched(
    tool: Tool, arguments: Arguments, who: Principal, workspaces: Path, clock: Clock
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
            clock=clock,
            spawned=_nothing_is_started,
        )
        async with asyncio.timeout(RESOLVE_S):
            named = await call(lambda: tool.resources(arguments, context))
    except TimeoutError:
        return None
    finally:
        await asyncio.to_thread(empty.cleanup)
    if isinstance(named, Raised):
        return None
    real = str(workspaces / EXAMPLE)
    return tuple(one.replace(str(workspace), real) for one in named)


async def _nothing_is_started(_spawned: Spawned | None) -> None:
    """Naming resources runs nothing."""
