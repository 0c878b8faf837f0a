"""Writes out what can't be seen in a text, or changes how what stands around it reads (P5).

What a person approves must be what they read. So wherever a call is shown, what a model, a tool or
a stranger wrote goes through here: a command then reads in the order in which it would run, and
nothing in it is hidden.
"""

import re

_UNSEEN = re.compile(
    # Controls but tab and line feed; halves of surrogate pairs, which no UTF-8 can say.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
    # What turns the direction of writing, and ends a line unseen.
    "|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    # What shows nothing (Unicode's Default_Ignorable_Code_Point, read 2026-11), tags among it,
    # which can carry a whole text that only a model reads.
    "|[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff]"
    "|[\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # Joiners and selectors of a glyph make emoji and scripts; after ASCII they only hide. A
    # selector between a digit and its keycap is an emoji as well.
    "|(?<![^\x00-\x7f])[\u200c\u200d\ufe00-\ufe0f]+(?!\u20e3)"
)


def spelled_out(text: str) -> str:
    """Return a text in which what can't be seen stands as its number, `⟨U+202E⟩`.

    Tabs and line feeds stay, and a carriage return before a line feed goes. Twice changes nothing.
    """
    return _UNSEEN.sub(_numbers, text.replace("\r\n", "\n"))


def _numbers(found: re.Match[str]) -> str:
    return "".join(f"⟨U+{ord(sign):04X}⟩" for sign in found[0])
