"""Shows the open approval requests, each with its whole call, and how the newest ones ended.

Pure. A call is shown as on its card: whole, with its hash.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from zeroclaw.card_words import CardWords
from zeroclaw.console.frame import ConsolePaths, button, chat_link, form
from zeroclaw.console.markup import (
    ENDINGS,
    Html,
    Node,
    coded,
    cut,
    deadline,
    empty,
    field,
    instant,
    joined,
    panel,
    pill,
    tag,
)
from zeroclaw.envelope import Choice
from zeroclaw.gate.approval import Approval, card_of, who
from zeroclaw.text.language import ENGLISH
from zeroclaw.value import Value

MOST_SHOWN = 100
"""Open requests on one page; more appear as these are answered."""


class RequestView(Value):
    """An approval request and where it was asked.

    Attributes:
        where: The chat, for people; empty if that is no longer known.
        number: Its number in the web chat, 0 if it has none there. Numbers count per chat, so
            another chat's number could mean another call.
    """

    approval: Approval
    where: str
    number: int = 0


def approvals(
    place: ConsolePaths, waiting: Sequence[RequestView], ended: Sequence[RequestView]
) -> Html:
    """Return the section; both lists are shown in the given order."""
    nothing = empty(
        "Nothing waits for you.",
        "A call that needs approval is shown here in full until you or another approver"
        " answers, whichever chat it comes from.",
        'Try it in the chat: `/tool shell {"command": "date"}`',
    )
    show = partial(_card, place)
    shown = cut(show, waiting, MOST_SHOWN, "more come up as these are answered.", id_="cards")
    first = panel("Waiting", *(shown or (nothing,)), id_="waiting")
    none = empty(
        "No request has ended recently.", "Who answered each one, and how, is listed here."
    )
    over = cut(partial(_row, place), ended, MOST_SHOWN, "more ended before.", id_="endings")
    return joined((first, panel("Recently ended", *(over or (none,)), id_="ended")))


def _card(place: ConsolePaths, asked: RequestView) -> Html:
    one = asked.approval
    (shown,) = card_of((one,), "").calls
    number = str(asked.number or "")
    summary = tag(
        "h3",
        *([tag("span", number, class_="number"), " "] if number else []),
        tag("code", one.tool),
        " ",
        tag("span", coded(one.summary), class_="summary"),
        id=f"call-{one.action}",
    )
    facts = _facts(
        ("asked by", tag("bdi", one.requester.label)),
        ("where", chat_link(place, one.conversation, asked.where)),
        ("approvers", who(one.approvers, "en")),
        ("deadline", deadline(one.deadline_at)),
    )
    return tag(
        "li",
        tag(
            "article",
            summary,
            _whole(one),
            tag(
                "p",
                tag("span", coded(shown.why)),
                tag("code", shown.hash8, class_="hash", title=_HASH),
                class_="because",
            ),
            *([tag("p", tag("span", coded(shown.scope)), class_="because")] if shown.scope else []),
            facts,
            _answers(place, one),
            aria_labelledby=f"call-{one.action}",
        ),
        id=f"card-{one.action}",
        class_="card",
    )


_WORDS = CardWords(ENGLISH)
_LOOKS_OF_ANSWERS: Mapping[Choice, str] = {"once": "yes", "for_a_time": "", "deny": "no"}
_HASH = "the beginning of the hash of exactly this call"


def _answers(place: ConsolePaths, one: Approval) -> Html:
    buttons = [
        button(_WORDS.label(choice), name="choice", value=choice, look=look)
        for choice, look in _LOOKS_OF_ANSWERS.items()
        if choice in one.choices
    ]
    id_ = f"reason-{one.action}"
    reason = tag(
        "details",
        tag("summary", _WORDS.label("deny_with_reason")),
        form(
            place,
            "approvals",
            tag("label", "Reason", for_=id_, class_="unseen"),
            field(
                id_,
                name="reason",
                required=True,
                maxlength=2000,
                placeholder="why not, for the bot to read",
            ),
            button(_WORDS.label("deny"), name="choice", value="deny_with_reason", look="no"),
            label="deny, because",
            approval=one.id,
        ),
        id=f"why-{one.action}",
        class_="reasoning",
    )
    pressed = form(place, "approvals", *buttons, label="answer", approval=one.id)
    return tag("div", pressed, reason, class_="answers")


def _row(place: ConsolePaths, asked: RequestView) -> Html:
    one = asked.approval
    by: tuple[Node, ...] = (" by ", tag("bdi", one.by)) if one.by else ()
    at: tuple[Node, ...] = (" · ", instant(one.at)) if one.at else ()
    reason = tag("q", one.reason, class_="reason")
    return tag(
        "li",
        tag(
            "details",
            tag(
                "summary",
                pill(one.state, ENDINGS.get(one.state, "quiet")),
                " ",
                tag("code", one.tool),
                " ",
                tag("span", coded(one.summary), class_="summary"),
                tag("span", *by, *at, class_="aside"),
            ),
            _whole(one),
            tag("p", coded(one.why), class_="because"),
            _facts(
                ("asked by", tag("bdi", one.requester.label)),
                ("where", chat_link(place, one.conversation, asked.where)),
            ),
            id=f"end-{one.action}",
        ),
        *([reason] if one.reason else []),
        id=f"ended-{one.action}",
    )


def _whole(one: Approval) -> Html:
    return tag("pre", tag("code", one.arguments), tabindex=0, aria_label="the whole call")


def _facts(*facts: tuple[str, Node]) -> Html:
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)
    return tag("dl", *pairs, class_="facts")
