"""What a whole journal comes to."""

from collections.abc import Iterable

from zeroclaw.turn import journal as journals
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.journal import History


def fold(journal: Iterable[Entry]) -> History:
    """What all entries of a conversation come to."""
    return journals.fold(tuple(journal))
