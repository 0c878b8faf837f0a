"""Show an approval card as one message: its calls whole, buttons, and how each call ended.

A card that is too long for a message, or whose calls would break out of their code block, carries
them in a file with the same buttons, so that everything that is approved arrives whole or not at
all. Which of the two a card is follows from the card alone, so that it stays what it was.

Nothing about a card is remembered: what its buttons carry says all that is needed after a restart
(Discord keeps components without end, unlike the views of a library in memory). An approval's id is
opaque and unguessable, and who presses is checked by the runtime.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from channels.discord.render import MOST_UNITS, cut, escaped, receipt_buttons, units
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

MOST_ROWS = 5
"""Action rows of a message, read 2026-11. A call has one; calls beyond that are numbered."""
MOST_CUSTOM_ID = 100
"""Of a component's `custom_id`, in characters, read 2026-11."""
MOST_LABEL, MOST_TITLE = 80, 45
"""Of a button and of a form, in characters, read 2026-11."""
MOST_REASON = 500
FILE_NAME = "calls.txt"

_MOST_BY_UNITS = 160
_MOST_REASON_UNITS = 200
_HEAD_UNITS = 300
_ENDING_UNITS = 450  # kept free for how a call ended
_SIGNS: Mapping[str, str] = {"approved": "✅", "denied": "⛔", "expired": "⌛", "stopped": "⏹"}
_ROW, _BUTTON, _FIELD = 1, 2, 4  # Component Types
_STYLES: Mapping[Choice, int] = {"once": 3, "for_a_time": 2, "deny": 4, "deny_with_reason": 4}

_CODES: Mapping[Choice, str] = {
    "once": "o",
    "for_a_time": "t",
    "deny": "d",
    "deny_with_reason": "r",
}
_CHOICES: Mapping[str, Choice] = {code: choice for choice, code in _CODES.items()}
_PRESS, _FORM, _RECEIPT = "zc:a:", "zc:w:", "zc:v:"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,90}")
_CODE = re.compile("`([^`\n]+)`")
"""How the runtime marks names and commands in a line of its own."""


class Shown(Value):
    """A card as a message.

    Attributes:
        content: Its text.
        components: Its rows of buttons, as the API takes them.
        file: The calls, where the text has no room for them; empty for none.
        carried: What the buttons carry.
    """

    content: str
    components: list[dict[str, object]]
    file: str = ""
    carried: frozenset[str] = frozenset()


def view(outcome: Outcome) -> Shown:
    """Return how a card looks with what has ended of it."""
    card, endings = outcome.card, {one.approval: one for one in outcome.endings}
    whole = _whole(card, {})
    is_long = units(whole) + _ENDING_UNITS * len(card.calls) > MOST_UNITS
    is_file = is_long or any("```" in call.arguments for call in card.calls)
    return Shown(
        content=_caption(card, endings) if is_file else _whole(card, endings),
        components=_rows(card, endings),
        file=_listed(card) if is_file else "",
        carried=frozenset(
            data(call.approval, one)
            for call in card.calls
            for one in card.choices
            if call.approval not in endings and _has_buttons(card, call)
        ),
    )


# --- the text ------------------------------------------------------------------------------------


def line(text: str) -> str:
    """Return a line of the runtime's, what it marks as code in that style, and nothing else marked."""
    pieces = _CODE.split(escape_invisible(text))
    return "".join(f"`{one}`" if at % 2 else escaped(one) for at, one in enumerate(pieces))


def unmarked(text: str) -> str:
    """Return a line of the runtime's without its marks, for places that know no styles."""
    return _CODE.sub(r"\1", text)


def _whole(card: Card, endings: Mapping[ApprovalId, Ending]) -> str:
    words, parts = CardWords(card.language), [f"**{_head(card)}**"]
    for call in card.calls:
        parts.append(f"\n{call.number}\\. **{line(call.tool)}**: {line(call.summary)}")
        parts.append(f"```\n{escape_invisible(call.arguments)}\n```")
        parts.append(f"{line(call.why)} · {call.hash8}")
        if call.scope:
            parts.append(line(call.scope))
        if call.approval in endings:
            parts.append(_ending(words, endings[call.approval]))
        elif not _has_buttons(card, call):
            parts.append(line(words.by_number(call.number)))
    return "\n".join(parts)


def _caption(card: Card, endings: Mapping[ApprovalId, Ending]) -> str:
    """Return a line a call; each has the same share of what a message may have."""
    room = (MOST_UNITS - _HEAD_UNITS) // len(card.calls) - 1
    words = CardWords(card.language)
    lines = [f"**{_head(card)}**", escaped(words.in_file())]
    for call in card.calls:
        ended = f" {_ending(words, endings[call.approval])}" if call.approval in endings else ""
        ended = cut(ended, room // 2)
        said = escape_invisible(f"{call.number}. {call.tool}: {call.summary} · {call.hash8}")
        # An escape takes a unit as well, so half as much is sure to have room.
        shown = escaped(said) if units(escaped(said)) <= room - units(ended) else ""
        lines.append(f"{shown or escaped(cut(said, (room - units(ended)) // 2))}{ended}")
    return cut("\n".join(lines), MOST_UNITS)


def _listed(card: Card) -> str:
    parts: list[str] = []
    for call in card.calls:
        parts += [f"{call.number}. {call.tool}: {unmarked(call.summary)}", call.arguments]
        parts += [f"{unmarked(call.why)} · {call.hash8}", call.scope]
    return escape_invisible("\n".join(filter(None, parts)))


def _head(card: Card) -> str:
    asked_by = cut(escape_invisible(card.asked_by), _MOST_BY_UNITS // 2)
    return escaped(CardWords(card.language).head(asked_by, _time(card.deadline_at)))


def _ending(words: CardWords, ending: Ending) -> str:
    by = words.by(cut(escape_invisible(ending.by), _MOST_BY_UNITS))
    said = f"{_SIGNS[ending.how]} {words.ended(ending)}{by}, {_time(ending.at)}"
    reason = cut(escape_invisible(ending.reason), _MOST_REASON_UNITS)
    return escaped(f"{said}: {reason}" if reason else said)


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


# --- buttons and the form ------------------------------------------------------------------------


def _rows(card: Card, endings: Mapping[ApprovalId, Ending]) -> list[dict[str, object]]:
    words, is_alone = CardWords(card.language), len(card.calls) == 1
    return [
        _row(
            [
                _button(
                    words.label(one) if is_alone else words.short_label(one, call.number),
                    data(call.approval, one),
                    _STYLES[one],
                )
                for one in card.choices
            ]
        )
        for call in card.calls
        if call.approval not in endings and _has_buttons(card, call)
    ]


def receipts(shown: tuple[CheckedReceipt, ...]) -> list[dict[str, object]]:
    """Return the buttons that stand for receipts; a press shows the receipt to its presser."""
    return [
        _row([_button(label, f"{_RECEIPT}{token}", 2) for label, token in row])
        for row in receipt_buttons(shown)
    ]


def form(asked: str, reason: str, approval: ApprovalId) -> dict[str, object]:
    """Return the form that asks for the reason of a denial.

    Args:
        asked: As the runtime asks it, of one line.
        reason: What the field is called.
        approval: The call that is denied.
    """
    field = {
        "type": _FIELD,
        "custom_id": "reason",
        "label": cut(unmarked(reason), MOST_TITLE),
        "style": 2,
        "max_length": MOST_REASON,
        "required": True,
    }
    return {
        "custom_id": f"{_FORM}{approval}",
        "title": cut(unmarked(escape_invisible(asked)), MOST_TITLE),
        "components": [{"type": _ROW, "components": [field]}],
    }


def _row(buttons: list[dict[str, object]]) -> dict[str, object]:
    return {"type": _ROW, "components": buttons}


def _button(label: str, carried: str, style: int) -> dict[str, object]:
    return {"type": _BUTTON, "style": style, "label": cut(label, MOST_LABEL), "custom_id": carried}


def _has_buttons(card: Card, call: CardCall) -> bool:
    return call in card.calls[:MOST_ROWS] and bool(data(call.approval, "deny"))


# --- what they carry -----------------------------------------------------------------------------


def data(approval: ApprovalId, choice: Choice) -> str:
    """Return what a button carries, empty when it would be more than a button can."""
    carried = f"{_PRESS}{_CODES[choice]}:{approval}"
    return carried if len(carried) <= MOST_CUSTOM_ID else ""


def read(carried: str) -> tuple[ApprovalId, Choice] | None:
    """Return what a pressed button says, None for one that is not ours."""
    code, colon, approval = carried.removeprefix(_PRESS).partition(":")
    choice = _CHOICES.get(code) if carried.startswith(_PRESS) else None
    return (ApprovalId(approval), choice) if choice and colon and approval else None


def read_form(carried: str) -> ApprovalId | None:
    """Return the call whose denial a form gives the reason for, None for another form."""
    approval = carried.removeprefix(_FORM)
    return ApprovalId(approval) if carried.startswith(_FORM) and approval else None


def read_receipt(carried: str) -> str:
    """Return the receipt that a button stands for, empty for another button."""
    token = carried.removeprefix(_RECEIPT)
    return token if carried.startswith(_RECEIPT) and _TOKEN.fullmatch(token) else ""
