"""What can't be seen in a text: written out, or left out as Markdown leaves it out (P5, P6).

What a person approves must be what they read. So wherever a call is shown, what a model, a tool or
a stranger wrote goes through here: a command then reads in the order in which it would run, and
nothing in it is hidden. The same goes for what a tool returns to a model, which reads what people
can't see.
"""

import json
import re
from functools import cache

_HIDDEN = (
    # Controls but tab and line feed; halves of surrogate pairs, which no UTF-8 can say.
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
    # What turns the direction of writing, and ends a line unseen.
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    # What shows nothing (Unicode's Default_Ignorable_Code_Point, read 2026-11), tags among it,
    # which can carry a whole text that only a model reads.
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0d"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Emoji are made with joiners and the selectors of their look, and Persian and the scripts of India
# need joiners: one selector and one joiner stay after a sign that can use them. More of them in a
# row, or after a Latin, Greek or Cyrillic letter, show nothing, and can carry a text like tags.
_JOINER, _SELECTOR = "\u200c\u200d", "\ufe0e\ufe0f"
_USER = f"[^\x00-\xa8\xaa-\xad\xaf-\u058f{_HIDDEN}{_JOINER}{_SELECTOR}]"
_UNSEEN = re.compile(
    # A class stands first, which `re` looks for four times as fast as for several patterns: no other
    # thread runs while it looks. What is behind says which sign that was, and whether it counts.
    f"[{_HIDDEN}\r{_SELECTOR}{_JOINER}](?:"
    f"(?<=[{_HIDDEN}])[{_HIDDEN}]*|(?<=\r)(?!\n)"
    # A selector between a digit and its keycap is an emoji as well.
    f"|(?<=[{_SELECTOR}])(?<!{_USER}[{_SELECTOR}])(?!\u20e3)"
    f"|(?<=[{_JOINER}])(?<!{_USER}[{_JOINER}])(?<!{_USER}[{_SELECTOR}][{_JOINER}]))"
)


# What the page's and the console's Markdown take away: escapes, marks within a line, where a link
# leads; marks at the beginning of a line, and lines that are a fence or a rule.
_MARKUP = re.compile(
    r"^[ \t>]*(?:(?:`{3,}|~{3,})[^\n]*|(?:[-*_][ \t]*){3,}|[-+:| \t]+)$"
    r"|^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]|\#{1,6})(?:[ \t]+|$))+|\\$"
    r"|\\(?=[!-/:-@\[-`{-~])|[*`]|__|~~|\]\([^\s()<>]*\)|[\[\]<>|]|(?<!\w)_|_(?!\w)",
    re.MULTILINE,
)


def without_markup(markdown: str) -> str:
    """Return the words of a Markdown text, with less of what may be markup than anybody shows.

    To be looked through, not to be read: that two letters stand side by side in it is what counts.
    """
    return _MARKUP.sub("", markdown)


# What `str.isprintable` lets pass and nobody sees: what shows nothing, and looks like a space.
_LOOKS_EMPTY = re.compile(
    f"[{_HIDDEN}{_SELECTOR}\u2800\ufffc]"
    # What is drawn over or across its neighbours, in general use.
    "|[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)


# What a true mark begins with, what looks like it, and how either looks in colour.
_CHECK_MARK = re.compile("[✅✔☑🗸🗹🮱][\ufe0e\ufe0f]?")
_CLOCK = re.compile("[\U0001f550-\U0001f567][\ufe0e\ufe0f]?")


DOTS = "\u00b7\u0387\u1427\u16eb\u2022\u2027\u2219\u22c5\u2e31\u30fb\uff65\ua78f\U00010101"
"""What divides the parts of a true mark, and what looks like it."""
# Also what looks like a blank: enough of it pushes the rest to another row.
_DIVIDES = re.compile(f"[{DOTS}✅✓✔☑🗸🗹🮱√\U0001f550-\U0001f567\u2800\ufffc]")


def in_a_mark(words: str) -> str:
    """Return words of others as one part of a true mark, in which only the mark's own signs divide."""
    return _DIVIDES.sub(_numbers, escape_invisible(" ".join(words.split())))


def without_mark_signs(text: str) -> str:
    """Return a text without the signs of a true mark, for where such a mark is nothing but text.

    Each gives way to one that means the same, so that an honest line still says what it said.
    """
    return _CLOCK.sub("◷", _CHECK_MARK.sub("✓", text))


def is_hidden(sign: str) -> bool:
    """Whether one character can't be told from nothing, a space, or a part of its neighbour.

    Stricter than `escape_invisible`, which lets what makes an emoji stand: a selector behind one can
    carry a text that nobody sees.
    """
    return not sign.isprintable() or _LOOKS_EMPTY.match(sign) is not None


def escape_invisible(text: str) -> str:
    """Return a text in which what can't be seen stands as its number, `⟨U+202E⟩`.

    Tabs and line feeds stay, and a carriage return before a line feed goes. Twice changes nothing.
    """
    return _UNSEEN.sub(_numbers, text).replace("\r\n", "\n")


# A text in signs that only a model reads. A flag is made of them as well, and the form of an ideograph.
_TAGS = re.compile(
    "(\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f"
    "|(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef])"
    "|[\U000e0000-\U000e0fff]"
)


def without_tags(text: str) -> str:
    """Return what a person wrote without the signs of it that nobody types or sees."""
    return text if text.isascii() else _TAGS.sub(lambda found: found[1] or "", text)


def as_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON in which what can't be seen is escaped, as JSON escapes it; it reads the same."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def escape_for_model(text: str) -> tuple[str, int]:
    """Return a text as `escape_invisible` does, with the ends of its lines as they are, and a count.

    It counts what is spelled out: a model that reads a file, and is to write it again, must know
    that it did not read all of it as it stands there.
    """
    shown, count = _UNSEEN.subn(_numbers, text)
    # Each match was replaced by signs that the text had fewer of before: one a character.
    return shown, shown.count(_OPENING) - text.count(_OPENING) if count else 0


_OPENING = "⟨U+"


@cache
def _number(sign: str) -> str:
    return f"{_OPENING}{ord(sign):04X}⟩"


def _numbers(found: re.Match[str]) -> str:
    return "".join(map(_number, found[0]))
