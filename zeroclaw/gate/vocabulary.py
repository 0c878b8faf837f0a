"""The names that a statement may use: tools, commands, channels, roles and people (pure).

A statement with an unknown name never matches, and a deny that never matches is an open door. So an
unknown tool, command or channel is a fault; an unknown role or person may still come to exist, and
is a warning, as is a wildcard that matches nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import cast

from zeroclaw.envelope import Principal
from zeroclaw.errors import meant
from zeroclaw.gate.conditions import CONDITIONS, Query, ToolFacts
from zeroclaw.gate.policy import Statement, wildcard
from zeroclaw.value import Value, field

ABOUT_TOOLS = frozenset(
    {"effects_within", "effects_any_of", "risk_at_most", "risk_at_least", "declared"}
)
"""The conditions that depend only on the declaration of a tool."""
_NOBODY = Principal(id="", roles=frozenset(), channel="", sender="")


class Vocabulary(Value):
    """All known names.

    Attributes:
        tools: All installed tools, switched on or not, each with the kinds of resources that it
            names, such as `file`; None for one that may name any.
        commands: The bot's own commands.
        channels: The channels of the configuration.
        people: The people of the configuration, by name, each with their roles.
        ids: The ids of people in the configuration, by `<channel>:<sender id>`.
        arguments: The arguments of each tool; a tool that is missing here may take any.
    """

    tools: Mapping[str, frozenset[str] | None]
    commands: Collection[str]
    channels: Collection[str]
    people: Mapping[str, Collection[str]]
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])

    def holders(self, role: str) -> tuple[str, ...]:
        """Return the names of the people who have a role."""
        return tuple(name for name, roles in self.people.items() if role in roles)


class Findings(Value):
    """What is wrong with names, each line with its key path."""

    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Fault(str):
    """A line about a name that can never match; a plain string is a warning."""

    __slots__ = ()


def check_names(statement: Statement, path: str, known: Vocabulary) -> Findings:
    """Return the faults of a statement's names."""
    lines = [
        *(line for one in statement.actions for line in _action(one, f"{path}.actions", known)),
        *_principals(statement.principals, f"{path}.principals", known),
    ]
    if not lines and not any(actions_of(statement, known)):
        kinds = ", ".join(dict.fromkeys(one.partition(":")[0] for one in statement.resources))
        lines.append(
            f"{path}.resources: the statement never matches, for nothing that it names in "
            f"`actions` touches a resource of the kind {kinds}"
        )
    return _sorted([*lines, *_unknown_arguments(statement, path, known)])


def check_approvers(approvers: Iterable[str], path: str, known: Vocabulary) -> Findings:
    """Return the faults of the approvers' names."""
    lines: list[str] = []
    for one in approvers:
        kind, _, name = one.partition(":")
        if name and kind != "channel":
            lines += _principals((one,), path, known)
        else:
            told = "give `role:<name>`, `person:<name>` or `<channel>:<sender id>`"
            lines.append(_Fault(f"{path}: `{one}` names nobody; {told}"))
    return _sorted(lines)


def _sorted(lines: Iterable[str]) -> Findings:
    faults = tuple(str(line) for line in lines if isinstance(line, _Fault))
    return Findings(
        faults=faults, warnings=tuple(line for line in lines if not isinstance(line, _Fault))
    )


def _unknown_arguments(statement: Statement, path: str, known: Vocabulary) -> Iterator[str]:
    """Yield a line for each argument in a condition that none of the statement's tools takes."""
    wanted = statement.when.get("argument_equals")
    kinds = (one.partition(":") for one in actions_of(statement, known))
    tools = {name for kind, _, name in kinds if kind == "tool"}
    if not isinstance(wanted, Mapping) or not tools or not tools <= set(known.arguments):
        return
    taken = {argument for tool in tools for argument in known.arguments[tool]}
    for name in sorted(set(cast("Mapping[str, object]", wanted)) - taken):
        yield (
            f"{path}.when.argument_equals: the statement never matches, for no tool that it "
            f"names has an argument `{name}`{_meant(name, taken)}"
        )


def actions_of(statement: Statement, known: Vocabulary) -> Iterator[str]:
    """Yield the actions that a statement can match, by its names and resources."""
    for action in _actions(known):
        if any(wildcard(pattern)(action) for pattern in statement.actions) and _may_touch(
            statement, action, known
        ):
            yield action


def actions_today(
    statement: Statement, known: Vocabulary, facts: Mapping[str, ToolFacts]
) -> tuple[str, ...]:
    """Return the actions that a statement matches today; tools by all that they declare.

    Conditions on a call, a chat or the time are left open.
    """
    tests = [
        CONDITIONS[name](value) for name, value in statement.when.items() if name in ABOUT_TOOLS
    ]
    found: list[str] = []
    for action in actions_of(statement, known):
        kind, _, name = action.partition(":")
        query = Query(
            principal=_NOBODY,
            action=action,
            now=datetime(2000, 1, 1, tzinfo=UTC),
            facts=facts.get(name),
        )
        if kind != "tool" or (name in facts and all(test(query) for test in tests)):
            found.append(action)
    return tuple(found)


def people_today(statement: Statement, known: Vocabulary) -> tuple[str, ...]:
    """Return whom a statement is about, by name; `anyone` is everyone who is let in."""
    found: list[str] = []
    for one in statement.principals:
        kind, _, name = one.partition(":")
        if kind == "role":
            found += known.holders(name)
        elif kind != "person" or name in known.people:
            found.append(name if kind == "person" else one)
    return tuple(dict.fromkeys(found))


def _actions(known: Vocabulary) -> Iterator[str]:
    for tool in known.tools:
        yield f"tool:{tool}"
        yield f"approve:{tool}"
    for command in known.commands:
        yield f"command:{command}"


def _may_touch(statement: Statement, action: str, known: Vocabulary) -> bool:
    """Whether an action can touch a resource that the statement names, if it names any."""
    kind, _, name = action.partition(":")
    named = {one.partition(":")[0] for one in statement.resources}
    if not named:
        return True
    if kind != "tool":
        return False  # commands and answers have no resources
    kinds = known.tools[name]
    return kinds is None or "*" in named or not kinds.isdisjoint(named)


def _action(action: str, path: str, known: Vocabulary) -> Iterator[str]:
    kind, _, name = action.partition(":")
    names = known.commands if kind == "command" else known.tools
    what = "command" if kind == "command" else "tool"
    if "*" not in action:
        if name not in names:
            yield _Fault(f"{path}: no {what} is called `{name}`{_meant(name, names)}")
    elif not any(wildcard(action)(one) for one in _actions(known)):
        yield f"{path}: `{action}` matches no {what} that there is"


def _principals(principals: Iterable[str], path: str, known: Vocabulary) -> Iterator[str]:
    roles = {role for held in known.people.values() for role in held}
    kinds = {"role", "person", "channel", *known.channels}
    for one in principals:
        kind, _, name = one.partition(":")
        if kind == "role" and name not in roles:
            yield f"{path}: nobody has the role `{name}`{_meant(name, roles)}"
        elif kind == "person" and name not in known.people:
            yield f"{path}: nobody is called `{name}`{_meant(name, known.people)}"
        elif kind == "channel" and name not in known.channels:
            meant = _meant(name, known.channels)
            yield _Fault(f"{path}: there is no channel `{name}`{meant}")
        elif one in known.ids:
            person = f"person:{known.ids[one]}"
            yield f"{path}: `{one}` is `{person}`, and is known by that name alone; write it so"
        elif name and kind not in kinds:
            meant = _meant(kind, kinds)
            yield _Fault(f"{path}: `{one}` names no channel of the configuration{meant}")


def _meant(name: str, names: Iterable[str]) -> str:
    """Return which name was probably meant, if one is near; else all known names."""
    listed = sorted(names)
    if near := meant(name, listed):
        return near
    return f"; there are {', '.join(f'`{one}`' for one in listed)}" if listed else ""
