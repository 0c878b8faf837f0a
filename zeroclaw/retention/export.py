"""Exports a conversation, or one person's messages with their answers, as lines or as a page.

    {"kind": "said", "at": "2026-01-01T12:00:00+00:00", "conversation": "01…", "by": "Ada",
     "text": "…"}

Kinds: `said` (a person's message), `file` (came with a message), `sent` (a file from the bot),
`answer`, `note` (texts of the runtime), `call`, `result`, `approval`, `summary`, `remembered` (a
note that the bot keeps), `damaged` (an unreadable record, in a shared chat perhaps another
person's). Every text is redacted here, because people's messages are stored unredacted.

**Order.** Rows of inbox and outbox have ULIDs of one generator, which sort by creation even if the
wall clock stood still or was set back. Records that are in the journal alone have a position there
and a wall time. They sort after the message that they are about, and before rows of a later
millisecond.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from typing import Literal

from msgspec.structs import asdict

from zeroclaw.clock import made_at
from zeroclaw.context.notes import NOTES, note_of
from zeroclaw.conversation.attachments import ATTACHMENTS, AttachmentRow, in_words, sent_in_words
from zeroclaw.conversation.inbox import INBOX, Item, words_of
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OUTBOX
from zeroclaw.delivery.split import in_one
from zeroclaw.envelope import ApprovalId, ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate.action import ACTIONS
from zeroclaw.gate.approval import APPROVALS, Approval
from zeroclaw.message import ToolCall
from zeroclaw.store import LogKind, Row, RowKind
from zeroclaw.tools.notes.note import Note
from zeroclaw.turn import entries
from zeroclaw.value import Value, replace

Kind = Literal[
    "said", "file", "sent", "answer", "note", "call", "result", "approval", "summary", "remembered",
    "damaged",
]  # fmt: skip


class Record(Value):
    """One message, call or other event.

    Attributes:
        by: Name of the person, or of the tool; empty for the bot.
        text: Redacted.
    """

    kind: Kind
    at: datetime
    conversation: ConversationId
    by: str = ""
    text: str

    def as_json(self) -> dict[str, object]:
        """Return the line as plain JSON."""
        return {**asdict(self), "at": self.at.astimezone(UTC).isoformat()}


Order = tuple[datetime, str, int]
"""Time to the millisecond, the key of its row or of the row before it, and its position there."""


class Source(Value):
    """The stored data of one conversation, or of one person.

    Attributes:
        conversation: The conversation; empty for rows that name theirs.
        rows: Rows of every table with its people's words, in any state.
        journal: Its entries, in order; None for an unreadable one.
        only: The ids of one person, to leave out all other people's words; empty for all people.
        turns: That person's turns; the journal may have lost them.
    """

    conversation: ConversationId = ConversationId("")
    rows: tuple[Row, ...] = ()
    journal: tuple[entries.Entry | None, ...] = ()
    only: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()


_READ: Mapping[RowKind, Callable[[Row], object]] = {
    **{table.kind: table.of for table in (INBOX, TURNS, ACTIONS, ATTACHMENTS, OUTBOX, APPROVALS)},
    NOTES.kind: note_of,
}
"""Rows with texts for people, or that lead to such rows; the others are the daemon's bookkeeping."""


def lines(sources: Iterable[Source], redact: Callable[[str], str]) -> tuple[Record, ...]:
    """Return all records of the sources, oldest first."""
    records = [item for source in sources for item in _records_of(source)]
    return tuple(
        replace(line, at=_to_the_millisecond(line.at), by=redact(line.by), text=redact(line.text))
        for _, line in sorted(records, key=lambda item: item[0])
    )


def _records_of(source: Source) -> Iterator[tuple[Order, Record]]:
    id_, only = source.conversation, source.only
    values = [(row.key, _read(row)) for row in source.rows if row.kind in _READ]
    turns = _turns(source, [value for _, value in values])
    records, answers = _journal(source)
    yield from records
    for key, value in values:
        match value:
            case RecordUnreadable():
                at = _time_of(key)
                line = Record(kind="damaged", at=at, conversation=id_, text=str(value))
                yield (at, key, 0), line
            case Item(principal=person, admitted_at=at) if not only or person.id in only:
                if text := words_of(value.content):
                    line = Record(kind="said", at=at, conversation=id_, by=person.label, text=text)
                    yield (made_at(key), key, 0), line
            case AttachmentRow(item=item, principal=person, at=at) if not only or person in only:
                order = (max(made_at(item), _to_the_millisecond(at)), item, 0)
                yield (order, Record(kind="file", at=at, conversation=id_, text=in_words(value)))
            case rows.TextPost(turn=turn, text=text) if turn in turns if turn else not only:
                kind: Kind = "answer" if turn else "note"
                at = made_at(key)
                yield (at, key, 0), Record(kind=kind, at=at, conversation=id_, text=in_one(text))
            case rows.FilePost(turn=turn) if turn in turns:
                at, text = made_at(key), sent_in_words(value.name, value.size_bytes, value.caption)
                yield (at, key, 0), Record(kind="sent", at=at, conversation=id_, text=text)
            case Note(text=text, by=by, at=at, conversation=conversation):
                line = Record(kind="remembered", at=at, conversation=conversation, by=by, text=text)
                yield (_to_the_millisecond(at), "", value.number), line
            case Approval(turn=turn, at=datetime() as at, by=by) if (
                turn in turns or value.requester.id in only
            ):
                reason = f" ({value.reason})" if value.reason else ""
                text = f"{value.tool}: {value.summary}: {value.state}{reason}"
                line = Record(kind="approval", at=at, conversation=id_, by=by, text=text)
                # Retention may have trimmed the journal.
                yield answers.get(value.id, (_to_the_millisecond(at), "", 0)), line
            case _:
                pass


def _read(row: Row) -> object:
    """Return the value of a row, or the error of reading it."""
    try:
        return _READ[row.kind](row)
    except RecordUnreadable as error:
        return error


def _time_of(key: str) -> datetime:
    """Return the time of a row; 1970 if its key is no ULID."""
    with suppress(ValueError):
        return made_at(key)
    return datetime.fromtimestamp(0, UTC)


def _to_the_millisecond(at: datetime) -> datetime:
    """Truncate a time to the precision of a ULID, so that the two can be compared."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _turns(source: Source, values: Iterable[object]) -> frozenset[str]:
    """Return the turns to export; without a filter, even those that the journal has lost."""
    if source.only:
        return source.turns | frozenset(
            entry.turn
            for entry in source.journal
            if isinstance(entry, entries.TurnOpened) and source.only & {*entries.writers_of(entry)}
        )
    of_turns = (rows.TextPost, rows.FilePost, Approval)
    return frozenset(value.turn for value in values if isinstance(value, of_turns) and value.turn)


def _journal(source: Source) -> tuple[list[tuple[Order, Record]], dict[ApprovalId, Order]]:
    """Return the journal's own records (calls, results, summaries), and the order of taken answers."""
    id_, is_of_all = source.conversation, not source.only
    is_exported = is_of_all
    records: list[tuple[Order, Record]] = []
    answers: dict[ApprovalId, Order] = {}
    now, message = datetime.min.replace(tzinfo=UTC), ""
    for position, entry in enumerate(source.journal, start=1):
        if entry is None:
            is_exported = is_of_all  # another person's turn may begin here
            line = Record(kind="damaged", at=now, conversation=id_, text=LogKind.JOURNAL)
            records.append(((now, message, position), line))
            continue
        if isinstance(entry, entries.TurnOpened | entries.Steered):
            now, message = max(now, made_at(entry.item)), max(message, entry.item)
        now = max(now, _to_the_millisecond(entry.at))  # a clock set back changes no order
        order = (now, message, position)
        if isinstance(entry, entries.TurnOpened):
            is_exported = is_of_all or bool(source.only & {*entries.writers_of(entry)})
        if isinstance(entry, entries.AnswerTaken):
            answers[entry.approval] = order
        if is_exported:
            records += ((order, line) for line in _lines_of(entry, id_, is_of_all=is_of_all))
    return records, answers


def _lines_of(entry: entries.Entry, id_: ConversationId, *, is_of_all: bool) -> Iterator[Record]:
    match entry:
        case entries.TurnOpened(call=ToolCall() as call, at=at):
            yield _call(call, at, id_)
        case entries.AssistantReceived(message=message, at=at):
            for call in message.tool_calls:
                yield _call(call, at, id_)
        case entries.CallFinished(result=result, at=at):
            by, text = result.tool_name, result.content
            yield Record(kind="result", at=at, conversation=id_, by=by, text=text)
        case entries.Compacted(summary=summary, at=at) if is_of_all:
            yield Record(kind="summary", at=at, conversation=id_, text=summary)
        case _:
            pass


def _call(call: ToolCall, at: datetime, conversation: ConversationId) -> Record:
    return Record(kind="call", at=at, conversation=conversation, by=call.name, text=call.arguments)


# --- a page --------------------------------------------------------------------------------------

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;"
    "overflow-wrap:anywhere}"
    "article{border-left:.25rem solid #ccc;padding:.1rem .8rem;margin:.6rem 0}"
    "article.said{border-color:#36c}article.answer{border-color:#393}"
    "article.call,article.result{font-size:.85rem;border-color:#a60}"
    "header{color:#666;font-size:.8rem}h2{font-size:1rem;color:#666}"
    "pre{white-space:pre-wrap;unicode-bidi:plaintext;margin:0;font:inherit}"
)
# Nothing is loaded and no script runs, whatever a text contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, lines: Iterable[Record]) -> str:
    """Return lines as one self-contained page, readable in any browser.

    All text is escaped.
    """
    body = "\n".join(
        f"<section><h2>Conversation {escape(conversation)}</h2>\n"
        + "\n".join(map(_article, group))
        + "\n</section>"
        for conversation, group in groupby(lines, key=lambda line: line.conversation)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<main><h1>{escape(title)}</h1>\n{body}\n</main></body>\n</html>\n"
    )


def _article(line: Record) -> str:
    at = line.at.astimezone(UTC)
    by = f" {escape(line.by)}" if line.by else ""
    return (
        f'<article class="{line.kind}"><header>{line.kind}{by} '
        f'<time datetime="{at.isoformat()}">{at:%Y-%m-%d %H:%M:%S} UTC</time></header>'
        f"<pre>{escape(line.text)}</pre></article>"
    )
