"""Shows the grants in force, which let calls run without asking, and a form to revoke each.

Pure.
"""

from collections.abc import Sequence
from functools import partial

from zeroclaw.console.frame import ConsolePaths, button, chat_link, form
from zeroclaw.console.markup import Html, coded, cut, deadline, empty, line, panel, tag
from zeroclaw.gate.grant import Grant, name_of
from zeroclaw.value import Value

MOST_SHOWN = 200


class GrantView(Value):
    """A grant in force.

    Attributes:
        line: Its description for people; redacted.
        where: The chat where it holds; empty if that is no longer known.
    """

    grant: Grant
    line: str
    where: str


def grants(place: ConsolePaths, held: Sequence[GrantView]) -> Html:
    """Return the section."""
    nothing = empty(
        "Nothing is granted: every call that needs approval asks for it.",
        "Approve a call for a time, and the same tool may do the same again in that"
        " conversation without asking. Such grants are listed here until they end.",
    )
    rest = "more are not shown; `/grants` lists them."
    rows = cut(partial(_row, place), held, MOST_SHOWN, rest, id_="held")
    return panel("In force", *(rows or (nothing,)), id_="grants")


def _row(place: ConsolePaths, held: GrantView) -> Html:
    one = held.grant
    where = chat_link(place, one.conversation, held.where)
    return line(
        (tag("span", name_of(one), class_="number"), " ", coded(held.line)),
        ("for ", tag("bdi", one.holder), " in ", where, " · ", deadline(one.until)),
        form(
            place,
            "grants",
            button("Revoke", look="no"),
            label=f"revoke the grant of {one.tool}",
            revoke=one.id,
        ),
        id_=f"grant-{one.id}",
    )
