"""Parses rich HTML into a tree of tags, and refuses what Telegram does not accept.

Sources: the Bot API's pages on rich messages (10.1 of 2026-06-11 and 10.2), "Rich HTML style" and "Rich
Message Limits", read 2026-11 by way of the types in public libraries. They don't state the server's
error messages, so those of the ordinary HTML are used. Media, maps and forms are not modelled, and
refused with a message of our own.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser

from channels.telegram.emulator.html_markup import is_character
from channels.telegram.emulator.refusals import bad_request, can_not_parse
from channels.telegram.emulator.wire import whole

MAX_CHARACTERS, MAX_BLOCKS, MAX_LEVELS, MAX_COLUMNS = 32_768, 500, 16, 20

INLINE = frozenset(
    {"a", "b", "code", "del", "em", "i", "ins", "mark", "s", "strike", "strong", "sub", "sup", "u"}
    | {"tg-emoji", "tg-math", "tg-reference", "tg-spoiler", "tg-time"}
)
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_HOLD_INLINE = HEADINGS | {"p", "footer", "aside", "caption", "cite", "summary", "td", "th"}
_HOLD_BLOCKS = frozenset({"blockquote", "details", "li"})
_HOLD_TEXT = frozenset({"pre", "tg-math-block"})
_VOID = frozenset({"br", "hr", "input"})
_PARENTS: Mapping[str, frozenset[str]] = {
    "li": frozenset({"ul", "ol"}),
    "tr": frozenset({"table"}),
    "caption": frozenset({"table"}),
    "td": frozenset({"tr"}),
    "th": frozenset({"tr"}),
    "summary": frozenset({"details"}),
    "cite": frozenset({"blockquote", "aside"}),
    "input": frozenset({"li"}),
}
"""The only parents allowed for each of these tags."""
_BLOCKS = (
    HEADINGS
    | {"p", "footer", "aside", "pre", "tg-math-block", "hr", "ul", "ol", "table"}
    | {"blockquote", "details"}
)
_COUNTED = _BLOCKS | {"li", "tr"}
_KNOWN = INLINE | _BLOCKS | frozenset(_PARENTS) | _VOID
_UNMODELLED = frozenset(
    {"audio", "figcaption", "figure", "img", "tg-collage", "tg-map", "tg-slideshow", "video"}
)
_NAMED = frozenset(
    {"amp", "apos", "gt", "hellip", "ldquo", "lsquo", "lt", "mdash", "nbsp", "ndash", "quot"}
    | {"rdquo", "rsquo"}
)
_SPACE = re.compile(r"[ \t\r\n]+")


@dataclass(eq=False, kw_only=True)
class Tag:
    """A tag with its content: text and other tags."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    children: list["Tag | str"] = field(default_factory=list["Tag | str"])

    @property
    def tags(self) -> "Iterator[Tag]":
        """The tags directly inside, without the text."""
        return (node for node in self.children if isinstance(node, Tag))

    @property
    def text(self) -> str:
        """All text inside."""
        return "".join(node if isinstance(node, str) else node.text for node in self.children)


def parse(source: str) -> Tag:
    """Parse a rich message; the root is a tag without a name.

    Raises:
        Refused: It is not valid rich HTML, or exceeds a limit.
    """
    reader = _Reader()
    reader.feed(source)
    reader.close()
    return reader.read()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self._open = [Tag(name="")]
        self._blocks = 0

    def read(self) -> Tag:
        if len(self._open) > 1:
            name = self._open[-1].name
            raise can_not_parse(f'Can\'t find end tag corresponding to start tag "{name}"')
        if len(self._open[0].text) > MAX_CHARACTERS:
            raise bad_request("rich message is too long")
        return self._open[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNMODELLED:
            raise bad_request(f'the tag "{tag}" is not modelled by this emulator')
        if tag not in _KNOWN:
            raise can_not_parse(f'Unsupported start tag "{tag}"')
        self._check_place(tag)
        opened = Tag(name=tag, attributes={name: value or "" for name, value in attrs})
        self._open[-1].children.append(opened)
        self._blocks += tag in _COUNTED
        if self._blocks > MAX_BLOCKS:
            raise bad_request("rich message has too many blocks")
        if tag in _VOID:
            return
        self._open.append(opened)
        if len(self._open) - 1 > MAX_LEVELS:
            raise bad_request("rich message is nested too deeply")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        opened = self._open.pop() if len(self._open) > 1 else None
        if opened is None:
            raise can_not_parse(f'Unexpected end tag "{tag}"')
        if opened.name != tag:
            raise can_not_parse(f'Unmatched end tag, expected "</{opened.name}>", found "</{tag}>"')
        if tag == "tr" and sum(map(_columns, opened.tags)) > MAX_COLUMNS:
            raise bad_request("table has too many columns")

    def handle_data(self, data: str) -> None:
        if "<" in data:
            raise can_not_parse("Unclosed start tag")
        self._add_text(data)

    def handle_entityref(self, name: str) -> None:
        if name not in _NAMED:
            raise can_not_parse(f'Unsupported entity "&{name};"')
        self._add_text(unescape(f"&{name};"))

    def handle_charref(self, name: str) -> None:
        code = int(name[1:], 16) if name[:1] in "xX" else whole(name)
        if not is_character(code):
            raise can_not_parse(f'Unsupported entity "&#{name[:8]};"')
        self._add_text(chr(code))

    def handle_comment(self, data: str) -> None:
        raise can_not_parse(f'Unsupported start tag "!--{data[:8]}"')

    def handle_decl(self, decl: str) -> None:
        raise can_not_parse(f'Unsupported start tag "!{decl[:8]}"')

    def unknown_decl(self, data: str) -> None:
        raise can_not_parse(f'Unsupported start tag "![{data[:8]}"')

    def handle_pi(self, data: str) -> None:
        raise can_not_parse(f'Unsupported start tag "?{data[:8]}"')

    def _add_text(self, text: str) -> None:
        parent = self._open[-1]
        is_verbatim = any(tag.name in _HOLD_TEXT for tag in self._open)
        text = text if is_verbatim else _SPACE.sub(" ", text)
        if parent.name in ("ul", "ol", "table", "tr") and text.strip():
            raise can_not_parse(f'Unexpected text in the tag "{parent.name}"')
        parent.children.append(text)

    def _check_place(self, tag: str) -> None:
        """Refuse a tag in a place where it is not allowed."""
        parent = self._open[-1].name
        if tag in _PARENTS:
            is_allowed = parent in _PARENTS[tag]
        elif tag in _BLOCKS:
            is_allowed = parent in _HOLD_BLOCKS or not parent
        else:
            holders = _HOLD_INLINE | _HOLD_BLOCKS | INLINE | {""}
            is_allowed = parent in holders or (parent == "pre" and tag == "code")
        if not is_allowed:
            raise can_not_parse(f'Tag "{tag}" can\'t stand in the tag "{parent}"')


def _columns(cell: Tag) -> int:
    return max(whole(cell.attributes.get("colspan", "")), 1)
