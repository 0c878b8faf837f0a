"""Turn what stands in the chat into what the page is sent: items, and frames of its stream.

The page shows Markdown itself, so `render` leaves a text as it is, but for one that goes out plain,
which the page shows letter by letter. An item is always sent whole
and replaces the one of the same id, so that an event can be repeated or skipped for a newer one. In a
card all that can't be seen is spelled out, so that what is approved is what was read.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, assert_never

from zeroclaw import (
    CardWords,
    CheckedReceipt,
    Ending,
    Outcome,
    Outgoing,
    OutgoingFile,
    Rendered,
    SentFile,
    TranscriptItem,
    Value,
    escape_invisible,
    without_markup,
)


class Item(Value):
    """One thing in the chat.

    Attributes:
        id: Own messages carry `person/` before the id that the page made; all else is what the
            channel answered as the message's id.
        plain: The text is no Markdown.
        draft: More will follow.
        outcome: The card and its endings, for cards.
        files: Names of the files that came with it, for own messages.
        sent: The file that it is, with the text for its caption; None for others.
        receipts: What it proves; badges below the text.
    """

    id: str
    kind: Literal["person", "bot", "card"]
    text: str
    at: datetime
    plain: bool = False
    draft: bool = False
    outcome: Outcome | None = None
    files: tuple[str, ...] = ()
    sent: SentFile | None = None
    receipts: tuple[CheckedReceipt, ...] = ()


class Gone(Value):
    """A message that no longer stands."""

    id: str


class Typing(Value):
    """The bot is at work."""


Event = Item | Gone | Typing


def markdown(text: str) -> Rendered:
    """Return a text as the page takes it; the plain form has its words alone."""
    return Rendered(body=text, plain=without_markup(text))


def person(message: str, text: str, at: datetime, files: tuple[str, ...] = ()) -> Item:
    """Return an own message."""
    return Item(id=f"person/{message}", kind="person", text=text, at=at, files=files)


def bot(message: str, outgoing: Outgoing, at: datetime) -> Item:
    """Return a message of the bot."""
    text = outgoing.rendered.plain if outgoing.plain else outgoing.rendered.body
    return Item(
        id=message,
        kind="bot",
        text=text,
        at=at,
        plain=outgoing.plain,
        draft=outgoing.draft,
        receipts=outgoing.receipts,
    )


def file(message: str, sent: OutgoingFile, at: datetime) -> Item:
    """Return a file of the bot."""
    shown = SentFile(name=sent.name, size_bytes=len(sent.content))
    return Item(id=message, kind="bot", text=sent.caption, at=at, sent=shown)


def card(message: str, outcome: Outcome, at: datetime) -> Item:
    """Return an approval card."""
    return Item(id=message, kind="card", text="", at=at, outcome=outcome)


def stored(item: TranscriptItem) -> Item:
    """Return what the store says of a message, in the ids that live events use."""
    if item.kind == "person":
        return person(item.ref or item.key or item.cursor, item.text, item.at, item.files)
    message = item.ref or item.key
    if item.outcome is not None:
        return card(message, item.outcome, item.at)
    return Item(
        id=message,
        kind="bot",
        text=item.text,
        at=item.at,
        plain=item.plain,
        draft=item.draft,
        sent=item.sent,
        receipts=item.receipts,
    )


def standing(transcript: Iterable[TranscriptItem]) -> dict[str, Item]:
    """Return what stands, by id, in order; of one message its end counts, not its draft."""
    found: dict[str, Item] = {}
    for item in map(stored, transcript):
        if not (item.draft and item.id in found):
            found[item.id] = item
    return found


def slot(event: Event) -> str:
    """Return what an event is about: of two that wait for a slow page, only the newer counts."""
    match event:
        case Item() | Gone():
            return f"item/{event.id}"
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
    if known.outcome is not None and event.outcome is not None:
        return len(event.outcome.endings) > len(known.outcome.endings)
    if event.kind == "person":
        return False
    if event.draft:
        return known.draft and not known.text.startswith(event.text)
    return known.draft or known.text != event.text


def frame(event: Event, number: int) -> bytes:
    """Return one event of the stream; `number` counts up while the daemon runs."""
    match event:
        case Item():
            return _frame("item", _item(event), number)
        case Gone():
            return _frame("gone", {"id": event.id}, number)
        case Typing():
            return _frame("typing", {}, number)
        case _:
            assert_never(event)


def snapshot_frame(title: str, items: Iterable[Item], number: int) -> bytes:
    """Return the first event of a stream: all that stands, in order."""
    return _frame("snapshot", {"title": title, "items": [_item(item) for item in items]}, number)


def trouble_frame(why: str) -> bytes:
    """Return the event that says why there is no snapshot; the stream ends after it."""
    return _frame("trouble", {"why": why}, 0)


PING = b": ping\n\n"
"""Shows both sides that the connection stands."""


def _frame(name: str, data: Mapping[str, object], number: int) -> bytes:
    # ASCII only, so that no character can end a line and a lone surrogate can be sent.
    return f"event: {name}\nid: {number}\ndata: {json.dumps(data)}\n\n".encode()


def _item(item: Item) -> dict[str, object]:
    shown: dict[str, object] = {
        "id": item.id,
        "kind": item.kind,
        "text": item.text,
        "at": item.at.isoformat(),
        "draft": item.draft,
    }
    if item.plain:
        shown["plain"] = True
    if item.files:
        shown["files"] = list(item.files)
    if item.sent is not None:
        shown["sent"] = {"name": item.sent.name, "size": item.sent.size_bytes}
    if item.receipts:
        shown["receipts"] = [_receipt(one) for one in item.receipts]
    if item.outcome is not None:
        shown["card"] = _card(item.outcome)
    return shown


def _receipt(one: CheckedReceipt) -> dict[str, object]:
    verdict = "earlier" if one.earlier else "valid"
    return {"verdict": verdict, "line": escape_invisible(one.line()), "token": one.token}


def _card(outcome: Outcome) -> dict[str, object]:
    endings = {ending.approval: ending for ending in outcome.endings}
    words = CardWords(outcome.card.language)
    return {
        "language": words.language,
        "words": words.by_name(len(outcome.card.calls) - len(endings)),
        "asked_by": escape_invisible(outcome.card.asked_by),
        "deadline_at": outcome.card.deadline_at.isoformat(),
        "choices": list(outcome.card.choices),
        "calls": [
            {
                "approval": call.approval,
                "number": call.number,
                "tool": escape_invisible(call.tool),
                "summary": escape_invisible(call.summary),
                "arguments": escape_invisible(call.arguments),
                "why": escape_invisible(call.why),
                "scope": escape_invisible(call.scope),
                "hash8": call.hash8,
                "ending": _ending(endings.get(call.approval), words),
            }
            for call in outcome.card.calls
        ],
    }


def _ending(ending: Ending | None, words: CardWords) -> dict[str, object] | None:
    if ending is None:
        return None
    return {
        "how": ending.how,
        "said": escape_invisible(words.said(ending)),
        "at": ending.at.isoformat(),
        "reason": escape_invisible(ending.reason),
    }
