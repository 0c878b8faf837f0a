"""Turns Markdown into text and entities, which Telegram does not have to parse.

telegramify-markdown (of the extra `telegram`, loaded when first used) parses the Markdown. Six of its
flaws are worked around here:

- It drops raw HTML including the text inside, so `<` is hidden from it.
- It renders formulas in time and memory that double with each nested root, so one line could stop the
  daemon. So `$` is hidden from it.
- Drawing a huge table takes seconds, so such tables are hidden from it (`rich.py`).
- It drops the definitions of links, although what refers to one may stand in another message, and cells
  beyond a table's head. So their brackets and borders are hidden from it.
- It nests block quotes, which the Bot API does not allow (formatting options, read 2026-11).
"""

import re
from collections.abc import Callable
from itertools import chain

from channels._remote.fields import storable
from channels._remote.limits import units
from channels._remote.tables import without_lost_cells
from channels.telegram import rich
from channels.telegram.styled import Mark, Styled, to_body
from zeroclaw import Rendered

MOST_UNITS = 4096
"""Bot API, sendMessage: 1-4096 after entities parsing, in UTF-16 units, read 2026-11."""

KINDS = frozenset(
    {"blockquote", "bold", "code", "italic", "pre", "spoiler", "strikethrough", "text_link"}
    | {"underline"}
)
"""All styles that may be sent."""
_HIDDEN = "<$"
_HIDDEN_AT_PLACES = "|["
_STAND_INS = tuple(map(chr, range(0xE000, 0xF900)))  # the private use area, so rare in texts
_LANGUAGE = re.compile(rich.LANGUAGE)
_DEFINED = re.compile(r"\[(?=(?:[^\[\]\\]|\\.){0,999}\]:)", re.DOTALL)
# Telegram drops these: control characters, and those that change the reading direction.
_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028-\u202e]")
# The library's time is quadratic in the nesting depth: seconds for one line of nothing but markers.
_DEEP = re.compile(r"^[ \t]*+(?:(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])[ \t]*+){50}", re.MULTILINE)
# It is also quadratic in the number of block starts; no readable message has that many.
_BLOCK = re.compile(r"^[ \t]*+(?:`{3}|~{3}|#{1,6}[ \t])", re.MULTILINE)
MOST_BLOCKS = 200


def markdown(text: str, *, richly: bool = False) -> Rendered:
    """Render Markdown for Telegram; the plain form has the same words.

    Args:
        text: The Markdown.
        richly: Include the rich form if the text needs one. The measured length is that of the
            ordinary form, so that it can always replace the rich one.
    """
    styled = _styled(text, richly=richly)
    return Rendered(body=to_body(styled), plain=styled.text)


def measure(rendered: Rendered) -> int:
    """Return the length in UTF-16 units, after entities parsing."""
    return units(rendered.plain)


def _styled(source: str, *, richly: bool) -> Styled:
    clean = _DROPPED.sub("", storable(source).replace("\r\n", "\n"))
    if _DEEP.search(clean) or len(_BLOCK.findall(clean)) > MOST_BLOCKS:
        return Styled(text=clean.strip())
    free = (one for one in _STAND_INS if one not in clean)
    # If the text has all stand-ins, the first four are reused and read as the hidden characters.
    hidden = dict(zip(_HIDDEN + _HIDDEN_AT_PLACES, chain(free, _STAND_INS), strict=False))
    shown = str.maketrans({stand_in: sign for sign, stand_in in hidden.items()})

    def seen(words: str) -> str:
        # Replace one unit by one unit, so that offsets stay valid.
        return _DROPPED.sub("\ufffd", words.translate(shown))

    read = clean.translate(str.maketrans({one: hidden[one] for one in _HIDDEN}))
    read = _DEFINED.sub(hidden["["], read)
    read = rich.without_huge(without_lost_cells(read, hidden["|"]), hidden["|"])
    text, marks = _parsed(read, seen)
    if not text.strip():
        return Styled(text=clean.strip())
    # A text that is too long for a message is only measured, never sent.
    is_rich = richly and units(text) <= MOST_UNITS and rich.may_need(read)
    form = rich.html(read, seen) if is_rich else ""
    return Styled(text=text, marks=tuple(marks), rich=form)


def _parsed(source: str, seen: Callable[[str], str]) -> tuple[str, list[Mark]]:
    """Parse Markdown into a text and the marks that Telegram allows.

    Of nested quotes only the outermost is kept. Links to anything except web pages are dropped, such
    as `tg://user`, with which a model could ping people.
    """
    from telegramify_markdown import RenderConfig, convert  # so that only Telegram loads it

    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = ""
    symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.unordered_list_item = "•"
    text, entities = convert(source, latex_escape=False, config=config)
    text = seen(text).rstrip()
    marks: list[Mark] = []
    most, quoted_to = units(text), 0
    for one in sorted(entities, key=lambda one: (one.offset, -one.length)):
        length, url = min(one.length, most - one.offset), seen(one.url or "")
        is_inner = one.type == "blockquote" and one.offset < quoted_to
        is_page = one.type != "text_link" or url.startswith(rich.LINKS)
        if one.type not in KINDS or length <= 0 or is_inner or not is_page:
            continue
        if one.type == "blockquote":
            quoted_to = one.offset + length
        mark = Mark(type=one.type, offset=one.offset, length=length)
        if url:
            mark["url"] = url
        if one.language and _LANGUAGE.fullmatch(one.language):
            mark["language"] = one.language
        marks.append(mark)
    return text, marks
