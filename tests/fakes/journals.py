"""Folds a whole journal into its history."""

from collections.abc import Iterable

from zeroclaw.turn import journal as journals
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.journal import History


def fold(journal: Iterable[Entry]) -> History:
    """Return the history of all entries of a conversation."""
    return journals.fold(tuple(journal))
