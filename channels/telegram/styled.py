"""A message as Telegram shows it: a text and its styles, or a file, and what stands below.

Offsets and lengths are in UTF-16 units, as the Bot API takes them.
"""

import json
from typing import NotRequired, TypedDict, cast

from channels._remote.cards import CODE, receipt_line
from channels._remote.fields import Json
from channels._remote.limits import cut, units
from zeroclaw import CheckedReceipt, Outgoing, OutgoingFile, Struct, Value, field, replace

MOST_RECEIPTS = 20
"""Buttons of one message; the text says below which claim a receipt was meant to stand."""
MOST_LABEL_UNITS = 128
"""Of a button; apps show as much as their screen is wide. The Bot API gives no limit."""


class Mark(TypedDict):
    """One style of a piece of a text, as the Bot API takes it: a MessageEntity."""

    type: str
    offset: int
    length: int
    url: NotRequired[str]
    language: NotRequired[str]


class File(Value):
    """What is sent as a document."""

    name: str
    content: bytes


class Styled(Value):
    """A message.

    Attributes:
        text: Of a file it is the caption.
        marks: The styles of the text.
        rich: The same as rich HTML, where it has what marks can't show; see `rich.py`.
        rows: The buttons below it, each an InlineKeyboardButton.
        file: None for a text.
        asks: What the person writes next becomes a reply to it.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    rich: str = ""
    rows: tuple[tuple[Json, ...], ...] = ()
    file: File | None = None
    asks: bool = False


class Writer(Struct, kw_only=True):
    """Puts a styled text together, piece by piece."""

    _pieces: list[str] = field(default_factory=list[str])
    _marks: list[Mark] = field(default_factory=list[Mark])
    _at: int = 0

    def write(self, piece: str, kind: str = "", *, url: str = "") -> None:
        """Add a piece, in one style or in none."""
        length = units(piece)
        if kind and length:
            mark = Mark(type=kind, offset=self._at, length=length)
            self._marks.append({**mark, "url": url} if url else mark)
        self._pieces.append(piece)
        self._at += length

    def write_line(self, line: str) -> None:
        """Add a line of the runtime's, what it marks as code in that style."""
        for at, piece in enumerate(CODE.split(line)):
            self.write(piece, "code" if at % 2 else "")

    def written(self) -> Styled:
        """Return all of it."""
        return Styled(text="".join(self._pieces), marks=tuple(self._marks))


def to_body(styled: Styled) -> str:
    """Write a styled text as one string, for `Rendered.body`: text, marks, rich form, NUL between."""
    if not styled.marks and not styled.rich:
        return styled.text
    return f"{styled.text}\x00{json.dumps(styled.marks)}\x00{styled.rich}"


def from_outgoing(outgoing: Outgoing | OutgoingFile) -> Styled:
    """Return what a message shows; below it each receipt that it proves, which no text can draw."""
    if isinstance(outgoing, OutgoingFile):
        return Styled(
            text=outgoing.caption, file=File(name=outgoing.name, content=outgoing.content)
        )
    rendered, receipts = outgoing.rendered, outgoing.receipts[:MOST_RECEIPTS]
    styled = Styled(text=rendered.plain) if outgoing.plain else from_body(rendered.body)
    return replace(styled, rows=tuple((_receipt(one),) for one in receipts))


def _receipt(one: CheckedReceipt) -> Json:
    """Return a button that copies a receipt when it is pressed."""
    label = cut(receipt_line(one), MOST_LABEL_UNITS)
    return {"text": label, "copy_text": {"text": one.token}}


def from_body(body: str) -> Styled:
    """Read what `to_body` wrote."""
    text, _, more = body.partition("\x00")
    marks, _, rich = more.partition("\x00")
    return Styled(text=text, marks=tuple(cast("list[Mark]", json.loads(marks or "[]"))), rich=rich)
