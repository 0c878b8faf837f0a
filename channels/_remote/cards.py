"""The text of approval cards, before a platform's markup; pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from channels._remote.limits import cut
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CardWords,
    CheckedReceipt,
    Choice,
    Ending,
    escape_invisible,
)

FILE_NAME = "calls.txt"
"""The file that lists the calls of a card that is too long for a message."""
MOST_BY, MOST_REASON = 160, 200
"""Longest name and reason shown, in UTF-16 units."""
_SIGNS: Mapping[str, str] = {"approved": "✅", "denied": "⛔", "expired": "⌛", "stopped": "⏹"}
CODES: Mapping[Choice, str] = {"once": "o", "for_a_time": "t", "deny": "d", "deny_with_reason": "r"}
_CHOICES: Mapping[str, Choice] = {code: choice for choice, code in CODES.items()}
CODE = re.compile("`([^`\n]+)`")
"""How the runtime marks names and commands in a line of its own."""


def head(card: Card, most_by: int = MOST_BY) -> str:
    """Return the line that names the asker and the deadline."""
    asked_by = cut(escape_invisible(card.asked_by), most_by)
    return CardWords(card.language).head(asked_by, moment(card.deadline_at))


def ended(words: CardWords, ending: Ending, most_reason: int = MOST_REASON) -> str:
    """Return how the approval request of a call ended, by whom, and why."""
    by = cut(escape_invisible(ending.by), MOST_BY)
    said = f"{_SIGNS[ending.how]} {words.ended(ending, by)}, {moment(ending.at)}"
    reason = cut(escape_invisible(ending.reason), most_reason)
    return f"{said}: {reason}" if reason else said


def label(card: Card, call: CardCall, choice: Choice) -> str:
    """Return a button's label; it includes the call's number if the card has several calls."""
    words = CardWords(card.language)
    return words.label(choice) if len(card.calls) == 1 else words.short_label(choice, call.number)


def title(call: CardCall) -> str:
    """Return a call's number, tool and summary."""
    return f"{call.number}. {unmarked(call.tool)}: {unmarked(call.summary)}"


def parts(call: CardCall) -> list[str]:
    """Return all that is shown of a call: its title, its arguments, why it asks, and its scope."""
    why = f"{unmarked(call.why)} · {call.hash8}"
    found = (title(call), escape_invisible(call.arguments), why, unmarked(call.scope))
    return list(filter(None, found))


def listed(card: Card) -> str:
    """Return all calls of a card as one text."""
    return "\n".join(line for call in card.calls for line in parts(call))


def carried(approval: ApprovalId, choice: Choice) -> str:
    """Return the data that a button sends when it is pressed."""
    return f"{CODES[choice]}:{approval}"


def parse_button_data(found: str) -> tuple[ApprovalId, Choice] | None:
    """Parse the data of a pressed button; None if the button is not ours."""
    code, colon, approval = found.partition(":")
    choice = _CHOICES.get(code)
    return (ApprovalId(approval), choice) if choice and colon and approval else None


def pieces(text: str) -> list[str]:
    """Split a line of the runtime's; every second piece is marked as code."""
    return CODE.split(escape_invisible(text))


def unmarked(text: str) -> str:
    """Return a line of the runtime's without its code marks, for places without styles."""
    return "".join(pieces(text))


def receipt_line(receipt: CheckedReceipt) -> str:
    """Return the line that shows a receipt."""
    return f"{'🕓' if receipt.earlier else '✅'} {receipt.line()}"


def moment(at: datetime) -> str:
    """Return a time as cards show it."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
