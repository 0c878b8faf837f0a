"""Turns Markdown into text and entities, which Telegram does not have to parse.

telegramify-markdown (of the extra `telegram`, loaded when first used) parses the Markdown. Some of its
flaws are worked around here:

- It drops raw HTML including the text inside, so `<` is hidden from it.
- It renders formulas in time and memory that double with each nested root, so one line could stop the
  daemon. So `$` is hidden from it.
- Drawing a huge table takes seconds, so such tables are hidden from it (`rich.py`).
- It drops the definitions of links, although what refers to one may stand in another message, and cells
  beyond a table's head. So their brackets and borders are hidden from it. So are the brackets of links
  to anything except web pages, such as `tg://user`, with which a model could ping people: they are
  shown as they were written.
- It reads underscores in a bare URL as markup, which makes it another URL. So they are hidden from it.
- It ticks the box of an open task. So `☑` is hidden from it, and its own becomes `☐`.
- It nests block quotes, which the Bot API does not allow (formatting options, read 2026-11).
"""

import re
from collections.abc import Callable
from itertools import chain

from channels._remote.fields import storable
from channels._remote.limits import units
from channels._remote.tables import without_lost_cells
from channels.telegram import rich
from channels.telegram.styled import Entity, Styled, from_body, to_body
from zeroclaw import Rendered

MAX_UNITS = 4096
"""Bot API, sendMessage: 1-4096 after entities parsing, in UTF-16 units, read 2026-11."""
MAX_ENTITIES = 100
"""Telegram drops further ones, and with a link where it leads; its documentation does not say so."""

KINDS = frozenset(
    {"blockquote", "bold", "code", "italic", "pre", "spoiler", "strikethrough", "text_link"}
    | {"underline"}
)
"""All styles that may be sent."""
_HIDDEN = "<$☑"
_HIDDEN_AT_PLACES = "|]_"
_STAND_INS = tuple(map(chr, range(0xE000, 0xF900)))  # the private use area, so rare in texts
_LANGUAGE = re.compile(rich.LANGUAGE)
# A picture within a link is shown as its name; the link counts.
_NO_LINK = re.compile(r"(?<!\\)\](?=:|\((?!(?:[^\s()]*\)\]\()?\s{0,9}https?://))")
# A bare URL, which punctuation of other scripts ends. Where a link leads is read without markup.
_URL = re.compile(
    r"(?!(?<=\]\()[^\s()\[\]]*\))https?://[^\s*`|\[\]\u2010-\u206f\u3000-\u303f\uff00-\uffef]*(?:[^\W_]|[/=&#%+@-])"
)
_UNDERSCORE = re.compile(r"(?<!\\)_")
# Telegram drops these: control characters, and those that change the reading direction.
_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028-\u202e]")
# The library's time is quadratic in the nesting depth: seconds for one line of nothing but markers.
_DEEP = re.compile(r"^[ \t]*+(?:(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])[ \t]*+){50}", re.MULTILINE)
# It is also quadratic in the number of block starts; no readable message has that many.
_BLOCK = re.compile(r"^[ \t]*+(?:`{3}|~{3}|#{1,6}[ \t])", re.MULTILINE)
MAX_BLOCKS = 200


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
    """Return the length in UTF-16 units; a text with too many entities counts as too long."""
    length = units(rendered.plain)
    are_kept = len(from_body(rendered.body).entities) <= MAX_ENTITIES
    return length if are_kept else max(length, MAX_UNITS + 1)


def _styled(original: str, *, richly: bool) -> Styled:
    clean = _DROPPED.sub("", storable(original).replace("\r\n", "\n"))
    if _DEEP.search(clean) or len(_BLOCK.findall(clean)) > MAX_BLOCKS:
        return Styled(text=clean.strip())
    unused = (stand_in for stand_in in _STAND_INS if stand_in not in clean)
    # If the text has all stand-ins, the first six are reused and read as the hidden characters.
    hidden = dict(zip(_HIDDEN + _HIDDEN_AT_PLACES, chain(unused, _STAND_INS), strict=False))
    restored = str.maketrans({"☑": "☐"} | {stand_in: sign for sign, stand_in in hidden.items()})

    def restore(piece: str) -> str:
        # Replace one unit by one unit, so that offsets stay valid.
        return _DROPPED.sub("\ufffd", piece.translate(restored))

    source = clean.translate(str.maketrans({sign: hidden[sign] for sign in _HIDDEN}))
    source = _NO_LINK.sub(hidden["]"], source)
    source = _URL.sub(lambda url: _UNDERSCORE.sub(hidden["_"], url[0]), source)
    source = rich.without_huge(without_lost_cells(source, hidden["|"]), hidden["|"])
    text, entities = _parsed(source, restore)
    if not text.strip():
        return Styled(text=clean.strip())
    # A text that is too long for a message is only measured, never sent.
    is_rich = richly and units(text) <= MAX_UNITS and rich.may_need(source)
    form = rich.html(source, restore) if is_rich else ""
    return Styled(text=text, entities=tuple(entities), rich=form)


def _parsed(source: str, restore: Callable[[str], str]) -> tuple[str, list[Entity]]:
    """Parse Markdown into a text and the entities that Telegram allows.

    Of nested quotes only the outermost is kept, and only links to web pages.
    """
    from telegramify_markdown import RenderConfig, convert  # so that only Telegram loads it

    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = ""
    symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.unordered_list_item = "•"
    text, parsed = convert(source, latex_escape=False, config=config)
    text = restore(text).rstrip()
    entities: list[Entity] = []
    end, quoted_to = units(text), 0
    for span in sorted(parsed, key=lambda span: (span.offset, -span.length)):
        length, url = min(span.length, end - span.offset), restore(span.url or "")
        is_inner = span.type == "blockquote" and span.offset < quoted_to
        is_page = span.type != "text_link" or url.startswith(rich.LINKS)
        if span.type not in KINDS or length <= 0 or is_inner or not is_page:
            continue
        if span.type == "blockquote":
            quoted_to = span.offset + length
        entity = Entity(type=span.type, offset=span.offset, length=length)
        if url:
            entity["url"] = url
        if span.language and _LANGUAGE.fullmatch(span.language):
            entity["language"] = span.language
        entities.append(entity)
    return text, entities
