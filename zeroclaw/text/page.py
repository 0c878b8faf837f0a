"""Turn HTML, of a page or a mail, into readable text: headings, paragraphs, lists, links.

A page is first cut into tags and texts, in time that depends only on its length. No tree is built:
text needs none, and building one as browsers do takes time in the square of the nesting depth
(lexbor needed 16 s for 40,000 open elements, measured 2026-11). Python's own parser takes time in
the square of the length for some inputs, in the versions that stable systems ship. An unclosed
element ends with the page, as in the HTML standard, so nothing is searched for twice.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import assert_never

from zeroclaw.value import Struct, Value, field


class Start(Value):
    """A start tag; names in lower case, values with their character references resolved."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    is_closed: bool = False


class End(Value):
    """An end tag."""

    tag: str


class Text(Value):
    """Text between tags, with its character references resolved."""

    text: str


Piece = Start | End | Text

# Elements whose text ends only at their own end tag (HTML standard, 13.2.5).
RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})

_BEGIN = re.compile(r"<(?:(!--)|(/?)([a-zA-Z][^\t\n\f\r />]*)|[!?/])")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(
    r"[\s/]*+(?:(?P<end>>)|(?P<name>=?[^\s/>=]++|=)"
    r"(?:\s*+=\s*+(?:\"(?P<two>[^\"]*+)\"|'(?P<one>[^']*+)'|(?P<bare>[^\s>]++)?))?)"
)
# Larger than any code point; Python refuses to parse a number of some thousand digits.
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")


def pieces(page: str) -> Iterator[Piece]:
    """Yield the parts of a page in order, without comments and declarations."""
    at = 0
    while (match := _BEGIN.search(page, at)) is not None:
        if match.start() > at:
            yield _text(page[at : match.start()])
        comment, slash, name = match.groups()
        if name is None:
            at = _after_comment(page, match.end()) if comment else _after(page, match.end(), ">")
            continue
        attributes, at, is_closed = _attributes(page, match.end())
        if at < 0:
            return
        tag = name.lower()
        if slash:
            yield End(tag=tag)
            continue
        yield Start(tag=tag, attributes=attributes, is_closed=is_closed)
        if tag in RAW:
            text, at = _raw(page, at, tag)
            yield _text(text)
            yield End(tag=tag)
    if at < len(page):
        yield _text(page[at:])


def _after(page: str, at: int, sign: str) -> int:
    """Return the position after the next `sign`, or the end of the page."""
    index = page.find(sign, at)
    return len(page) if index < 0 else index + len(sign)


def _after_comment(page: str, at: int) -> int:
    # `<!-->` and `<!--->` are complete comments.
    for empty in (">", "->"):
        if page.startswith(empty, at):
            return at + len(empty)
    match = _COMMENT_END.search(page, at)
    return len(page) if match is None else match.end()


def _attributes(page: str, at: int) -> tuple[dict[str, str], int, bool]:
    """Return a tag's attributes, the position after it (-1 if the page ends), and if it closed itself."""
    attributes: dict[str, str] = {}
    while (match := _ATTRIBUTE.match(page, at)) is not None:
        at = match.end()
        if match["end"]:
            return attributes, at, match[0].endswith("/>")
        value = next((text for text in match.group("two", "one", "bare") if text is not None), "")
        attributes.setdefault(match["name"].lower(), _unescape(value))
    return attributes, -1, False


def _raw(page: str, at: int, tag: str) -> tuple[str, int]:
    """Return the text up to an element's own end tag, and the position after that."""
    end_tag = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE).search(page, at)
    if end_tag is None:
        return page[at:], len(page)
    return page[at : end_tag.start()], _after(page, end_tag.end(), ">")


def _text(text: str) -> Text:
    return Text(text=_unescape(text))


def _unescape(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


# --- readable text -------------------------------------------------------------------------------

# Elements without text, or with text that is no part of the page. `textarea` holds form input.
_LEFT_OUT = (RAW - {"title"}) | {
    "template", "object", "svg", "math", "canvas", "audio", "video", "select", "datalist",
}  # fmt: skip
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog",
        "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr",
        "legend", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tr", "ul", "li",
        "h1", "h2", "h3", "h4", "h5", "h6",
    }
)  # fmt: skip
# They have a blank line before and after; the other blocks only start a new line.
_APART = frozenset(
    {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "pre", "blockquote"}
)
_EMPTY = frozenset(
    {
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
        "track", "wbr",
    }
)  # fmt: skip
# The next element of their kind ends them, so a hidden one hides no more than itself.
_OPEN_ENDED = frozenset({"p", "li", "dt", "dd", "tr", "td", "th", "option"})
_HOLDERS = frozenset({"ul", "ol", "dl", "table"})
_FOREIGN = frozenset({"svg", "math"})  # only their elements can close themselves
# An end tag ends nothing beyond these while they are open (HTML standard, 13.2.4.2, 13.2.6.4.7).
_ROWS = frozenset({"caption", "tbody", "td", "tfoot", "th", "thead", "tr"})
_CELLS = frozenset({"table", "caption", "td", "th"})
_SPECIAL = _BLOCKS | _ROWS | {"center", "button", "object"}
_MAX_LEVELS = 300
"""Depth inside a removed element; if it is nested deeper, the rest of the page is removed too."""
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACES = re.compile(r"[ \t\n\f\r\u00a0]+")
_LONGEST_LINK_CHARS = 500
_LONGEST_LEAD_CHARS = 400
"""Of empty cells before a text; each further one would copy all before it."""


class Page(Value):
    """A page as readable text.

    Attributes:
        title: On one line, empty for none.
        text: Its text.
    """

    title: str
    text: str


def readable_page(
    page: str,
    link: Callable[[str], str] | None = None,
    *,
    leaves_out: Callable[[str, Mapping[str, str]], bool] = lambda _tag, _attributes: False,
) -> Page:
    """Return a page's title and text; accepts any input.

    Args:
        page: The page.
        link: Returns the text to show after a link's own text, empty for nothing; None shows none.
        leaves_out: Whether an element with this tag and these attributes is removed, in addition to
            hidden ones.
    """
    reader = _Reader(link=link, leaves_out=leaves_out)
    for piece in pieces(page):
        match piece:
            case Text(text=text):
                reader.words(text)
            case Start():
                reader.start(piece)
            case End(tag=tag):
                reader.end(tag)
            case _:
                assert_never(piece)
    return Page(title=reader.title, text="".join(reader.written).strip("\n"))


class _Reader(Struct, kw_only=True):
    """Builds the text; the space between two pieces is decided when the second arrives.

    Attributes:
        skipped: The element that is being skipped and the open elements in it, outermost first: by
            tag, the levels at which it is open, as bits; empty for none.
        lead: Put before the next text of this block, such as the dash of a list.
        verbatim: The number of open `pre` elements.
        leads_to: The target of the open link.
    """

    link: Callable[[str], str] | None
    leaves_out: Callable[[str, Mapping[str, str]], bool]
    title: str = ""
    written: list[str] = field(default_factory=list[str])
    newlines: int = 0
    space: bool = False
    lead: str = ""
    verbatim: int = 0
    in_title: bool = False
    leads_to: str = ""
    skipped: dict[str, int] = field(default_factory=dict[str, int])

    def words(self, text: str) -> None:
        """Handle the text between two tags."""
        if self.skipped:
            return
        if self.in_title:
            self.title = self.title or _SPACES.sub(" ", text).strip()
        elif self.verbatim:
            self._put(text)
        else:
            flowing = _SPACES.sub(" ", text)
            self.space = self.space or flowing.startswith(" ")
            if flowing.strip(" "):
                self._put(flowing.strip(" "))
                self.space = flowing.endswith(" ")

    def start(self, element: Start) -> None:
        """Handle a start tag."""
        tag = element.tag
        is_closed = element.is_closed and tag in _FOREIGN
        if self.skipped:
            outer = next(iter(self.skipped))
            if tag != outer or tag not in _OPEN_ENDED or self._innermost(_HOLDERS) > 0:
                if not is_closed and (tag in _SPECIAL or tag == outer):
                    level = self._innermost(self.skipped) + 1
                    self.skipped[tag] = self.skipped.get(tag, 0) | 1 << level
                    self.skipped = self.skipped if level <= _MAX_LEVELS else {"": 1}
                return
            self.skipped = {}
        if tag in _LEFT_OUT or (
            tag not in _EMPTY
            and (_is_hidden(element.attributes) or self.leaves_out(tag, element.attributes))
        ):
            self.skipped = {} if is_closed else {tag: 1}
            return
        self._block(tag)
        self._begin(tag, element.attributes)

    def end(self, tag: str) -> None:
        """Handle an end tag."""
        if self.skipped:
            self._end_skipped(tag)
            return
        match tag:
            case "title":
                self.in_title = False
            case "pre":
                self.verbatim = max(0, self.verbatim - 1)
            case "a":
                self._end_link()
            # The cell is empty, or ends with a block.
            case "td" | "th" if self.newlines and len(self.lead) < _LONGEST_LEAD_CHARS:
                self.lead += "| "
            case _:
                pass
        self._block(tag)
        # A list item may hold paragraphs; an empty one leaves its dash to no later text.
        self.lead = "" if tag in _APART or tag in {"li", "tr"} else self.lead

    def _begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        match tag:
            case "title":
                self.in_title = True
            case "br":
                self.newlines = min(self.newlines + 1, 2)
            case "li":
                self.lead = "- "
            case "td" | "th":
                if not self.newlines:
                    self.words(" | ")
            case "img":
                alternative = attributes.get("alt", "").strip()
                self.words(f" [{alternative}] " if alternative else "")
            case "pre":
                self.verbatim += 1
            case "a":
                self._end_link()
                self.leads_to = attributes.get("href", "")
            case _:
                self.lead = _HEADINGS.get(tag, self.lead)

    def _block(self, tag: str) -> None:
        """Start a new line where a block begins or ends."""
        if tag in _BLOCKS:
            self.newlines = max(self.newlines, 2 if tag in _APART else 1)

    def _end_skipped(self, tag: str) -> None:
        """Handle an end tag while skipping; one that browsers would ignore must not reveal anything."""
        level = self._innermost((tag,))
        bounds = _CELLS if tag in _SPECIAL else _SPECIAL
        if tag in _ROWS or tag == "table":
            bounds = frozenset({"table"})
        elif tag == "li":
            bounds |= _HOLDERS
        if level >= 0 and level >= self._innermost(bounds):
            outside = (1 << level) - 1
            levels = ((name, bits & outside) for name, bits in self.skipped.items())
            self.skipped = {name: bits for name, bits in levels if bits}

    def _innermost(self, tags: Iterable[str]) -> int:
        """Return the innermost level at which one of these is open while skipping; -1 for none."""
        return max(self.skipped.get(tag, 0).bit_length() for tag in tags) - 1

    def _end_link(self) -> None:
        address, self.leads_to = self.leads_to, ""
        text = self.link(address) if self.link is not None and address else ""
        if text and len(text) <= _LONGEST_LINK_CHARS:
            self.words(f" <{text}>")

    def _put(self, text: str) -> None:
        if self.written:
            between = " " if self.space and not self.lead else ""
            self.written.append("\n" * self.newlines or between)
        self.written.append(self.lead + text)
        self.newlines, self.space, self.lead = 0, False, ""


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    """Whether a page hides an element, so that only programs read its text."""
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = _SPACES.sub("", attributes.get("style", "")).lower()
    return "display:none" in style or "visibility:hidden" in style
