r"""Turn what stands in the chat into the lines that a client reads.

    {"type": "snapshot", "number": n}   what stands follows, one `item` a line, in order
    {"type": "item", "number": n, "id": "…", "kind": "person|bot|note|card", "text": "…",
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
from datetime import datetime
from typing import Literal, assert_never

from zeroclaw import (
    CardCall,
    CardWords,
    CheckedReceipt,
    Ending,
    Outcome,
    Outgoing,
    Rendered,
    TranscriptItem,
    Value,
    escape_invisible,
)

Kind = Literal["person", "bot", "note", "card"]
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


class Item(Value):
    """One thing in the chat.

    Attributes:
        id: Own messages carry `person/` before the id that the client made; all else is what the
            channel answered as the message's id.
        cursor: Where it stands in the transcript, empty for what happens now.
        draft: More will follow.
        outcome: The card and its endings, for cards.
        receipts: What it proves.
    """

    id: str
    kind: Kind
    text: str
    at: datetime
    cursor: str = ""
    draft: bool = False
    outcome: Outcome | None = None
    receipts: tuple[CheckedReceipt, ...] = ()


class Gone(Value):
    """A message that no longer stands."""

    id: str


class Typing(Value):
    """The bot is at work."""


class Received(Value):
    """An event is stored; `toast` is for its sender alone."""

    id: str
    toast: str = ""


class Refused(Value):
    """An event is not stored; `again` says that it may be later."""

    id: str
    why: str
    again: bool = False


Happening = Item | Gone | Typing
Event = Happening | Received | Refused


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


def person(message: str, text: str, at: datetime) -> Item:
    """Return an own message."""
    return Item(id=f"person/{message}", kind="person", text=text, at=at)


def bot(message: str, outgoing: Outgoing, at: datetime) -> Item:
    """Return a message of the bot."""
    text = outgoing.rendered.plain if outgoing.plain else outgoing.rendered.body
    return Item(
        id=message,
        kind="bot",
        text=text,
        at=at,
        draft=outgoing.draft,
        receipts=outgoing.receipts,
    )


def card(message: str, outcome: Outcome, at: datetime) -> Item:
    """Return an approval card."""
    return Item(id=message, kind="card", text="", at=at, outcome=outcome)


def stored(item: TranscriptItem) -> Item:
    """Return what the store says of a message, in the ids that live events use."""
    own = item.kind == "person"
    name = item.ref or item.key or item.cursor
    return Item(
        id=f"person/{name}" if own else name,
        kind=item.kind,
        text=item.text,
        at=item.at,
        cursor=item.cursor,
        draft=item.draft,
        outcome=item.outcome,
        receipts=item.receipts,
    )


def slot(event: Event) -> str:
    """Return what an event is about: of two that wait for a slow client, only the newer counts."""
    match event:
        case Item() | Gone():
            return f"item/{event.id}"
        case Received() | Refused():
            return f"answer/{event.id}"
        case Typing():
            return "typing"
        case _:
            assert_never(event)


def is_news(event: Event, snapshot: Mapping[str, Item]) -> bool:
    """Tell whether a snapshot, read while events already came, lacks this event.

    What is stored is ahead of what is sent, never behind: an ended message stays ended, a draft
    only grows, an ending stays.
    """
    if not isinstance(event, Item) or event.id not in snapshot:
        return True
    known = snapshot[event.id]
    if event.outcome is not None and known.outcome is not None:
        return len(event.outcome.endings) > len(known.outcome.endings)
    if event.draft:
        return known.draft and not visible(known.text).startswith(event.text)
    return known.draft or visible(known.text) != event.text


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
    shown: dict[str, object] = {
        "id": item.id,
        "kind": item.kind,
        "text": _capped(item.text, MOST_CHARS),
        "at": item.at.isoformat(),
        "draft": item.draft,
        "cursor": item.cursor,
    }
    if item.receipts:
        shown["receipts"] = [escape_invisible(one.line()) for one in item.receipts]
    if item.outcome is not None:
        shown["card"] = _card(item.outcome)
    return shown


def _card(outcome: Outcome) -> dict[str, object]:
    endings = {ending.approval: ending for ending in outcome.endings}
    calls = outcome.card.calls
    # The gate asks about nothing larger; only a row of an earlier release can be.
    is_whole = sum(len(call.arguments) for call in calls) <= MOST_CHARS
    most_chars = MOST_CHARS if is_whole else MOST_CHARS // len(calls)
    words = CardWords(outcome.card.language)
    return {
        "language": words.language,
        "words": words.by_name(len(outcome.card.calls) - len(endings)),
        "asked_by": escape_invisible(outcome.card.asked_by),
        "deadline_at": outcome.card.deadline_at.isoformat(),
        "choices": list(outcome.card.choices),
        "calls": [_call(call, endings.get(call.approval), most_chars, words) for call in calls],
    }


def _call(
    call: CardCall, ending: Ending | None, most_chars: int, words: CardWords
) -> dict[str, object]:
    return {
        "approval": call.approval,
        "number": call.number,
        "tool": escape_invisible(call.tool),
        "summary": escape_invisible(call.summary),
        "arguments": _capped(call.arguments, most_chars, escape_invisible),
        "why": escape_invisible(call.why),
        "scope": escape_invisible(call.scope),
        "hash8": call.hash8,
        "ending": _ending(ending, words),
    }


def _capped(text: str, most_chars: int, made: Callable[[str], str] = visible) -> str:
    """Return what fits of a text, made visible, and say that some of it is missing."""
    shown = made(text[:most_chars])
    if len(text) <= most_chars and len(shown) <= most_chars:
        return shown
    return f"{shown[:most_chars]}\n… not all of {len(text)} characters is shown …"


def _ending(ending: Ending | None, words: CardWords) -> dict[str, object] | None:
    if ending is None:
        return None
    return {
        "how": ending.how,
        "said": escape_invisible(words.said(ending)),
        "at": ending.at.isoformat(),
        "reason": escape_invisible(ending.reason),
    }
