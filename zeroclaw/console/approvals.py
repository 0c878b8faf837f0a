"""Shows the open approval requests, each with its complete call, and the newest that have ended.

Pure. A call is shown as on its card: uncut, with its hash.
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
    listing,
    panel,
    pill,
    tag,
)
from zeroclaw.envelope import Choice
from zeroclaw.gate.approval import Approval, approver_names, card_of
from zeroclaw.text.language import ENGLISH
from zeroclaw.value import Value

MAX_ROWS = 100
"""Open requests on one page; the next ones appear as these are answered."""


class RequestView(Value):
    """An approval request, and the chat that it comes from.

    Attributes:
        where: The chat, for people; empty if its conversation was deleted.
        number: Its number in the web chat, 0 if it has none there. Numbers count per chat, so
            another chat's number could mean another call.
    """

    approval: Approval
    where: str
    number: int = 0


def approvals(
    paths: ConsolePaths, pending: Sequence[RequestView], ended: Sequence[RequestView]
) -> Html:
    """Return the section; both lists are shown in the given order."""
    rest = "more come up as these are answered."
    cards = cut(partial(_card, paths), pending, MAX_ROWS, rest, id_="cards")
    if not pending:
        cards = empty(
            "Nothing waits for you.",
            "A call that needs approval is shown here in full until you or another approver"
            " answers, whichever chat it comes from.",
            'Try it in the chat: `/tool shell {"command": "date"}`',
        )
    endings = listing(*(_row(paths, view) for view in ended), id_="endings")
    if not ended:
        endings = empty(
            "No request has ended recently.", "Who answered each one, and how, is listed here."
        )
    recent = panel("Recently ended", endings, id_="ended")
    return joined((panel("Waiting", cards, id_="waiting"), recent))


def _card(paths: ConsolePaths, view: RequestView) -> Html:
    request = view.approval
    (call,) = card_of((request,), "").calls
    number = str(view.number or "")
    summary = tag(
        "h3",
        *([tag("span", number, class_="number"), " "] if number else []),
        tag("code", request.tool),
        " ",
        tag("span", coded(request.summary), class_="summary"),
        id=f"call-{request.action}",
    )
    facts = _facts(
        ("asked by", tag("bdi", request.requester.label)),
        ("where", chat_link(paths, request.conversation, view.where)),
        ("approvers", approver_names(request.approvers, "en")),
        ("deadline", deadline(request.deadline_at)),
    )
    return tag(
        "li",
        tag(
            "article",
            summary,
            _arguments(request),
            tag(
                "p",
                tag("span", coded(call.why)),
                tag("code", call.hash8, class_="hash", title=_HASH),
                class_="why",
            ),
            *([tag("p", tag("span", coded(call.scope)), class_="why")] if call.scope else []),
            facts,
            _answers(paths, request),
            aria_labelledby=f"call-{request.action}",
        ),
        id=f"card-{request.action}",
        class_="card",
    )


_WORDS = CardWords(ENGLISH)
_BUTTON_LOOKS: Mapping[Choice, str] = {"once": "yes", "for_a_time": "", "deny": "no"}
_HASH = "the beginning of the hash of exactly this call"


def _answers(paths: ConsolePaths, request: Approval) -> Html:
    buttons = [
        button(_WORDS.label(choice), name="choice", value=choice, look=look)
        for choice, look in _BUTTON_LOOKS.items()
        if choice in request.choices
    ]
    id_ = f"reason-{request.action}"
    reason = tag(
        "details",
        tag("summary", _WORDS.label("deny_with_reason")),
        form(
            paths,
            "approvals",
            tag("label", "Reason", for_=id_, class_="sr-only"),
            field(
                id_,
                name="reason",
                required=True,
                maxlength=2000,
                placeholder="why not, for the bot to read",
            ),
            button(_WORDS.label("deny"), name="choice", value="deny_with_reason", look="no"),
            label="deny, because",
            approval=request.id,
        ),
        id=f"why-{request.action}",
        class_="reasoning",
    )
    answer = form(paths, "approvals", *buttons, label="answer", approval=request.id)
    return tag("div", answer, reason, class_="answers")


def _row(paths: ConsolePaths, view: RequestView) -> Html:
    request = view.approval
    by: tuple[Node, ...] = ("by ", tag("bdi", request.by), " · ") if request.by else ()
    at = instant(request.at) if request.at else ""
    reason = tag("q", request.reason, class_="reason")
    return tag(
        "li",
        tag(
            "details",
            tag(
                "summary",
                pill(request.state, ENDINGS.get(request.state, "quiet")),
                " ",
                tag("code", request.tool),
                " ",
                tag("span", coded(request.summary), class_="summary"),
                tag("span", *by, at, class_="aside"),
            ),
            _arguments(request),
            tag("p", coded(request.why), class_="why"),
            _facts(
                ("asked by", tag("bdi", request.requester.label)),
                ("where", chat_link(paths, request.conversation, view.where)),
            ),
            id=f"end-{request.action}",
        ),
        *([reason] if request.reason else []),
        id=f"ended-{request.action}",
    )


def _arguments(request: Approval) -> Html:
    return tag(
        "pre", tag("code", request.arguments), tabindex=0, role="group", aria_label="the whole call"
    )


def _facts(*facts: tuple[str, Node]) -> Html:
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)
    return tag("dl", *pairs, class_="facts")
