"""Turn Markdown into text and entities, which Telegram can't fail to parse.

telegramify-markdown (of the extra `telegram`, loaded when first used) does the parsing. Four of
its answers are mended here: it drops raw HTML, text and all, so no `<` is shown to it; it turns
formulas into signs in time and memory that double with each root in a root, so that a line of them
would stop everything, and no `$` is shown to it either; nor is a table that it would draw for
seconds (`rich.py`); and it nests block quotes, which the Bot API does not allow (formatting
options, read 2026-11).
"""

import re
from collections.abc import Callable
from itertools import chain

from channels._remote.fields import storable
from channels._remote.limits import units
from channels.telegram import rich
from channels.telegram.styled import Mark, Styled, to_body
from zeroclaw import Rendered

MOST_UNITS = 4096
"""Bot API, sendMessage: 1-4096 after entities parsing, in UTF-16 units, read 2026-11."""

KINDS = frozenset(
    {"blockquote", "bold", "code", "italic", "pre", "spoiler", "strikethrough", "text_link"}
    | {"underline"}
)
"""All styles that are ever sent."""
_HIDDEN = "<$"
_HIDDEN_IN_RULES = "|"
_STAND_INS = tuple(map(chr, range(0xE000, 0xF900)))  # for private use, so hardly in a text
_LANGUAGE = re.compile(rich.LANGUAGE)
# Telegram drops these: signs that turn the reading direction round, and controls.
_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028-\u202e]")
# The library's time grows with the square of the levels, to seconds for a line of nothing else.
_DEEP = re.compile(r"^[ \t]*+(?:(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])[ \t]*+){50}", re.MULTILINE)
# And with the square of what begins a block; no message that people read has so many in a part.
_BLOCK = re.compile(r"^[ \t]*+(?:`{3}|~{3}|#{1,6}[ \t])", re.MULTILINE)
MOST_BLOCKS = 200


def markdown(text: str, *, richly: bool = False) -> Rendered:
    """Return a text as Telegram takes it; the plain form has the same words.

    Args:
        text: In Markdown.
        richly: With its rich form, where it needs one. The length stays that of the other forms, by
            which a text is cut, so that each can stand in for it.
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
    # Where all stand for something already, the first three are read as what they stand for here.
    hidden = dict(zip(_HIDDEN + _HIDDEN_IN_RULES, chain(free, _STAND_INS), strict=False))
    shown = str.maketrans({stand_in: sign for sign, stand_in in hidden.items()})

    def seen(words: str) -> str:
        # One unit for one unit, so that offsets stay.
        return _DROPPED.sub("\ufffd", words.translate(shown))

    read = clean.translate(str.maketrans({one: hidden[one] for one in _HIDDEN}))
    read = rich.without_huge(read, hidden[_HIDDEN_IN_RULES])
    text, marks = _parsed(read, seen)
    if not text.strip():
        return Styled(text=clean.strip())
    # What is too long for a message is only measured.
    is_rich = richly and units(text) <= MOST_UNITS and rich.may_need(read)
    form = rich.html(read, seen) if is_rich else ""
    return Styled(text=text, marks=tuple(marks), rich=form)


def _parsed(source: str, seen: Callable[[str], str]) -> tuple[str, list[Mark]]:
    """Return a text with the marks that Telegram allows.

    Of quotes in a quote the outermost stays. Links to anything but pages go, `tg://user` among them,
    by which a model would ping people.
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
