"""Deletes old data: at a start and then daily, in small commits with pauses in between.

`policy.py` decides which data is old. A busy conversation is left for the next time, and a row that
changed after it was read stays. While the wall clock may be wrong by days, the sweep deletes
nothing: after a leap forward it waits a day, in which a person or a time server can set the clock.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Generator
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
CHECK_S = 3_600.0
"""Seconds between two checks of the disk limit."""
PAUSE_S = 0.1
"""Seconds after each commit, so that other commits get in between."""
BATCH = 100
MAX_STEPS = 500
"""Entries of a journal that are read and deleted at once, completed to whole turns."""
BLOBS_AT_ONCE = 4
"""A blob may have megabytes, and other writers wait for the commit."""
Busy = Collection[ConversationId]
_CONTENTS = tuple(table for table in OF_CONVERSATIONS if not isinstance(table.keeps, Stays))
"""A conversation stays as long as any of these tables has a row of it."""


class Sweep(Struct, kw_only=True, eq=False):
    """Keeps the store within its ages and its disk limit; the daemon has one.

    The rules come from the settings.

    Attributes:
        earlier: The start of an earlier run; see `Keys`.
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
                await self.clock.sleep(CHECK_S)
                if not await self.has_room():
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
        times = [made_at(row.key) for row in newest]
        times += [] if self.earlier is None else [self.earlier]
        return offset - (now - max(times, default=now))

    async def sweep(self) -> None:
        """Delete old data, with shorter ages while the disk limit is exceeded."""
        for halved in range(policy.HALVINGS + 1):
            await self._pass(
                policy.horizons(self.settings.config.retention, self.clock.now(), halved=halved)
            )
            if await self.has_room():
                return
        self.log(
            "disk_over_bound",
            level="warning",
            used_bytes=await self.store.used_bytes(),
            max_disk_mb=self.settings.config.retention.max_disk_mb,
            advice="the remaining data is younger than the shortened ages; raise retention.max_disk_mb",
        )

    async def has_room(self) -> bool:
        """Whether the store is within the disk limit."""
        used_bytes = await self.store.used_bytes()
        return not policy.is_over(self.settings.config.retention, used_bytes)

    async def _pass(self, at: policy.Horizons) -> None:
        busy = await self._busy()
        deleted = {
            "rows": await self._rows(at, busy),
            "journals": await self._journals(at.ages[Age.MESSAGES], busy),
            "blobs": await self._blobs(at.blobs),
            "audits": await self._audits(at.audit, busy),
            "conversations": await self._conversations(at, busy),
            "copies": await self.store.drop_copies(at.ages[Age.MESSAGES]),
        }
        if any(deleted.values()):
            self.log("swept", **deleted)

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
            batch: list[Row] = []
            async for row in self._oldest(table, at):
                if row.conversation in busy or not self._may_go(table, row, at):
                    continue
                batch.append(row)
                if len(batch) == BATCH:
                    count += await self._delete(batch)
                    batch = []
            count += await self._delete(batch)
        return count

    async def _oldest(self, table: Declaration, at: policy.Horizons) -> AsyncIterator[Row]:
        """Yield the ended rows of a table; if their keys are ulids, only those that are old enough."""
        rule = table.keeps
        if isinstance(rule, Stays):
            return
        is_by_due = isinstance(rule, UntilDue)
        due_before, ended = (at.now, ()) if is_by_due else (None, sorted(rule.ended))
        is_by_key = isinstance(rule, Ages) and rule.at is None
        latest = max(at.ages.values())
        for state in ended or [None]:
            async for row in scan(self.store, table.where(state=state, due_before=due_before)):
                if is_by_key and not policy.is_before(row.key, latest):
                    break
                yield row

    def _may_go(self, table: Declaration, row: Row, at: policy.Horizons) -> bool:
        with self._skipping("row_unreadable", kind=row.kind, key=row.key):
            return policy.may_go(table, row, at)
        return False

    @contextmanager
    def _skipping(self, event: str, **fields: str) -> Generator[None]:
        """Log a damaged record: a person has to look at it, and it must not hold up the others."""
        try:
            yield
        except RecordUnreadable as error:
            self.log(event, level="warning", **fields, reason=str(error))

    async def _delete(self, rows: Collection[Row]) -> int:
        if not rows:
            return 0
        try:
            await self._commit([write for row in rows for write in _delete_unchanged(row)])
        except Conflict:
            if len(rows) == 1:
                return 0
            return sum([await self._delete((row,)) for row in rows])
        return len(rows)

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
        """Read a journal up to its first entry that is not old, often the first one; return its cut."""
        steps: list[tuple[int, entries.Entry]] = []
        after, limit = 0, 1
        while page := await self.store.read(LogKind.JOURNAL, stream, after=after, limit=limit):
            for item in page:
                entry = entries.decode(item.body)
                steps.append((item.sequence, entry))
                is_enough = len(steps) > MAX_STEPS and isinstance(entry, entries.TurnOpened)
                if is_enough or entry.at >= before:
                    return policy.journal_cut(steps, before)
            after, limit = page[-1].sequence, BATCH
        return policy.journal_cut(steps, before)

    async def _blobs(self, before: datetime) -> int:
        count = 0
        while page := await self.store.blobs(put_before=before, limit=BLOBS_AT_ONCE):
            # A blob that is being stored again is new, and stays.
            await self._commit([DropBlob(digest=digest, put_before=before) for digest in page])
            count += len(page)
        return count

    async def _audits(self, before: datetime, busy: Busy) -> int:
        count = 0
        for stream in await self.store.streams(LogKind.AUDIT):
            if stream == STREAM or ConversationId(stream) in busy:
                continue
            with self._skipping("audit_unreadable", stream=stream):
                last = await self._audit_cut(stream, before)
                if last is not None:
                    await self.anchors.cut(stream, last)
                    await self.clock.sleep(PAUSE_S)
                    count += 1
        with self._skipping("audit_unreadable", stream=STREAM):
            count += await self.anchors.cut_own(before)
        return count

    async def _audit_cut(self, stream: str, before: datetime) -> LogEntry | None:
        first = await self.store.read(LogKind.AUDIT, stream, limit=1)
        if not first or audit.read(first[0].body).at >= before:
            return None
        newest = await self.store.last(LogKind.AUDIT, stream)
        is_deleted = await self.store.get(CONVERSATIONS.kind, stream) is None
        if newest is not None and is_deleted and audit.read(newest.body).at < before:
            return newest  # it gets no more entries, so the whole chain may be deleted
        chain = [entry async for entry in read_all(self.store, LogKind.AUDIT, stream)]
        return await asyncio.to_thread(audit.cut_point, chain, before)

    # --- conversations -------------------------------------------------------------------------

    async def _conversations(self, at: policy.Horizons, busy: Busy) -> int:
        """Delete conversations that no chat points to and that are empty."""
        count = 0
        async for row in scan(self.store, CONVERSATIONS.where()):
            if not policy.is_before(row.key, at.ages[Age.MESSAGES]):
                break
            conversation = ConversationId(row.key)
            if conversation in busy or not await self._is_empty(conversation):
                continue
            count += await self._conversation(row, at.audit)
        return count

    async def _conversation(self, row: Row, before: datetime) -> int:
        last = await self.store.last(LogKind.AUDIT, row.key)
        if last is None:
            return await self._delete((row,))
        try:
            if audit.read(last.body).at >= before:
                return 0
            await self.anchors.cut(row.key, last, _delete_unchanged(row))
        except (RecordUnreadable, Conflict):  # reported with the audits; or an erasure came first
            return 0
        await self.clock.sleep(PAUSE_S)
        return 1

    async def _is_empty(self, conversation: ConversationId) -> bool:
        for table in (POINTERS, *_CONTENTS):
            if await self.store.select(table.where(conversation=conversation, limit=1)):
                return False
        return await self.store.last(LogKind.JOURNAL, conversation) is None

    async def _commit(self, writes: list[Write]) -> None:
        await self.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=tuple(writes)))
        await self.clock.sleep(PAUSE_S)


def _delete_unchanged(row: Row) -> tuple[Write, ...]:
    """Return the writes that delete a row unless it changed since."""
    return (unchanged(row), Delete(kind=row.kind, key=row.key))
