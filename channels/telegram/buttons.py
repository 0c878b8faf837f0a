"""What a card's buttons carry, and the link by which a reply finds the question it answers.

Nothing about a card is remembered: a press after a restart says all that is needed. An approval's
id is opaque and unguessable, and who presses is checked by the runtime, so neither can be forged
into an answer.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit

from zeroclaw import ApprovalId, Choice, Value

MOST_DATA_BYTES = 64
"""Bot API, InlineKeyboardButton.callback_data: 1-64 bytes, read 2026-11."""

_CODES: Mapping[Choice, str] = {
    "once": "o",
    "for_a_time": "t",
    "deny": "d",
    "deny_with_reason": "r",
}
_CHOICES: Mapping[str, Choice] = {code: choice for choice, code in _CODES.items()}
_QUESTION = "why-"


class Question(Value):
    """What a reply is the reason for.

    Attributes:
        approval: The call that is denied.
        card: The message with the card.
    """

    approval: ApprovalId
    card: str


def data(approval: ApprovalId, choice: Choice) -> str:
    """Return what a button carries, empty when it would be more than a button can."""
    carried = f"{_CODES[choice]}:{approval}"
    return carried if len(carried.encode()) <= MOST_DATA_BYTES else ""


def read(carried: str) -> tuple[ApprovalId, Choice] | None:
    """Return what a pressed button says, None for one that is not ours."""
    code, colon, approval = carried.partition(":")
    choice = _CHOICES.get(code)
    return (ApprovalId(approval), choice) if choice and colon and approval else None


def question_url(username: str, question: Question) -> str:
    """Return the link that a question carries: to the bot's own chat, where it does nothing."""
    carried = quote(f"{_QUESTION}{question.card}-{question.approval}", safe="")
    return f"https://t.me/{username}?start={carried}"


def read_question(username: str, url: str) -> Question | None:
    """Return what a link of a question says, None for any other."""
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
    return Question(approval=ApprovalId(approval), card=card)
