"""A shared conversation's journal without one person's turns."""

from collections.abc import Iterable

from zeroclaw.turn import entries

WHY = "forgotten"


def without(journal: Iterable[entries.Entry], person: str) -> tuple[entries.Entry, ...] | None:
    """Return what stays, None when nothing of it is that person's.

    Whole turns go, from their beginning up to the next one's. Every summary goes too, for it is of
    everybody's words: what it stood for is read in full again, and summed up anew when it is too
    long.

    Args:
        journal: Of a conversation in which no turn is open.
        person: A principal's id.
    """
    staying: list[entries.Entry] = []
    has_theirs = is_theirs = False
    for entry in journal:
        if isinstance(entry, entries.TurnOpened):
            is_theirs = entry.principal.id == person
            has_theirs = has_theirs or is_theirs
        if not is_theirs and not isinstance(entry, entries.Compacted):
            staying.append(entry)
    return tuple(staying) if has_theirs else None
