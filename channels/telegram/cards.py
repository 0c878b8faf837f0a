"""Shows an approval card as one message: complete calls, buttons, and endings; pure.

A card that is too long for a message becomes a file with a caption and the buttons. So people get
the complete calls and the buttons in one message, or nothing. Which form a card has depends on
the card only, so it never changes.

Cards need no state in memory. The data of the buttons, and the link in a question for a reason, are
enough after a restart. An approval's id is opaque and unguessable, and the runtime checks who answers,
so neither can be used to forge an answer.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit

from channels._remote.cards import FILE_NAME, button_data, ending_text, head, label, unmarked
from channels._remote.fields import Json
from channels._remote.limits import cut, units
from channels.telegram.styled import File, Styled, Writer
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CardWords,
    Ending,
    Outcome,
    Sender,
    escape_invisible,
    replace,
)

MAX_UNITS = 4096
MAX_CAPTION_UNITS = 1024
"""Bot API, sendMessage and sendDocument: limits after entities parsing, read 2026-11."""
MAX_WITH_BUTTONS = 25
"""Calls with buttons: a message has up to 100, a call up to 4. Others are answered by number."""

_ENDING_UNITS = 350  # room reserved for each call's ending
_HEAD_UNITS = 240

_QUESTION = "why-"
ASKS = f"?start={_QUESTION}"
"""Part of the link in a question for a reason, and of no other link."""


def view(outcome: Outcome) -> Styled:
    """Return a card as a message, with the endings so far."""
    card, endings = outcome.card, {ending.approval: ending for ending in outcome.endings}
    full = _full_text(card, {})
    is_file = units(full.text) + _ENDING_UNITS * len(card.calls) > MAX_UNITS
    return replace(
        _caption(card, endings) if is_file else _full_text(card, endings),
        rows=_rows(card, endings),
        file=File(name=FILE_NAME, content=full.text.encode()) if is_file else None,
    )


# --- the text ------------------------------------------------------------------------------------


def _full_text(card: Card, endings: Mapping[ApprovalId, Ending]) -> Styled:
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
            writer.write(f"\n{ending_text(words, endings[call.approval])}")
        elif not _has_buttons(card, call):
            writer.write(f"\n{words.by_number(call.number)}")
    return writer.written()


def _caption(card: Card, endings: Mapping[ApprovalId, Ending]) -> Styled:
    """Return one line per call, each cut to an equal share of the caption's limit."""
    share = (MAX_CAPTION_UNITS - _HEAD_UNITS) // len(card.calls)
    words, writer = CardWords(card.language), Writer()
    attached = f"\n{words.in_file()}"
    writer.write(cut(head(card), _HEAD_UNITS - units(attached)), "bold")
    writer.write(attached)
    for call in card.calls:
        ending = endings.get(call.approval)
        result = cut(f" {ending_text(words, ending)}", share // 2) if ending else ""
        # Commands keep their code style, or their text could pass for the runtime's.
        line = escape_invisible(f"{call.number}. {call.tool}: {call.summary} · {call.hash8}")
        writer.write_line(f"\n{cut(line, share - 1 - units(result))}")
        writer.write(result)
    return writer.written()


# --- the buttons ---------------------------------------------------------------------------------


def _rows(card: Card, endings: Mapping[ApprovalId, Ending]) -> tuple[tuple[Json, ...], ...]:
    pending = [call for call in card.calls if call.approval not in endings]
    if len(card.calls) == 1:
        return tuple((button,) for call in pending for button in _buttons(card, call))
    return tuple(_buttons(card, call) for call in pending if _has_buttons(card, call))


def _buttons(card: Card, call: CardCall) -> tuple[Json, ...]:
    return tuple(
        {"text": label(card, call, choice), "callback_data": button_data(call.approval, choice)}
        for choice in card.choices
    )


def _has_buttons(card: Card, call: CardCall) -> bool:
    return call in card.calls[:MAX_WITH_BUTTONS]


# --- the question for a reason -------------------------------------------------------------------


def question(
    prompt: str, username: str, approval: ApprovalId, card: str, asked: Sender | None = None
) -> Styled:
    """Return the message that asks for the reason of a denial.

    Its text is a link that identifies the approval, so that a reply can be matched to it. The link
    leads to the bot's own chat and does nothing.

    Args:
        prompt: The runtime's question, one line.
        username: The bot's user name.
        approval: The approval of the denied call.
        card: The id of the message with the card.
        asked: In a group, the person whose app opens a reply to it; it opens one only for people who
            are mentioned (Bot API, ForceReply, read 2026-11).
    """
    payload, writer = quote(f"{_QUESTION}{card}-{approval}", safe=""), Writer()
    url = f"https://t.me/{username}?start={payload}"
    if asked is not None:
        writer.write(escape_invisible(asked.display), "text_mention", user={"id": int(asked.id)})
        writer.write(": ")
    writer.write(unmarked(escape_invisible(prompt)), "text_link", url=url)
    return replace(writer.written(), asks=True)


def read_question(username: str, url: str) -> tuple[ApprovalId, str] | None:
    """Return the approval and card that a question's link names, None for any other link."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unclosed bracket
        return None
    if (parts.scheme, parts.netloc, parts.path) != ("https", "t.me", f"/{username}"):
        return None
    payload = "".join(parse_qs(parts.query).get("start", ()))
    card, dash, approval = payload.removeprefix(_QUESTION).partition("-")
    if not payload.startswith(_QUESTION) or not dash or not card.isdecimal() or not approval:
        return None
    return ApprovalId(approval), card
