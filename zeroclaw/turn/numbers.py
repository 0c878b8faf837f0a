"""The numbers of calls in an approver's chat: they only grow, across restarts too."""

from zeroclaw.store import Put, RowKind, Rows, find_all


class Numbers:
    """Counts for every chat; one for the whole daemon.

    What was given out is stored by chat and conversation, for only the commits of one conversation
    come in the order in which their numbers were taken. The highest of a chat counts.
    """

    def __init__(self, rows: Rows) -> None:
        """Continue where the store left off; counts are read when first used."""
        self._rows = rows
        self._last: dict[str, int] = {}

    async def take(self, place: str, count: int) -> int:
        """Return the first of `count` fresh numbers; the caller commits `last_put` with them."""
        if place not in self._last:
            rows = find_all(self._rows, RowKind.COUNTER, place=place)
            last = max([int(row.body) async for row in rows], default=0)
            # Somebody else may have read it meanwhile and gone on from it.
            self._last.setdefault(place, last)
        first = self._last[place] + 1
        self._last[place] += count
        return first


def last_put(place: str, whose: str, last: int) -> Put:
    """Return the write that records the newest number that a conversation took for a chat.

    Args:
        place: The chat's address key, or another word for what is numbered.
        whose: The conversation; or another id, where not all commits of one come in order.
        last: The number.
    """
    return Put(kind=RowKind.COUNTER, key=f"{place}#{whose}", body=str(last).encode(), place=place)
