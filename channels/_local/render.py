"""The items of a local chat, the events about them, and their form as plain data.

An item is always sent whole and replaces the one with the same id, so events may be repeated, or
skipped for a newer one. Invisible characters in a card and in the name of a file are escaped, so
that people approve and open what they read. A card's fixed words and endings are in its language.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import assert_never

from channels._local.decode import Received, RefusedPost
from zeroclaw import (
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


class Gone(Value):
    """A message was deleted."""

    id: str


class Typing(Value):
    """The bot is working."""


SharedEvent = TranscriptItem | Gone | Typing
"""Events for all readers."""
Event = SharedEvent | Received | RefusedPost
"""Events for one reader, which include the replies to its own events."""


def person(message: str, text: str, at: datetime, files: tuple[str, ...] = ()) -> TranscriptItem:
    """Return the person's message."""
    return TranscriptItem(kind="person", ref=message, text=text, at=at, files=files)


def bot(message: str, outgoing: Outgoing, at: datetime) -> TranscriptItem:
    """Return the bot's message."""
    return TranscriptItem(
        kind="bot",
        ref=message,
        text=outgoing.rendered.plain if outgoing.plain else outgoing.rendered.body,
        at=at,
        plain=outgoing.plain,
        draft=outgoing.draft,
        receipts=outgoing.receipts,
    )


def file(message: str, outgoing: OutgoingFile, at: datetime) -> TranscriptItem:
    """Return the bot's file."""
    sent_file = SentFile(name=outgoing.name, size_bytes=len(outgoing.content))
    return TranscriptItem(kind="bot", ref=message, text=outgoing.caption, at=at, sent=sent_file)


def card(message: str, outcome: Outcome, at: datetime) -> TranscriptItem:
    """Return an approval card."""
    return TranscriptItem(kind="card", ref=message, text="", at=at, outcome=outcome)


def id_of(item: TranscriptItem) -> str:
    """Return an item's id, which is the same live and in a snapshot.

    For a person's message it is `person/` and the id made by the client; for all others it is the
    id that the channel returned.
    """
    id_ = item.ref or item.key or item.cursor
    return f"person/{id_}" if item.kind == "person" else id_


def by_id(items: Iterable[TranscriptItem]) -> dict[str, TranscriptItem]:
    """Return the items by id, in order; a finished message wins over its draft."""
    result: dict[str, TranscriptItem] = {}
    for item in items:
        if not (item.draft and id_of(item) in result):
            result[id_of(item)] = item
    return result


def slot(event: Event) -> str:
    """Return the slot of an event; of two queued events in one slot the newer one wins."""
    match event:
        case TranscriptItem():
            return f"item/{id_of(event)}"
        case Gone():
            return f"item/{event.id}"
        case Received() | RefusedPost():
            return f"answer/{event.id}"
        case Typing():
            return "typing"
        case _:
            assert_never(event)


def adds_to(event: Event, snapshot: Mapping[str, TranscriptItem]) -> bool:
    """Whether an event adds to a snapshot that was read while events were already arriving.

    The store is always ahead of the live events: a finished message stays finished, a draft only
    grows, and an ending never disappears.
    """
    if not isinstance(event, TranscriptItem) or (current := snapshot.get(id_of(event))) is None:
        return True
    if current.outcome is not None and event.outcome is not None:
        return len(event.outcome.endings) > len(current.outcome.endings)
    if event.kind == "person":
        return False
    if event.draft:
        return current.draft and not current.text.startswith(event.text)
    return current.draft or current.text != event.text


def event_data(
    event: Event, arguments: Callable[[str], str] = escape_invisible
) -> tuple[str, dict[str, object]]:
    """Return an event's name and its data for readers.

    Args:
        event: The event.
        arguments: Turns the arguments of a card's call into their displayed form.
    """
    match event:
        case TranscriptItem():
            return "item", _item(event, arguments)
        case Gone():
            return "gone", {"id": event.id}
        case Typing():
            return "typing", {}
        case Received():
            return "received", {"id": event.id, "toast": event.toast}
        case RefusedPost():
            return "refused", {"id": event.id, "why": event.reason, "again": event.again}
        case _:
            assert_never(event)


def _item(item: TranscriptItem, arguments: Callable[[str], str]) -> dict[str, object]:
    data: dict[str, object] = {
        "id": id_of(item),
        "cursor": item.cursor,
        "kind": "bot" if item.kind == "note" else item.kind,
        "text": item.text,
        "at": item.at.isoformat(),
        "draft": item.draft,
    }
    if item.plain:
        data["plain"] = True
    if item.files:
        data["files"] = [escape_invisible(name) for name in item.files]
    if item.sent is not None:
        data["sent"] = {"name": escape_invisible(item.sent.name), "size": item.sent.size_bytes}
    if item.receipts:
        data["receipts"] = [_receipt(receipt) for receipt in item.receipts]
    if item.outcome is not None:
        data["card"] = _card(item.outcome, arguments)
    return data


def _receipt(receipt: CheckedReceipt) -> dict[str, object]:
    verdict = "earlier" if receipt.earlier else "valid"
    return {"verdict": verdict, "line": escape_invisible(receipt.line()), "token": receipt.token}


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
                "approval": call.approval,
                "number": call.number,
                "tool": escape_invisible(call.tool),
                "summary": escape_invisible(call.summary),
                "arguments": arguments(call.arguments),
                "why": escape_invisible(call.why),
                "scope": escape_invisible(call.scope),
                "hash8": call.hash8,
                "ending": _ending(endings.get(call.approval), words),
            }
            for call in card.calls
        ],
    }


def _ending(ending: Ending | None, words: CardWords) -> dict[str, object] | None:
    if ending is None:
        return None
    return {
        "how": ending.how,
        "said": escape_invisible(words.ended(ending, ending.by)),
        "at": ending.at.isoformat(),
        "reason": escape_invisible(ending.reason),
    }
