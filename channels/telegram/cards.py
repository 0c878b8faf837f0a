"""Show an approval card as one message: its calls whole, buttons, and how each call ended.

A card that is too long for a message becomes a file with a caption and the same buttons, so that
everything that is approved stands in one message that arrives whole or not at all. Which of the
two a card is follows from the card alone, so that it stays what it was when it ends.

Nothing about a card is remembered: what its buttons carry, and the link by which a reply finds the
question that it answers, say all that is needed after a restart. An approval's id is opaque and
unguessable, and who presses is checked by the runtime, so neither can be forged into an answer.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit

from channels._remote.cards import FILE_NAME, carried, ended, head, label, unmarked
from channels._remote.fields import Json
from channels._remote.limits import cut, units
from channels.telegram.styled import File, Styled, Writer
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CardWords,
    Choice,
    Ending,
    Outcome,
    escape_invisible,
    replace,
)

MOST_UNITS = 4096
MOST_CAPTION_UNITS = 1024
"""Bot API, sendMessage and sendDocument: after entities parsing, read 2026-11."""
MOST_WITH_BUTTONS = 25
"""Calls that get buttons: a message carries 100, a call has up to 4. Others are numbered."""

_ENDING_UNITS = 350  # kept free for how a call ended
_HEAD_UNITS = 240
MOST_DATA_BYTES = 64
"""Bot API, InlineKeyboardButton.callback_data: 1-64 bytes, read 2026-11."""

_QUESTION = "why-"


def view(outcome: Outcome) -> Styled:
    """Return how a card looks with what has ended of it."""
    card, endings = outcome.card, {one.approval: one for one in outcome.endings}
    whole = _whole(card, {})
    is_file = units(whole.text) + _ENDING_UNITS * len(card.calls) > MOST_UNITS
    return replace(
        _caption(card, endings) if is_file else _whole(card, endings),
        rows=_rows(card, endings),
        file=File(name=FILE_NAME, content=whole.text.encode()) if is_file else None,
    )


# --- the text ------------------------------------------------------------------------------------


def _whole(card: Card, endings: Mapping[ApprovalId, Ending]) -> Styled:
    words, writer = CardWords(card.language), Writer()
    writer.write(head(card), "bold")
    for call in card.calls:
        writer.write(f"\n\n{call.number}. ")
        writer.write(escape_invisible(call.tool), "bold")
        writer.write_line(f": {escape_invisible(call.summary)}\n")
        writer.write(escape_invisible(call.arguments), "pre")
        writer.write_line(f"\n{escape_invisible(call.why)} · {call.hash8}")
        if call.scope:
            writer.write_line(f"\n{escape_invisible(call.scope)}")
        if call.approval in endings:
            writer.write(f"\n{ended(words, endings[call.approval])}")
        elif not _has_buttons(card, call):
            writer.write(f"\n{words.by_number(call.number)}")
    return writer.written()


def _caption(card: Card, endings: Mapping[ApprovalId, Ending]) -> Styled:
    """Return a line a call; each has the same share of what a caption may have."""
    room = (MOST_CAPTION_UNITS - _HEAD_UNITS) // len(card.calls)
    words, writer = CardWords(card.language), Writer()
    attached = f"\n{words.in_file()}"
    writer.write(cut(head(card), _HEAD_UNITS - units(attached)), "bold")
    writer.write(attached)
    for call in card.calls:
        ending = f" {ended(words, endings[call.approval])}" if call.approval in endings else ""
        ending = cut(ending, room // 2)
        # Where a command begins and ends is seen, or it could go on in the runtime's own words.
        line = escape_invisible(f"{call.number}. {call.tool}: {call.summary} · {call.hash8}")
        writer.write_line(f"\n{cut(line, room - 1 - units(ending))}")
        writer.write(ending)
    return writer.written()


# --- the buttons ---------------------------------------------------------------------------------


def _rows(card: Card, endings: Mapping[ApprovalId, Ending]) -> tuple[tuple[Json, ...], ...]:
    is_open = [call for call in card.calls if call.approval not in endings]
    if len(card.calls) == 1:
        return tuple((one,) for call in is_open for one in _buttons(card, call))
    return tuple(_buttons(card, call) for call in is_open if _has_buttons(card, call))


def _buttons(card: Card, call: CardCall) -> tuple[Json, ...]:
    return tuple(
        {"text": label(card, call, one), "callback_data": data(call.approval, one)}
        for one in card.choices
    )


def _has_buttons(card: Card, call: CardCall) -> bool:
    return call in card.calls[:MOST_WITH_BUTTONS] and bool(data(call.approval, "deny"))


# --- what they carry -----------------------------------------------------------------------------


def data(approval: ApprovalId, choice: Choice) -> str:
    """Return what a button carries, empty when it would be more than a button can."""
    found = carried(approval, choice)
    return found if len(found.encode()) <= MOST_DATA_BYTES else ""


def question(asked: str, username: str, approval: ApprovalId, card: str) -> Styled:
    """Return what asks for the reason of a denial.

    Its link tells whose reason the reply is: to the bot's own chat, where it does nothing.

    Args:
        asked: As the runtime asks it, of one line.
        username: The bot's.
        approval: The call that is denied.
        card: The message with the card.
    """
    carried, writer = quote(f"{_QUESTION}{card}-{approval}", safe=""), Writer()
    url = f"https://t.me/{username}?start={carried}"
    writer.write(unmarked(escape_invisible(asked)), "text_link", url=url)
    return replace(writer.written(), asks=True)


def read_question(username: str, url: str) -> tuple[ApprovalId, str] | None:
    """Return of which approval and card a link of a question is, None for any other."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as a bracket that nothing closes
        return None
    if (parts.scheme, parts.netloc, parts.path) != ("https", "t.me", f"/{username}"):
        return None
    carried = "".join(parse_qs(parts.query).get("start", ()))
    card, dash, approval = carried.removeprefix(_QUESTION).partition("-")
    if not carried.startswith(_QUESTION) or not dash or not card.isdecimal() or not approval:
        return None
    return ApprovalId(approval), card
