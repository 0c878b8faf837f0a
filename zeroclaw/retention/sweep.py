"""Deletes old data: at a start and then daily, in small commits with pauses in between.

`policy.py` decides what is old. A busy conversation is left for the next time, and a row that
changed after it was read stays. While the wall clock may be wrong by days, nothing is old: after a
leap forward, the sweep waits a day, in which somebody, or a time server, can set it.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Generator, Iterable
from contextlib import contextmanager
from datetime import datetime, timedelta

from zeroclaw.channel import Log
from zeroclaw.clock import LEAP, Clock, made_at, ulid_time
from zeroclaw.config.model import CurrentConfig
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Conflict, RecordUnreadable
from zeroclaw.gate import audit
from zeroclaw.inbound.anchors import STREAM, Anchors
from zeroclaw.inbound.conversations import CONVERSATIONS, POINTERS
from zeroclaw.retention import policy
from zeroclaw.retention.tables import BUSY, OF_CONVERSATIONS, TABLES
from zeroclaw.store import (
    Commit,
    Delete,
    DropBlob,
    DurablePoint,
    LogEntry,
    LogKind,
    Row,
    Store,
    Trim,
    Write,
    read_all,
    scan,
    unchanged,
)
from zeroclaw.table import Age, Ages, Declaration, Stays, UntilDue
from zeroclaw.turn import entries
from zeroclaw.value import Struct

EVERY_S = 86_400.0
LOOK_S = 3_600.0
"""Seconds between two checks of the disk limit."""
PAUSE_S = 0.1
"""Seconds after each commit, so that other commits get in between."""
BATCH = 100
MOST_STEPS = 500
"""Entries of a journal that are read and deleted at once; whole turns, so some may be more."""
BLOBS_AT_ONCE = 4
"""A blob may have megabytes, and other writers wait for the commit."""
Busy = Collection[ConversationId]
_LEFT = tuple(table for table in OF_CONVERSATIONS if not isinstance(table.keeps, Stays))
"""A conversation stays as long as any of these tables has a row of it."""


class Sweep(Struct, kw_only=True, eq=False):
    """Keeps the store within its ages and its disk limit; the daemon has one.

    The rules come from the settings.

    Attributes:
        earlier: As in `Keys`.
    """

    store: Store
    anchors: Anchors
    clock: Clock
    settings: CurrentConfig
    log: Log
    earlier: datetime | None = None

    async def keep(self) -> None:
        """Sweep now, daily, and whenever the disk limit is exceeded; until cancelled."""
        offset = await self._last_offset()
        while True:
            # Once: a machine that sleeps most of the time leaps again while this waits.
            if (leap := self._offset() - offset) > LEAP:
                self.log(
                    "clock_leapt",
                    level="warning",
                    days=leap.days,
                    advice="nothing is deleted by age for a day; if it is wrong, set the clock",
                )
                await self.clock.sleep(EVERY_S)
            offset = self._offset()
            await self.sweep()
            swept_at = self.clock.monotonic()
            while self.clock.monotonic() - swept_at < EVERY_S:
                await self.clock.sleep(LOOK_S)
                if await self._is_over():
                    break

    def _offset(self) -> datetime:
        """Return the wall time at the zero of the monotonic clock; it changes by leaps alone."""
        return self.clock.now() - timedelta(seconds=self.clock.monotonic())

    async def _last_offset(self) -> datetime:
        """Return the offset if the clock stood at the newest start or message that is a day old.

        Later ones may be under the same wrong clock.
        """
        now, offset = self.clock.now(), self._offset()
        a_day_ago = ulid_time(now - timedelta(seconds=EVERY_S))
        newest = await self.store.select(INBOX.where(after=a_day_ago, newest_first=True, limit=1))
        seen = [made_at(row.key) for row in newest]
        seen += [] if self.earlier is None else [self.earlier]
        return offset - (now - max(seen, default=now))

    async def sweep(self) -> None:
        """Delete what is old, with shorter ages while the disk limit is exceeded."""
        for halved in range(policy.HALVINGS + 1):
            await self._pass(
                policy.horizons(self.settings.config.retention, self.clock.now(), halved=halved)
            )
            if not await self._is_over():
                return
        self.log(
            "disk_over_bound",
            level="warning",
            used_bytes=await self.store.used_bytes(),
            max_disk_mb=self.settings.config.retention.max_disk_mb,
            advice="what is left is younger than the shortened ages; raise retention.max_disk_mb",
        )

    async def _is_over(self) -> bool:
        return policy.is_over(self.settings.config.retention, await self.store.used_bytes())

    async def _pass(self, at: policy.Horizons) -> None:
        busy = await self._busy()
        gone = {
            "rows": await self._rows(at, busy),
            "journals": await self._journals(at.ages[Age.MESSAGES], busy),
            "blobs": await self._blobs(at.blobs),
            "audits": await self._audits(at.audit, busy),
            "conversations": await self._conversations(at, busy),
        }
        if any(gone.values()):
            self.log("swept", **gone)

    async def _busy(self) -> Busy:
        """Return the conversations in which something is in progress."""
        return {
            row.conversation
            for table, state in BUSY
            async for row in scan(self.store, table.where(state=state))
            if row.conversation is not None
        }

    # --- rows ----------------------------------------------------------------------------------

    async def _rows(self, at: policy.Horizons, busy: Busy) -> int:
        count = 0
        for table in TABLES.values():
            going: list[Row] = []
            async for row in self._oldest(table, at):
                if row.conversation in busy or not self._may_go(table, row, at):
                    continue
                going.append(row)
                if len(going) == BATCH:
                    count += await self._delete(going)
                    going = []
            count += await self._delete(going)
        return count

    async def _oldest(self, table: Declaration, at: policy.Horizons) -> AsyncIterator[Row]:
        """Yield the ended rows of a table; if keys tell the time, only those that are old enough."""
        keeps = table.keeps
        if isinstance(keeps, Stays):
            return
        is_by_due = isinstance(keeps, UntilDue)
        due_before, ended = (at.now, ()) if is_by_due else (None, sorted(keeps.ended))
        tells_time = isinstance(keeps, Ages) and keeps.at is None
        latest = max(at.ages.values())
        for state in ended or [None]:
            async for row in scan(self.store, table.where(state=state, due_before=due_before)):
                if tells_time and not policy.is_before(row.key, latest):
                    break
                yield row

    def _may_go(self, table: Declaration, row: Row, at: policy.Horizons) -> bool:
        with self._skipping("row_unreadable", kind=row.kind, key=row.key):
            return policy.may_go(table, row, at)
        return False

    @contextmanager
    def _skipping(self, event: str, **what: str) -> Generator[None]:
        """Log a damaged record: a person has to look at it, and it must not hold up the others."""
        try:
            yield
        except RecordUnreadable as error:
            self.log(event, level="warning", **what, why=str(error))

    async def _delete(self, rows: Iterable[Row]) -> int:
        found = tuple(rows)
        if not found:
            return 0
        try:
            await self._commit([write for row in found for write in _gone(row)])
        except Conflict:
            if len(found) == 1:
                return 0
            return sum([await self._delete((row,)) for row in found])
        return len(found)

    # --- logs and blobs ------------------------------------------------------------------------

    async def _journals(self, before: datetime, busy: Busy) -> int:
        count = 0
        for stream in await self.store.streams(LogKind.JOURNAL):
            if ConversationId(stream) in busy:
                continue
            with self._skipping("journal_unreadable", stream=stream):
                is_cut = False
                while (cut := await self._journal_cut(stream, before)) is not None:
                    await self._commit([Trim(log=LogKind.JOURNAL, stream=stream, before=cut)])
                    is_cut = True
                count += is_cut
        return count

    async def _journal_cut(self, stream: str, before: datetime) -> int | None:
        """Read a journal up to its first entry that is not old, often the first one; decide."""
        found: list[policy.Step] = []
        after, limit = 0, 1
        while page := await self.store.read(LogKind.JOURNAL, stream, after=after, limit=limit):
            for one in page:
                entry = entries.decode(one.body)
                found.append(policy.Step(sequence=one.sequence, entry=entry))
                is_enough = len(found) > MOST_STEPS and isinstance(entry, entries.TurnOpened)
                if is_enough or entry.at >= before:
                    return policy.journal_cut(found, before)
            after, limit = page[-1].sequence, BATCH
        return policy.journal_cut(found, before)

    async def _blobs(self, before: datetime) -> int:
        count = 0
        while page := await self.store.blobs(put_before=before, limit=BLOBS_AT_ONCE):
            # A blob that is being stored again is new, and stays.
            await self._commit([DropBlob(digest=one, put_before=before) for one in page])
            count += len(page)
        return count

    async def _audits(self, before: datetime, busy: Busy) -> int:
        count = 0
        for stream in await self.store.streams(LogKind.AUDIT):
            if stream == STREAM or ConversationId(stream) in busy:
                continue
            with self._skipping("audit_unreadable", stream=stream):
                last = await self._cut_point(stream, before)
                if last is not None:
                    await self.anchors.cut(stream, last)
                    await self.clock.sleep(PAUSE_S)
                    count += 1
        with self._skipping("audit_unreadable", stream=STREAM):
            count += await self.anchors.cut_own(before)
        return count

    async def _cut_point(self, stream: str, before: datetime) -> LogEntry | None:
        first = await self.store.read(LogKind.AUDIT, stream, limit=1)
        if not first or audit.read(first[0].body).at >= before:
            return None
        newest = await self.store.last(LogKind.AUDIT, stream)
        is_forgotten = await self.store.get(CONVERSATIONS.kind, stream) is None
        if newest is not None and is_forgotten and audit.read(newest.body).at < before:
            return newest  # nothing can be appended any more, so the whole chain may go
        chain = [entry async for entry in read_all(self.store, LogKind.AUDIT, stream)]
        return await asyncio.to_thread(audit.cut_point, chain, before)

    # --- conversations -------------------------------------------------------------------------

    async def _conversations(self, at: policy.Horizons, busy: Busy) -> int:
        """Delete conversations that no chat points to and that are empty."""
        count = 0
        async for row in scan(self.store, CONVERSATIONS.where()):
            if not policy.is_before(row.key, at.ages[Age.MESSAGES]):
                break
            here = ConversationId(row.key)
            if here in busy or not await self._is_empty(here):
                continue
            count += await self._conversation(row, here, at.audit)
        return count

    async def _conversation(self, row: Row, here: ConversationId, before: datetime) -> int:
        last = await self.store.last(LogKind.AUDIT, here)
        if last is None:
            return await self._delete((row,))
        try:
            if audit.read(last.body).at >= before:
                return 0
            await self.anchors.cut(here, last, _gone(row))
        except (RecordUnreadable, Conflict):  # reported with the audits; or an erasure came first
            return 0
        await self.clock.sleep(PAUSE_S)
        return 1

    async def _is_empty(self, here: ConversationId) -> bool:
        for table in (POINTERS, *_LEFT):
            if await self.store.select(table.where(conversation=here, limit=1)):
                return False
        return await self.store.last(LogKind.JOURNAL, here) is None

    async def _commit(self, writes: list[Write]) -> None:
        await self.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=tuple(writes)))
        await self.clock.sleep(PAUSE_S)


def _gone(row: Row) -> tuple[Write, ...]:
    """Return the writes that delete a row unless it changed since."""
    return (unchanged(row), Delete(kind=row.kind, key=row.key))
