"""The names that a statement may use: tools, commands, channels, roles and people (pure).

A statement with an unknown name never matches, and a deny that never matches protects nothing. So
an unknown tool, command or channel is a fault; an unknown role or person may still come to exist,
and is a warning, as is a wildcard without a match.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import cast

from zeroclaw.envelope import Principal
from zeroclaw.errors import did_you_mean
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
        tools: All installed tools, enabled or not, each with its kinds of resources, such as
            `file`; None for one that may name any.
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


class Findings(Value):
    """The faults of names, each line with its key path."""

    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Fault(str):
    """A line about a name that can never match; a plain string is a warning."""

    __slots__ = ()


def check_names(statement: Statement, path: str, vocabulary: Vocabulary) -> Findings:
    """Return the faults of a statement's names."""
    lines = [
        *_faults_of_actions(statement.actions, f"{path}.actions", vocabulary),
        *_faults_of_principals(statement.principals, f"{path}.principals", vocabulary),
    ]
    if not lines and not any(actions_of(statement, vocabulary)):
        kinds = ", ".join(dict.fromkeys(name.partition(":")[0] for name in statement.resources))
        lines.append(
            f"{path}.resources: the statement never matches, for none of its `actions` touches a "
            f"resource of the kind {kinds}"
        )
    return _sorted([*lines, *_unknown_arguments(statement, path, vocabulary)])


def check_approvers(approvers: Iterable[str], path: str, vocabulary: Vocabulary) -> Findings:
    """Return the faults of the approvers' names."""
    lines: list[str] = []
    for approver in approvers:
        kind, _, name = approver.partition(":")
        if name and kind != "channel":
            lines += _faults_of_principals((approver,), path, vocabulary)
        else:
            forms = "give `role:<name>`, `person:<name>` or `<channel>:<sender id>`"
            lines.append(_Fault(f"{path}: `{approver}` is no principal; {forms}"))
    return _sorted(lines)


def _sorted(lines: Iterable[str]) -> Findings:
    faults = tuple(str(line) for line in lines if isinstance(line, _Fault))
    return Findings(
        faults=faults, warnings=tuple(line for line in lines if not isinstance(line, _Fault))
    )


def _unknown_arguments(statement: Statement, path: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield a line for each argument in a condition that none of the statement's tools takes."""
    expected = statement.when.get("argument_equals")
    kinds = (action.partition(":") for action in actions_of(statement, vocabulary))
    tools = {name for kind, _, name in kinds if kind == "tool"}
    if not isinstance(expected, Mapping) or not tools or not tools <= set(vocabulary.arguments):
        return
    parameters = {argument for tool in tools for argument in vocabulary.arguments[tool]}
    for name in sorted(set(cast("Mapping[str, object]", expected)) - parameters):
        yield (
            f"{path}.when.argument_equals: the statement never matches, for no tool that it "
            f"names has an argument `{name}`{_suggestion(name, parameters)}"
        )


def actions_of(statement: Statement, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the actions that a statement can match, by its names and resources."""
    for action in _actions(vocabulary):
        if any(wildcard(pattern)(action) for pattern in statement.actions) and _may_touch(
            statement, action, vocabulary
        ):
            yield action


def actions_today(
    statement: Statement, vocabulary: Vocabulary, facts: Mapping[str, ToolFacts]
) -> tuple[str, ...]:
    """Return the actions that a statement matches today; tools by their declarations.

    Conditions on a call, a chat or the time are left open.
    """
    tests = [
        CONDITIONS[name](value) for name, value in statement.when.items() if name in ABOUT_TOOLS
    ]
    actions: list[str] = []
    for action in actions_of(statement, vocabulary):
        kind, _, name = action.partition(":")
        query = Query(
            principal=_NOBODY,
            action=action,
            now=datetime(2000, 1, 1, tzinfo=UTC),
            facts=facts.get(name),
        )
        if kind != "tool" or (name in facts and all(test(query) for test in tests)):
            actions.append(action)
    return tuple(actions)


def people_today(statement: Statement, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the names of the people that a statement is about; `anyone` is every admitted person."""
    names: list[str] = []
    for principal in statement.principals:
        kind, _, name = principal.partition(":")
        if kind == "role":
            names += (person for person, roles in vocabulary.people.items() if name in roles)
        elif kind != "person" or name in vocabulary.people:
            names.append(name if kind == "person" else principal)
    return tuple(dict.fromkeys(names))


def _actions(vocabulary: Vocabulary) -> Iterator[str]:
    for tool in vocabulary.tools:
        yield f"tool:{tool}"
        yield f"approve:{tool}"
    for command in vocabulary.commands:
        yield f"command:{command}"


def _may_touch(statement: Statement, action: str, vocabulary: Vocabulary) -> bool:
    """Whether an action can touch a resource that the statement names, if it names any."""
    kind, _, name = action.partition(":")
    touched = {pattern.partition(":")[0] for pattern in statement.resources}
    if not touched:
        return True
    if kind != "tool":
        return False  # commands and answers have no resources
    kinds = vocabulary.tools[name]
    return kinds is None or "*" in touched or not kinds.isdisjoint(touched)


def _faults_of_actions(actions: Iterable[str], path: str, vocabulary: Vocabulary) -> Iterator[str]:
    for action in actions:
        kind, _, name = action.partition(":")
        names = vocabulary.commands if kind == "command" else vocabulary.tools
        noun = "command" if kind == "command" else "tool"
        if "*" not in action:
            if name not in names:
                yield _Fault(f"{path}: no {noun} is called `{name}`{_suggestion(name, names)}")
        elif not any(map(wildcard(action), _actions(vocabulary))):
            yield f"{path}: `{action}` matches no {noun}"


def _faults_of_principals(
    principals: Iterable[str], path: str, vocabulary: Vocabulary
) -> Iterator[str]:
    roles = set[str]().union(*vocabulary.people.values())
    kinds = {"role", "person", "channel", *vocabulary.channels}
    for principal in principals:
        kind, _, name = principal.partition(":")
        if kind == "role" and name not in roles:
            yield f"{path}: no person has the role `{name}`{_suggestion(name, roles)}"
        elif kind == "person" and name not in vocabulary.people:
            yield f"{path}: no person is called `{name}`{_suggestion(name, vocabulary.people)}"
        elif kind == "channel" and name not in vocabulary.channels:
            hint = _suggestion(name, vocabulary.channels)
            yield _Fault(f"{path}: there is no channel `{name}`{hint}")
        elif principal in vocabulary.ids:
            person = f"person:{vocabulary.ids[principal]}"
            yield f"{path}: `{principal}` is `{person}`, and is known by that name alone; write it so"
        elif name and kind not in kinds:
            hint = _suggestion(kind, kinds)
            yield _Fault(f"{path}: `{principal}` begins with no channel or kind{hint}")


def unused_roles(principals: Iterable[str], vocabulary: Vocabulary) -> Iterator[str]:
    """Return a warning for each role of a person that none of these principals names."""
    named = {name.removeprefix("role:") for name in principals if name.startswith("role:")}
    for person, roles in vocabulary.people.items():
        for role in sorted({*roles} - named):
            hint = _suggestion(role, named)
            yield f"people: `{person}` has the role `{role}`, but no statement names it{hint}"


def _suggestion(name: str, names: Iterable[str]) -> str:
    """Return the name that was probably meant, if one is near; else all names."""
    listed = sorted(names)
    if near := did_you_mean(name, listed):
        return near
    return f"; there are {', '.join(f'`{known}`' for known in listed)}" if listed else ""
