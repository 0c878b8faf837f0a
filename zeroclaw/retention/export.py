"""Makes lines of what is kept: a conversation, or what one person said and was answered.

    {"kind": "said", "at": "2026-01-01T12:00:00+00:00", "conversation": "01…", "by": "Ada",
     "text": "…"}

Kinds: `said`, `file` (that came with it), `sent` (a file of the bot's), `answer`, `note` (texts of the runtime), `call`,
`result`, `approval`, `summary`.
Every text is redacted once more, for people's own words are kept as they were said.

**Order.** Rows of inbox and outbox have ULIDs of one generator, which sort by time of making even
where the wall clock stood still or was set back. What the journal alone knows has its place in the
journal and a wall time: it stands behind the message that it is about, and before what was made in
a later millisecond.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal

from zeroclaw.clock import made_at
from zeroclaw.delivery import rows
from zeroclaw.envelope import ApprovalId, ConversationId
from zeroclaw.gate import approval as approvals
from zeroclaw.message import ToolCall
from zeroclaw.store import Row
from zeroclaw.turn import entries
from zeroclaw.turn.attachments import attached_of, in_words, sent_in_words
from zeroclaw.turn.inbox import Again, Ask, Item, Obeyed, TooOld, UseTool, item_of
from zeroclaw.value import Value, field

Kind = Literal["said", "file", "sent", "answer", "note", "call", "result", "approval", "summary"]


class Line(Value):
    """One thing that was said or done.

    Attributes:
        by: Who, for people: a name, or the tool; empty for the bot.
        text: Redacted.
    """

    kind: Kind
    at: datetime
    conversation: ConversationId
    text: str
    by: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the line as plain JSON."""
        return {
            "kind": self.kind,
            "at": self.at.astimezone(UTC).isoformat(),
            "conversation": self.conversation,
            "by": self.by,
            "text": self.text,
        }


Order = tuple[datetime, str, int]
"""When to the millisecond, the row that it is or follows, and its place behind that row."""


class Found(Value):
    """What is kept of one conversation.

    Attributes:
        inbox: Its rows, of any state.
        outbox: Its rows, of any state.
        approvals: Its rows, of any state.
        files: Its rows, of any state.
        journal: Its entries, in order.
        only: A person's id, where nobody else's is meant; empty for everybody's.
    """

    conversation: ConversationId
    inbox: tuple[Row, ...] = ()
    outbox: tuple[Row, ...] = ()
    approvals: tuple[Row, ...] = ()
    files: tuple[Row, ...] = ()
    journal: tuple[entries.Entry, ...] = field(default=())
    only: str = ""


def lines(found: Iterable[Found], redact: Callable[[str], str]) -> tuple[Line, ...]:
    """Return everything that was found as lines, oldest first.

    Raises:
        StoreUnusable: A row is none of its kind.
    """
    every = [placed for one in found for placed in _of(one)]
    ordered = sorted(every, key=lambda placed: placed[0])
    return tuple(
        Line(
            kind=line.kind,
            at=_to_the_millisecond(line.at),
            conversation=line.conversation,
            by=redact(line.by),
            text=redact(line.text),
        )
        for _, line in ordered
    )


def _of(found: Found) -> Iterator[tuple[Order, Line]]:
    here, only = found.conversation, found.only
    for item in map(item_of, found.inbox):
        said = _said(item)
        if said and only in ("", item.principal.id):
            name = item.principal.display or item.principal.id
            line = Line(kind="said", at=item.admitted_at, conversation=here, by=name, text=said)
            yield (made_at(item.id), item.id, 0), line
    for file in map(attached_of, found.files):
        if only in ("", file.principal):
            order = (max(made_at(file.item), _to_the_millisecond(file.at)), file.item, 0)
            yield order, Line(kind="file", at=file.at, conversation=here, text=in_words(file))
    turns = _turns(found)
    journal = _journal(found)
    yield from journal.placed
    for row in found.outbox:
        order, told = (made_at(row.key), row.key, 0), rows.read(row)
        if isinstance(told, rows.Text) and (told.turn in turns if told.turn else not only):
            kind: Kind = "note" if told.turn is None else "answer"
            yield order, Line(kind=kind, at=order[0], conversation=here, text=told.text)
        if isinstance(told, rows.File) and told.turn in turns:
            text = sent_in_words(told.name, told.size_bytes, told.caption)
            yield order, Line(kind="sent", at=order[0], conversation=here, text=text)
    for row in found.approvals:
        one = approvals.decode(row.body)
        if one.at is not None and one.turn in turns:
            text = f"{one.tool}: {one.summary}: {one.state}"
            why = f" ({one.reason})" if one.reason else ""
            line = Line(
                kind="approval", at=one.at, conversation=here, by=one.by, text=f"{text}{why}"
            )
            # The journal may have been cut since.
            yield journal.answers.get(one.id, (_to_the_millisecond(one.at), "", 0)), line


def _to_the_millisecond(at: datetime) -> datetime:
    """Cut a time to what a ULID holds, so that the two can be compared."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _said(item: Item) -> str:
    match item.content:
        case Ask(text=text) | Obeyed(text=text) | TooOld(text=text):
            return text
        case UseTool(tool=tool, arguments=arguments):
            return f"/tool {tool} {arguments}"
        case Again():
            return "/retry"
        case _:
            return ""


def _turns(found: Found) -> frozenset[str]:
    """Return the turns that are meant; a turn that no journal knows any more is everybody's."""
    if found.only:
        return frozenset(
            one.turn
            for one in found.journal
            if isinstance(one, entries.TurnOpened) and one.principal.id == found.only
        )
    told = (rows.read(row) for row in found.outbox)
    answered = (one.turn for one in told if isinstance(one, rows.Text | rows.File) and one.turn)
    asked = (approvals.decode(row.body).turn for row in found.approvals)
    return frozenset((*answered, *asked))


class _Journal(Value):
    """What the journal alone knows: calls, results, summaries, and where answers were taken."""

    placed: tuple[tuple[Order, Line], ...]
    answers: Mapping[ApprovalId, Order]


def _journal(found: Found) -> _Journal:
    here = found.conversation
    is_meant = not found.only
    placed: list[tuple[Order, Line]] = []
    answers: dict[ApprovalId, Order] = {}
    now, behind = datetime.min.replace(tzinfo=UTC), ""
    for place, entry in enumerate(found.journal, start=1):
        if isinstance(entry, entries.TurnOpened | entries.Steered):
            now, behind = max(now, made_at(entry.item)), max(behind, entry.item)
        now = max(now, _to_the_millisecond(entry.at))  # a clock that was set back changes no order
        order = (now, behind, place)
        if isinstance(entry, entries.TurnOpened):
            is_meant = found.only in ("", entry.principal.id)
        if isinstance(entry, entries.AnswerTaken):
            answers[entry.approval] = order
        if is_meant:
            placed += ((order, line) for line in _lines_of(entry, here, is_of_all=not found.only))
    return _Journal(placed=tuple(placed), answers=answers)


def _lines_of(entry: entries.Entry, here: ConversationId, *, is_of_all: bool) -> Iterator[Line]:
    match entry:
        case entries.TurnOpened(call=ToolCall() as call, at=at):
            yield _call(call, at, here)
        case entries.AssistantReceived(message=message, at=at):
            for call in message.tool_calls:
                yield _call(call, at, here)
        case entries.CallFinished(result=result, at=at):
            by, text = result.tool_name, result.content
            yield Line(kind="result", at=at, conversation=here, by=by, text=text)
        case entries.Compacted(summary=summary, at=at) if is_of_all:
            yield Line(kind="summary", at=at, conversation=here, text=summary)
        case _:
            pass


def _call(call: ToolCall, at: datetime, here: ConversationId) -> Line:
    return Line(kind="call", at=at, conversation=here, by=call.name, text=call.arguments)
