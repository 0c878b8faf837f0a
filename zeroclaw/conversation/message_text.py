"""Joins the fragments of a message that its client split: a long text, or an album (pure).

The texts of an album are captions and become paragraphs. The fragments of a long text were one text.
Clients trim the white space at a cut; the room that was left in the message tells where the cut was,
and so which white space to put back:

    the message was full              inside a word or a line: none is missing
    the next word did not fit         between two words
    the next sentence did not fit     between two sentences
    the next sentence fits            earlier, at the end of a paragraph or a line

Telegram Desktop cuts in the second half of a full message, the Android app in its last 300
characters; both prefer the end of a paragraph to that of a line, a sentence or a word. The iOS app
cuts where a line or a sentence ends. Each trims the fragments, and so does the server (their published
sources, read 2026-11). Older clients cut where the message is full.
"""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from zeroclaw.conversation.inbox import Fragment, Item, PersonMessage
from zeroclaw.gate.taint import Source, named
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.value import replace

_PARAGRAPH, _LINE, _WORD = "\n\n", "\n", " "
_STOPS = ".!?…"
_SENTENCE_END = re.compile(rf"[{_STOPS}]\s|\n")


def first_id(item: Item) -> str:
    """Return the item id of a message's first fragment, or of a message that was not split."""
    piece = fragment_of(item)
    return item.id if piece is None else piece.run


def fragment_of(item: Item) -> Fragment | None:
    """Return an item's place in a split message; None for any other item."""
    return item.content.piece if isinstance(item.content, PersonMessage) else None


def messages(items: Sequence[Item]) -> tuple[tuple[Item, ...], ...]:
    """Group items by message, in the order of their first fragments."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(first_id(item), []).append(item)
    return tuple(map(tuple, found.values()))


def whole_text(fragments: Sequence[PersonMessage]) -> str:
    """Return the text of a message from its fragments, in order, at least one."""
    first = fragments[0]
    lead = first.piece.lead if first.piece is not None else ""
    # Only the first fragment keeps the lead.
    texts = (first.text, *(_without(lead, fragment.text) for fragment in fragments[1:]))
    if first.piece is not None and first.piece.group:
        return _PARAGRAPH.join(text for text in texts if text.strip())
    text = first.text
    for (before, text_before), (_, after) in pairwise(zip(fragments, texts, strict=True)):
        room = before.piece.room if before.piece is not None else 0
        text += seam(text_before, after, room=room) + after
    return text


def own_text(fragments: Sequence[PersonMessage]) -> str:
    """Return the sender's own part of a message, without quoted text, from its fragments in order."""
    return whole_text([_own(fragment) for fragment in fragments])


def origins(fragments: Sequence[PersonMessage]) -> tuple[Source, ...]:
    """Return the sources of untrusted text in a message, apart from its files."""
    is_own = all(fragment.own == fragment.text for fragment in fragments)
    return () if is_own else (named("quoted"),)


def _own(fragment: PersonMessage) -> PersonMessage:
    piece = None if fragment.piece is None else replace(fragment.piece, lead="")
    return replace(fragment, text=fragment.own or "", piece=piece)


def seam(before: str, after: str, *, room: int) -> str:
    """Return the white space that was cut away between two parts of a text.

    Args:
        before: A fragment.
        after: The next fragment.
        room: UTF-16 units that were still free in the first one.
    """
    if not before or not after or before[-1].isspace() or after[0].isspace():
        return ""  # the client has not trimmed them
    if room < _units(after[0]):
        return ""
    is_sentence = before[-1] in _STOPS and room <= _units(_first_sentence(after))
    if is_sentence or room <= _units(after.split(maxsplit=1)[0]):
        return _WORD
    return next((gap for gap in (_PARAGRAPH, _LINE) if gap in before or gap in after), _WORD)


def _without(lead: str, text: str) -> str:
    """Return a text without its lead; a lead without text was trimmed."""
    return "" if text == lead.rstrip() else text.removeprefix(lead)


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    return text if end is None else text[: end.end() - 1]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


LATE_S = 600.0
"""Seconds after which the person may have moved on, and the answer mentions the wait."""


def late_s(item: Item, now: datetime) -> float:
    """Return how many seconds a message waited for its turn; 0 for a wait not worth mentioning."""
    waited_s = (now - (item.sent_at or item.admitted_at)).total_seconds()
    return waited_s if waited_s > LATE_S else 0.0


def late_for_the_model(item: Item, waited_s: float) -> str:
    """Return the note that precedes a delayed message in the model's request."""
    if not waited_s:
        return ""
    # Some platforms give another time zone, as mailboxes do.
    at = f"{(item.sent_at or item.admitted_at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"[written {at}, {span(waited_s)} before you read it]\n"


def late_for_people(waited_s: float, language: Language) -> str:
    """Return the note below a delayed answer, empty for one that is not delayed."""
    if not waited_s:
        return ""
    return catalogue.ANSWERED_LATE.to(language, wait=span(waited_s))


def span(seconds: float) -> str:
    """Return a duration, rounded up, at least a second: `40 s`, `3 min`, `5 h 10 min`, `3 d 2 h`."""
    rounded = max(math.ceil(seconds), 1)
    if rounded < 2 * 60:
        return f"{rounded} s"
    minutes = math.ceil(rounded / 60)
    if minutes < 2 * 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(math.ceil(minutes / 60), 24)
    return f"{days} d {rest} h" if rest else f"{days} d"
