"""Parses MarkdownV2, with Telegram's error messages.

Sources: the Bot API's page on formatting and answers of its server, read 2026-11.
"""

from dataclasses import dataclass, field
from typing import Final

from channels.telegram.emulator.entities import Entity, utf16
from channels.telegram.emulator.links import link, special
from channels.telegram.emulator.refusals import can_not_parse
from zeroclaw import Value

RESERVED: Final = "_*[]()~`>#+-=|{}.!"
_NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "pre": "Pre",
    "text_link": "TextUrl",
    "custom_emoji": "CustomEmoji",
    "blockquote": "BlockQuote",
}
# The delimiters of each kind of mark, longest first.
_SIGNS = (
    ("__", "underline"),
    ("||", "spoiler"),
    ("_", "italic"),
    ("*", "bold"),
    ("~", "strikethrough"),
)


class _Open(Value):
    """An open mark."""

    kind: str
    at: int
    offset: int
    language: str = ""


@dataclass(kw_only=True)
class _Reader:
    """The state of the parser."""

    source: str
    at: int = 0
    offset: int = 0
    out: list[str] = field(default_factory=list[str])
    stack: list[_Open] = field(default_factory=list[_Open])
    entities: list[Entity] = field(default_factory=list[Entity])

    def is_next(self, sign: str) -> bool:
        """Whether a delimiter is next."""
        return self.source.startswith(sign, self.at)

    def put(self, text: str) -> None:
        """Output a text."""
        self.out.append(text)
        self.offset += utf16(text)

    def bytes_before(self, at: int) -> int:
        """Return a position as a byte offset, as in Telegram's error messages."""
        return len(self.source[:at].encode())

    @property
    def innermost(self) -> str:
        """The innermost open mark, empty for none."""
        return self.stack[-1].kind if self.stack else ""

    @property
    def at_line_start(self) -> bool:
        """Whether the output is at the start of a line."""
        return not self.out or self.out[-1].endswith("\n")

    def at_line_end(self, sign: str) -> bool:
        """Whether a delimiter here is the last on its line."""
        return self.source[self.at + len(sign) :][:1] in ("", "\n")

    def begin(self, kind: str, length: int, language: str = "") -> None:
        """Open a mark and skip its delimiter."""
        self.stack.append(_Open(kind=kind, at=self.at, offset=self.offset, language=language))
        self.at += length

    def end(self, length: int, kind: str = "") -> None:
        """Close the innermost mark, optionally as another kind, and skip its delimiter."""
        opened = self.stack.pop()
        extra = (("language", opened.language),) if opened.language else ()
        size = self.offset - opened.offset
        kind = kind or opened.kind
        self.entities.append(Entity(type=kind, offset=opened.offset, length=size, extra=extra))
        self.at += length


def parse(source: str) -> tuple[str, tuple[Entity, ...]]:
    """Parse a text; return the text to show and its marks.

    Raises:
        Refused: `can't parse entities: …`.
    """
    reader = _Reader(source=source)
    while reader.at < len(source):
        _step(reader)
    _end_of_quote(reader)
    if reader.stack:
        raise _unended(reader)
    return "".join(reader.out), tuple(reader.entities)


def _can_be_escaped(character: str) -> bool:
    """Whether a backslash escapes a character: any ASCII one, but not the end of the text."""
    return bool(character) and character.isascii()


def _unended(reader: _Reader) -> Exception:
    opened = reader.stack[-1]
    name = "PreCode" if opened.language else _NAMES[opened.kind]
    at = reader.bytes_before(opened.at)
    return can_not_parse(f"Can't find end of {name} entity at byte offset {at}")


def _step(reader: _Reader) -> None:
    character = reader.source[reader.at]
    following = reader.source[reader.at + 1 : reader.at + 2]
    if character == "\\" and _can_be_escaped(following):
        reader.put(following)
        reader.at += 2
    elif reader.innermost in ("code", "pre"):
        _inside_code(reader, character)
    elif character == "\n":
        _line_end(reader)
    elif character not in RESERVED:
        reader.put(character)
        reader.at += 1
    elif not _mark(reader):
        raise can_not_parse(
            f"Character '{character}' is reserved and must be escaped with the preceding '\\'"
        )


def _inside_code(reader: _Reader, character: str) -> None:
    if reader.innermost == "pre" and reader.is_next("```"):
        reader.end(3)
    elif reader.innermost == "code" and character == "`":
        reader.end(1)
    else:
        reader.put(character)
        reader.at += 1


def _line_end(reader: _Reader) -> None:
    """Output a line end; a block quote ends with its last line."""
    quoted = any(opened.kind == "blockquote" for opened in reader.stack)
    if quoted and not reader.source.startswith(">", reader.at + 1):
        _end_of_quote(reader)
        quoted = False
    reader.put("\n")
    reader.at += 2 if quoted else 1


def _end_of_quote(reader: _Reader) -> None:
    if not any(opened.kind == "blockquote" for opened in reader.stack):
        return
    if reader.innermost != "blockquote":
        raise _unended(reader)
    reader.end(0)


def _mark(reader: _Reader) -> bool:
    """Open or close the mark that is next; return False if there is none."""
    if reader.is_next("`"):
        _begin_code(reader)
    elif reader.is_next("]") and reader.innermost in ("text_link", "custom_emoji"):
        _end_link(reader)
    elif reader.is_next("!["):
        reader.begin("custom_emoji", 2)
    elif reader.is_next("["):
        reader.begin("text_link", 1)
    elif reader.is_next(">") and reader.at_line_start:
        reader.begin("blockquote", 1)
    else:
        return _mark_by_sign(reader)
    return True


def _mark_by_sign(reader: _Reader) -> bool:
    for sign, kind in _SIGNS:
        if not reader.is_next(sign):
            continue
        if kind == "spoiler" and reader.innermost == "blockquote" and reader.at_line_end(sign):
            reader.end(len(sign), "expandable_blockquote")
        elif reader.innermost == kind:
            reader.end(len(sign))
        else:
            reader.begin(kind, len(sign))
        return True
    return False


def _begin_code(reader: _Reader) -> None:
    if not reader.is_next("```"):
        reader.begin("code", 1)
        return
    start = end = reader.at + 3
    while end < len(reader.source) and not (
        reader.source[end].isspace() or reader.source[end] == "`"
    ):
        end += 1
    closed_at_once = end == len(reader.source) or reader.source[end] == "`"
    language = "" if closed_at_once else reader.source[start:end]
    skipped = end if language else start
    if reader.source.startswith("\r\n", skipped):
        skipped += 2
    elif reader.source.startswith(("\n", "\r"), skipped):
        skipped += 1
    reader.begin("pre", skipped - reader.at, language)


def _end_link(reader: _Reader) -> None:
    opened = reader.stack.pop()
    size = reader.offset - opened.offset
    url = "".join(reader.out)[-size:] if size else ""
    reader.at += 1
    if reader.is_next("("):
        url = _url(reader)
    elif opened.kind == "custom_emoji":
        raise can_not_parse("Custom emoji entity must contain a tg://emoji URL")
    if opened.kind == "text_link":
        entity = link(url, opened.offset, size)
    else:
        entity = special(url, opened.offset, size)
        if entity is None:
            raise can_not_parse("Custom emoji entity must contain a tg://emoji URL")
    if entity is not None:
        reader.entities.append(entity)


def _url(reader: _Reader) -> str:
    start = reader.at = reader.at + 1
    url: list[str] = []
    while reader.at < len(reader.source) and not reader.is_next(")"):
        following = reader.source[reader.at + 1 : reader.at + 2]
        if reader.is_next("\\") and _can_be_escaped(following):
            reader.at += 1
        url.append(reader.source[reader.at])
        reader.at += 1
    if not reader.is_next(")"):
        at = reader.bytes_before(start)
        raise can_not_parse(f"Can't find end of a URL at byte offset {at}")
    reader.at += 1
    return "".join(url)
