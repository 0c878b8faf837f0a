"""Shows the list of conversations, and the transcript of one of them.

Pure. Texts look as in the chat, with the receipts of an answer next to its text. The page's script
draws their Markdown; without it they are shown as written.
"""

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


def conversations(paths: ConsolePaths, page: Sequence[ConversationSummary], links: Html) -> Html:
    """Return the section: one page of conversations, newest first, and the links to other pages."""
    rows = listing(*(_row(paths, summary, "talk") for summary in page), id_="talks")
    if not page and not links.text:
        rows = empty(
            "Nobody has said anything yet.",
            "Each chat has a conversation, and a new one after `/new`. Here you see whose they are,"
            " what they are doing, and all that was said.",
        )
    return panel("All, newest first", rows, links, id_="conversations")


def at_work(paths: ConsolePaths, page: Sequence[ConversationSummary], count: int) -> Html:
    """Return the conversations with an open turn, `count` in all; empty if there is none."""
    if not page:
        return Html("")
    rows = (_row(paths, summary, "work") for summary in page)
    title = "At work now" if count <= len(page) else f"At work now, newest {len(page)} of {count:,}"
    return panel(title, listing(*rows, id_="working"), id_="at-work")


def _row(paths: ConsolePaths, summary: ConversationSummary, prefix: str) -> Html:
    path = paths.to("conversations", summary.id)
    link = tag("a", tag("bdi", summary.address.in_words()), href=path)
    return line(
        (pill(summary.state, _KINDS[summary.state]), " ", link),
        tuple(_facts(summary)),
        *([_audit_link(paths, summary)] if summary.audited else []),
        id_=f"{prefix}-{summary.id}",
    )


def _audit_link(paths: ConsolePaths, summary: ConversationSummary) -> Html:
    return tag("a", "audit", href=f"{paths.to('audit')}?of={summary.id}", class_="more")


def _facts(summary: ConversationSummary) -> Iterable[Node]:
    if is_off_the_record(summary.id):
        yield f"{OFF_THE_RECORD} · "
    elif summary.title:
        # A model or a writer chose the title, so it is quoted, like every name that a person chose.
        yield tag("q", tag("bdi", summary.title), class_="about")
        yield " · "
    if summary.people:
        yield tag("bdi", ", ".join(summary.people))
        yield " · "
    if summary.last_at is None:
        yield "began "
        yield instant(summary.started_at)
    else:
        yield "last "
        yield instant(summary.last_at)
    yield f" · {counted(summary.entries, 'journal entry', 'journal entries')}"
    if summary.audited:
        yield f" · {counted(summary.audited, 'audit entry', 'audit entries')}"
    if summary.queued:
        yield f" · {counted(summary.queued, 'message waits', 'messages wait')}"


def counted(number: int, singular: str, plural: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {singular if number == 1 else plural}"


# --- one conversation ----------------------------------------------------------------------------


def conversation(
    paths: ConsolePaths, summary: ConversationSummary, items: Sequence[TranscriptItem], links: Html
) -> Html:
    """Return one conversation: its state, and a page of its transcript, in order."""
    path = paths.to("conversations", summary.id)
    head = tag(
        "p",
        pill(summary.state, _KINDS[summary.state]),
        " ",
        *_facts(summary),
        *([" · ", _audit_link(paths, summary)] if summary.audited else []),
        " · ",
        tag("a", "what the model is told", href=f"{path}?window=1"),
        " · ",
        tag("a", "all conversations", href=paths.to("conversations")),
        class_="aside",
        id="how",
    )
    rows = tag("ol", *map(_item, items), id="talk", class_="talk")
    if not items:
        rows = empty(
            "Nothing that was said is kept.",
            "Messages that are older than `[retention]` allows, or that somebody had forgotten, are"
            " deleted; what is said off the record is neither kept nor shown.",
        )
    return joined((head, panel("Said", links, rows, id_="said")))


def filling(paths: ConsolePaths, summary: ConversationSummary, filled: FilledWindow | None) -> Html:
    """Return the parts of the model's window, as a bar and a table; None for an empty one."""
    back = tag("a", "what was said", href=paths.to("conversations", summary.id))
    head = tag("p", *_facts(summary), " · ", back, class_="aside", id="how")
    no_window = empty("Nobody has written here.", "The model has been told nothing yet.")
    parts = (no_window,) if filled is None else _window_parts(filled)
    return joined((head, panel("The model's window", *parts, id_="window")))


def _window_parts(filled: FilledWindow) -> tuple[Html, ...]:
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


def _item(item: TranscriptItem) -> Html:
    id_ = f"item-{item.cursor}"
    writer = "question" if item.outcome is not None else item.by or item.kind
    byline = tag("p", tag("bdi", writer), " · ", instant(item.at), class_="aside")
    if item.outcome is not None:
        return tag("li", byline, _outcome(item.outcome), id=id_, class_="asked")
    files = [tag("p", "file ", tag("code", name)) for name in item.files]
    files += [] if item.sent is None else [_file(item.sent)]
    is_markdown = item.kind != "person" and not item.plain and item.sent is None
    words = [tag("p", item.text, class_="markdown" if is_markdown else None)] if item.text else []
    # Outside the body, where text can't imitate them.
    marks = [tag("ul", *map(_receipt, item.receipts), class_="receipts")] if item.receipts else []
    body = tag("div", *files, *words, class_="body")
    return tag("li", byline, body, *marks, id=id_, class_=item.kind)


def _file(sent: SentFile) -> Html:
    size = counted(sent.size_bytes, "byte", "bytes")
    return tag("p", "file ", tag("code", sent.name), f", {size}")


def _outcome(outcome: Outcome) -> Html:
    endings = {ending.approval: ending for ending in outcome.endings}
    lines: list[Html] = []
    for call in outcome.card.calls:
        ending = endings.get(call.approval)
        how = pill("open", "ask") if ending is None else pill(ending.how, ENDINGS[ending.how])
        by = [" · by ", tag("bdi", ending.by)] if ending is not None and ending.by else []
        reason = [" ", tag("q", ending.reason)] if ending is not None and ending.reason else []
        lines.append(
            tag("p", how, " ", tag("code", call.tool), " ", coded(call.summary), *by, *reason)
        )
    return tag("div", *lines, class_="body")


_TITLES = {"valid": "receipt checked", "earlier": "receipt of an earlier run"}


def _receipt(receipt: CheckedReceipt) -> Html:
    verdict = "earlier" if receipt.earlier else "valid"
    return tag(
        "li", coded(receipt.line()), class_="receipt", title=_TITLES[verdict], data_verdict=verdict
    )
