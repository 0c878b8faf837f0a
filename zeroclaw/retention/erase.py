"""Carries out erasure requests (`/forget`): stops running turns, then removes messages and turns.

A conversation that only one person reads is erased whole; new messages begin a new one. Of a shared
conversation only the person's messages and turns are erased, while no turn runs in it. Every step
can be repeated, so after a restart a request starts from its beginning.

Conversations off the record are erased too: when their address points elsewhere and every answer is
delivered, and at a start, because their contents were in the memory of the previous process.
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
from zeroclaw.envelope import ConversationId, MessageRef, Reader, is_off_the_record, off_the_record
from zeroclaw.errors import Conflict, RecordUnreadable
from zeroclaw.gate import audit
from zeroclaw.gate.approval import APPROVALS, Approval, of_another_process, outcome_of, to_put
from zeroclaw.host.clock import wait_at_most
from zeroclaw.inbound.commands.forget import ERASURE_REQUESTS, OPEN, ErasureRequest
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import (
    CONVERSATIONS,
    POINTERS,
    UNRECORDED,
    Conversation,
    conversation_put,
)
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
from zeroclaw.stores.off_the_record import IN_MEMORY, facts_in
from zeroclaw.table import Declaration, Owner
from zeroclaw.text import catalogue
from zeroclaw.turn import entries
from zeroclaw.turn.compactor import is_of_a_group
from zeroclaw.turn.session import Leases
from zeroclaw.turn.titles import TITLES
from zeroclaw.value import replace

POLL_S = 1.0
"""Seconds between two checks whether a stopped turn is over."""
TRIES = 60
"""Checks for one request before the others get their turn."""
AGAIN_S = 60.0
"""Seconds before retrying a request that could not be carried out."""
_BATCH = 100
_LAST = (APPROVALS, TURNS, INBOX, CONVERSATIONS)
"""Deleted last, in this order: after a restart, an unfinished erasure finds the others by them."""
_FIRST = tuple(table for table in OF_CONVERSATIONS if table not in _LAST)
_BLOBS = {table.kind: blobs for table, blobs in WITH_BLOBS}
States = tuple[tuple[Declaration, str], ...]
RUNNING: States = ((TURNS, "open"), (INBOX, "control"), (INBOX, "taken"))


class Erasure:
    """Carries out erasure requests; the daemon has one."""

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
        self._wakeup = asyncio.Event()
        self._has_new_request = False

    def learn(self, put: Put) -> None:
        """Take note of a committed request, or pointer; never waits.

        A chat that points elsewhere may have left a conversation off the record.
        """
        self._has_new_request |= put.kind is ERASURE_REQUESTS.kind
        self._wakeup.set()

    async def keep(self) -> None:
        """Carry out all requests, stored ones included, and erase conversations off the record.

        Runs until cancelled. A request that can't be carried out yet makes way for new ones.
        """
        late = frozenset[str]()
        while True:
            self._wakeup.clear()
            self._has_new_request = False
            rows = [row async for row in scan(self._store, ERASURE_REQUESTS.where(state=OPEN))]
            rows.sort(key=lambda row: row.key in late)
            done = [await self._fulfil(row) for row in rows]
            late = frozenset(row.key for row, is_met in zip(rows, done, strict=True) if not is_met)
            found = scan(self._store, CONVERSATIONS.where(state=UNRECORDED))
            done += [await self._erase_unrecorded(ConversationId(row.key)) async for row in found]
            if not all(done):
                await wait_at_most(AGAIN_S, self._wakeup.wait(), clock=self._clock)
            else:
                await self._wakeup.wait()

    async def _fulfil(self, row: Row) -> bool:
        try:
            request = ERASURE_REQUESTS.of(row)
        except RecordUnreadable as error:
            # A person has to look at it; meanwhile it must not hold up the others.
            self._log("erasure_waits", request=row.key, reason=str(error), level="warning")
            return False
        people = self._context.settings.config.people
        names = sorted(await ids_of(self._store, request.person, people))
        damaged: set[ConversationId] = set()
        removed = [await self._erase(replace(request, person=name), damaged) for name in names]
        if None in removed:
            self._log("erasure_waits", person=request.person, level="warning")
            return False
        if damaged:
            says = catalogue.FORGOTTEN_BUT.about(what=request.described, count=len(damaged))
        elif any(removed) or request.person == request.by.id:
            says = catalogue.FORGOTTEN.about(what=request.described)
        else:
            says = catalogue.FORGOTTEN_NOTHING.about(whom=request.person)
        reader = Reader(address=request.address, language=request.by.language)
        note = self._context.note(says, reader)
        await self._commit(note, ERASURE_REQUESTS.delete(row.key))
        self._log("person_erased", person=request.person)
        return True

    async def _erase(self, request: ErasureRequest, damaged: set[ConversationId]) -> int | None:
        """Remove the messages, turns and rows of one principal id.

        Args:
            request: The request, with that id.
            damaged: Gets the conversations with an unreadable record, which are not erased fully.

        Returns:
            The number of conversations and of the person's rows; None if some can't be removed yet.
        """
        # First: an earlier name is known by the messages alone, and a kill may come after those.
        done, rows = list[bool](), await self._remove_rows_of(request.person)
        for conversation, direct in await conversations_of(self._store, (request.person,)):
            erase = self._erase_private if direct else self._erase_shared
            try:
                done.append(await erase(request, conversation))
            except RecordUnreadable as error:
                # Not retried: waiting mends no record, and each try would remove newer messages.
                self._note_damaged(conversation, error)
                damaged.add(conversation)
        rows += await self._remove_rows_of(request.person)  # rows noted or moved meanwhile
        return len(done) + rows if all(done) else None

    async def _remove_rows_of(self, id_: str) -> int:
        counts = [
            await self._remove(table.where(), lambda row, owner_of=owner_of: owner_of(row) == id_)
            for table, owner_of in OF_PERSONS
        ]
        return sum(counts)

    # --- conversations that only they read -----------------------------------------------------

    async def _erase_private(self, request: ErasureRequest, conversation: ConversationId) -> bool:
        """Remove everything of a conversation but its audit; return False if a turn does not end."""
        # Without the pointer, a new message begins a new conversation. A message that is being
        # admitted to this one fails its `Expect`, and is planned again.
        if is_off_the_record(conversation):
            await self._replace_unrecorded(conversation)
        await self._remove(POINTERS.where(conversation=conversation))
        await self._unlink(conversation)
        has_run = await self._stop(request, conversation, of_all=True)
        if has_run and not await self._until(partial(self._has_stopped, conversation)):
            return False
        if not await self._are_cards_settled(conversation):
            return False
        await self._delete_conversation(conversation)
        return True

    async def _unlink(self, conversation: ConversationId) -> None:
        """Keep `/otr off` from going back to a conversation; `/otr` might add one meanwhile."""
        unrecorded = partial(CONVERSATIONS.readable, self._store, state=UNRECORDED)
        while successors := [it async for it in unrecorded() if it.predecessor == conversation]:
            for successor in successors:
                await self._commit(conversation_put(replace(successor, predecessor=None)))

    async def _delete_conversation(self, conversation: ConversationId) -> None:
        """Remove the rows and the journal of a conversation in which nothing is in progress."""
        for _ in range(2):  # again for rows that came meanwhile, such as an edit or a `/stop`
            for table in _FIRST:
                await self._remove(table.where(conversation=conversation))
            newest = await self._store.last(LogKind.JOURNAL, conversation)
            if newest is not None:
                before = newest.sequence + 1
                await self._commit(Trim(log=LogKind.JOURNAL, stream=conversation, before=before))
            for table in _LAST:
                await self._remove(table.where(conversation=conversation))
            await self._until(partial(self._has_stopped, conversation))
        self._leases.mark_lost(conversation)

    # --- conversations off the record ------------------------------------------------------------

    async def clear_unrecorded(self) -> None:
        """Remove an earlier process's rows of conversations off the record; once, first of all.

        Their contents were in its memory. A person who waits for an answer there is asked to repeat
        the message; operators get a notice about calls that may have run.
        """
        async for row in scan(self._store, CONVERSATIONS.where(state=UNRECORDED)):
            try:
                await self._clear_one(CONVERSATIONS.of(row))
            except RecordUnreadable as error:
                self._note_damaged(row.key, error)

    async def _clear_one(self, conversation: Conversation) -> None:
        id_, store = conversation.id, self._store
        queries = [Query(kind=kind, conversation=id_) for kind in sorted(IN_MEMORY)]
        rows = [row for query in queries async for row in scan(store, query)]
        newest = await store.last(LogKind.JOURNAL, id_)
        if not rows and newest is None:
            return
        writes: list[Write] = [Delete(kind=row.kind, key=row.key) for row in rows]
        if newest is not None:
            writes.append(Trim(log=LogKind.JOURNAL, stream=id_, before=newest.sequence + 1))
        chain = [entry.body async for entry in read_all(store, LogKind.AUDIT, id_)]
        interrupted = await asyncio.to_thread(audit.interrupted, chain, self._clock.now())
        head = audit.head_after(await store.last(LogKind.AUDIT, id_))
        for entry in interrupted:
            body, head = audit.link(head, entry)
            writes.append(Append(log=LogKind.AUDIT, stream=id_, body=body))
        waiting = any(row.kind is INBOX.kind and row.state in ("queued", "taken") for row in rows)
        is_current = await store.select(POINTERS.where(conversation=id_, limit=1))
        if is_current and (waiting or newest is not None):
            reader = Reader(address=conversation.address, language=conversation.language)
            writes.append(self._context.note(catalogue.OFF_THE_RECORD_IS_GONE, reader))
        writes += self._end_approvals(rows)
        for entry in interrupted:
            if entry.kind is audit.Kind.UNKNOWN:
                channel = conversation.address.channel
                notice = catalogue.UNRECORDED_MAY_HAVE_RUN.about(tool=entry.tool, where=channel)
                writes.append(notice_row(self._context.ids.ulid(), notice))
        await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=tuple(writes)))

    def _end_approvals(self, rows: list[Row]) -> list[Write]:
        """Return writes that end the approval requests of an earlier process and update their cards.

        The ended rows stay until the next start: a card whose send was not recorded becomes known
        only when it is pressed. Cards of finished turns are up to date, unless a send in that chat
        was pending.
        """
        now = self._clock.now()
        turns = {row.key for row in rows if row.kind is TURNS.kind and row.state == "open"}
        due = {row.place for row in rows if row.kind is OUTBOX.kind and row.state in OPEN_STATES}
        writes: list[Write] = []
        cards: dict[MessageRef, list[Approval]] = {}
        for row in rows:
            if row.kind is not APPROVALS.kind or not (facts := facts_in(row.body)):
                continue
            approval = of_another_process(facts, now)
            if approval.turn in turns:
                writes.append(to_put(approval))
            for ref in approval.refs:
                if approval.turn in turns or ref.address.key() in due:
                    cards.setdefault(ref, []).append(approval)
        ulid = self._context.ids.ulid
        writes += (
            outbox_row(ulid(), Settle(ref=ref, outcome=outcome_of(approvals, ref.address.key())))
            for ref, approvals in cards.items()
        )
        return writes

    async def _erase_unrecorded(self, conversation: ConversationId) -> bool:
        """Remove a conversation that `/otr off` or `/new` left; return False while it is busy."""
        if await self._store.select(POINTERS.where(conversation=conversation, limit=1)):
            return True
        # Wait until every message in it is answered, and every answer is delivered.
        is_over = await self._until(partial(self._is_free, conversation, BUSY))
        if is_over:
            await self._delete_conversation(conversation)
        return is_over

    async def _replace_unrecorded(self, conversation: ConversationId) -> None:
        """Keep a chat off the record when its conversation is erased, with a new conversation."""

        async def plan(reads: Reads) -> Plan:
            old = await CONVERSATIONS.get(reads, conversation)
            if old is None:
                return Plan(conversation=None)
            id_ = off_the_record(self._context.ids.ulid())
            new = replace(old, id=id_, started_at=self._clock.now())
            writes = [conversation_put(new)]
            for row in await reads.select(POINTERS.where(conversation=conversation)):
                pointer = replace(POINTERS.of(row), conversation=id_)
                writes.append(POINTERS.put(row.key, pointer, conversation=id_, place=row.place))
            return Plan(conversation=None, writes=tuple(writes))

        await self._context.transact(plan, DurablePoint.HOUSEKEEPING)

    # --- shared conversations ------------------------------------------------------------------

    async def _erase_shared(self, request: ErasureRequest, conversation: ConversationId) -> bool:
        """Remove one person's messages and turns; return False while turns follow each other.

        Raises:
            RecordUnreadable: A record of this chat is damaged, and may be theirs; all others were
                removed.
        """
        await self._stop(request, conversation, of_all=False)
        if not await self._until(partial(self._rewrite_journal, request.person, conversation)):
            return False
        if not await self._are_cards_settled(conversation):
            return False
        store, person, damaged = self._store, request.person, list[RecordUnreadable]()
        rows = TURNS.readable(store, conversation=conversation)
        turns = {row.turn async for row in rows if person in (row.item.principal.id, row.wrote)}
        stored = APPROVALS.readable(store, conversation=conversation)
        requests = {it.id async for it in stored if it.turn in turns or it.requester.id == person}

        def is_theirs(table: Declaration, row: Row) -> bool:
            # Titles and group notes mix all people's words; they are made again from the others'.
            if table is TITLES or (table is NOTES and is_of_a_group(row)):
                return True
            try:
                owner = Owner() if table.owner is None else table.owner(row)
            except RecordUnreadable as error:
                damaged.append(error)
                return False
            is_of_turn = owner.turn in turns or not requests.isdisjoint(owner.approvals)
            return is_of_turn or owner.person == person

        for table in (*_FIRST, *_FIRST, *_LAST):  # again for notes that a move renamed meanwhile
            await self._remove(table.where(conversation=conversation), partial(is_theirs, table))
        # An edit may have been noted before its message was removed.
        is_done = await self._until(partial(self._rewrite_journal, request.person, conversation))
        if is_done and damaged:
            raise damaged[0]
        return is_done

    async def _are_cards_settled(self, id_: ConversationId) -> bool:
        """Wait, but not for long, until cards show their ends; return False for a new request."""
        return await self._until(partial(self._is_settled, id_)) or not self._has_new_request

    async def _is_settled(self, id_: ConversationId) -> bool:
        """Whether every card shows the end of its requests; the rows for that are erased too.

        A card that is being sent may already be in the chat, and can show its end only after its
        row has the message's reference.
        """
        queries = [OUTBOX.where(conversation=id_, state=state) for state in OPEN_STATES]
        pending = [row for query in queries async for row in scan(self._store, query)]
        items = readable_of(pending, OUTBOX.of)
        return not any(isinstance(item, ApprovalCard | Settle) for item in items)

    async def _rewrite_journal(self, person: str, conversation: ConversationId) -> bool:
        """Replace the journal by one without their turns; return False while it is being written."""
        if not await self._has_stopped(conversation):
            return False
        stored = [entry async for entry in read_all(self._store, LogKind.JOURNAL, conversation)]
        remaining = journal_without((entries.decode(entry.body) for entry in stored), person)
        if remaining is None:
            return True
        note = entries.Noted(
            text="Somebody's messages were removed from here, as they wished.",
            why=ERASED,
            at=self._clock.now(),
        )
        bodies = [entries.encode(entry) for entry in (*remaining, note)]
        last = stored[-1].sequence
        appended = [
            Append(log=LogKind.JOURNAL, stream=conversation, body=body, after=last + number)
            for number, body in enumerate(bodies)
        ]
        trim = Trim(log=LogKind.JOURNAL, stream=conversation, before=last + 1)
        if self._mailboxes.is_open(conversation):
            return False  # its session needs its fence until it ends
        # From here on, a session that takes the conversation reads the journal again.
        self._leases.mark_lost(conversation)
        try:
            await self._commit(*appended, trim)
        except Conflict:
            return False
        # A session that took it before this commit has read the old journal, and must end.
        while self._mailboxes.is_open(conversation):
            await self._clock.sleep(POLL_S)
        self._leases.mark_lost(conversation)
        return True

    # --- common steps --------------------------------------------------------------------------

    def _note_damaged(self, conversation: str, error: RecordUnreadable) -> None:
        reason = str(error)
        self._log(
            "conversation_not_erased", conversation=conversation, reason=reason, level="error"
        )

    async def _stop(self, request: ErasureRequest, id_: ConversationId, *, of_all: bool) -> bool:
        """Withdraw queued messages, and stop the turn; return whether one ran."""
        queued = INBOX.where(conversation=id_, state="queued")
        async for row, item in readable(self._store, queued, lambda row: (row, INBOX.of(row))):
            if of_all or item.principal.id == request.person:
                await self._withdraw(row, item)
        if not await self._has(id_, RUNNING):
            return False
        rows = await self._store.select(TURNS.where(conversation=id_, state="open"))
        turns = readable_of(rows, TURNS.of)
        if of_all or any(turn.item.principal.id == request.person for turn in turns):
            stop = self._context.control(
                Stop(cause="forget"), id_, request.address, request.by, None
            )
            point = DurablePoint.ADMITTED
            await self._store.commit(Commit(point=point, conversation=id_, writes=(stop,)))
            self._mailboxes.wake(id_)
        return True

    async def _until(self, is_done: Callable[[], Awaitable[bool]]) -> bool:
        """Poll until it is done; return False after `TRIES` or for a new request."""
        for _ in range(TRIES):
            if await is_done():
                return True
            if self._has_new_request:
                return False
            await self._clock.sleep(POLL_S)
        return False

    async def _withdraw(self, row: Row, item: Item) -> None:
        try:
            await self._commit(unchanged(row), item_put(item, "superseded"))
        except Conflict:
            return  # its turn has begun, and is stopped below
        if self._mailboxes.is_open(item.conversation):
            self._mailboxes.wake(item.conversation)  # its files may be downloading

    async def _has_stopped(self, conversation: ConversationId) -> bool:
        """Whether no turn runs; one that fails again and again never ends, but does not run either."""
        return self._mailboxes.is_failing(conversation) or await self._is_free(conversation)

    async def _is_free(self, conversation: ConversationId, busy: States = RUNNING) -> bool:
        return not self._mailboxes.is_open(conversation) and not await self._has(conversation, busy)

    async def _has(self, id_: ConversationId, any_of: States) -> bool:
        for table, state in any_of:
            if await self._store.select(table.where(conversation=id_, state=state, limit=1)):
                return True
        return False

    async def _remove(self, query: Query, is_meant: Callable[[Row], bool] = lambda _: True) -> int:
        """Remove rows, and the blobs that only they refer to; return the number of rows."""
        rows = readable(self._store, query, lambda row: (row, is_meant(row)))
        # Not the rows themselves: a person may have written for years.
        digests_by_key = {row.key: _digests_of(row) async for row, is_its in rows if is_its}
        # Spares a blob that another writer is storing again, and refers to only later.
        since = self._clock.now() + timedelta(microseconds=1)
        uses = Counter(digest for digests in digests_by_key.values() for digest in digests)
        for kind in _BLOBS if uses else ():
            async for row in scan(self._store, Query(kind=kind)):
                if kind is not query.kind or row.key not in digests_by_key:
                    uses.update(uses.keys() & _digests_of(row))
        keys = tuple(digests_by_key)
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            released = Counter(digest for key in batch for digest in digests_by_key[key])
            uses -= released  # keeps only the digests that are still in use
            deletes = (Delete(kind=query.kind, key=key) for key in batch)
            unused = sorted(released.keys() - uses.keys())
            drops = (DropBlob(digest=digest, put_before=since) for digest in unused)
            await self._commit(*deletes, *drops)
        return len(keys)

    async def _commit(self, *writes: Write) -> None:
        await self._store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))
        self._context.announce(Plan(conversation=None, writes=writes))


def _digests_of(row: Row) -> tuple[str, ...]:
    """Return the blobs that a row refers to; none if it is unreadable."""
    with suppress(RecordUnreadable):
        return _BLOBS[row.kind](row) if row.kind in _BLOBS else ()
    return ()
