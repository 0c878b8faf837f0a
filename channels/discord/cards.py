"""Shows an approval card as one message: whole calls, buttons, and endings; pure.

If a card is too long for a message, or a call would break out of its code block, the calls go into a
file of the same message. So people get the whole calls together with the buttons, or nothing. Which
form a card has depends on the card only, so it never changes.

Cards need no state in memory. The data of their buttons is enough after a restart, since Discord keeps
components forever, unlike a library's in-memory views. An approval's id is opaque and unguessable, and
the runtime checks who presses.
"""

import re
from collections.abc import Mapping

from channels._remote import cards as shared
from channels._remote.limits import cut, units
from channels.discord.render import MAX_UNITS, escaped
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CardWords,
    CheckedReceipt,
    Choice,
    Ending,
    Outcome,
    Value,
    escape_invisible,
)

MAX_ROWS = 5
"""Action rows of a message, read 2026-11. Each call has one; further calls are answered by number."""
MAX_LABEL, MAX_TITLE = 80, 45
"""Longest label of a button and title of a form, in characters, read 2026-11."""
MAX_REASON = 500
MAX_RECEIPTS = 25
"""Buttons of one message: five rows of five (Component Reference, read 2026-11)."""

_HEAD_UNITS = 300
_ENDING_UNITS = 450  # reserved for each call's ending, and for the end of the line above it
_ROW, _BUTTON, _FIELD = 1, 2, 4  # Component Types
_STYLES: Mapping[Choice, int] = {"once": 3, "for_a_time": 2, "deny": 4, "deny_with_reason": 4}

_PRESS, _FORM, _RECEIPT = "zc:a:", "zc:w:", "zc:v:"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,90}")


class CardMessage(Value):
    """A card as a message.

    Attributes:
        content: The message's text.
        components: The rows of buttons, in the API's form.
        file: The complete calls, if they don't fit in the text; empty for none.
    """

    content: str
    components: list[dict[str, object]]
    file: str = ""


def view(outcome: Outcome) -> CardMessage:
    """Return a card as a message, with the endings so far."""
    card, endings = outcome.card, {ending.approval: ending for ending in outcome.endings}
    full = _full_text(card, {})
    is_long = units(full) + _ENDING_UNITS * len(card.calls) > MAX_UNITS
    is_file = is_long or any("```" in call.arguments for call in card.calls)
    return CardMessage(
        content=_caption(card, endings) if is_file else _full_text(card, endings),
        components=_rows(card, endings),
        file=shared.calls_text(card) if is_file else "",
    )


# --- the text ------------------------------------------------------------------------------------


def line(text: str) -> str:
    """Return one of the runtime's lines as Markdown: its code marks as code, the rest escaped."""
    pieces = enumerate(shared.split_code(text))
    return "".join(f"`{piece}`" if at % 2 else escaped(piece) for at, piece in pieces)


def _full_text(card: Card, endings: Mapping[ApprovalId, Ending]) -> str:
    words, parts = CardWords(card.language), [_head(card)]
    for call in card.calls:
        parts.append(f"\n{call.number}\\. **{line(call.tool)}**: {line(call.summary)}")
        parts.append(f"```\n{escape_invisible(call.arguments)}\n```")
        parts.append(f"{line(call.why)} · {call.hash8}")
        if call.scope:
            parts.append(line(call.scope))
        if call.approval in endings:
            ending = escaped(shared.ending_text(words, endings[call.approval]))
            parts.append(cut(ending, _ENDING_UNITS - 1))
        elif call not in card.calls[:MAX_ROWS]:
            parts.append(line(words.by_number(call.number)))
    return "\n".join(parts)


def _caption(card: Card, endings: Mapping[ApprovalId, Ending]) -> str:
    """Return one line per call, each cut to an equal share of the message's limit."""
    share = (MAX_UNITS - _HEAD_UNITS) // len(card.calls) - 1
    words = CardWords(card.language)
    lines = [_head(card), escaped(words.in_file())]
    for call in card.calls:
        ending = endings.get(call.approval)
        result = cut(f" {escaped(shared.ending_text(words, ending))}" if ending else "", share // 2)
        summary = escape_invisible(f"{call.number}. {call.tool}: {call.summary} · {call.hash8}")
        # Escaping at most doubles the length, so half of the share always fits.
        shown = escaped(summary) if units(escaped(summary)) <= share - units(result) else ""
        lines.append(f"{shown or escaped(cut(summary, (share - units(result)) // 2))}{result}")
    return cut("\n".join(lines), MAX_UNITS)


def _head(card: Card) -> str:
    return f"**{escaped(shared.head(card, shared.MAX_BY // 2))}**"


# --- buttons and the form ------------------------------------------------------------------------


def _rows(card: Card, endings: Mapping[ApprovalId, Ending]) -> list[dict[str, object]]:
    pending = [call for call in card.calls[:MAX_ROWS] if call.approval not in endings]
    return [_row([_answer(card, call, choice) for choice in card.choices]) for call in pending]


def _answer(card: Card, call: CardCall, choice: Choice) -> dict[str, object]:
    """Return the button that gives a call this answer."""
    label = shared.label(card, call, choice)
    return _button(label, data(call.approval, choice), _STYLES[choice])


def receipts(checked: tuple[CheckedReceipt, ...]) -> list[dict[str, object]]:
    """Return a button for each receipt; a press shows it to the person who pressed.

    The model's text can't imitate a button.
    """
    buttons = [
        _button(shared.receipt_line(receipt), f"{_RECEIPT}{receipt.token}", 2)
        for receipt in checked[:MAX_RECEIPTS]
    ]
    per_row = 1 if len(buttons) <= MAX_ROWS else 5
    return [_row(buttons[at : at + per_row]) for at in range(0, len(buttons), per_row)]


def form(question: str, reason: str, approval: ApprovalId) -> dict[str, object]:
    """Return the form that asks for the reason of a denial.

    Args:
        question: The runtime's question, one line.
        reason: The label of the field.
        approval: The approval of the denied call.
    """
    field = {
        "type": _FIELD,
        "custom_id": "reason",
        "label": cut(shared.unmarked(reason), MAX_TITLE),
        "style": 2,
        "max_length": MAX_REASON,
        "required": True,
    }
    return {
        "custom_id": f"{_FORM}{approval}",
        "title": cut(shared.unmarked(escape_invisible(question)), MAX_TITLE),
        "components": [{"type": _ROW, "components": [field]}],
    }


def _row(buttons: list[dict[str, object]]) -> dict[str, object]:
    return {"type": _ROW, "components": buttons}


def _button(label: str, custom_id: str, style: int) -> dict[str, object]:
    return {"type": _BUTTON, "style": style, "label": cut(label, MAX_LABEL), "custom_id": custom_id}


# --- the data of buttons and forms ---------------------------------------------------------------


def data(approval: ApprovalId, choice: Choice) -> str:
    """Return the data that a button sends when a person presses it."""
    return f"{_PRESS}{shared.button_data(approval, choice)}"


def read(custom_id: str) -> tuple[ApprovalId, Choice] | None:
    """Parse the data of a pressed button; None if it is not an approval button."""
    is_press = custom_id.startswith(_PRESS)
    return shared.parse_button_data(custom_id.removeprefix(_PRESS)) if is_press else None


def read_form(custom_id: str) -> ApprovalId | None:
    """Return the approval that a form gives a denial's reason for, None for another form."""
    approval = custom_id.removeprefix(_FORM)
    return ApprovalId(approval) if custom_id.startswith(_FORM) and approval else None


def read_receipt(custom_id: str) -> str:
    """Return the receipt of a pressed button, empty for another button."""
    token = custom_id.removeprefix(_RECEIPT)
    return token if custom_id.startswith(_RECEIPT) and _TOKEN.fullmatch(token) else ""
