"""Deliver finals, notes, cards and settled cards: everything that was committed to be said.

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
"""Share of a pause that is waited even if an outage ends: the failure may have its own cause."""
# Rows read per address and overall, to exclude known messages when a lost one is looked up.
NEIGHBOURS = 256
# A hook's writes, or a fence, may be outdated by the time they are committed.
MOST_TRIES = 5


class Hooks(Protocol):
    """Writes that others add to the commit that ends a row; called just before it.

    A hook plans like `Plan` does: it may be called again if what it read through `reads` changed.
    Outbox rows among the writes are announced after the commit.
    """

    async def card_sent(
        self, reads: Reads, item: rows.ApprovalCard, ref: MessageRef
    ) -> tuple[Write, ...]:
        """Return what to write when a card was sent: its approvals record the card's message."""
        ...

    async def card_message(self, item: rows.ApprovalCard) -> MessageRef | None:
        """Return the message of a card whose send is not recorded, if a person pressed it."""
        ...

    async def send_refused(
        self, reads: Reads, row: Row, item: rows.Item | None, reason: str
    ) -> tuple[Write, ...]:
        """Return what to write when the platform refused for good, such as a note to operators.

        Not called for quiet notes, so a note to the operator may be one. Without an item, the row
        is given up because a stored record is damaged.
        """
        ...


class _Waiting(Struct, kw_only=True):
    """What this process knows of a waiting row, in addition to what is stored.

    Attributes:
        left: For a final: what its draft left.
        was_found: An earlier process wrote the row, or knew what became of it.
        is_begun: The row is in state `sending`, but nothing of it was sent yet.
    """

    left: rows.DraftRemainder = rows.DraftRemainder()
    was_found: bool = False
    is_begun: bool = False


class Outbox(Struct, eq=False, kw_only=True):
    """The one sender of everything that must arrive; call `resume` at a start.

    Attributes:
        accounts: By channel name, as far as the channels have started; rows of others wait.
        group: Owns the workers.
        fence_of: Returns the newest fence of a conversation, and leases it if no one holds it.
        hooks: What else to commit.
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
    # Set when the row of a key is over; each is gone with the last who waits for it.
    _ends: WeakValueDictionary[str, asyncio.Event] = field(
        default_factory=WeakValueDictionary[str, asyncio.Event]
    )
    _unsaid: dict[ConversationId, list[str]] = field(
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
                    self._unsaid.setdefault(row.conversation, []).append(row.key)
        # Only after the scan: enqueued rows go out at once, and rows in state `sending` are the
        # oldest.
        for key in sorted(found):
            self._enqueue(key, found[key]).was_found = True
        return tuple(self._unsaid)

    async def caught_up(self, conversation: ConversationId) -> None:
        """Wait until the answers that an earlier process left in a conversation are over."""
        for key in self._unsaid.get(conversation, ()):
            await self.ended(key)
        self._unsaid.pop(conversation, None)

    def announce(self, put: Put, left: rows.DraftRemainder | None = None) -> None:
        """Hand over a committed row; never waits. Announcing twice does no harm.

        Args:
            put: The committed write that made the row.
            left: For a final: what the draft's `close` returned.
        """
        waiting = self._enqueue(put.key, put.place, put)
        if left is not None:
            waiting.left, waiting.is_begun = left, put.state == "sending"

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
        over = self._ends.setdefault(key, asyncio.Event())
        # A row in a lane needs no read of the store: the worker reports its end.
        if key in self._waiting or await self._is_open(key):
            await over.wait()

    async def _is_open(self, key: str) -> bool:
        row = await self._row(key)
        return row is not None and row.state in rows.OPEN_STATES

    async def silent(self, conversation: ConversationId) -> None:
        """Wait until everything committed so far for a conversation is delivered or refused."""
        for state in rows.OPEN_STATES:
            unsaid = scan(self.store, rows.OUTBOX.where(conversation=conversation, state=state))
            async for row in unsaid:
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
            # A row that goes out as soon as it was made is not read; one that waits may have
            # changed.
            row = rows.stored(put, 1) if put is not None else None
            self.group.create_task(self._work(place, lane, row), name=f"outbox {place}")
        return waiting

    async def _work(self, place: str, lane: list[str], made: Row | None) -> None:
        while lane:
            key = heapq.heappop(lane)
            row = made if made is not None and made.key == key else await self._row(key)
            made = None
            is_over = row is None or await self._deliver(row)
            del self._waiting[key]
            if is_over and (over := self._ends.get(key)) is not None:
                over.set()
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
            why = str(error)
        now = await self._row(row.key)  # the try may have changed it
        return now and await self._save(now, None, "refused", DurablePoint.REFUSED, why)

    def _item(self, row: Row) -> rows.Item:
        """Return the item of a row; if its send was begun by another try, mark it as uncertain."""
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
        if isinstance(item, rows.TextPost) and waiting.left.is_begun:
            more = rows.with_draft(item, waiting.left)
            if more != item:
                item = more
                state: rows.State = "sending" if is_sending else "pending"
                row = await self._save(row, item, state, DurablePoint.REF_KNOWN, "")
        # If it was sent again, one of the two messages must be deleted first.
        if isinstance(item, rows.ApprovalCard) and item.uncertainty.second is None and is_sending:
            stands = await self.hooks.card_message(item)
            if stands is not None:
                shown = replace(item, ref=stands, uncertainty=rows.CERTAIN)
                return await self._save(row, shown, "delivered", DurablePoint.ASKED, "")
        account = await self._account(rows.address_of(item))
        sends = Reconciler(
            row=row,
            item=item,
            uncertainty=rows.CERTAIN if isinstance(item, rows.Settle) else item.uncertainty,
            account=account,
            save=self._save,
            others=self._others,
            was_found=waiting.left.inherited or waiting.was_found,
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

    async def _others(self, to: Address) -> frozenset[str]:
        """Return the ids of a chat's messages that are known to be ours, for a lookup.

        Includes all threads, because threads of a chat share one numbering.
        """
        found = [
            *await self.store.select(
                rows.OUTBOX.where(place=to.key(), newest_first=True, limit=NEIGHBOURS)
            ),
            *await self.store.select(rows.OUTBOX.where(newest_first=True, limit=NEIGHBOURS)),
        ]
        said = readable_of(found, rows.OUTBOX.of)
        refs = (*await self.drafts(), *(ref for item in said for ref in rows.messages(item)))
        here = (to.channel, to.account, to.chat)
        return frozenset(
            ref.message
            for ref in refs
            if (ref.address.channel, ref.address.account, ref.address.chat) == here
        )

    async def _account(self, address: Address) -> Account:
        """Return the account, as soon as its channel is there."""
        tries = 0
        while (account := self.accounts.get(address.channel)) is None:
            tries += 1
            await self._wait(tries)
        return account

    async def _wait(self, failures: int, *, outage: Outage | None = None, outages: int = 0) -> None:
        """Wait before the next try.

        Args:
            failures: How many tries failed in a row.
            outage: When it ends, most of the wait is skipped, because a person may be waiting.
            outages: How many outages had ended before the failed try.
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
        self, row: Row, item: rows.Item | None, state: rows.State, point: DurablePoint, why: str
    ) -> Row:
        """Commit a change of a row and what belongs to it; return the changed row.

        Without an item its body stays as it is.

        Raises:
            Conflict: The row has changed.
            Fenced: A newer holder has the conversation, or others keep taking it.
        """
        put, tries_left = rows.changed(row, item, state), MOST_TRIES
        while True:
            tries_left -= 1
            reads = Reads(self.store)
            more = await self._more(reads, row, item, point, why)
            fence = None if row.conversation is None else await self.fence_of(row.conversation)
            writes = (unchanged(row), put, *more)
            commit = Commit(point=point, writes=writes, conversation=row.conversation, fence=fence)
            try:
                await self.store.commit(reads.guarded(commit))
            except (Conflict, Fenced):
                # The cause may be a hook's write, or a fence that was renewed just now.
                if not tries_left:
                    raise
            else:
                self.announce_written(more)
                return rows.stored(put, row.version + 1)

    async def _more(
        self, reads: Reads, row: Row, item: rows.Item | None, point: DurablePoint, why: str
    ) -> tuple[Write, ...]:
        match item, point:
            case rows.ApprovalCard(ref=MessageRef() as ref), DurablePoint.ASKED:
                return await self.hooks.card_sent(reads, item, ref)
            case rows.TextPost(quiet=True), DurablePoint.REFUSED:
                return ()
            case _, DurablePoint.REFUSED:
                return await self.hooks.send_refused(reads, row, item, why)
            case _:
                return ()
