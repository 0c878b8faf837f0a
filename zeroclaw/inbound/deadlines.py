"""The deadlines of approval requests: kept for every kind by one keeper.

A request about a stranger ends at its deadline, shows so on its cards, and is forgotten a day after
its end. A request about a call is ended by the turn that waits for it; here its approvers are
reminded, once, that it is about to end. A reminder is committed together with a claim that it was
given, and only while nobody has answered: so a restart does not repeat it, and a kill between the
two leaves neither.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta

from zeroclaw.delivery.outbox import Hooks
from zeroclaw.delivery.rows import Ask, Item, Text, note_row
from zeroclaw.envelope import ApprovalId, MessageRef
from zeroclaw.errors import AlreadyClaimed, Conflict
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.approval import APPROVALS, Approval
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.operators import Operators
from zeroclaw.inbound.pairing import STRANGERS
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import (
    Claim,
    Commit,
    Delete,
    DurablePoint,
    Put,
    Reads,
    Row,
    RowKind,
    Write,
    scan,
    transact,
)
from zeroclaw.text import catalogue
from zeroclaw.turn.message_text import span

LEAST_S = 10.0
"""With less time than this left, nobody would read a reminder before it is too late."""
CLAIM_KEPT = timedelta(days=1)
SWEEP_S = 3600.0
"""Between two looks for what is to be forgotten."""


class Deadlines:
    """Watches the deadlines of all open requests; one for the whole daemon."""

    def __init__(
        self,
        context: InboundContext,
        group: asyncio.TaskGroup,
        *,
        requests: Approvals,
        operators: Operators,
        announce: Callable[[Plan], None],
    ) -> None:
        """Hold what is needed; `group` owns what waits, `announce` hears what was committed."""
        self._context = context
        self._group = group
        self._requests = requests
        self._operators = operators
        self._announce = announce
        self._watched: set[str] = set()

    async def resume(self) -> None:
        """Take up what waits since an earlier process; once, at a start."""
        store = self._context.store
        cards: dict[str, tuple[str, ...]] = {}
        async for row in scan(store, APPROVALS.where(state="pending")):
            card = approvals.decode(row.body).card
            cards[card] = (*cards.get(card, ()), row.key)
        for card, keys in cards.items():
            self._watch_calls(card, keys)

    async def resume_strangers(self) -> None:
        """Take up those about strangers; once, at a start."""
        async for row in scan(self._context.store, STRANGERS.where(state="waiting")):
            self._watch(row.key, lambda key=row.key: self._stranger_ended(key))

    async def keep(self) -> None:
        """Forget requests about strangers that are over, now and then, until cancelled."""
        while True:
            await self._forget()
            await self._context.clock.sleep(SWEEP_S)

    def written(self, writes: Iterable[Write]) -> None:
        """Watch requests about strangers that were just committed."""
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.STRANGER and write.expect == 0:
                self._watch(write.key, lambda key=write.key: self._stranger_ended(key))

    def shown(self, item: Ask) -> None:
        """Watch the calls of a card that stands now; one that is nearly over says so itself."""
        lead = timedelta(seconds=self._lead_s())
        if self._context.clock.now() < item.card.deadline_at - lead:
            self._watch_calls(item.card.key, item.approvals)

    # --- the keeper ----------------------------------------------------------------------------

    def _watch_calls(self, card: str, keys: tuple[str, ...]) -> None:
        self._watch(card, lambda: self._reminded(keys))

    def _watch(self, key: str, look: Callable[[], Awaitable[float | None]]) -> None:
        """Look now, and again when `look` says, until it returns None."""
        if key not in self._watched:
            self._watched.add(key)
            self._group.create_task(self._wait(key, look), name=f"deadline {key}")

    async def _wait(self, key: str, look: Callable[[], Awaitable[float | None]]) -> None:
        try:
            while (wait_s := await look()) is not None:
                await self._context.clock.sleep(wait_s)
        finally:
            self._watched.discard(key)

    # --- strangers -----------------------------------------------------------------------------

    async def _stranger_ended(self, key: str) -> float | None:
        """End a request whose deadline is over; return the seconds until then, None when it ended."""

        async def end(reads: Reads) -> tuple[Commit | None, float | None]:
            row = await reads.get(RowKind.STRANGER, key)
            if row is None or row.state != "waiting":
                return None, None
            one, now = pairing.of_row(row), self._context.clock.now()
            if now < one.deadline_at:
                return None, (one.deadline_at - now).total_seconds()
            ended = approvals.expire(one, now)
            put = pairing.to_put(ended, expect=row.version)
            writes = (put, *self._requests.settled(ended, ended.refs))
            return Commit(point=DurablePoint.ANSWERED, writes=writes), None

        return await self._done(end)

    async def _forget(self) -> None:
        """Remove what is over for a day, and the messages that showed its code."""
        store = self._context.store
        due = scan(store, STRANGERS.where(due_before=self._context.clock.now()))
        async for row in due:
            if row.state == "waiting":
                continue
            messages = pairing.of_row(row).messages
            writes = (
                Delete(kind=RowKind.STRANGER, key=row.key),
                *(Delete(kind=RowKind.OUTBOX, key=key) for key in messages),
            )
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))

    # --- calls ---------------------------------------------------------------------------------

    async def _reminded(self, keys: tuple[str, ...]) -> float | None:
        """Remind of a card if it is time; return the seconds until then, None when all is said."""

        async def remind(reads: Reads) -> tuple[Commit | None, float | None]:
            rows = [await reads.get(RowKind.APPROVAL, key) for key in keys]
            open_ = [approvals.decode(row.body) for row in rows if row and row.state == "pending"]
            lead_s, now = self._lead_s(), self._context.clock.now()
            if not open_ or lead_s < LEAST_S:
                return None, None
            deadline = min(one.deadline_at for one in open_)
            left_s = (deadline - now).total_seconds()
            if left_s > lead_s:
                return None, left_s - lead_s
            notes = self._notes(open_, left_s)
            if left_s <= 0 or not notes:
                return None, None
            told = tuple(f"reminded/{one.id}" for one in open_)
            claim = Claim(keys=told, until=deadline + CLAIM_KEPT)
            return Commit(point=DurablePoint.HOUSEKEEPING, writes=(claim, *notes)), None

        with suppress(AlreadyClaimed):  # by an earlier process
            return await self._done(remind)
        return None

    def _notes(self, open_: list[Approval], left_s: float) -> tuple[Put, ...]:
        """Return what each approver who has the card is told."""
        places = {ref.address.key(): ref.address for one in open_ for ref in one.refs}
        return tuple(
            note_row(
                key=self._context.ids.ulid(),
                address=address,
                text=catalogue.ABOUT_TO_EXPIRE.to(
                    self._operators.language_at(address, open_[0].approvers),
                    calls=", ".join(_named(one, place) for one in open_),
                    left=span(left_s),
                ),
                quiet=True,
            )
            for place, address in places.items()
        )

    def _lead_s(self) -> float:
        """Return how long before a deadline its approvers are reminded, in seconds, by now."""
        settings = self._context.settings.config.approvals
        return settings.timeout_s * settings.remind_share

    async def _done(
        self, plan: Callable[[Reads], Awaitable[tuple[Commit | None, float | None]]]
    ) -> float | None:
        """Commit what a look comes to, and announce it."""
        committed: tuple[Write, ...] = ()

        async def planned(reads: Reads) -> tuple[Commit | None, float | None]:
            nonlocal committed
            commit, wait_s = await plan(reads)
            committed = () if commit is None else commit.writes
            return commit, wait_s

        try:
            wait_s = await transact(self._context.store, planned)
        except Conflict:
            return 0.0  # others were first each time: look again
        if committed:
            self._announce(Plan(conversation=None, writes=committed))
        return wait_s


class CardHooks:
    """The outbox's hooks for cards of every kind; what is about a turn goes on to the turn's hooks.

    A row of no conversation is a card about a stranger: no turn knows of it.
    """

    def __init__(self, turns: Hooks, made: Callable[[], tuple[Approvals, Deadlines]]) -> None:
        """Stand before the turn's hooks; what is `made` is made after the outbox."""
        self._turns = turns
        self._made = made

    async def delivered(self, row: Row, item: Text) -> tuple[Write, ...]:
        """See `Hooks`."""
        return await self._turns.delivered(row, item)

    async def asked(self, row: Row, item: Ask, ref: MessageRef) -> tuple[Write, ...]:
        """See `Hooks`; a card that is shown is watched, one that ended meanwhile is settled."""
        requests, deadlines = self._made()
        if row.conversation is None:
            found = [await requests.shown(ApprovalId(one), ref) for one in item.approvals]
            return tuple(write for writes in found for write in writes)
        writes = await self._turns.asked(row, item, ref)
        deadlines.shown(item)
        return writes

    async def pressed(self, row: Row, item: Ask) -> MessageRef | None:
        """See `Hooks`."""
        if row.conversation is not None:
            return await self._turns.pressed(row, item)
        requests, _ = self._made()
        found = [await requests.stands(ApprovalId(one)) for one in item.approvals]
        here = item.address.key()
        return next((ref for refs in found for ref in refs if ref.address.key() == here), None)

    async def refused(self, row: Row, item: Item, why: str) -> tuple[Write, ...]:
        """See `Hooks`."""
        return await self._turns.refused(row, item, why)


def _named(one: Approval, place: str) -> str:
    number = approvals.number_of(one, place)
    return f"`{one.tool}` (`/approve {number}`, `/deny {number}`)" if number else f"`{one.tool}`"
