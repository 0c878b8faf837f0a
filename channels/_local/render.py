"""What stands in a local chat: its items, which of them are news, and a card as plain data.

An item is always sent whole and replaces the one of the same id, so that an event can be repeated,
or skipped for a newer one. In a card all that can't be seen is spelled out, so that what is
approved is what was read; its fixed words and its endings come in the card's language.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal, assert_never

from zeroclaw import (
    CardCall,
    CardWords,
    CheckedReceipt,
    Ending,
    Outcome,
    Outgoing,
    OutgoingFile,
    SentFile,
    TranscriptItem,
    Value,
    escape_invisible,
)


class Item(Value):
    """One thing in the chat.

    Attributes:
        id: Own messages carry `person/` before the id that they were sent with; all else is what
            the channel answered as the message's id.
        cursor: Where it stands in the transcript, empty for what happens now.
        plain: The text is no Markdown.
        draft: More will follow.
        outcome: The card and its endings, for cards.
        files: Names of the files that came with it, for own messages.
        sent: The file that it is, with the text for its caption; None for others.
        receipts: What it proves.
    """

    id: str
    kind: Literal["person", "bot", "card"]
    text: str
    at: datetime
    cursor: str = ""
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
"""What everybody is told."""
Event = Happening | Received | Refused
"""What one of them is told."""


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
    message = item.ref or item.key or item.cursor
    if item.kind == "person":
        return person(message, item.text, item.at, item.files)
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


def standing(items: Iterable[Item]) -> dict[str, Item]:
    """Return what stands, by id, in order; of one message its end counts, not its draft."""
    found: dict[str, Item] = {}
    for item in items:
        if not (item.draft and item.id in found):
            found[item.id] = item
    return found


def slot(event: Event) -> str:
    """Return what an event is about: of two that wait for a slow reader, only the newer counts."""
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
    if known.outcome is not None and event.outcome is not None:
        return len(event.outcome.endings) > len(known.outcome.endings)
    if event.kind == "person":
        return False
    if event.draft:
        return known.draft and not known.text.startswith(event.text)
    return known.draft or known.text != event.text


def fields(item: Item, arguments: Callable[[str], str] = escape_invisible) -> dict[str, object]:
    """Return what every reader is sent of an item.

    Args:
        item: The item.
        arguments: Makes the arguments of a card's call what is shown of them.
    """
    sent: dict[str, object] = {
        "id": item.id,
        "kind": item.kind,
        "text": item.text,
        "at": item.at.isoformat(),
        "draft": item.draft,
    }
    if item.outcome is not None:
        sent["card"] = _card(item.outcome, arguments)
    return sent


def _card(outcome: Outcome, arguments: Callable[[str], str]) -> dict[str, object]:
    card, endings = outcome.card, {ending.approval: ending for ending in outcome.endings}
    words = CardWords(card.language)
    return {
        "language": words.language,
        "words": words.by_name(len(card.calls) - len(endings)),
        "asked_by": escape_invisible(card.asked_by),
        "deadline_at": card.deadline_at.isoformat(),
        "choices": list(card.choices),
        "calls": [
            {
                **_call(call),
                "arguments": arguments(call.arguments),
                "ending": _ending(endings.get(call.approval), words),
            }
            for call in card.calls
        ],
    }


def _call(call: CardCall) -> dict[str, object]:
    return {
        "approval": call.approval,
        "number": call.number,
        "tool": escape_invisible(call.tool),
        "summary": escape_invisible(call.summary),
        "why": escape_invisible(call.why),
        "scope": escape_invisible(call.scope),
        "hash8": call.hash8,
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
