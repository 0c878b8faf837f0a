"""What a whole journal comes to."""

from collections.abc import Iterable

from zeroclaw.turn.entries import Entry
from zeroclaw.turn.journal import History, folded


def fold(journal: Iterable[Entry]) -> History:
    """What all entries of a conversation come to."""
    return folded(tuple(journal))
