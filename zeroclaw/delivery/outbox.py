"""Deliver committed rows: finals, notes, files, cards and settled cards.

    pending ──▶ (sending) ──▶ delivered | refused

`announce` hands over a row after the commit that made it; at a start, `resume` announces all open
rows. Rows of one address go out one after another, in the order of their keys; addresses wait for
each other only if they share an account. Each result is committed before the next call, so that
after a crash the next process continues where this one stopped.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol
from weakref import WeakValueDictionary

from zeroclaw.backoff import BackOff
from zeroclaw.clock import Clock
from zeroclaw.delivery import rows
from zeroclaw.delivery.account import Account, Outage
from zeroclaw.delivery.posting import deliver
from zeroclaw.delivery.reconcile import LaterError, Reconciler
from zeroclaw.envelope import Address, ConversationId, MessageRef
from zeroclaw.errors import Conflict, Fenced, RecordUnreadable
from zeroclaw.host.clock import wait_at_most
from zeroclaw.store import (
    Commit,
    DurablePoint,
    Fence,
    Put,
    Reads,
    Row,
    RowKind,
    Store,
    Write,
    readable_of,
    scan,
    unchanged,
)
from zeroclaw.value import Struct, field, replace

BACK_OFF = BackOff(first_s=1.0, longest_s=60.0)
LEAST_SHARE = 0.1
"""Share of a pause that passes even if an outage ends: the failure may have another cause."""
# Rows read per address and overall, to exclude known messages when a lost one is looked up.
NEIGHBOURS = 256
# A hook's writes, or a fence, may be outdated by the time they are committed.
MAX_TRIES = 5


class Hooks(Protocol):
    """Writes that others add to the commit that ends a row; called just before it.

    A hook plans like `Plan` does: it may be called again if a row that it read has changed.
    Outbox rows among the writes are announced after the commit.
    """

    async def card_sent(
        self, reads: Reads, item: rows.ApprovalCard, ref: MessageRef
    ) -> tuple[Write, ...]:
        """Return the writes for a sent card: its approvals record the card's message."""
        ...

    async def card_message(self, item: rows.ApprovalCard) -> MessageRef | None:
        """Return the message of a card whose send is not recorded, if a person pressed it."""
        ...

    async def send_refused(
        self, reads: Reads, row: Row, item: rows.Item | None, reason: str
    ) -> tuple[Write, ...]:
        """Return the writes for a final refusal, such as a note to operators.

        Not called for quiet notes, so a note to the operator may be one. Without an item, the row
        is given up because a stored record is damaged.
        """
        ...


class _Waiting(Struct, kw_only=True):
    """The state of a waiting row that is not stored.

    Attributes:
        remainder: For a final: the remainder of its draft.
        was_found: The row was found at the start, so an earlier process may have sent it.
        is_begun: The row is in state `sending`, but its first send has not begun.
    """

    remainder: rows.DraftRemainder = rows.DraftRemainder()
    was_found: bool = False
    is_begun: bool = False


class Outbox(Struct, eq=False, kw_only=True):
    """The one sender of all rows that must arrive; call `resume` at a start.

    Attributes:
        accounts: By channel name, as far as the channels have started; rows of others wait.
        group: Owns the workers.
        fence_of: Returns the newest fence of a conversation; leases the conversation if it is free.
        hooks: Add writes to the commits.
        jitter: Returns a random number from 0 to 1, which spreads retries.
        drafts: Returns the recorded messages of turns that are not over.
    """

    store: Store
    accounts: Mapping[str, Account]
    clock: Clock
    group: asyncio.TaskGroup
    fence_of: Callable[[ConversationId], Awaitable[Fence]]
    hooks: Hooks
    jitter: Callable[[], float]
    drafts: Callable[[], Awaitable[Iterable[MessageRef]]]
    # The waiting keys of each address, as a heap; their rows are in the store.
    _lanes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _waiting: dict[str, _Waiting] = field(default_factory=dict[str, _Waiting])
    # Set when the row of a key is over; an event lives as long as a task waits for it.
    _ends: WeakValueDictionary[str, asyncio.Event] = field(
        default_factory=WeakValueDictionary[str, asyncio.Event]
    )
    _unsent: dict[ConversationId, list[str]] = field(
        default_factory=dict[ConversationId, list[str]]
    )

    async def resume(self) -> tuple[ConversationId, ...]:
        """Announce every open row of the store, oldest first; call once, at a start.

        Returns:
            The conversations with an unsent answer; see `caught_up`.
        """
        found: dict[str, str] = {}
        for state in rows.OPEN_STATES:
            async for row in scan(self.store, rows.OUTBOX.where(state=state)):
                if row.key in self._waiting:
                    continue
                found[row.key] = row.place
                if row.conversation is not None and any(readable_of((row,), rows.is_final)):
                    self._unsent.setdefault(row.conversation, []).append(row.key)
        # Only after the scan: enqueued rows go out at once, and rows in state `sending` are the
        # oldest.
        for key in sorted(found):
            self._enqueue(key, found[key]).was_found = True
        return tuple(self._unsent)

    async def caught_up(self, conversation: ConversationId) -> None:
        """Wait until the answers of an earlier process in a conversation are delivered or refused."""
        for key in self._unsent.get(conversation, ()):
            await self.ended(key)
        self._unsent.pop(conversation, None)

    def announce(self, put: Put, remainder: rows.DraftRemainder | None = None) -> None:
        """Hand over a committed row; never waits. Announcing twice does no harm.

        Args:
            put: The committed write that made the row.
            remainder: For a final: the result of the draft's `close`.
        """
        waiting = self._enqueue(put.key, put.place, put)
        if remainder is not None:
            waiting.remainder, waiting.is_begun = remainder, put.state == "sending"

    def mark_if_sent_now(self, address: Address) -> str:
        """Return the mark for a final that is about to be committed and can be sent at once.

        Its row may then be committed as `sending`, which saves a second commit. Empty if the final
        has to wait, so that after a kill most rows need no lookup.
        """
        account = self.accounts.get(address.channel)
        if account is None or address.key() in self._lanes:
            return ""
        return account.mark_if_sent_now(address)

    def announce_written(self, writes: Iterable[Write]) -> None:
        """Announce every outbox row among committed writes."""
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.OUTBOX:
                self.announce(write)

    async def ended(self, key: str) -> None:
        """Wait until a row is delivered or refused; a row that does not exist counts as over.

        The row must be announced, now or later.
        """
        end = self._ends.setdefault(key, asyncio.Event())
        # A row in a lane needs no read of the store: the worker reports its end.
        if key in self._waiting or await self._is_open(key):
            await end.wait()

    async def _is_open(self, key: str) -> bool:
        row = await self._row(key)
        return row is not None and row.state in rows.OPEN_STATES

    async def silent(self, conversation: ConversationId) -> None:
        """Wait until all rows committed so far for a conversation are delivered or refused."""
        for state in rows.OPEN_STATES:
            open_rows = scan(self.store, rows.OUTBOX.where(conversation=conversation, state=state))
            async for row in open_rows:
                await self.ended(row.key)

    # --- lanes -----------------------------------------------------------------------------------

    def _enqueue(self, key: str, place: str, put: Put | None = None) -> _Waiting:
        if key in self._waiting:
            return self._waiting[key]
        waiting = self._waiting[key] = _Waiting()
        is_idle = place not in self._lanes
        lane = self._lanes.setdefault(place, [])
        heapq.heappush(lane, key)
        if is_idle:
            # A row that goes out at once is not read; one that waits may have changed.
            row = rows.stored(put, 1) if put is not None else None
            self.group.create_task(self._work(place, lane, row), name=f"outbox {place}")
        return waiting

    async def _work(self, place: str, lane: list[str], first: Row | None) -> None:
        while lane:
            key = heapq.heappop(lane)
            row = first if first is not None and first.key == key else await self._row(key)
            first = None
            is_over = row is None or await self._deliver(row)
            del self._waiting[key]
            if is_over and (end := self._ends.get(key)) is not None:
                end.set()
        del self._lanes[place]

    async def _row(self, key: str) -> Row | None:
        return await self.store.get(RowKind.OUTBOX, key)

    async def _deliver(self, row: Row | None) -> bool:
        """Deliver one row to its end; False if a newer holder does it instead."""
        while row is not None and row.state in rows.OPEN_STATES:
            try:
                row = await self._post_or_give_up(row)
            except Conflict:
                # The row has changed.
                row = await self._row(row.key)
            except Fenced:
                return False
        return True

    async def _post_or_give_up(self, row: Row) -> Row | None:
        """Deliver a row; if it, or a record that it needs, is damaged, end it and tell operators."""
        try:
            return await self._post(row)
        except RecordUnreadable as error:
            reason = str(error)
        current = await self._row(row.key)  # the try may have changed it
        return current and await self._save(current, None, "refused", DurablePoint.REFUSED, reason)

    def _item(self, row: Row) -> rows.Item:
        """Return the item of a row; mark it as uncertain if another try has begun its send."""
        item, waiting = rows.OUTBOX.of(row), self._waiting[row.key]
        if waiting.is_begun:
            # Only for the first try: after a conflict it may be on its way.
            waiting.is_begun = False
        elif row.state == "sending" and not isinstance(item, rows.Settle):
            return replace(item, uncertainty=replace(item.uncertainty, may_stand=True))
        return item

    async def _post(self, row: Row) -> Row:
        """Deliver the item of a row; return the row in its final state."""
        item = self._item(row)
        waiting, is_sending = self._waiting[row.key], row.state == "sending"
        if isinstance(item, rows.TextPost) and waiting.remainder.is_begun:
            merged = rows.with_draft(item, waiting.remainder)
            if merged != item:
                item = merged
                state: rows.State = "sending" if is_sending else "pending"
                row = await self._save(row, item, state, DurablePoint.REF_KNOWN, "")
        # If it was sent again, one of the two messages must be deleted first.
        if isinstance(item, rows.ApprovalCard) and item.uncertainty.second is None and is_sending:
            ref = await self.hooks.card_message(item)
            if ref is not None:
                pressed = replace(item, ref=ref, uncertainty=rows.CERTAIN)
                return await self._save(row, pressed, "delivered", DurablePoint.ASKED, "")
        account = await self._account(rows.address_of(item))
        sends = Reconciler(
            row=row,
            item=item,
            uncertainty=rows.CERTAIN if isinstance(item, rows.Settle) else item.uncertainty,
            account=account,
            save=self._save,
            known_ids=self._known_ids,
            was_found=waiting.remainder.inherited or waiting.was_found,
            ended=waiting.remainder.ended,
        )
        failures = 0
        while True:
            outages = account.outage.ended
            try:
                await deliver(sends, self.store.blob)
            except LaterError as later:
                if not later.paced:
                    failures += 1
                    outage = account.outage if later.soon else None
                    await self._wait(failures, outage=outage, outages=outages)
            else:
                return sends.row

    async def _known_ids(self, to: Address) -> frozenset[str]:
        """Return the ids of the bot's recorded messages in a chat, for a lookup.

        Includes all threads, because threads of a chat share one numbering.
        """
        found_rows = [
            *await self.store.select(
                rows.OUTBOX.where(place=to.key(), newest_first=True, limit=NEIGHBOURS)
            ),
            *await self.store.select(rows.OUTBOX.where(newest_first=True, limit=NEIGHBOURS)),
        ]
        items = readable_of(found_rows, rows.OUTBOX.of)
        refs = (*await self.drafts(), *(ref for item in items for ref in rows.messages(item)))
        chat = (to.channel, to.account, to.chat)
        return frozenset(
            ref.message
            for ref in refs
            if (ref.address.channel, ref.address.account, ref.address.chat) == chat
        )

    async def _account(self, address: Address) -> Account:
        """Return the account, as soon as its channel is running."""
        tries = 0
        while (account := self.accounts.get(address.channel)) is None:
            tries += 1
            await self._wait(tries)
        return account

    async def _wait(self, failures: int, *, outage: Outage | None = None, outages: int = 0) -> None:
        """Wait before the next try.

        Args:
            failures: Count of failed tries in a row.
            outage: When it ends, most of the wait is skipped, because a person may be waiting.
            outages: Count of outages that had ended before the failed try.
        """
        pause_s = BACK_OFF.wait_s(failures, self.jitter())
        if outage is None:
            await self.clock.sleep(pause_s)
            return
        await self.clock.sleep(pause_s * LEAST_SHARE)
        rest_s = pause_s * (1 - LEAST_SHARE)
        await wait_at_most(rest_s, outage.wait_until_over(since=outages), clock=self.clock)

    # --- commits ---------------------------------------------------------------------------------

    async def _save(
        self, row: Row, item: rows.Item | None, state: rows.State, point: DurablePoint, reason: str
    ) -> Row:
        """Commit a change of a row and the writes that belong to it; return the changed row.

        Without an item its body stays as it is.

        Raises:
            Conflict: The row has changed.
            Fenced: A newer holder has the conversation, or the fence kept changing.
        """
        put, tries_left = rows.changed(row, item, state), MAX_TRIES
        while True:
            tries_left -= 1
            reads = Reads(self.store)
            extra = await self._extra(reads, row, item, point, reason)
            fence = None if row.conversation is None else await self.fence_of(row.conversation)
            writes = (unchanged(row), put, *extra)
            commit = Commit(point=point, writes=writes, conversation=row.conversation, fence=fence)
            try:
                await self.store.commit(reads.guarded(commit))
            except (Conflict, Fenced):
                # The cause may be a hook's write, or a fence that was renewed just now.
                if not tries_left:
                    raise
            else:
                self.announce_written(extra)
                return rows.stored(put, row.version + 1)

    async def _extra(
        self, reads: Reads, row: Row, item: rows.Item | None, point: DurablePoint, reason: str
    ) -> tuple[Write, ...]:
        match item, point:
            case rows.ApprovalCard(ref=MessageRef() as ref), DurablePoint.ASKED:
                return await self.hooks.card_sent(reads, item, ref)
            case rows.TextPost(quiet=True), DurablePoint.REFUSED:
                return ()
            case _, DurablePoint.REFUSED:
                return await self.hooks.send_refused(reads, row, item, reason)
            case _:
                return ()
