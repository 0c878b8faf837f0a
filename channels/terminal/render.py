r"""Turns the chat's items and events into the lines that a client reads.

    {"type": "snapshot"}                the current items follow, one `item` per line, in order
    {"type": "item", "id": "…", "kind": "person|bot|card", "text": "…", "at": "…", "draft": false,
     "cursor": "…", "card": {…}, "receipts": ["…"]}
    {"type": "live"}                    the snapshot is complete; live events follow
    {"type": "gone", "id": "…"}
    {"type": "typing"}
    {"type": "received", "id": "…", "toast": "…"}   the event is stored
    {"type": "refused", "id": "…", "why": "…", "again": true}   not stored; `again`: send it again
    {"type": "trouble", "why": "…"}     there is no snapshot; the connection ends

An item is sent whole and replaces the one with the same id. `cursor` is empty in live events. A card is
`{language, words, asked_by, deadline_at, choices, calls: [{approval, number, tool, summary,
arguments, why, scope, hash8, ending: null | {how, said, at, reason}}]}`; all of it is in the card's
language, and `words` has its fixed words by name.

Text stays Markdown, which reads well as it is. Characters that a terminal would obey instead of
showing (escape sequences, changes of the reading direction) are made visible, so that a model or a
tool can't paint over a card. In a card all invisible characters are escaped.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from channels._local.render import Event, event_data
from zeroclaw import Rendered, TranscriptItem, escape_invisible

Line = Mapping[str, object]

MAX_CHARS = 70_000
"""Limit on a text, or on the arguments of all calls of a card: at 12 bytes a character, the worst
case of JSON escapes, they fit a line of 1 MiB. Higher than the limit of a message."""

_CONTROL_PICTURES = 0x2400  # start of Unicode's pictures of the control characters
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"
# Controls except tab and line feed; C1 controls; bidirectional marks, embeddings and isolates;
# surrogates.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def markdown(text: str) -> Rendered:
    """Return a text that is safe to show in a terminal."""
    safe = visible(text)
    return Rendered(body=safe, plain=safe)


def visible(text: str) -> str:
    """Make every character that a terminal would obey visible; idempotent."""
    return _OBEYED.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < ord(" "):
        return chr(_CONTROL_PICTURES + code)
    return _DELETE_PICTURE if code == _DELETE else f"\u27e8U+{code:04X}\u27e9"


def line(event: Event) -> Line:
    """Return the line for an event."""
    outcome = event.outcome if isinstance(event, TranscriptItem) else None
    calls = () if outcome is None else outcome.card.calls
    # The gate creates no larger cards, but rows of an earlier release may have one.
    fits = sum(len(call.arguments) for call in calls) <= MAX_CHARS
    max_chars = MAX_CHARS if fits else MAX_CHARS // len(calls)
    name, fields = event_data(event, partial(_capped, max_chars, escape_invisible))
    data = {
        key: _capped(MAX_CHARS, visible, value) if isinstance(value, str) else value
        for key, value in fields.items()
    }
    if isinstance(event, TranscriptItem) and event.receipts:
        data["receipts"] = [escape_invisible(receipt.line()) for receipt in event.receipts]
    return {"type": name, **data}


def _capped(max_chars: int, escape: Callable[[str], str], text: str) -> str:
    """Return a text made visible; if it is too long, cut it and say so."""
    visible_text = escape(text[:max_chars])
    if len(text) <= max_chars and len(visible_text) <= max_chars:
        return visible_text
    return f"{visible_text[:max_chars]}\n… not all of {len(text)} characters is shown …"
