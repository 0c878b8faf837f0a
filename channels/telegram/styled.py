"""A message as Telegram shows it: a text with styles, or a file, and the buttons below.

Offsets and lengths are in UTF-16 units, as the Bot API takes them.
"""

import json
from typing import NotRequired, TypedDict, Unpack, cast

from channels._remote.cards import CODE, receipt_line
from channels._remote.fields import Json
from channels._remote.limits import cut, units
from zeroclaw import CheckedReceipt, Outgoing, OutgoingFile, Struct, Value, field, replace

MAX_RECEIPTS = 20
"""Receipt buttons of one message; the text itself marks where each receipt was quoted."""
MAX_LABEL_UNITS = 128
"""Longest label of a button; apps cut it to the screen's width, and the Bot API states no limit."""


class Target(TypedDict):
    """Where a link leads, or whom a mention means, as the Bot API's User."""

    url: NotRequired[str]
    user: NotRequired[Json]


class Entity(Target):
    """One style of a part of a text: a MessageEntity of the Bot API."""

    type: str
    offset: int
    length: int
    language: NotRequired[str]


class File(Value):
    """A file to send as a document."""

    name: str
    content: bytes


class Styled(Value):
    """A message.

    Attributes:
        text: The text, or the caption of a file.
        entities: The styles of the text.
        rich: The same text as rich HTML, if it needs that; see `rich.py`.
        rows: The rows of buttons below it, each button an InlineKeyboardButton.
        file: The file; None for a text message.
        asks: The app makes the person's next message a reply to it.
    """

    text: str
    entities: tuple[Entity, ...] = ()
    rich: str = ""
    rows: tuple[tuple[Json, ...], ...] = ()
    file: File | None = None
    asks: bool = False


class Writer(Struct, kw_only=True):
    """Builds a styled text piece by piece."""

    _pieces: list[str] = field(default_factory=list[str])
    _entities: list[Entity] = field(default_factory=list[Entity])
    _at: int = 0

    def write(self, piece: str, kind: str = "", **target: Unpack[Target]) -> None:
        """Add a piece of text, in one style or none."""
        length = units(piece)
        if kind and length:
            self._entities.append(Entity(type=kind, offset=self._at, length=length, **target))
        self._pieces.append(piece)
        self._at += length

    def write_line(self, line: str) -> None:
        """Add one of the runtime's lines, with its code marks as code style."""
        for at, piece in enumerate(CODE.split(line)):
            self.write(piece, "code" if at % 2 else "")

    def written(self) -> Styled:
        """Return the text built so far."""
        return Styled(text="".join(self._pieces), entities=tuple(self._entities))


def to_body(styled: Styled) -> str:
    """Encode a styled text for `Rendered.body`: text, entities and rich form, separated by NUL."""
    if not styled.entities and not styled.rich:
        return styled.text
    return f"{styled.text}\x00{json.dumps(styled.entities)}\x00{styled.rich}"


def from_outgoing(message: Outgoing | OutgoingFile) -> Styled:
    """Return a message with its receipts as buttons, which no text can imitate."""
    if isinstance(message, OutgoingFile):
        return Styled(text=message.caption, file=File(name=message.name, content=message.content))
    rendered, receipts = message.rendered, message.receipts[:MAX_RECEIPTS]
    styled = Styled(text=rendered.plain) if message.plain else from_body(rendered.body)
    return replace(styled, rows=tuple((_receipt(receipt),) for receipt in receipts))


def _receipt(receipt: CheckedReceipt) -> Json:
    """Return a button that copies a receipt to the clipboard."""
    label = cut(receipt_line(receipt), MAX_LABEL_UNITS)
    return {"text": label, "copy_text": {"text": receipt.token}}


def from_body(body: str) -> Styled:
    """Decode the result of `to_body`."""
    text, _, rest = body.partition("\x00")
    encoded, _, rich = rest.partition("\x00")
    entities = cast("list[Entity]", json.loads(encoded or "[]"))
    return Styled(text=text, entities=tuple(entities), rich=rich)
