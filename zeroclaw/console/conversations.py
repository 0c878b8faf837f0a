"""Shows the list of conversations, and what was said in one of them.

Pure. Texts look as in the chat, with the receipts of an answer next to its text. Any other markup
in a text is shown as plain text.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from zeroclaw.channel import Outcome, SentFile, TranscriptItem
from zeroclaw.console.frame import ConsolePaths
from zeroclaw.console.markup import (
    ENDINGS,
    Html,
    Node,
    coded,
    empty,
    instant,
    joined,
    line,
    listing,
    panel,
    pill,
    table,
    tag,
)
from zeroclaw.envelope import Address, CheckedReceipt, ConversationId, is_off_the_record
from zeroclaw.value import Value

State = Literal["waiting for approval", "running", "queued", "failed", "idle"]
_KINDS: dict[State, str] = {
    "waiting for approval": "ask",
    "running": "good",
    "queued": "good",
    "failed": "bad",
    "idle": "quiet",
}


OFF_THE_RECORD = "off the record"
"""Replaces the title of a conversation off the record, whose contents are not shown here."""


class ConversationSummary(Value):
    """One conversation of the list.

    Attributes:
        title: Its title, or how it began; empty if neither may be shown.
        people: Names of its recent writers.
        last_at: Time of the last message; None if there is none.
        entries: Number of entries its journal has had.
        audited: Number of entries its audit chain has had.
        queued: Messages that wait for their turn.
    """

    id: ConversationId
    address: Address
    started_at: datetime
    people: tuple[str, ...]
    last_at: datetime | None
    state: State
    entries: int = 0
    audited: int = 0
    queued: int = 0
    title: str = ""


class FilledWindow(Value):
    """An estimate of the next model request of a conversation.

    Attributes:
        words: How full the window is.
        rows: What fills it, each with its tokens.
        tokens: Tokens of the whole request.
        window: The model's context window; None if unknown.
    """

    words: str
    rows: Sequence[tuple[str, int]]
    tokens: int
    window: int | None


def conversations(place: ConsolePaths, told: Sequence[ConversationSummary], links: Html) -> Html:
    """Return the section: one page of conversations, newest first, and the links to the others."""
    shown = listing(*(_row(place, one, "talk") for one in told), id_="talks")
    if not told and not links.text:
        shown = empty(
            "Nobody has said anything yet.",
            "Each chat has a conversation, and a new one after `/new`. Here you see whose they are,"
            " what they are doing, and all that was said.",
        )
    return panel("All, newest first", shown, links, id_="conversations")


def at_work(place: ConsolePaths, told: Sequence[ConversationSummary], count: int) -> Html:
    """Return conversations with an open turn, of so many; empty if there is none."""
    if not told:
        return Html("")
    rows = (_row(place, one, "work") for one in told)
    title = "At work now" if count <= len(told) else f"At work now, newest {len(told)} of {count:,}"
    return panel(title, listing(*rows, id_="working"), id_="at-work")


def _row(place: ConsolePaths, one: ConversationSummary, row: str) -> Html:
    path = place.to("conversations", one.id)
    link = tag("a", tag("bdi", one.address.in_words()), href=path)
    return line(
        (pill(one.state, _KINDS[one.state]), " ", link),
        tuple(_facts(one)),
        *([_audit(place, one)] if one.audited else []),
        id_=f"{row}-{one.id}",
    )


def _audit(place: ConsolePaths, one: ConversationSummary) -> Html:
    return tag("a", "audit", href=f"{place.to('audit')}?of={one.id}", class_="more")


def _facts(one: ConversationSummary) -> Iterable[Node]:
    if is_off_the_record(one.id):
        yield f"{OFF_THE_RECORD} · "
    elif one.title:
        # A model or a writer chose the title, so it is quoted, like every name that a person chose.
        yield tag("q", tag("bdi", one.title), class_="about")
        yield " · "
    if one.people:
        yield tag("bdi", ", ".join(one.people))
        yield " · "
    if one.last_at is None:
        yield "began "
        yield instant(one.started_at)
    else:
        yield "last "
        yield instant(one.last_at)
    yield f" · {counted(one.entries, 'journal entry', 'journal entries')}"
    if one.audited:
        yield f" · {counted(one.audited, 'audit entry', 'audit entries')}"
    if one.queued:
        yield f" · {counted(one.queued, 'message waits', 'messages wait')}"


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


# --- one conversation ----------------------------------------------------------------------------


def conversation(
    place: ConsolePaths, told: ConversationSummary, lines: Sequence[TranscriptItem], links: Html
) -> Html:
    """Return one conversation: its state, and a page of what was said, in order."""
    head = tag(
        "p",
        pill(told.state, _KINDS[told.state]),
        " ",
        *_facts(told),
        *([" · ", _audit(place, told)] if told.audited else []),
        " · ",
        tag("a", "what the model is told", href=f"{place.to('conversations', told.id)}?window=1"),
        " · ",
        tag("a", "all conversations", href=place.to("conversations")),
        class_="aside",
        id="how",
    )
    said: tuple[Html, ...] = (
        empty(
            "Nothing that was said is kept.",
            "Messages that are older than `[retention]` allows, or that somebody had forgotten, are"
            " deleted; what is said off the record is neither kept nor shown.",
        ),
    )
    if lines:
        said = (links, tag("ol", *map(_said, lines), id="talk", class_="talk"))
    return joined((head, panel("Said", *said, id_="said")))


def filling(place: ConsolePaths, told: ConversationSummary, filled: FilledWindow | None) -> Html:
    """Return what the model is told, as a bar and a table; None means that nobody has written."""
    back = tag("a", "what was said", href=place.to("conversations", told.id))
    head = tag("p", *_facts(told), " · ", back, class_="aside", id="how")
    nothing = empty("Nobody has written here.", "The model has been told nothing yet.")
    shown = (nothing,) if filled is None else _filled(filled)
    return joined((head, panel("The model's window", *shown, id_="window")))


def _filled(filled: FilledWindow) -> tuple[Html, ...]:
    bar = tag("progress", value=filled.tokens, max=filled.window, aria_label=filled.words)
    rows = (
        tag("tr", tag("td", tag("bdi", name)), tag("td", f"{tokens:,}"))
        for name, tokens in filled.rows
    )
    return (
        *(() if filled.window is None else (bar,)),
        tag("p", f"Before the next message, by estimate: {filled.words}", class_="note"),
        table(("part", "tokens"), rows, caption="what fills the window, in its order"),
    )


def _said(one: TranscriptItem) -> Html:
    id_ = f"item-{one.cursor}"
    by = "question" if one.outcome is not None else one.by or one.kind
    who = tag("p", tag("bdi", by), " · ", instant(one.at), class_="aside")
    if one.outcome is not None:
        return tag("li", who, _outcome(one.outcome), id=id_, class_="asked")
    file = [] if one.sent is None else [_file(one.sent)]
    said = (tag("p", one.text),) if one.plain else text(one.text)
    # Outside the body, where text can't imitate them.
    proofs = [tag("ul", *map(_receipt, one.receipts), class_="receipts")] if one.receipts else []
    body = tag("div", *file, *said, class_="body")
    return tag("li", who, body, *proofs, id=id_, class_=one.kind)


def _file(sent: SentFile) -> Html:
    size = counted(sent.size_bytes, "byte", "bytes")
    return tag("p", "file ", tag("code", sent.name), f", {size}")


def _outcome(outcome: Outcome) -> Html:
    endings = {ending.approval: ending for ending in outcome.endings}
    lines: list[Html] = []
    for call in outcome.card.calls:
        ending = endings.get(call.approval)
        how = pill("open", "ask") if ending is None else pill(ending.how, ENDINGS[ending.how])
        by = f" by {ending.by}" if ending is not None and ending.by else ""
        reason = [" ", tag("q", ending.reason)] if ending is not None and ending.reason else []
        lines.append(
            tag("p", how, " ", tag("code", call.tool), " ", coded(call.summary), by, *reason)
        )
    return tag("div", *lines, class_="body")


# --- texts ---------------------------------------------------------------------------------------

_WORDS = {"valid": "receipt checked", "earlier": "receipt of an earlier run"}
_CODE_OR_STRONG = re.compile(r"`([^`]+)`|\*\*([^*\n]+)\*\*")
_FENCE = re.compile("^```[^\n`]*\n(.*?)(?:^```[ \t]*$|\\Z)", re.DOTALL | re.MULTILINE)


def text(said: str) -> tuple[Html, ...]:
    """Return a text with code blocks and inline markup; everything else as written."""
    parts = _FENCE.split(said)
    found: list[Html] = []
    for place, part in enumerate(parts):
        if place % 2:
            found.append(tag("pre", tag("code", part.rstrip("\n")), tabindex=0))
        elif part.strip("\n"):
            found.append(tag("p", _marked(part.strip("\n"))))
    return tuple(found)


def _receipt(one: CheckedReceipt) -> Html:
    verdict = "earlier" if one.earlier else "valid"
    return tag(
        "li", coded(one.line()), class_="receipt", title=_WORDS[verdict], data_verdict=verdict
    )


def _marked(part: str) -> Html:
    """Return a text with inline code and bold; other markup stays as written."""
    pieces = _CODE_OR_STRONG.split(part)
    nodes: list[Node] = []
    for place in range(0, len(pieces) - 1, 3):
        plain, code, strong = pieces[place : place + 3]
        nodes += [plain, tag("code", code) if code else tag("strong", strong)]
    return joined((*nodes, pieces[-1]))
