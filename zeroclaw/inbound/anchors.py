"""Notes the heads of the conversations' audit chains in a chain of the daemon's own.

A conversation's chain that is shorter than its newest anchor was cut by a stranger; one that
retention cut is noted in the same commit, so that the rest still verifies.
"""

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from zeroclaw.clock import Clock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import audit
from zeroclaw.store import (
    Append,
    Commit,
    DurablePoint,
    LogEntry,
    LogKind,
    Logs,
    Store,
    Trim,
    Write,
    read_all,
)
from zeroclaw.value import Struct, field

N = TypeVar("N", audit.Anchor, audit.Cut)

STREAM = "daemon"
EVERY_S = 300.0


class Anchors(Struct, eq=False):
    """Keeps the daemon's chain; one for the whole daemon.

    What an earlier process noted is read when it is first needed.
    """

    store: Store
    clock: Clock
    _known: dict[str, int] | None = None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __len__(self) -> int:
        """How many chains are known as they were noted last."""
        return len(self._known or ())

    async def keep(self) -> None:
        """Anchor what is new now and then, until cancelled."""
        while True:
            await self.clock.sleep(EVERY_S)
            await self.anchor()

    async def anchor(self) -> None:
        """Note every head that moved since the last time; one commit."""
        # Two at once would both go on from the same head.
        async with self._one_at_a_time:
            notes: list[audit.Anchor] = []
            streams = await self.store.streams(LogKind.AUDIT)
            noted = await self._noted() if self._known is None else self._known
            # What retention took away whole is not remembered either.
            self._known = known = {one: noted[one] for one in streams if one in noted}
            for stream in streams:
                last = await self.store.last(LogKind.AUDIT, stream)
                if stream == STREAM or last is None or known.get(stream) == last.sequence:
                    continue
                notes.append(self._note(audit.Anchor, stream, last))
            if notes:
                await self._write(await self._head(), *notes)
                known.update({note.conversation: note.sequence for note in notes})

    async def cut(self, stream: str, last: LogEntry, writes: tuple[Write, ...] = ()) -> None:
        """Remove a conversation's audit up to and with an entry; `writes` join the commit."""
        async with self._one_at_a_time:
            gone = Trim(log=LogKind.AUDIT, stream=stream, before=last.sequence + 1)
            note = self._note(audit.Cut, stream, last)
            await self._write(await self._head(), note, more=(gone, *writes))

    async def cut_own(self, before: datetime) -> bool:
        """Remove what is older of the daemon's own chain; tell whether anything was."""
        async with self._one_at_a_time:
            first = await self.store.read(LogKind.AUDIT, STREAM, limit=1)
            if not first or audit.read(first[0].body).at >= before:
                return False  # mostly; the rest of a long chain would be read for nothing
            chain = [entry async for entry in read_all(self.store, LogKind.AUDIT, STREAM)]
            last = await asyncio.to_thread(audit.cut_point, chain, before)
            if last is None:
                return False
            needed = await asyncio.to_thread(
                audit.carried,
                [entry.body for entry in chain if entry.sequence <= last.sequence],
                [entry.body for entry in chain if entry.sequence > last.sequence],
                frozenset(await self.store.streams(LogKind.AUDIT)) - {STREAM},
            )
            note = self._note(audit.Cut, STREAM, last)
            gone = Trim(log=LogKind.AUDIT, stream=STREAM, before=last.sequence + 1)
            head = audit.head_of(chain[-1].body)
            await self._write(head, *needed, note, more=(gone,))
            return True

    async def _write(
        self, head: str, *notes: audit.Anchor | audit.Cut, more: tuple[Write, ...] = ()
    ) -> None:
        """Commit notes behind the head of the daemon's chain, and more with them."""
        writes: list[Write] = []
        for note in notes:
            body, head = audit.link(head, note)
            writes.append(Append(log=LogKind.AUDIT, stream=STREAM, body=body))
        commit = Commit(point=DurablePoint.HOUSEKEEPING, writes=(*writes, *more))
        await self.store.commit(commit)

    def _note(self, kind: type[N], stream: str, last: LogEntry) -> N:
        return kind(
            conversation=ConversationId(stream),
            sequence=last.sequence,
            head=audit.head_of(last.body),
            at=self.clock.now(),
        )

    async def _head(self) -> str:
        newest = await self.store.last(LogKind.AUDIT, STREAM)
        return audit.GENESIS if newest is None else audit.head_of(newest.body)

    async def _noted(self) -> dict[str, int]:
        """Return what earlier processes noted, so that a start does not note all of it again."""
        found: dict[str, int] = {}
        async for entry in read_all(self.store, LogKind.AUDIT, STREAM):
            # Verifying the chain reports an entry that can't be read.
            with suppress(StoreUnusable):
                note = audit.read(entry.body)
                if isinstance(note, audit.Anchor):
                    found[note.conversation] = note.sequence
        return found


async def verified(logs: Logs, stream: str) -> audit.Intact | audit.Broken:
    """Check a chain as it is stored, by what the daemon's chain says of it; `STREAM` for its own.

    Raises:
        StoreUnusable: The daemon's chain holds something that is no entry.
    """
    here = ConversationId(stream)
    # Anchors before the chain, because one of what comes later would say that it is missing; cuts
    # after it, because it may be cut meanwhile.
    anchors = audit.anchors_of(await _bodies(logs), here)
    chain = [entry async for entry in read_all(logs, LogKind.AUDIT, stream)]
    through = chain[0].sequence - 1 if chain else None
    cut = audit.cut_of(await _bodies(logs), here, through=through)
    return audit.verify([entry.body for entry in chain], anchors, cut)


async def _bodies(logs: Logs) -> list[bytes]:
    return [entry.body async for entry in read_all(logs, LogKind.AUDIT, STREAM)]
