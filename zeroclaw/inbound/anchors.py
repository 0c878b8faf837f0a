"""Notes the heads of the conversations' audit chains in a chain of the daemon's own.

A conversation's chain that is shorter than its newest anchor was cut.
"""

import asyncio

from zeroclaw.clock import Clock
from zeroclaw.envelope import ConversationId
from zeroclaw.gate import audit
from zeroclaw.store import Append, Commit, DurablePoint, LogKind, Store, Write

STREAM = "daemon"
EVERY_S = 300.0


class Anchors:
    """Keeps the daemon's chain; one for the whole daemon."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """Know no head yet."""
        self._store = store
        self._clock = clock
        self._known: dict[str, int] = {}
        self._one_at_a_time = asyncio.Lock()

    async def keep(self) -> None:
        """Anchor what is new now and then, until cancelled."""
        while True:
            await self._clock.sleep(EVERY_S)
            await self.anchor()

    async def anchor(self) -> None:
        """Note every head that moved since the last time; one commit."""
        # Two at once would both go on from the same head.
        async with self._one_at_a_time:
            await self._anchor()

    async def _anchor(self) -> None:
        newest = await self._store.last(LogKind.AUDIT, STREAM)
        head = audit.GENESIS if newest is None else audit.head_of(newest.body)
        writes: list[Write] = []
        moved: dict[str, int] = {}
        for stream in await self._store.streams(LogKind.AUDIT):
            last = await self._store.last(LogKind.AUDIT, stream)
            if stream == STREAM or last is None or self._known.get(stream) == last.sequence:
                continue
            note = audit.Anchor(
                conversation=ConversationId(stream),
                sequence=last.sequence,
                head=audit.head_of(last.body),
                at=self._clock.now(),
            )
            body, head = audit.link(head, note)
            writes.append(Append(log=LogKind.AUDIT, stream=STREAM, body=body))
            moved[stream] = last.sequence
        if writes:
            await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=tuple(writes)))
            self._known.update(moved)
