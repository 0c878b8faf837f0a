"""The numbers of calls in an approver's chat: they only increase, across restarts too."""

from collections.abc import Iterable

from zeroclaw.envelope import Reader
from zeroclaw.gate.approval import APPROVALS, Numbered, R, number_of
from zeroclaw.store import Put, RowKind, Rows, readable_of, scan
from zeroclaw.table import Column, Stays, Table, Words, json_codec
from zeroclaw.value import Struct, field, replace


class Numbers(Struct, eq=False):
    """Number counters for every chat; the daemon has one.

    The last number is stored per chat and conversation, because only commits of the same
    conversation are applied in the order in which they took their numbers. A chat's highest value
    counts.
    """

    rows: Rows
    _last: dict[str, int] = field(default_factory=dict[str, int])

    async def give(
        self, asked: tuple[R, ...], readers: Iterable[Reader], whose: str
    ) -> tuple[tuple[R, ...], tuple[Put, ...]]:
        """Number each approval request in each chat that it is shown in.

        Args:
            asked: The requests, in the order in which they are numbered.
            readers: The chats.
            whose: As for `take`.

        Returns:
            The requests with their numbers, and the writes to commit with them.
        """
        counters: list[Put] = []
        for reader in readers:
            place = reader.address.key()
            first, counter = await self.take(place, len(asked), whose)
            counters.append(counter)
            asked = tuple(
                replace(
                    one,
                    numbers=(
                        *one.numbers,
                        Numbered(place=place, number=number, language=reader.language),
                    ),
                )
                for number, one in enumerate(asked, first)
            )
        return asked, tuple(counters)

    async def take(self, place: str, count: int, whose: str) -> tuple[int, Put]:
        """Return the first of `count` fresh numbers, and the write to commit with them.

        Args:
            place: The chat's address key, or another name for what is numbered.
            count: How many.
            whose: The conversation; another id if one conversation's commits may be out of order.
        """
        if place not in self._last:
            found = [row async for row in scan(self.rows, COUNTERS.where(place=place))]
            counted = [*readable_of(found, COUNTERS.of)]
            if len(counted) < len(found):
                # The damaged one may be the highest, and no number may be given out twice.
                shown = APPROVALS.readable(self.rows)
                counted += [number_of(one, place) async for one in shown]
            last = max(counted, default=0)
            # Another batch may have set it during the await, and taken numbers since.
            self._last.setdefault(place, last)
        first = self._last[place] + 1
        self._last[place] += count
        return first, COUNTERS.put(f"{place}#{whose}", self._last[place], place=place)


COUNTERS = Table(
    kind=RowKind.COUNTER,
    codec=json_codec(int),
    columns=frozenset({Column.PLACE}),
    keeps=Stays(until="its conversation is gone, and a higher one of its chat is there"),
    words=Words.NOBODY,
)
