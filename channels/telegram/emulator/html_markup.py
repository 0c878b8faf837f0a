"""Parses Telegram's HTML, with Telegram's error messages.

Sources: the Bot API's page on formatting and answers of its server, read 2026-11.
"""

import re
import sys
from dataclasses import dataclass, field

from channels.telegram.emulator.entities import Entity, utf16
from channels.telegram.emulator.links import link, special
from channels.telegram.emulator.refusals import can_not_parse
from zeroclaw import Value

_KINDS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "a": "text_link",
    "tg-emoji": "custom_emoji",
    "tg-time": "date_time",
}
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|([a-z]+));?")
_FIRST_HALF, _LAST_HALF = 0xD800, 0xDFFF
_SPACE = re.compile(r"\s*")
_TAG_NAME = re.compile(r"[^\s>]*")
_ATTRIBUTE_NAME = re.compile(r"[^\s=>/\"']*")
_TOKEN = re.compile(r"[A-Za-z0-9.\-]*")


class _Open(Value):
    """An open tag and its attributes."""

    name: str
    offset: int
    attributes: dict[str, str]


@dataclass(kw_only=True)
class _Reader:
    """The state of the parser."""

    source: str
    at: int = 0
    offset: int = 0
    out: list[str] = field(default_factory=list[str])
    stack: list[_Open] = field(default_factory=list[_Open])
    entities: list[Entity] = field(default_factory=list[Entity])

    def put(self, text: str) -> None:
        """Output a text."""
        self.out.append(text)
        self.offset += utf16(text)

    def bytes_before(self, at: int) -> int:
        """Return a position as a byte offset, as in Telegram's error messages."""
        return len(self.source[:at].encode())

    def character(self) -> str:
        """Return the current character, empty at the end."""
        return self.source[self.at : self.at + 1]

    def take(self, pattern: re.Pattern[str]) -> str:
        """Take the text that a pattern matches here, which may be empty."""
        match = pattern.match(self.source, self.at)
        text = match.group() if match is not None else ""
        self.at += len(text)
        return text


def parse(source: str) -> tuple[str, tuple[Entity, ...]]:
    """Parse a text; return the text to show and its marks.

    Raises:
        Refused: `can't parse entities: …`.
    """
    reader = _Reader(source=source)
    while reader.at < len(source):
        character = reader.character()
        if character == "&":
            reader.put(_reference(reader))
        elif character != "<":
            reader.put(character)
            reader.at += 1
        elif source.startswith("</", reader.at):
            _end_tag(reader)
        else:
            _start_tag(reader)
    if reader.stack:
        name = reader.stack[-1].name
        raise can_not_parse(f'Can\'t find end tag corresponding to start tag "{name}"')
    return "".join(reader.out), tuple(reader.entities)


def _reference(reader: _Reader) -> str:
    """Take a character reference; any other ampersand stays as it is."""
    match = _REFERENCE.match(reader.source, reader.at)
    if match is not None:
        hexadecimal, decimal, name = match.groups()
        code = int(hexadecimal, 16) if hexadecimal else int(decimal or 0)
        character = chr(code) if is_character(code) else _NAMED.get(name or "", "")
        if character:
            reader.at = match.end()
            return character
    reader.at += 1
    return "&"


def is_character(code: int) -> bool:
    """Whether a number is a valid code point and not a surrogate."""
    return 0 < code <= sys.maxunicode and not _FIRST_HALF <= code <= _LAST_HALF


def _start_tag(reader: _Reader) -> None:
    begin = reader.at
    at = reader.bytes_before(begin)
    reader.at += 1
    name = reader.take(_TAG_NAME).lower()
    if not reader.character():
        raise can_not_parse(f"Unclosed start tag at byte offset {at}")
    if name not in _KINDS:
        raise can_not_parse(f'Unsupported start tag "{name}" at byte offset {at}')
    attributes: dict[str, str] = {}
    while True:
        reader.take(_SPACE)
        if reader.character() == ">":
            break
        _attribute(reader, name, at, attributes)
    if name == "span" and attributes.get("class") != "tg-spoiler":
        raise can_not_parse(f'Tag "span" must have class "tg-spoiler" at byte offset {at}')
    reader.at += 1
    reader.stack.append(_Open(name=name, offset=reader.offset, attributes=attributes))


def _attribute(reader: _Reader, tag: str, at: int, attributes: dict[str, str]) -> None:
    name = reader.take(_ATTRIBUTE_NAME).lower()
    if not reader.character():
        raise can_not_parse(f'Unclosed start tag "{tag}" at byte offset {at}')
    if not name:
        raise can_not_parse(f'Empty attribute name in the tag "{tag}" at byte offset {at}')
    reader.take(_SPACE)
    value = ""
    if reader.character() == "=":
        reader.at += 1
        reader.take(_SPACE)
        value = _value(reader, tag, at)
    attributes.setdefault(name, value)


def _value(reader: _Reader, tag: str, at: int) -> str:
    quote = reader.character()
    if not quote:
        raise can_not_parse(f'Unclosed start tag "{tag}" at byte offset {at}')
    if quote not in "\"'":
        begin = reader.bytes_before(reader.at)
        token = reader.take(_TOKEN)
        if reader.character() != ">" and not reader.character().isspace():
            raise can_not_parse(f"Unexpected end of name token at byte offset {begin}")
        return token.lower()
    reader.at += 1
    value: list[str] = []
    while reader.character() and reader.character() != quote:
        if reader.character() == "&":
            value.append(_reference(reader))
        else:
            value.append(reader.character())
            reader.at += 1
    if not reader.character():
        raise can_not_parse(f'Unclosed start tag "{tag}" at byte offset {at}')
    reader.at += 1
    return "".join(value)


def _end_tag(reader: _Reader) -> None:
    at = reader.bytes_before(reader.at)
    if not reader.stack:
        raise can_not_parse(f"Unexpected end tag at byte offset {at}")
    reader.at += 2
    name = reader.take(_TAG_NAME).lower()
    reader.take(_SPACE)
    if reader.character() != ">":
        raise can_not_parse(f"Unclosed end tag at byte offset {at}")
    reader.at += 1
    opened = reader.stack.pop()
    if name and name != opened.name:
        raise can_not_parse(
            f'Unmatched end tag at byte offset {at}, expected "</{opened.name}>", found "</{name}>"'
        )
    _close(reader, opened)


def _close(reader: _Reader, opened: _Open) -> None:
    size = reader.offset - opened.offset
    attributes = opened.attributes
    entity: Entity | None = Entity(type=_KINDS[opened.name], offset=opened.offset, length=size)
    match opened.name:
        case "a":
            url = attributes.get("href", "") or ("".join(reader.out)[-size:] if size else "")
            entity = link(url, opened.offset, size)
        case "tg-emoji":
            url = f"tg://emoji?id={attributes.get('emoji-id', '')}"
            entity = special(url, opened.offset, size)
        case "tg-time":
            unix, form = attributes.get("unix", ""), attributes.get("format", "")
            entity = special(f"tg://time?unix={unix}&format={form}", opened.offset, size)
        case "blockquote" if "expandable" in attributes:
            entity = Entity(type="expandable_blockquote", offset=opened.offset, length=size)
        case "code" | "pre":
            entity = _code(reader, opened, size)
        case _:
            pass
    if entity is not None:
        reader.entities.append(entity)


def _code(reader: _Reader, opened: _Open, size: int) -> Entity:
    """Return a code entity; the language of `<pre><code class="language-…">` moves to the pre."""
    kind = _KINDS[opened.name]
    language = opened.attributes.get("class", "")
    if opened.name == "code" and language.startswith("language-"):
        extra = (("language", language.removeprefix("language-")),)
        return Entity(type=kind, offset=opened.offset, length=size, extra=extra)
    inner = reader.entities[-1] if reader.entities else None
    same_span = inner is not None and (inner.offset, inner.length) == (opened.offset, size)
    if opened.name == "pre" and inner is not None and same_span and inner.type == "code":
        reader.entities.pop()
        return Entity(type=kind, offset=opened.offset, length=size, extra=inner.extra)
    return Entity(type=kind, offset=opened.offset, length=size)
