"""A policy statement, and how one that an operator wrote is checked.

Principals are `anyone`, `role:<name>`, `channel:<name>`, or a principal's id to the letter
(`person:ann`, `telegram:4711`). Actions and resources are patterns in which `*` stands for any
run of characters, `/` included, as in IAM; there is no other sign. Actions: `tool:<name>`,
`command:<name>`, `approve:<tool>` (who may answer an approval). Resources: `file:/real/path`,
`host:<name>:<port>`, `sandbox:<place>`, `notes:of:<principal>` and `notes:in:<chat>`,
`results:<conversation>`, `attachment:<conversation>/<number>`, always compared in their normal
form, so a folder and what is in it are two patterns: `file:/srv/notes`, `file:/srv/notes/*`. A
call's own resource may hold a `*` too: `host:*` is what a sandbox with network grants, and stands
for all of it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from zeroclaw.errors import ConfigError
from zeroclaw.gate.conditions import CONDITIONS
from zeroclaw.resource import resource_form
from zeroclaw.value import Value, field

StatementEffect = Literal["allow", "ask", "deny"]
EFFECTS: tuple[StatementEffect, ...] = get_args(StatementEffect)

_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PRINCIPAL = re.compile(r"anyone|(?!anyone:)[^\s:*]+:[^\s*]+")
_ACTION = re.compile(r"\*|(tool|command|approve):\S+")
_RESOURCE = re.compile(r"\*|file:[/*].*|(host|sandbox|notes|results|attachment):.+", re.DOTALL)
# What there is but files and hosts, as tools name it, see the docstring above.
_OTHERS: Mapping[str, re.Pattern[str]] = {
    "sandbox": re.compile(r"workspace|none"),
    "notes": re.compile(r"of:[^:]+:.+|in:.+"),
    "results": re.compile(r"[^:/]+"),
    "attachment": re.compile(r"[^:/]+/[1-9][0-9]*"),
}


class Statement(Value):
    """One sentence of the policy; the order of statements means nothing.

    Attributes:
        id: Unique in the whole policy; decisions name it. Shipped ones hold a dot.
        effect: Deny beats ask beats allow.
        principals: Whom it is about, any of them.
        actions: What it is about, any of these patterns.
        resources: Which things it is about; empty for whatever the call touches.
        when: Conditions by name, all of which must hold.
        note: Why it exists, one line for the person who reads the decision.
    """

    id: str
    effect: StatementEffect
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ()
    when: Mapping[str, object] = field(default_factory=dict[str, object])
    note: str = ""


def configured(
    entries: Sequence[Mapping[str, object]], path: str = "policy.statement"
) -> tuple[Statement, ...]:
    """Return the statements of a configuration.

    Raises:
        ConfigError: With every fault of every entry.
    """
    statements: list[Statement] = []
    faults: list[str] = []
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        here = f"{path}[{number}]"
        checked = check_statement(entry, here)
        if not isinstance(checked, Statement):
            faults.extend(checked)
        elif checked.id in seen:
            faults.append(f"{here}.id: `{checked.id}` is used by another statement")
        else:
            seen.add(checked.id)
            statements.append(checked)
    if faults:
        raise ConfigError(tuple(faults))
    return tuple(statements)


def check_statement(entry: Mapping[str, object], path: str) -> Statement | tuple[str, ...]:
    """Return the statement that the entry describes, or all its faults with their key paths."""
    faults = [
        f"{path}.{_shown(key)}: unknown key, allowed are {', '.join(_KEYS)}"
        for key in sorted(set(entry) - set(_KEYS))
    ]
    name = _text(entry, "id", path, faults)
    if name and not _ID.fullmatch(name):
        faults.append(f"{path}.id: must be lower-case letters, digits, `-` and `_`")
    effect: StatementEffect | None = next(
        (known for known in EFFECTS if known == entry.get("effect")), None
    )
    if effect is None:
        faults.append(f"{path}.effect: must be one of {', '.join(EFFECTS)}")
    note = _text(entry, "note", path, faults) if "note" in entry else ""
    if len(note.splitlines()) > 1:
        faults.append(f"{path}.note: must be one line")
    principals = _patterns(entry, "principals", path, _PRINCIPAL, faults)
    actions = _patterns(entry, "actions", path, _ACTION, faults)
    resources: tuple[str, ...] = ()
    if "resources" in entry:
        written = _patterns(entry, "resources", path, _RESOURCE, faults)
        resources = tuple(_resource(one, f"{path}.resources", faults) for one in written)
    when = _conditions(entry.get("when", {}), f"{path}.when", faults)
    if faults or effect is None:
        return tuple(faults)
    return Statement(
        id=name,
        effect=effect,
        principals=principals,
        actions=actions,
        resources=resources,
        when=when,
        note=note,
    )


_KEYS = ("id", "effect", "principals", "actions", "resources", "when", "note")

_ALLOWED = {
    "principals": "`anyone`, `role:<name>`, `person:<name>`, `channel:<name>` or `<channel>:<id>`",
    "actions": "`tool:<name>`, `command:<name>`, `approve:<tool>` or `*`, with `*` as wildcard",
    "resources": "`file:/<real path>`, `host:<name>:<port>`, `sandbox:<place>`, `notes:<whose>`, "
    "`results:<conversation>` or `attachment:<conversation>/<number>`, with `*` as wildcard; leave the key out for any",
}


def _shown(value: object) -> str:
    """Return what somebody wrote so that it stays on one line."""
    return " ".join(str(value).split())[:200]


def _text(entry: Mapping[str, object], key: str, path: str, faults: list[str]) -> str:
    value = entry.get(key)
    if isinstance(value, str) and value:
        return value
    faults.append(f"{path}.{key}: must be a text that is not empty")
    return ""


def _patterns(
    entry: Mapping[str, object], key: str, path: str, form: re.Pattern[str], faults: list[str]
) -> tuple[str, ...]:
    """Return a list of texts of one form.

    An empty list is a fault: it could mean nobody as well as anybody.
    """
    value = entry.get(key)
    if not isinstance(value, list | tuple) or not value:
        faults.append(f"{path}.{key}: must be a list of {_ALLOWED[key]}")
        return ()
    items = cast("Sequence[object]", value)
    faults.extend(
        f"{path}.{key}: `{_shown(item)}` is not one of {_ALLOWED[key]}"
        for item in items
        if not isinstance(item, str) or not form.fullmatch(item)
    )
    return tuple(str(item) for item in items)


def _resource(written: str, path: str, faults: list[str]) -> str:
    """Return a resource in the form in which tools name it; one that has none is a fault."""
    kind, _, rest = written.partition(":")
    known = _OTHERS.get(kind)
    try:
        form = resource_form(written)
    except ValueError as error:
        faults.append(f"{path}: `{_shown(written)}` {error}")
        return written
    if known is not None and "*" not in rest and not known.fullmatch(rest):
        names = "`sandbox:workspace`, `notes:of:<principal>`, `attachment:<conversation>/<number>`"
        faults.append(f"{path}: `{_shown(written)}` is nothing that a tool names, such as {names}")
    return form


def _conditions(value: object, path: str, faults: list[str]) -> dict[str, object]:
    if not isinstance(value, Mapping):
        faults.append(f"{path}: must be a table of conditions")
        return {}
    when = {str(key): item for key, item in cast("Mapping[object, object]", value).items()}
    for name, item in when.items():
        condition = CONDITIONS.get(name)
        if condition is None:
            faults.append(
                f"{path}.{_shown(name)}: unknown condition, known are {', '.join(CONDITIONS)}"
            )
            continue
        try:
            condition(item)
        except ValueError as error:
            faults.append(f"{path}.{name}: {error}")
    return when
