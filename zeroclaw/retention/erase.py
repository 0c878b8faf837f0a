"""Carries out requests to be forgotten: stops what runs, then removes what was said.

A conversation that only one person reads is erased whole; new messages begin a new one. Of a shared
conversation only the person's messages and turns are erased, while no turn runs in it. Every step
can be repeated, so after a restart a request starts from its beginning.

Conversations off the record are erased too: when their address points elsewhere and every answer is
delivered, and at a start, because their words were in the memory of the previous process.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from zeroclaw.channel import Log
from zeroclaw.context.notes import NOTES
from zeroclaw.conversation.inbox import INBOX, Item, Stop, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery.rows import OPEN_STATES, OUTBOX, ApprovalCard, Settle, notice_row, outbox_row
from zeroclaw.envelope import ConversationId, MessageRef, is_off_the_record, off_the_record
from zeroclaw.errors import Conflict, RecordUnreadable
from zeroclaw.gate import audit
from zeroclaw.gate.approval import APPROVALS, Approval, of_another_process, outcome_of, to_put
from zeroclaw.host.clock import wait_at_most
from zeroclaw.inbound.commands.forget import ERASURE_REQUESTS, OPEN, ErasureRequest
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import CONVERSATIONS, POINTERS, UNRECORDED, Conversation
from zeroclaw.inbound.mailbox import Mailboxes
from zeroclaw.retention.collect import conversations_of, ids_of
from zeroclaw.retention.policy import ERASED, journal_without
from zeroclaw.retention.tables import BUSY, OF_CONVERSATIONS, OF_PERSONS, WITH_BLOBS
from zeroclaw.store import (
    Append,
    Commit,
    Delete,
    DropBlob,
    DurablePoint,
    LogKind,
    Put,
    Query,
    Reads,
    Row,
    Trim,
    Write,
    read_all,
    readable,
    readable_of,
    scan,
    unchanged,
)
from zeroclaw.stores.off_the_record import HELD, left_by
from zeroclaw.table import Declaration, Owner
from zeroclaw.text import catalogue
from zeroclaw.turn import entries
from zeroclaw.turn.compactor import is_of_a_group
from zeroclaw.turn.session import Leases
from zeroclaw.turn.titles import TITLES
from zeroclaw.value import replace

LOOK_S = 1.0
"""Seconds between two checks whether a stopped turn is over."""
TRIES = 60
"""Checks for one request before the others get their turn."""
AGAIN_S = 60.0
"""Seconds before retrying a request that could not be carried out."""
_BATCH = 100
_LAST = (APPROVALS, TURNS, INBOX, CONVERSATIONS)
"""Deleted last, in this order: after a restart, an unfinished erasure finds the rest through these."""
_FIRST = tuple(table for table in OF_CONVERSATIONS if table not in _LAST)
_BLOBS = {table.kind: blobs for table, blobs in WITH_BLOBS}
States = tuple[tuple[Declaration, str], ...]
RUNNING: States = ((TURNS, "open"), (INBOX, "control"), (INBOX, "taken"))


class Erasure:
    """Carries out requests to be forgotten; the daemon has one."""

    def __init__(
        self, context: InboundContext, leases: Leases, mailboxes: Mailboxes, *, log: Log
    ) -> None:
        """Store the dependencies."""
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._leases = leases
        self._mailboxes = mailboxes
        self._log = log
        self._news = asyncio.Event()
        self._has_new_request = False

    def learn(self, writes: tuple[Write, ...]) -> None:
        """Take note of committed writes; never waits."""
        kinds = {one.kind for one in writes if isinstance(one, Put)}
        self._has_new_request |= ERASURE_REQUESTS.kind in kinds
        # A chat that points elsewhere may have left a conversation off the record.
        if not kinds.isdisjoint((ERASURE_REQUESTS.kind, POINTERS.kind)):
            self._news.set()

    async def keep(self) -> None:
        """Carry out all requests, stored ones included, and erase conversations off the record.

        Runs until cancelled. A request that can't be carried out yet makes way for new ones.
        """
        late = frozenset[str]()
        while True:
            self._news.clear()
            self._has_new_request = False
            left = [row async for row in scan(self._store, ERASURE_REQUESTS.where(state=OPEN))]
            left.sort(key=lambda row: row.key in late)
            done = [await self._fulfil(row) for row in left]
            late = frozenset(
                row.key for row, is_done in zip(left, done, strict=True) if not is_done
            )
            unrecorded = scan(self._store, CONVERSATIONS.where(state=UNRECORDED))
            done += [
                await self._erase_unrecorded(ConversationId(row.key)) async for row in unrecorded
            ]
            if not all(done):
                await wait_at_most(AGAIN_S, self._news.wait(), clock=self._clock)
            else:
                await self._news.wait()

    async def _fulfil(self, row: Row) -> bool:
        try:
            request = ERASURE_REQUESTS.of(row)
        except RecordUnreadable as error:
            # A person has to look at it; meanwhile it must not hold up the others.
            self._log("erasure_waits", request=row.key, why=str(error), level="warning")
            return False
        people = self._context.settings.config.people
        names = sorted(await ids_of(self._store, request.person, people))
        damaged: set[ConversationId] = set()
        removed = [await self._erase(replace(request, person=name), damaged) for name in names]
        if None in removed:
            self._log("erasure_waits", person=request.person, level="warning")
            return False
        language = request.by.language
        if damaged:
            text = catalogue.FORGOTTEN_BUT.to(language, what=request.described, count=len(damaged))
        elif any(removed) or request.person == request.by.id:
            text = catalogue.FORGOTTEN.to(language, what=request.described)
        else:
            text = catalogue.FORGOTTEN_NOTHING.to(language, whom=request.person)
        told = self._context.note(text, request.address, language=language)
        gone = ERASURE_REQUESTS.delete(row.key)
        await self._commit(told, gone)
        self._log("person_erased", person=request.person)
        return True

    async def _erase(self, request: ErasureRequest, damaged: set[ConversationId]) -> int | None:
        """Remove what one principal id said.

        Args:
            request: The request, with that id.
            damaged: Gets the conversations in which a record can't be read; the rest of them stays.

        Returns:
            The number of conversations and of the person's own rows; None if some of it can't be
            removed yet.
        """
        # First, since an earlier name is known by the messages alone, which a kill may leave removed.
        done, rows = list[bool](), await self._remove_own(request.person)
        for here, direct in await conversations_of(self._store, (request.person,)):
            erase = self._erase_private if direct else self._erase_shared
            try:
                done.append(await erase(request, here))
            except RecordUnreadable as error:
                # Not waited for: waiting mends no record, and each try removes what is new by then.
                self._log("not_erased", conversation=here, why=str(error), level="error")
                damaged.add(here)
        rows += await self._remove_own(request.person)  # what was noted or moved meanwhile
        return len(done) + rows if all(done) else None

    async def _remove_own(self, person: str) -> int:
        found = [
            await self._remove(table.where(), lambda row, own=own: own(row) == person)
            for table, own in OF_PERSONS
        ]
        return sum(found)

    # --- conversations that only they read -----------------------------------------------------

    async def _erase_private(self, request: ErasureRequest, here: ConversationId) -> bool:
        """Remove everything of a conversation but its audit; return False if a turn does not end."""
        # Without the pointer, a new message begins a new conversation. A message that is being
        # admitted to this one fails its `Expect`, and is planned again.
        if is_off_the_record(here):
            await self._replace_unrecorded(here)
        await self._remove(POINTERS.where(conversation=here))
        await self._unlink(here)
        has_run = await self._stop(request, here, everybodys=True)
        if has_run and not await self._until(partial(self._is_free, here)):
            return False
        if not await self._are_cards_settled(here):
            return False
        await self._delete_conversation(here)
        return True

    async def _unlink(self, here: ConversationId) -> None:
        """Keep `/otr off` from going back to a conversation; `/otr` might add one meanwhile."""
        every = partial(CONVERSATIONS.readable, self._store, state=UNRECORDED)
        while left := [one async for one in every() if one.predecessor == here]:
            for one in left:
                made, place = replace(one, predecessor=None), one.address.key()
                put = CONVERSATIONS.put(
                    one.id, made, conversation=one.id, state=UNRECORDED, place=place
                )
                await self._commit(put)

    async def _delete_conversation(self, here: ConversationId) -> None:
        """Remove what is left of a conversation in which nothing is in progress."""
        for _ in range(2):  # again for what came meanwhile, such as an edit or a `/stop`
            for table in _FIRST:
                await self._remove(table.where(conversation=here))
            newest = await self._store.last(LogKind.JOURNAL, here)
            if newest is not None:
                before = newest.sequence + 1
                await self._commit(Trim(log=LogKind.JOURNAL, stream=here, before=before))
            for table in _LAST:
                await self._remove(table.where(conversation=here))
            await self._until(partial(self._is_free, here))
        self._leases.mark_lost(here)

    # --- conversations off the record ------------------------------------------------------------

    async def clear_unrecorded(self) -> None:
        """Remove what an earlier process left of conversations off the record; once, first of all.

        Their words were in its memory. A person who waits for an answer there is asked to repeat
        the message; operators are told about calls that may have run.
        """
        async for row in scan(self._store, CONVERSATIONS.where(state=UNRECORDED)):
            try:
                await self._clear_one(CONVERSATIONS.of(row))
            except RecordUnreadable as error:
                self._log("not_erased", conversation=row.key, why=str(error), level="error")

    async def _clear_one(self, one: Conversation) -> None:
        here, store = one.id, self._store
        gone = [
            row
            for kind in sorted(HELD)
            async for row in scan(store, Query(kind=kind, conversation=here))
        ]
        newest = await store.last(LogKind.JOURNAL, here)
        if not gone and newest is None:
            return
        writes: list[Write] = [Delete(kind=row.kind, key=row.key) for row in gone]
        if newest is not None:
            writes.append(Trim(log=LogKind.JOURNAL, stream=here, before=newest.sequence + 1))
        chain = [entry.body async for entry in read_all(store, LogKind.AUDIT, here)]
        cut_off = await asyncio.to_thread(audit.cut_off, chain, self._clock.now())
        head = audit.head_after(await store.last(LogKind.AUDIT, here))
        for entry in cut_off:
            body, head = audit.link(head, entry)
            writes.append(Append(log=LogKind.AUDIT, stream=here, body=body))
        waited = any(row.kind is INBOX.kind and row.state in ("queued", "taken") for row in gone)
        is_meant = await store.select(POINTERS.where(conversation=here, limit=1))
        if is_meant and (waited or newest is not None):
            says = catalogue.OFF_THE_RECORD_IS_GONE.to(one.language)
            writes.append(self._context.note(says, one.address, language=one.language))
        writes += self._end_approvals(gone)
        for entry in cut_off:
            if entry.kind is audit.Kind.UNKNOWN:
                where = one.address.channel
                told = catalogue.UNRECORDED_MAY_HAVE_RUN.about(tool=entry.tool, where=where)
                writes.append(notice_row(self._context.ids.ulid(), told))
        await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=tuple(writes)))

    def _end_approvals(self, gone: list[Row]) -> list[Write]:
        """Return writes that end the approval requests of an earlier process and update their cards.

        The ended rows stay until the next start: a card whose send was not recorded becomes known
        only when it is pressed. Cards of finished turns are up to date, unless a send in that chat
        was pending.
        """
        now = self._clock.now()
        turns = {row.key for row in gone if row.kind is TURNS.kind and row.state == "open"}
        due = {row.place for row in gone if row.kind is OUTBOX.kind and row.state in OPEN_STATES}
        writes: list[Write] = []
        cards: dict[MessageRef, list[Approval]] = {}
        for row in gone:
            if row.kind is not APPROVALS.kind or not (left := left_by(row.body)):
                continue
            one = of_another_process(left, now)
            if one.turn in turns:
                writes.append(to_put(one))
            for ref in one.refs:
                if one.turn in turns or ref.address.key() in due:
                    cards.setdefault(ref, []).append(one)
        writes += (
            outbox_row(
                self._context.ids.ulid(),
                Settle(ref=ref, outcome=outcome_of(shown, ref.address.key())),
            )
            for ref, shown in cards.items()
        )
        return writes

    async def _erase_unrecorded(self, here: ConversationId) -> bool:
        """Remove a conversation that `/otr off` or `/new` left; return False while it is busy."""
        if await self._store.select(POINTERS.where(conversation=here, limit=1)):
            return True
        # Wait until everything said there is answered, and every answer is delivered.
        is_over = await self._until(partial(self._is_free, here, BUSY))
        if is_over:
            await self._delete_conversation(here)
        return is_over

    async def _replace_unrecorded(self, here: ConversationId) -> None:
        """Keep a chat off the record when its conversation is erased, with a fresh conversation."""

        async def planned(reads: Reads) -> Plan:
            held = await CONVERSATIONS.get(reads, here)
            if held is None:
                return Plan(conversation=None)
            fresh = off_the_record(self._context.ids.ulid())
            made = replace(held, id=fresh, started_at=self._clock.now())
            place = held.address.key()
            writes = [
                CONVERSATIONS.put(fresh, made, conversation=fresh, state=UNRECORDED, place=place)
            ]
            for row in await reads.select(POINTERS.where(conversation=here)):
                pointer = replace(POINTERS.of(row), conversation=fresh)
                writes.append(POINTERS.put(row.key, pointer, conversation=fresh, place=row.place))
            return Plan(conversation=None, writes=tuple(writes))

        await self._context.transact(planned, DurablePoint.HOUSEKEEPING)

    # --- shared conversations ------------------------------------------------------------------

    async def _erase_shared(self, request: ErasureRequest, here: ConversationId) -> bool:
        """Remove one person's messages and turns; return False while turns follow each other.

        Raises:
            RecordUnreadable: A record of this chat is damaged, and may be theirs; all others went.
        """
        await self._stop(request, here, everybodys=False)
        if not await self._until(partial(self._rewrite_journal, request.person, here)):
            return False
        if not await self._are_cards_settled(here):
            return False
        store, person, damaged = self._store, request.person, list[RecordUnreadable]()
        every = TURNS.readable(store, conversation=here)
        turns = {one.turn async for one in every if person in (one.item.principal.id, one.wrote)}
        cards = APPROVALS.readable(store, conversation=here)
        asked = {one.id async for one in cards if one.turn in turns or one.requester.id == person}

        def is_theirs(table: Declaration, row: Row) -> bool:
            # Titles and group notes mix everybody's words; they are made again from what stays.
            if table is TITLES or (table is NOTES and is_of_a_group(row)):
                return True
            try:
                its = Owner() if table.owner is None else table.owner(row)
            except RecordUnreadable as error:
                damaged.append(error)
                return False
            is_of_turn = its.turn in turns or not asked.isdisjoint(its.approvals)
            return is_of_turn or its.person == person

        for table in (*_FIRST, *_FIRST, *_LAST):  # again for notes that a move renamed meanwhile
            await self._remove(table.where(conversation=here), partial(is_theirs, table))
        # An edit may have been noted before its message went.
        is_done = await self._until(partial(self._rewrite_journal, request.person, here))
        if is_done and damaged:
            raise damaged[0]
        return is_done

    async def _are_cards_settled(self, here: ConversationId) -> bool:
        """Wait, but not for long, until cards show their ends; return False for a new request."""
        return await self._until(partial(self._is_settled, here)) or not self._has_new_request

    async def _is_settled(self, here: ConversationId) -> bool:
        """Whether every card shows how its requests ended; the rows that make it so are erased too.

        A card on its way may already stand, and shows its end only if its row learns where.
        """
        pending = [
            row
            for state in OPEN_STATES
            async for row in scan(self._store, OUTBOX.where(conversation=here, state=state))
        ]
        found = readable_of(pending, OUTBOX.of)
        return not any(isinstance(item, ApprovalCard | Settle) for item in found)

    async def _rewrite_journal(self, person: str, here: ConversationId) -> bool:
        """Replace the journal by one without their turns; return False while it is being written."""
        if not await self._is_free(here):
            return False
        stored = [one async for one in read_all(self._store, LogKind.JOURNAL, here)]
        left = journal_without((entries.decode(one.body) for one in stored), person)
        if left is None:
            return True
        note = entries.Noted(
            text="Somebody's messages were removed from here, as they wished.",
            why=ERASED,
            at=self._clock.now(),
        )
        bodies = [entries.encode(one) for one in (*left, note)]
        last = stored[-1].sequence
        appended = [
            Append(log=LogKind.JOURNAL, stream=here, body=body, after=last + number)
            for number, body in enumerate(bodies)
        ]
        if self._mailboxes.is_open(here):
            return False  # its session needs its fence until it ends
        # From here on, a session that takes the conversation reads the journal again.
        self._leases.mark_lost(here)
        try:
            await self._commit(*appended, Trim(log=LogKind.JOURNAL, stream=here, before=last + 1))
        except Conflict:
            return False
        # A session that took it before this commit has read the old journal, and must end.
        while self._mailboxes.is_open(here):
            await self._clock.sleep(LOOK_S)
        self._leases.mark_lost(here)
        return True

    # --- steps that both use -------------------------------------------------------------------

    async def _stop(
        self, request: ErasureRequest, here: ConversationId, *, everybodys: bool
    ) -> bool:
        """Withdraw queued messages, and stop what runs as `/new` does; return whether anything ran."""
        queued = INBOX.where(conversation=here, state="queued")
        async for row, item in readable(self._store, queued, lambda row: (row, INBOX.of(row))):
            if everybodys or item.principal.id == request.person:
                await self._withdraw(row, item)
        if not await self._has(here, RUNNING):
            return False
        turns = await self._store.select(TURNS.where(conversation=here, state="open"))
        if everybodys or any(
            one.item.principal.id == request.person for one in readable_of(turns, TURNS.of)
        ):
            stop = self._context.control(Stop(cause="new"), here, request.address, request.by, None)
            point = DurablePoint.ADMITTED
            await self._store.commit(Commit(point=point, conversation=here, writes=(stop,)))
            self._mailboxes.wake(here)
        return True

    async def _until(self, is_done: Callable[[], Awaitable[bool]]) -> bool:
        """Poll until it is done; return False after `TRIES` or for a new request."""
        for _ in range(TRIES):
            if await is_done():
                return True
            if self._has_new_request:
                return False
            await self._clock.sleep(LOOK_S)
        return False

    async def _withdraw(self, row: Row, item: Item) -> None:
        try:
            await self._commit(unchanged(row), item_put(item, "superseded"))
        except Conflict:
            return  # its turn has begun, and is stopped below
        if self._mailboxes.is_open(item.conversation):
            self._mailboxes.wake(item.conversation)  # its files may be downloading

    async def _is_free(self, here: ConversationId, busy: States = RUNNING) -> bool:
        return not self._mailboxes.is_open(here) and not await self._has(here, busy)

    async def _has(self, here: ConversationId, any_of: States) -> bool:
        for table, state in any_of:
            if await self._store.select(table.where(conversation=here, state=state, limit=1)):
                return True
        return False

    async def _remove(self, query: Query, is_meant: Callable[[Row], bool] = lambda _: True) -> int:
        """Remove rows, and the blobs that only they refer to; return the number of rows."""
        rows = readable(self._store, query, lambda row: (row, is_meant(row)))
        # Not the rows themselves: a person may have written for years.
        found = {row.key: _digests_of(row) async for row, is_going in rows if is_going}
        # Spares a blob that another writer is storing again, and refers to only later.
        since = self._clock.now() + timedelta(microseconds=1)
        uses = Counter(digest for digests in found.values() for digest in digests)
        for kind in _BLOBS if uses else ():
            async for row in scan(self._store, Query(kind=kind)):
                if kind is not query.kind or row.key not in found:
                    uses.update(uses.keys() & _digests_of(row))
        keys = tuple(found)
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            going = Counter(digest for key in batch for digest in found[key])
            uses -= going  # keeps only the digests that are still in use
            gone = (Delete(kind=query.kind, key=key) for key in batch)
            unused = sorted(going.keys() - uses.keys())
            drops = (DropBlob(digest=digest, put_before=since) for digest in unused)
            await self._commit(*gone, *drops)
        return len(found)

    async def _commit(self, *writes: Write) -> None:
        await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))
        self._context.announce(Plan(conversation=None, writes=writes))


def _digests_of(row: Row) -> tuple[str, ...]:
    """Return the blobs that a row refers to; none if it can't be read, and so leads to none."""
    with suppress(RecordUnreadable):
        return _BLOBS[row.kind](row) if row.kind in _BLOBS else ()
    return ()
