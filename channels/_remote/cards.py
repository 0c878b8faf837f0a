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
MAX_BY, MAX_REASON = 160, 200
"""Longest name and reason on a card, in UTF-16 units."""
_SIGNS: Mapping[str, str] = {"approved": "✅", "denied": "⛔", "expired": "⌛", "stopped": "⏹"}
CODES: Mapping[Choice, str] = {"once": "o", "for_a_time": "t", "deny": "d", "deny_with_reason": "r"}
_CHOICES: Mapping[str, Choice] = {code: choice for choice, code in CODES.items()}
CODE = re.compile("`([^`\n]+)`")
"""The backticks with which the runtime marks names and commands in its own lines."""


def head(card: Card, max_by: int = MAX_BY) -> str:
    """Return the line that names the requester and the deadline."""
    asked_by = cut(escape_invisible(card.asked_by), max_by)
    return CardWords(card.language).head(asked_by, _utc_text(card.deadline_at))


def ending_text(words: CardWords, ending: Ending, max_reason: int = MAX_REASON) -> str:
    """Return how a call's approval request ended, who ended it, and for what reason."""
    by = cut(escape_invisible(ending.by), MAX_BY)
    text = f"{_SIGNS[ending.how]} {words.ended(ending, by)}, {_utc_text(ending.at)}"
    reason = cut(escape_invisible(ending.reason), max_reason)
    return f"{text}: {reason}" if reason else text


def label(card: Card, call: CardCall, choice: Choice) -> str:
    """Return a button's label; it includes the call's number if the card has several calls."""
    words = CardWords(card.language)
    return words.label(choice) if len(card.calls) == 1 else words.short_label(choice, call.number)


def title(call: CardCall) -> str:
    """Return a call's number, tool and summary."""
    return f"{call.number}. {unmarked(call.tool)}: {unmarked(call.summary)}"


def call_lines(call: CardCall) -> list[str]:
    """Return what a card shows of a call: title, arguments, reason for the approval, and scope."""
    reason = f"{unmarked(call.why)} · {call.hash8}"
    lines = (title(call), escape_invisible(call.arguments), reason, unmarked(call.scope))
    return list(filter(None, lines))


def calls_text(card: Card) -> str:
    """Return all calls of a card as one text."""
    return "\n".join(line for call in card.calls for line in call_lines(call))


def button_data(approval: ApprovalId, choice: Choice) -> str:
    """Return the data that a button sends when a person presses it."""
    return f"{CODES[choice]}:{approval}"


def parse_button_data(data: str) -> tuple[ApprovalId, Choice] | None:
    """Parse the data of a pressed button; None if it is not an approval button."""
    code, _, approval = data.partition(":")
    choice = _CHOICES.get(code)
    return (ApprovalId(approval), choice) if choice and approval else None


def split_code(text: str) -> list[str]:
    """Split one of the runtime's lines at its code marks; every second piece is code."""
    return CODE.split(escape_invisible(text))


def unmarked(text: str) -> str:
    """Return one of the runtime's lines without its code marks, for places without styles."""
    return "".join(split_code(text))


def receipt_line(receipt: CheckedReceipt) -> str:
    """Return the line that shows a receipt."""
    return f"{'🕓' if receipt.earlier else '✅'} {receipt.line()}"


def _utc_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
