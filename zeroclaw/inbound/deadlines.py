"""The deadlines of approval requests of every kind.

A request about a stranger ends at its deadline, its cards show that, and it is deleted a day after
its end. A request about a call is ended by the turn that waits for it; here its approvers get one
reminder before its end. A reminder is committed together with a claim, and only while the request
is unanswered. So a restart does not repeat it, and a kill can't leave only one of the two.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial

from zeroclaw.conversation.message_text import span
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard
from zeroclaw.errors import AlreadyClaimed, Conflict
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.approval import APPROVALS, Approval
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.pairing import STRANGERS
from zeroclaw.store import Claim, DurablePoint, Put, Reads, RowKind, Write, scan
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, field

LEAST_S = 10.0
"""With less time left than this, an approver would read a reminder too late."""
CLAIM_KEPT = timedelta(days=1)
Look = tuple[tuple[Write, ...], float | None]
"""What to write now, and after how many seconds to look again; None for never."""


class Deadlines(Struct, eq=False):
    """Watches the deadlines of all open requests; one for the whole daemon.

    Attributes:
        group: Owns the waiting tasks.
    """

    context: InboundContext
    group: asyncio.TaskGroup
    requests: Approvals
    _watched: set[str] = field(default_factory=set[str])

    async def resume(self) -> None:
        """End requests that expired while no daemon ran, and watch open ones; once, at a start."""
        store, now = self.context.store, self.context.clock.now()
        async for row in scan(store, APPROVALS.where(state="pending", due_before=now)):
            await self.context.transact(partial(self._ended, row.key), DurablePoint.ANSWERED)
        cards: dict[str, tuple[str, ...]] = {}
        async for one in APPROVALS.all(self.context.store, state="pending"):
            cards[one.card] = (*cards.get(one.card, ()), one.id)
        for card, keys in cards.items():
            self._watch(card, partial(self._reminded, keys))

    async def _ended(self, key: str, reads: Reads) -> Plan:
        row = await reads.get(RowKind.APPROVAL, key)
        if row is None or row.state != "pending":
            return Plan(conversation=None)
        return await self.requests.expired(row)

    async def resume_strangers(self) -> None:
        """Watch the requests about strangers; once, at a start."""
        async for one in STRANGERS.all(self.context.store):
            self._watch(one.id, partial(self._stranger, one.id))

    def written(self, writes: Iterable[Write]) -> None:
        """Watch requests about strangers that were just committed."""
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.STRANGER and write.expect == 0:
                self._watch(write.key, partial(self._stranger, write.key))

    def shown(self, item: ApprovalCard) -> None:
        """Watch the calls of a card that was sent; a card close to its deadline needs no reminder."""
        lead = timedelta(seconds=self._lead_s())
        if self.context.clock.now() < item.card.deadline_at - lead:
            self._watch(item.card.key, partial(self._reminded, item.approvals))

    # --- waiting -------------------------------------------------------------------------------

    def _watch(self, key: str, look: Callable[[Reads], Awaitable[Look]]) -> None:
        """Call `look` now, and again whenever it says, until it returns None."""
        if key not in self._watched:
            self._watched.add(key)
            self.group.create_task(self._wait(key, look), name=f"deadline {key}")

    async def _wait(self, key: str, look: Callable[[Reads], Awaitable[Look]]) -> None:
        waits: list[float | None] = [0.0]

        async def planned(reads: Reads) -> Plan:
            writes, waits[0] = await look(reads)
            return Plan(conversation=None, writes=writes)

        try:
            while (wait_s := waits[0]) is not None:
                await self.context.clock.sleep(wait_s)
                try:
                    await self.context.transact(planned, DurablePoint.HOUSEKEEPING)
                except Conflict:
                    waits[0] = 0.0  # others were first each time: look again
                except AlreadyClaimed:
                    return  # an earlier process sent the reminder
        finally:
            self._watched.discard(key)

    # --- strangers -----------------------------------------------------------------------------

    async def _stranger(self, key: str, reads: Reads) -> Look:
        """End a request at its deadline; a day later delete it, and the messages with its code."""
        row, now = await reads.get(RowKind.STRANGER, key), self.context.clock.now()
        if row is None:
            return (), None
        one = STRANGERS.of(row)
        if row.due_at is not None and now < row.due_at:
            return (), (row.due_at - now).total_seconds()
        if one.is_open:
            ended = approvals.expire(one, now)
            put = pairing.to_put(ended, expect=row.version)
            return (put, *await self.requests.settled(ended, ended.refs)), 0.0
        return (STRANGERS.delete(key), *map(OUTBOX.delete, one.messages)), None

    # --- calls ---------------------------------------------------------------------------------

    async def _reminded(self, keys: tuple[str, ...], reads: Reads) -> Look:
        """Remind of a card if it is time."""
        rows = [await reads.get(RowKind.APPROVAL, key) for key in keys]
        open_ = [APPROVALS.of(row) for row in rows if row and row.state == "pending"]
        lead_s, now = self._lead_s(), self.context.clock.now()
        if not open_ or lead_s < LEAST_S:
            return (), None
        deadline = min(one.deadline_at for one in open_)
        left_s = (deadline - now).total_seconds()
        if left_s > lead_s:
            return (), left_s - lead_s
        notes = self._notes(open_, left_s)
        if left_s <= 0 or not notes:
            return (), None
        told = tuple(f"reminded/{one.id}" for one in open_)
        return (Claim(keys=told, until=deadline + CLAIM_KEPT), *notes), None

    def _notes(self, open_: list[Approval], left_s: float) -> tuple[Put, ...]:
        """Return a reminder for each approver who has the card."""
        places = {ref.address.key(): ref.address for one in open_ for ref in one.refs}
        return tuple(
            self.context.note(
                catalogue.ABOUT_TO_EXPIRE.to(
                    approvals.language_in(open_[0], place),
                    calls=", ".join(_named(one, place) for one in open_),
                    left=span(left_s),
                ),
                address,
                quiet=True,
            )
            for place, address in places.items()
        )

    def _lead_s(self) -> float:
        """Return how many seconds before a deadline its approvers are now reminded."""
        settings = self.context.settings.config.approvals
        return settings.timeout_s * settings.remind_share


def _named(one: Approval, place: str) -> str:
    number = approvals.number_of(one, place)
    return f"`{one.tool}` (`/approve {number}`, `/deny {number}`)" if number else f"`{one.tool}`"
