"""Shows what runs without asking for a time, and how to end it.

Pure.
"""

from collections.abc import Sequence

from zeroclaw.console.frame import Place, button, form
from zeroclaw.console.markup import Html, coded, deadline, empty, listing, panel, tag
from zeroclaw.gate.grant import Grant, name_of
from zeroclaw.value import Value

MOST_SHOWN = 200


class Held(Value):
    """A grant that holds.

    Attributes:
        line: What it is, for people; redacted.
        where: The chat where it holds; empty when it is known no more.
    """

    grant: Grant
    line: str
    where: str


def grants(place: Place, held: Sequence[Held]) -> Html:
    """Return the section."""
    if not held:
        nothing = empty(
            "Nothing is granted: every call that needs an answer asks for it.",
            "Approve a call for a time, and the same tool may do the same again in that"
            " conversation without asking; it stands here while it holds.",
        )
        return panel("In force", nothing, id_="grants")
    rows = (_row(place, one) for one in held[:MOST_SHOWN])
    more = len(held) - MOST_SHOWN
    note = tag("p", coded(f"{more} more are not shown; `/grants` lists them."), class_="note")
    return panel(
        "In force", listing(*rows, id_="held"), *([note] if more > 0 else []), id_="grants"
    )


def _row(place: Place, held: Held) -> Html:
    one = held.grant
    where = held.where or one.conversation
    return tag(
        "li",
        tag(
            "div",
            tag("h3", tag("span", name_of(one), class_="number"), " ", coded(held.line)),
            tag(
                "p",
                "for ",
                tag("bdi", one.holder),
                " in ",
                tag("a", where, href=place.to("conversations", one.conversation)),
                " · ",
                deadline(one.until),
                class_="aside",
            ),
        ),
        form(
            place,
            "grants",
            button("Revoke", look="no"),
            label=f"revoke the grant of {one.tool}",
            revoke=one.id,
        ),
        id=f"grant-{one.id}",
        class_="line",
    )
