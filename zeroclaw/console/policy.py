"""Shows the policy explainer (a question, the answer, the reasons), the statements and the tools.

Pure; the policy itself gives the answer.
"""

import json
from collections.abc import Sequence
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
_SAID: dict[StatementEffect, str] = {
    "allow": "may do it",
    "ask": "may do it if an approver says yes",
    "deny": "may not do it",
}
MOST_CHARS = 20_000
"""Most characters in one field."""


class Question(Value):
    """The contents of the form.

    Attributes:
        who: In the form of `policy explain --who`.
        action: A tool's name, or an action in policy syntax.
        arguments: JSON; empty for none.
        resources: One per line.
    """

    who: str = ""
    action: str = ""
    arguments: str = ""
    resources: str = ""


class Suggestions(Value):
    """The form's suggestions: known people and actions."""

    people: Sequence[str]
    actions: Sequence[str]


Answer = Explained | str | None
"""A string tells the operator why the question can't be answered."""


def policy(
    place: ConsolePaths,
    typed: Question,
    known: Suggestions,
    answer: Answer,
    statements: Sequence[Statement],
) -> Html:
    """Return the section."""
    shown: list[Html] = [panel("May X do Y?", _form(place, typed, known), id_="question")]
    if isinstance(answer, str):
        said = tag("p", coded(answer), class_="trouble", role="alert")
        shown.append(panel("The question", said, id_="answer"))
    elif answer is not None:
        shown.append(_explained(answer))
    shown.append(_in_force(statements))
    return joined(shown)


def _form(place: ConsolePaths, typed: Question, known: Suggestions) -> Html:
    return tag(
        "form",
        _field("who", "Who", typed.who, known.people, hint="operator, person:ann, telegram:4711"),
        _field("action", "Tool or action", typed.action, known.actions, hint="shell"),
        _area("arguments", "Arguments, as JSON", typed.arguments, hint='{"command": "ls"}'),
        _area(
            "resources",
            "Resources, one per line; leave empty to ask the tool",
            typed.resources,
            hint="file:/srv/notes/a",
        ),
        button("Explain", look="yes"),
        method="get",
        action=place.to("policy"),
        class_="question",
    )


def _field(name: str, label: str, value: str, known: Sequence[str], *, hint: str) -> Html:
    options = (tag("option", value=one) for one in known)
    return tag(
        "p",
        tag("label", label, for_=name),
        field(
            name,
            name=name,
            value=value,
            list=f"{name}-known",
            required=True,
            maxlength=300,
            placeholder=hint,
            autocapitalize="none",
            spellcheck="false",
        ),
        tag("datalist", *options, id=f"{name}-known"),
    )


def _area(name: str, label: str, value: str, *, hint: str) -> Html:
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
            maxlength=MOST_CHARS,
            placeholder=hint,
            autocomplete="off",
            autocapitalize="none",
            spellcheck="false",
        ),
        class_="area",
    )


# --- the answer ----------------------------------------------------------------------------------


def _explained(one: Explained) -> Html:
    decision, resources = one.ruling.decision, one.query.resources
    effect = decision.effect
    touched: Node = "what it would touch can't be told"
    if resources is not None:
        touched = joined(codes(resources)) if resources else "nothing that has a name"
    notes = (tag("p", coded(each), class_="note") for each in one.notes)
    ordered = sorted(one.considered, key=lambda each: not each.matched)
    made = frozenset(decision.statements)
    rows = (_considered(each, is_made=each.statement.id in made) for each in ordered)
    return panel(
        "The answer",
        tag(
            "p",
            pill(effect, _LOOKS[effect]),
            " ",
            tag("code", one.who),
            f" {_SAID[effect]}: ",
            tag("code", one.query.action),
            class_="answer",
        ),
        tag("p", coded(decision.why)),
        tag("p", "Decided by: ", one.ruling.by, class_="aside"),
        tag("p", "Touches: ", touched, class_="aside"),
        *notes,
        table(
            ("statement", "effect", "matches", "why"),
            rows,
            caption="how each statement stood to the question",
        ),
        id_="answer",
    )


def _considered(one: Considered, *, is_made: bool) -> Html:
    statement = one.statement
    return tag(
        "tr",
        tag("th", tag("code", statement.id), scope="row"),
        tag("td", pill(statement.effect, _LOOKS[statement.effect])),
        tag("td", "yes" if one.matched else "no"),
        tag("td", coded(one.why or (statement.note if one.matched else ""))),
        data_made="true" if is_made else None,
        data_matched="true" if one.matched else "false",
    )


# --- the tools -----------------------------------------------------------------------------------


class ToolRow(Value):
    """A tool, and what the policy says about it without knowing a call.

    Attributes:
        spec: The tool's declaration.
        group: The package or the built-in group that it comes from.
        operator: The effect for an operator in a direct chat; None if it depends on the call.
        others: The effect for everybody else who was admitted.
    """

    spec: ToolSpec
    group: str
    operator: StatementEffect | None
    others: StatementEffect | None


def tools(place: ConsolePaths, found: Sequence[ToolRow], off: Sequence[str]) -> Html:
    """Return the section; `off` names the built-in groups that are switched off."""
    more = [tag("p", "Off: ", *codes(off), class_="note")] if off else []
    said = coded(
        "Each call is decided when it is made: by what it touches, by grants, and in `full` by whether"
        " the turn holds untrusted text. Each name links to the explanation."
    )
    heads = ("tool", "from", "effects · risk", "for operators", "for others")
    shown = table(heads, (_tool(place, one) for one in found), caption="the tools that are on")
    return panel("What a model may call", tag("p", said, class_="note"), shown, *more, id_="tools")


def _tool(place: ConsolePaths, one: ToolRow) -> Html:
    spec = one.spec
    effects = ", ".join(sorted(spec.effects)) or "anything, it does not say"
    why = f"{place.to('policy')}?{urlencode({'who': OPERATOR, 'action': spec.name})}"
    return tag(
        "tr",
        tag("th", tag("a", tag("code", spec.name), href=why), scope="row"),
        tag("td", one.group),
        tag("td", f"{effects} · {facts_of(spec).risk}"),
        tag("td", _standing(one.operator)),
        tag("td", _standing(one.others)),
    )


def _standing(effect: StatementEffect | None) -> Html:
    return pill("depends on the call", "quiet") if effect is None else pill(effect, _LOOKS[effect])


# --- statements in force -------------------------------------------------------------------------


def _in_force(statements: Sequence[Statement]) -> Html:
    said = "Deny beats ask beats allow, whatever the order; what nothing matches is denied."
    heads = ("statement", "effect", "principals", "actions", "resources", "when", "note")
    shown = table(heads, map(_statement, statements), caption="the statements in force")
    return panel("In force", tag("p", said, class_="note"), shown, id_="statements")


def _statement(one: Statement) -> Html:
    return tag(
        "tr",
        tag("th", tag("code", one.id), scope="row"),
        tag("td", pill(one.effect, _LOOKS[one.effect])),
        tag("td", ", ".join(one.principals)),
        tag("td", *codes(one.actions)),
        tag("td", *codes(one.resources)),
        tag("td", *codes(starmap(_condition, one.when.items()))),
        tag("td", coded(one.note), class_="aside"),
    )


def _condition(name: str, value: object) -> str:
    return f"{name} = {json.dumps(to_builtins(value), ensure_ascii=False)}"
