"""The numbers of calls in an approver's chat: they only grow, across restarts too."""

from zeroclaw.store import RowKind, Rows


class Numbers:
    """Counts for every chat; one for the whole daemon."""

    def __init__(self, rows: Rows) -> None:
        """Continue where the store left off; counts are read when first used."""
        self._rows = rows
        self._last: dict[str, int] = {}

    async def take(self, place: str, count: int) -> int:
        """Return the first of `count` fresh numbers; the caller stores the last one."""
        if place not in self._last:
            row = await self._rows.get(RowKind.COUNTER, place)
            # Somebody else may have read it meanwhile and gone on from it.
            self._last.setdefault(place, 0 if row is None else int(row.body))
        first = self._last[place] + 1
        self._last[place] += count
        return first
