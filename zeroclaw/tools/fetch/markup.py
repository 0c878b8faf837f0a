"""Cuts HTML into tags and texts, in time that grows with its length and with nothing else.

No tree is built: text needs none, and building one as browsers do takes time in the square of how
deep a page nests (lexbor needed 16 s for 40,000 open elements, measured 2026-11). Python's own
parser has inputs that take it the square of their length, in the versions that stable systems
ship. What isn't closed here ends with the page, as the HTML standard says, so nothing is searched
for twice.
"""

import html
import re
from collections.abc import Iterator, Mapping

from zeroclaw.value import Value, field


class Start(Value):
    """A start tag; names in lower case, values with their character references resolved."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    is_closed: bool = False


class End(Value):
    """An end tag."""

    tag: str


class Words(Value):
    """Text between tags, with its character references resolved."""

    text: str


Piece = Start | End | Words

# Text up to their own end tag, whatever stands in it (HTML standard, 13.2.5).
RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})

_BEGIN = re.compile(r"<(?:(!--)|(/?)([a-zA-Z][^\t\n\f\r />]*)|[!?/])")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(
    r"[\s/]*+(?:(?P<end>>)|(?P<name>=?[^\s/>=]++|=)"
    r"(?:\s*+=\s*+(?:\"(?P<two>[^\"]*+)\"|'(?P<one>[^']*+)'|(?P<bare>[^\s>]++)?))?)"
)
# Beyond every character; Python refuses to read a number of some thousand digits.
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")


def pieces(page: str) -> Iterator[Piece]:
    """Yield what a page is made of, in order; comments and declarations are left out."""
    at = 0
    while (found := _BEGIN.search(page, at)) is not None:
        if found.start() > at:
            yield _words(page[at : found.start()])
        comment, slash, name = found.groups()
        if name is None:
            at = _after_comment(page, found.end()) if comment else _after(page, found.end(), ">")
            continue
        attributes, at, is_closed = _attributes(page, found.end())
        if at < 0:
            return
        tag = name.lower()
        if slash:
            yield End(tag=tag)
            continue
        yield Start(tag=tag, attributes=attributes, is_closed=is_closed)
        if tag in RAW:
            text, at = _raw(page, at, tag)
            yield _words(text)
            yield End(tag=tag)
    if at < len(page):
        yield _words(page[at:])


def _after(page: str, at: int, sign: str) -> int:
    """Return the place after the next sign, or the end of the page."""
    found = page.find(sign, at)
    return len(page) if found < 0 else found + len(sign)


def _after_comment(page: str, at: int) -> int:
    # `<!-->` and `<!--->` are whole comments.
    for short in (">", "->"):
        if page.startswith(short, at):
            return at + len(short)
    found = _COMMENT_END.search(page, at)
    return len(page) if found is None else found.end()


def _attributes(page: str, at: int) -> tuple[dict[str, str], int, bool]:
    """Return a tag's attributes, the place after it (-1: the page ends in it), and if it closed."""
    found: dict[str, str] = {}
    while (match := _ATTRIBUTE.match(page, at)) is not None:
        at = match.end()
        if match["end"]:
            return found, at, match[0].endswith("/>")
        value = next((one for one in match.group("two", "one", "bare") if one is not None), "")
        found.setdefault(match["name"].lower(), _resolved(value))
    return found, -1, False


def _raw(page: str, at: int, tag: str) -> tuple[str, int]:
    """Return the text up to an element's own end tag, and the place after that."""
    found = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE).search(page, at)
    if found is None:
        return page[at:], len(page)
    return page[at : found.start()], _after(page, found.end(), ">")


def _words(text: str) -> Words:
    return Words(text=_resolved(text))


def _resolved(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
