"""Shows the grants in force, which let calls run without asking, and a form to revoke each.

Pure.
"""

from collections.abc import Sequence
from functools import partial

from zeroclaw.console.frame import ConsolePaths, button, chat_link, form
from zeroclaw.console.markup import Html, coded, cut, deadline, empty, line, panel, tag
from zeroclaw.gate.grant import Grant, name_of
from zeroclaw.value import Value

MAX_ROWS = 200


class GrantView(Value):
    """A grant in force.

    Attributes:
        line: Its description for people; redacted.
        where: The chat where it holds; empty if its conversation was deleted.
    """

    grant: Grant
    line: str
    where: str


def grants(paths: ConsolePaths, views: Sequence[GrantView]) -> Html:
    """Return the section."""
    rest = "more are not shown; `/grants` lists them."
    rows = cut(partial(_row, paths), views, MAX_ROWS, rest, id_="held")
    if not views:
        rows = empty(
            "Nothing is granted: every call that needs approval asks for it.",
            "Approve a call for a time, and the same tool may do the same again in that"
            " conversation without asking. Such grants are listed here until they end.",
        )
    return panel("In force", rows, id_="grants")


def _row(paths: ConsolePaths, view: GrantView) -> Html:
    grant = view.grant
    where = chat_link(paths, grant.conversation, view.where)
    return line(
        (tag("span", name_of(grant), class_="number"), " ", coded(view.line)),
        ("for ", tag("bdi", grant.holder), " in ", where, " · ", deadline(grant.until)),
        form(
            paths,
            "grants",
            button("Revoke", look="no"),
            label=f"revoke the grant of {grant.tool}",
            revoke=grant.id,
        ),
        id_=f"grant-{grant.id}",
    )
