"""Find positions between the characters that a person sees (grapheme clusters).

Covers combining marks, joined emoji with skin tones and tags, flags, line ends, and surrogate pairs
that a platform's JSON left as two halves: the parts of UAX #29 that are common in chats.
"""

import unicodedata

# Unicode's stream-safe format allows 30 combining characters in a row (UAX #15, read 2026-11);
# a longer stack is cut between two of them.
LONGEST_CLUSTER_CHARS = 32

_ZERO_WIDTH_JOINER = "\u200d"


def between_characters(text: str, start: int, position: int) -> int:
    """Return the last position up to `position` between two characters; always after `start`."""
    for cut in range(position, max(start, position - LONGEST_CLUSTER_CHARS), -1):
        if not _is_inside_character(text, start, cut):
            return cut
    if position - start > LONGEST_CLUSTER_CHARS:
        return position
    return after_character(text, start, start)


def after_character(text: str, start: int, position: int) -> int:
    """Return the first position after `position` between two characters."""
    for cut in range(position + 1, min(position + LONGEST_CLUSTER_CHARS, len(text))):
        if not _is_inside_character(text, start, cut):
            return cut
    return min(position + LONGEST_CLUSTER_CHARS, len(text))


def _is_inside_character(text: str, start: int, cut: int) -> bool:
    """Whether a cut here would split a visible character."""
    if cut >= len(text):
        return False
    before, after = text[cut - 1], text[cut]
    if before == _ZERO_WIDTH_JOINER or _joins_backward(after):
        return True
    if before == "\r":
        return after == "\n"
    if "\ud800" <= before <= "\udbff":
        return "\udc00" <= after <= "\udfff"
    return _is_flag_half(after) and _flag_halves_before(text, start, cut) % 2 == 1


def _joins_backward(character: str) -> bool:
    if character < "\u0300":
        return False
    return (
        character == _ZERO_WIDTH_JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags, as in the flag of Wales
        or unicodedata.category(character).startswith("M")
    )


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_halves_before(text: str, start: int, cut: int) -> int:
    count = 0
    while cut - count > start and _is_flag_half(text[cut - count - 1]):
        count += 1
    return count
