"""The numbers of calls in an approver's chat: they only grow, across restarts too."""

from zeroclaw.store import Put, RowKind, Rows
from zeroclaw.table import Codec, Column, Stays, Table, Words


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
            last = max([one async for one in COUNTERS.all(self._rows, place=place)], default=0)
            # Another batch may have read it meanwhile and gone on from it.
            self._last.setdefault(place, last)
        first = self._last[place] + 1
        self._last[place] += count
        return first


COUNTERS = Table(
    kind=RowKind.COUNTER,
    owner="conversation",
    codec=Codec[int](encode=lambda last: str(last).encode(), decode=int),
    columns=frozenset({Column.PLACE}),
    keeps=Stays(until="its conversation is gone, and a higher one of its chat is there"),
    words=Words.NOBODY,
)


def last_put(place: str, whose: str, last: int) -> Put:
    """Return the write that records the newest number that a conversation took for a chat.

    Args:
        place: The chat's address key, or another word for what is numbered.
        whose: The conversation; or another id, where not all commits of one come in order.
        last: The number.
    """
    return COUNTERS.put(f"{place}#{whose}", last, place=place)
