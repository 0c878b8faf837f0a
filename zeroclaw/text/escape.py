"""Invisible characters and markup: escaped, replaced or removed (P5, P6).

A person must read exactly the call that they approve. So wherever a call is shown, the text of a
model, a tool or a stranger passes through here: a command then reads in the order in which it would
run, and no part of it is hidden. The same holds for the results of tools, because a model reads
characters that people can't see.
"""

import json
import re
from functools import cache

_HIDDEN = (
    # Controls except tab and line feed; surrogate halves, which have no UTF-8.
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
    # Characters that change the direction of writing, or end a line invisibly.
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    # Characters that show nothing (Unicode's Default_Ignorable_Code_Point, read 2026-11), including
    # tags, which can carry a whole text that only a model reads.
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0d"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Emoji are made with joiners and variation selectors, and Persian and the scripts of India need
# joiners: one selector and one joiner are kept after a character that can use them. More of them in
# a row, or after a Latin, Greek or Cyrillic letter, show nothing, and can carry a text like tags.
_JOINER, _SELECTOR = "\u200c\u200d", "\ufe0e\ufe0f"
_USER = f"[^\x00-\xa8\xaa-\xad\xaf-\u058f{_HIDDEN}{_JOINER}{_SELECTOR}]"
_UNSEEN = re.compile(
    # A leading character class is found four times as fast as several alternatives, and no other
    # thread runs during the search. The lookbehinds then tell which character it was, and whether
    # it counts.
    f"[{_HIDDEN}\r{_SELECTOR}{_JOINER}](?:"
    f"(?<=[{_HIDDEN}])[{_HIDDEN}]*|(?<=\r)(?!\n)"
    # A selector between a digit and its keycap is an emoji as well.
    f"|(?<=[{_SELECTOR}])(?<!{_USER}[{_SELECTOR}])(?!\u20e3)"
    f"|(?<=[{_JOINER}])(?<!{_USER}[{_JOINER}])(?<!{_USER}[{_SELECTOR}][{_JOINER}]))"
)


# What the Markdown of the page and the console removes: escapes, inline marks, link targets, marks
# at the start of a line, and lines that are a fence or a rule. No run of blanks is tried twice.
_MARKUP = re.compile(
    r"^[ \t>]*+(?:(?:`{3,}|~{3,})[^\n]*|(?:[-*_][ \t]*+){3,}|[-+:| \t]*+(?<=[-+:| \t]))$"
    r"|^[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)]|\#{1,6})(?:[ \t]++|$))+|\\$|\\(?=[!-/:-@\[-`{-~])"
    r"|[*`]|__|~~|\]\([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*\)|[\[\]<>|]|(?<!\w)_|_(?!\w)",
    re.MULTILINE,
)


def shortened(text: str, max_chars: int) -> str:
    """Return a text of at most this many characters; a cut one ends with an ellipsis."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def without_middle(text: str, max_chars: int, gap: str = " … ") -> str:
    """Return the ends of a text, together of at most this many characters, with `gap` between them.

    The gap may have a field for the number of characters left out, such as `{:,}`.
    """
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}{gap.format(len(text) - 2 * half)}{text[-half:]}"


def without_markup(markdown: str) -> str:
    """Return the words of a Markdown text, removing all that any channel may treat as markup.

    For checks, not for reading: it matters only which letters become adjacent.
    """
    return _MARKUP.sub("", markdown)


# Characters that `str.isprintable` accepts but that are invisible, or look like a space.
_LOOKS_EMPTY = re.compile(
    f"[{_HIDDEN}{_SELECTOR}\u2800\ufffc]"
    # Combining marks in general use, drawn over or across their neighbours.
    "|[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)


# The signs that begin a receipt's mark, their lookalikes, and their colour variants.
_CHECK_MARK = re.compile("[✅✔☑🗸🗹🮱][\ufe0e\ufe0f]?")
_CLOCK = re.compile("[\U0001f550-\U0001f567][\ufe0e\ufe0f]?")


DOTS = "\u00b7\u0387\u1427\u16eb\u2022\u2027\u2219\u22c5\u2e31\u30fb\uff65\ua78f\U00010101"
"""The separator between the parts of a receipt's mark, and its lookalikes."""
# Includes blank lookalikes: enough of them push the rest to another row.
_DIVIDES = re.compile(f"[{DOTS}✅✓✔☑🗸🗹🮱√\U0001f550-\U0001f567\u2800\ufffc]")


def in_a_mark(text: str) -> str:
    """Return a text as one part of a receipt's mark, without characters that separate parts."""
    return _DIVIDES.sub(_numbers, escape_invisible(" ".join(text.split())))


def without_mark_signs(text: str) -> str:
    """Return a text without the signs of a receipt's mark, for channels where a mark is only text.

    Each sign is replaced by one with the same meaning, so that an honest line still reads the same.
    """
    return _CLOCK.sub("◷", _CHECK_MARK.sub("✓", text))


def is_hidden(sign: str) -> bool:
    """Whether one character can't be told from nothing, a space, or a part of its neighbour.

    Stricter than `escape_invisible`, which keeps the parts of an emoji: a selector after one can
    carry an invisible text.
    """
    return not sign.isprintable() or _LOOKS_EMPTY.match(sign) is not None


def is_visible(text: str) -> bool:
    """Whether a text shows anything; platforms refuse one of invisible characters alone."""
    return not all(char == " " or is_hidden(char) for char in text)


def escape_invisible(text: str) -> str:
    """Return a text with each invisible character replaced by its number, `⟨U+202E⟩`.

    Keeps tabs and line feeds, and removes a carriage return before a line feed. Idempotent.
    """
    return _UNSEEN.sub(_numbers, text).replace("\r\n", "\n")


# Tag characters carry a text that only a model reads. They also make flags and ideograph variants.
_TAG = re.compile("[\U000e0000-\U000e0fff]")
_TAGS = re.compile(
    "(\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f"
    "|(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef])"
    f"|{_TAG.pattern}+"
)


def without_tags(text: str) -> str:
    """Return a person's text without tag characters; keep those of flags and ideograph variants."""
    # A class alone is found eight times as fast, and almost no text has one.
    return _TAGS.sub(lambda match: match[1] or "", text) if _TAG.search(text) else text


def as_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON with invisible characters escaped as JSON does; it parses the same."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def escape_for_model(text: str) -> tuple[str, int]:
    """Return a text like `escape_invisible`, with its line ends unchanged, and a count.

    The count is of escaped characters: a model that reads a file and then writes it must know that
    it did not read all of it exactly.
    """
    escaped, count = _UNSEEN.subn(_numbers, text)
    # Each match became escapes, one per character; the text's own ones are subtracted.
    return escaped, escaped.count(_OPENING) - text.count(_OPENING) if count else 0


_OPENING = "⟨U+"


@cache
def _number(sign: str) -> str:
    return f"{_OPENING}{ord(sign):04X}⟩"


def _numbers(match: re.Match[str]) -> str:
    return "".join(map(_number, match[0]))
