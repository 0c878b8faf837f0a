"""Turns an HTML page into text that can be read: headings, paragraphs, lists, links."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from zeroclaw.tools.fetch.markup import RAW, End, Start, Words, pieces
from zeroclaw.value import Value

# No text, or none that a person reads as part of the page. `textarea` is what one would write.
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
# A blank line stands before and after them; the other blocks just begin a line.
_APART = frozenset(
    {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "pre", "blockquote"}
)
_EMPTY = frozenset(
    {
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
        "track", "wbr",
    }
)  # fmt: skip
# Ended by the next of their kind, so a hidden one hides no more than itself.
_OPEN_ENDED = frozenset({"p", "li", "dt", "dd", "tr", "td", "th", "option"})
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACES = re.compile(r"[ \t\n\f\r\u00a0]+")
_LONGEST_LINK_CHARS = 500


class Page(Value):
    """A page, readable.

    Attributes:
        title: On one line, empty for none.
        text: Its text.
    """

    title: str
    text: str


def readable_page(page: str, link: Callable[[str], str] | None = None) -> Page:
    """Return a page's title and text; whatever it is, it is read as something.

    Args:
        page: The page.
        link: Returns what is shown behind the text of a link, empty for nothing; None shows none.
    """
    reader = _Reader(link=link)
    for piece in pieces(page):
        match piece:
            case Words(text=text):
                reader.words(text)
            case Start():
                reader.start(piece)
            case End(tag=tag):
                reader.end(tag)
            case _:
                assert_never(piece)
    return Page(title=reader.title, text="".join(reader.written).strip("\n"))


@dataclass(slots=True, kw_only=True)
class _Reader:
    """The text so far; what stands between two pieces is decided when the second comes.

    Attributes:
        skipped: The element that is passed over, empty for none; `depth` is how many of its kind
            are open.
        lead: Stands before the next text of this block, such as the dash of a list.
        verbatim: How many `pre` are open.
        leads_to: Where the open link leads.
    """

    link: Callable[[str], str] | None
    title: str = ""
    written: list[str] = field(default_factory=list[str])
    newlines: int = 0
    space: bool = False
    lead: str = ""
    verbatim: int = 0
    in_title: bool = False
    leads_to: str = ""
    skipped: str = ""
    depth: int = 0

    def words(self, text: str) -> None:
        """Take the text between two tags."""
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

    def start(self, found: Start) -> None:
        """Take a start tag."""
        tag = found.tag
        if self.skipped:
            if tag != self.skipped:
                return
            if tag not in _OPEN_ENDED:
                self.depth += not found.is_closed
                return
            self.skipped = ""
        if tag in _LEFT_OUT or (tag not in _EMPTY and _is_hidden(found.attributes)):
            if not found.is_closed or tag in RAW:
                self.skipped, self.depth = tag, 1
            return
        self._block(tag)
        self._begin(tag, found.attributes)

    def end(self, tag: str) -> None:
        """Take an end tag."""
        if self.skipped:
            if tag == self.skipped:
                self.depth -= 1
                self.skipped = tag if self.depth else ""
            return
        match tag:
            case "title":
                self.in_title = False
            case "pre":
                self.verbatim = max(0, self.verbatim - 1)
            case "a":
                self._end_link()
            case _:
                pass
        self._block(tag)

    def _begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        match tag:
            case "title":
                self.in_title = True
            case "br":
                self.newlines, self.space = min(self.newlines + 1, 2), False
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
        """Begin a line where a block begins or ends."""
        if tag in _BLOCKS:
            self.newlines = max(self.newlines, 2 if tag in _APART else 1)
            self.space = False
            self.lead = "" if tag in _APART else self.lead

    def _end_link(self) -> None:
        address, self.leads_to = self.leads_to, ""
        shown = self.link(address) if self.link is not None and address else ""
        if shown and len(shown) <= _LONGEST_LINK_CHARS:
            self.words(f" <{shown}>")

    def _put(self, text: str) -> None:
        if self.written:
            between = " " if self.space and not self.lead else ""
            self.written.append("\n" * self.newlines or between)
        self.written.append(self.lead + text)
        self.newlines, self.space, self.lead = 0, False, ""


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    """Tell what a page says that nobody sees: text put there is meant for machines like ours."""
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = _SPACES.sub("", attributes.get("style", "")).lower()
    return "display:none" in style or "visibility:hidden" in style
