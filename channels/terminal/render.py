r"""Turn what stands in the chat into the lines that a client reads.

    {"type": "snapshot", "number": n}   what stands follows, one `item` a line, in order
    {"type": "item", "number": n, "id": "…", "kind": "person|bot|card", "text": "…",
     "at": "…", "draft": false, "cursor": "…", "card": {…}, "receipts": ["…"]}
    {"type": "live", "number": n}       the snapshot is whole; from here on things happen now
    {"type": "gone", "number": n, "id": "…"}
    {"type": "typing", "number": n}
    {"type": "received", "id": "…", "toast": "…"}       the event is stored
    {"type": "refused", "id": "…", "why": "…", "again": true}   not stored; `again`: say it again
    {"type": "trouble", "why": "…"}     there is no snapshot; the connection ends

An item comes whole and replaces the one of the same id: of two, the one with the higher number is
newer. Numbers grow as long as the daemon runs. `cursor` is empty for what happens now. A card is
`{language, words, asked_by, deadline_at, choices, calls: [{approval, number, tool, summary,
arguments, why, scope, hash8, ending: null | {how, said, at, reason}}]}`; all of it is in the card's
language, `words` are its fixed words by name.

Text stays Markdown, which reads well as it is. What a terminal would obey instead of showing
(escape sequences, and signs that turn the reading direction round) is made visible: a model or a
tool must not be able to paint over a card. In a card all that can't be seen is spelled out.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never

from channels._local import render as local
from channels._local.render import Event, Gone, Item, Received, Refused, Typing
from zeroclaw import Rendered, TranscriptItem, escape_invisible, replace

Line = Mapping[str, object]

MOST_CHARS = 70_000
"""Of a text, or of the arguments of a card's calls together: escaped as JSON in the worst way (12
bytes a character) they fit a line of 1 MiB. More than a message may have."""

_CONTROL_PICTURES = 0x2400  # Unicode's pictures of the control characters, in their order
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"
# Controls but tab and line feed; C1 controls; bidirectional marks, embeddings and isolates.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def markdown(text: str) -> Rendered:
    """Return a text as a terminal may show it."""
    shown = visible(text)
    return Rendered(body=shown, plain=shown)


def visible(text: str) -> str:
    """Return a text in which nothing is left that a terminal obeys; twice changes nothing."""
    return _OBEYED.sub(_picture, text.replace("\r\n", "\n"))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < ord(" "):
        return chr(_CONTROL_PICTURES + code)
    return _DELETE_PICTURE if code == _DELETE else f"\u27e8U+{code:04X}\u27e9"


def stored(item: TranscriptItem) -> Item:
    """Return what the store says of a message, as a live event would show it."""
    found = local.stored(item)
    return replace(found, text=visible(found.text), cursor=item.cursor)


def line(event: Event, number: int) -> Line:
    """Return the line that tells an event."""
    match event:
        case Item():
            return {"type": "item", "number": number, **_item(event)}
        case Gone():
            return {"type": "gone", "number": number, "id": event.id}
        case Typing():
            return {"type": "typing", "number": number}
        case Received():
            return {"type": "received", "id": event.id, "toast": visible(event.toast)}
        case Refused():
            why = visible(event.why)
            return {"type": "refused", "id": event.id, "why": why, "again": event.again}
        case _:
            assert_never(event)


def snapshot_begins(number: int) -> Line:
    """Return the line before what stands."""
    return {"type": "snapshot", "number": number}


def snapshot_is_whole(number: int) -> Line:
    """Return the line after what stands."""
    return {"type": "live", "number": number}


def trouble(why: str) -> Line:
    """Return the line that says why there is no snapshot."""
    return {"type": "trouble", "why": why}


def _item(item: Item) -> dict[str, object]:
    calls = () if item.outcome is None else item.outcome.card.calls
    # The gate asks about nothing larger; only a row of an earlier release can be.
    is_whole = sum(len(call.arguments) for call in calls) <= MOST_CHARS
    most_chars = MOST_CHARS if is_whole else MOST_CHARS // len(calls)
    shown = {
        **local.fields(item, partial(_capped, most_chars, escape_invisible)),
        "text": _capped(MOST_CHARS, visible, item.text),
        "cursor": item.cursor,
    }
    if item.receipts:
        shown["receipts"] = [escape_invisible(one.line()) for one in item.receipts]
    return shown


def _capped(most_chars: int, made: Callable[[str], str], text: str) -> str:
    """Return what fits of a text, made visible, and say that some of it is missing."""
    shown = made(text[:most_chars])
    if len(text) <= most_chars and len(shown) <= most_chars:
        return shown
    return f"{shown[:most_chars]}\n… not all of {len(text)} characters is shown …"
