"""Read the words of a rich message, which has no text beside its blocks.

Somebody answers one of ours, or passes on another bot's. Shapes of the Bot API's RichBlock and RichText
(10.1 of 2026-06-11), read 2026-11. A kind that came later is read as far as it has the same fields.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from channels.telegram.fields import Json, array, as_object, inner, storable, text

MOST_LEVELS = 40
"""Telegram allows 16; what lies deeper was not written by Telegram."""
_SAID = ("summary", "text", "expression", "caption", "credit")
_SHOWN = ("text", "expression", "alternative_text")


def rich_words(message: Json) -> str:
    """Return the words, a line for each row of a table; empty where it is no rich message."""
    return "\n".join(_lines(array(inner(message, "rich_message"), "blocks"), MOST_LEVELS)).strip()


def _lines(blocks: Sequence[object], levels: int) -> Iterator[str]:
    for one in map(as_object, blocks if levels else ()):
        for key in _SAID:
            if key in one:
                yield _said(one[key], levels)
        for row in array(one, "cells"):
            cells = cast("list[object]", row) if isinstance(row, list) else []
            yield " | ".join(_said(as_object(cell).get("text"), levels) for cell in cells)
        for item in map(as_object, array(one, "items")):
            held = "\n".join(_lines(array(item, "blocks"), levels - 1))
            yield f"{text(item, 'label')} {held}"
        yield from _lines(array(one, "blocks"), levels - 1)


def _said(found: object, levels: int) -> str:
    """Return the words of a RichText: a text, something with a text, or several of them."""
    if isinstance(found, str):
        return storable(found)
    if not levels:
        return ""
    if isinstance(found, list):
        return "".join(_said(one, levels - 1) for one in cast("list[object]", found))
    styled = as_object(found)
    return _said(next((styled[key] for key in _SHOWN if key in styled), ""), levels - 1)
