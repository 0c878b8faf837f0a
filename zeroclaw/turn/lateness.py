"""Answers that come late, because nobody listened or something stood in their way (pure)."""

from datetime import datetime

from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.turn.inbox import Item
from zeroclaw.turn.span import span

LATE_S = 600.0
"""After so many seconds a person may have thought of something else, and is told how long it was."""


def late_s(item: Item, now: datetime) -> float:
    """Return for how long a message has waited for its turn, 0 for a wait that nobody asks about."""
    waited_s = (now - (item.sent_at or item.admitted_at)).total_seconds()
    return waited_s if waited_s > LATE_S else 0.0


def for_the_model(item: Item, waited_s: float) -> str:
    """Return what the model reads before the words of a message that has waited."""
    if not waited_s:
        return ""
    at = f"{item.sent_at or item.admitted_at:%Y-%m-%d %H:%M} UTC"
    return f"[written {at}, {span(waited_s)} before you read it]\n"


def for_people(waited_s: float, language: Language) -> str:
    """Return what stands below an answer that comes late, empty for one that does not."""
    if not waited_s:
        return ""
    return catalogue.ANSWERED_LATE.to(language, wait=span(waited_s))
