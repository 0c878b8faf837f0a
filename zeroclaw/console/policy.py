"""Shows the policy explainer (a question, the answer, the reasons), the statements and the tools.

Pure; the policy itself gives the answer.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import starmap
from urllib.parse import urlencode

from msgspec import to_builtins

from zeroclaw.config.model import StatementEffect
from zeroclaw.console.frame import ConsolePaths, button
from zeroclaw.console.markup import Html, Node, coded, codes, field, joined, panel, pill, table, tag
from zeroclaw.gate.conditions import facts_of
from zeroclaw.gate.policy import Considered, Statement
from zeroclaw.gate.ruling import Explained
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.tool import ToolSpec
from zeroclaw.value import Value

_LOOKS: dict[StatementEffect, str] = {"allow": "good", "ask": "ask", "deny": "bad"}
_VERDICTS: dict[StatementEffect, str] = {
    "allow": "may do it",
    "ask": "may do it if an approver says yes",
    "deny": "may not do it",
}
MAX_CHARS = 3_000
"""Most characters in one field. The form is sent in the URL, where a character takes up to 9 bytes, and
the listener reads a head of 64 KiB."""


Answer = Explained | str | None
"""A string is the reason why the question can't be answered."""


def policy(
    paths: ConsolePaths,
    asked: Mapping[str, str],
    hints: Mapping[str, Sequence[str]],
    answer: Answer,
    statements: Sequence[Statement],
) -> Html:
    """Return the section.

    Args:
        paths: The paths of the console.
        asked: The form's fields, as they were sent.
        hints: The known people and actions, by the field that takes them.
        answer: The answer; None if nothing was asked.
        statements: The statements in force.
    """
    panels: list[Html] = [panel("May X do Y?", _form(paths, asked, hints), id_="question")]
    if isinstance(answer, str):
        trouble = tag("p", coded(answer), class_="trouble", role="alert")
        panels.append(panel("The question", trouble, id_="answer"))
    elif answer is not None:
        panels.append(_answer(answer))
    panels.append(_statements(statements))
    return joined(panels)


def _form(
    paths: ConsolePaths, asked: Mapping[str, str], hints: Mapping[str, Sequence[str]]
) -> Html:
    resources = "Resources, one per line; leave empty to ask the tool"
    return tag(
        "form",
        _field("who", "Who", asked, hints, example="operator, person:ann, telegram:4711"),
        _field("action", "Tool or action", asked, hints, example="shell"),
        _area("arguments", "Arguments, as JSON", asked, example='{"command": "ls"}'),
        _area("resources", resources, asked, example="host:example.org:443"),
        button("Explain", look="yes"),
        method="get",
        action=paths.to("policy"),
        class_="question",
    )


def _field(
    name: str,
    label: str,
    asked: Mapping[str, str],
    hints: Mapping[str, Sequence[str]],
    *,
    example: str,
) -> Html:
    options = (tag("option", value=hint) for hint in hints[name])
    return tag(
        "p",
        tag("label", label, for_=name),
        field(
            name,
            name=name,
            value=asked.get(name, ""),
            list=f"{name}-known",
            required=True,
            maxlength=300,
            placeholder=example,
            autocapitalize="none",
            spellcheck="false",
        ),
        tag("datalist", *options, id=f"{name}-known"),
    )


def _area(name: str, label: str, asked: Mapping[str, str], *, example: str) -> Html:
    value = asked.get(name, "")
    return tag(
        "p",
        tag("label", label, for_=name),
        tag(
            "textarea",
            "\n" if value.startswith("\n") else "",
            value,
            id=name,
            name=name,
            rows=2,
            maxlength=MAX_CHARS,
            placeholder=example,
            autocomplete="off",
            autocapitalize="none",
            spellcheck="false",
        ),
        class_="area",
    )


# --- the answer ----------------------------------------------------------------------------------


def _answer(explained: Explained) -> Html:
    decision, resources = explained.ruling.decision, explained.query.resources
    effect = decision.effect
    resources_text: Node = "what it would touch can't be told"
    if resources is not None:
        resources_text = joined(codes(resources)) if resources else "nothing that has a name"
    notes = (tag("p", coded(item), class_="note") for item in explained.notes)
    ordered = sorted(explained.considered, key=lambda item: not item.matched)
    decisive = frozenset(decision.statements)
    rows = (_considered(item, is_decisive=item.statement.id in decisive) for item in ordered)
    return panel(
        "The answer",
        tag(
            "p",
            pill(effect, _LOOKS[effect]),
            " ",
            tag("code", explained.subject),
            f" {_VERDICTS[effect]}: ",
            tag("code", explained.query.action),
            class_="answer",
        ),
        tag("p", coded(decision.reason)),
        tag("p", "Decided by: ", explained.ruling.by, class_="aside"),
        tag("p", "Touches: ", resources_text, class_="aside"),
        *notes,
        table(
            ("statement", "effect", "matches", "why"),
            rows,
            caption="how each statement stood to the question",
        ),
        id_="answer",
    )


def _considered(considered: Considered, *, is_decisive: bool) -> Html:
    statement = considered.statement
    return tag(
        "tr",
        tag("th", tag("code", statement.id), scope="row"),
        tag("td", pill(statement.effect, _LOOKS[statement.effect])),
        tag("td", "yes" if considered.matched else "no"),
        tag("td", coded(considered.reason or (statement.note if considered.matched else ""))),
        data_made="true" if is_decisive else None,
        data_matched="true" if considered.matched else "false",
    )


# --- the tools -----------------------------------------------------------------------------------


class ToolRow(Value):
    """A tool, and the policy's effect on it as far as that does not depend on the call.

    Attributes:
        spec: The tool's declaration.
        group: The package or the built-in group that it comes from.
        operator: The effect for an operator in a direct chat; None if it depends on the call.
        others: The same for all other admitted people.
    """

    spec: ToolSpec
    group: str
    operator: StatementEffect | None
    others: StatementEffect | None


def tools(paths: ConsolePaths, rows: Sequence[ToolRow], disabled: Sequence[str]) -> Html:
    """Return the section; `disabled` names the built-in groups that are switched off."""
    notes = [tag("p", "Off: ", *codes(disabled), class_="note")] if disabled else []
    note = coded(
        "Each call is decided when it is made: by what it touches, by grants, and in `full` by whether"
        " the turn holds untrusted text. Each name links to the explanation."
    )
    heads = ("tool", "from", "effects · risk", "for operators", "for others")
    body = table(heads, (_tool(paths, row) for row in rows), caption="the tools that are on")
    return panel("What a model may call", tag("p", note, class_="note"), body, *notes, id_="tools")


def _tool(paths: ConsolePaths, row: ToolRow) -> Html:
    spec = row.spec
    effects = ", ".join(sorted(spec.effects)) or "anything, it does not say"
    href = f"{paths.to('policy')}?{urlencode({'who': OPERATOR, 'action': spec.name})}"
    return tag(
        "tr",
        tag("th", tag("a", tag("code", spec.name), href=href), scope="row"),
        tag("td", row.group),
        tag("td", f"{effects} · {facts_of(spec).risk}"),
        tag("td", _effect(row.operator)),
        tag("td", _effect(row.others)),
    )


def _effect(effect: StatementEffect | None) -> Html:
    return pill("depends on the call", "quiet") if effect is None else pill(effect, _LOOKS[effect])


# --- statements in force -------------------------------------------------------------------------


def _statements(statements: Sequence[Statement]) -> Html:
    note = "Deny beats ask beats allow, whatever the order; what nothing matches is denied."
    heads = ("statement", "effect", "principals", "actions", "resources", "when", "note")
    rows = table(heads, map(_statement, statements), caption="the statements in force")
    return panel("In force", tag("p", note, class_="note"), rows, id_="statements")


def _statement(statement: Statement) -> Html:
    return tag(
        "tr",
        tag("th", tag("code", statement.id), scope="row"),
        tag("td", pill(statement.effect, _LOOKS[statement.effect])),
        tag("td", ", ".join(statement.principals)),
        tag("td", *codes(statement.actions)),
        tag("td", *codes(statement.resources)),
        tag("td", *codes(starmap(_condition, statement.when.items()))),
        tag("td", coded(statement.note), class_="aside"),
    )


def _condition(name: str, value: object) -> str:
    return f"{name} = {json.dumps(to_builtins(value), ensure_ascii=False)}"
