"""Ends the turns, queued messages and grants of revoked people.

Operators revoke people, and so does a configuration that no longer admits them; one in which they
are no approvers any more also ends the grants that they gave. The commit or the reload closes
ingress and the gate at once, in memory. A sweep then ends the turns, messages and grants, and runs
again at each start, so that a kill in between leaves nothing running.
"""

import asyncio
from functools import partial

from zeroclaw.conversation.inbox import INBOX, Stop, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.inbound.commands.grants import revoke_writes
from zeroclaw.inbound.commands.invocation import AT_CONSOLE
from zeroclaw.inbound.context import NOTHING, InboundContext, Plan
from zeroclaw.inbound.pairing import CONSOLE
from zeroclaw.store import DurablePoint, Reads, RowKind
from zeroclaw.value import Struct, field, replace


class Revocation(Struct, eq=False):
    """Sweeps after a revocation; one for the whole daemon.

    Attributes:
        group: Owns the sweeps.
        wakeup: Set whenever people or the policy may have changed; see `OpenRequests`.
    """

    context: InboundContext
    group: asyncio.TaskGroup
    wakeup: asyncio.Event
    _sweeping: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_due: bool = False

    def begin(self) -> None:
        """Start a sweep; never waits. A sweep that has not begun yet serves all callers."""
        self.wakeup.set()
        if not self._is_due:
            self._is_due = True
            self.group.create_task(self.sweep(), name="revoked")

    async def sweep(self) -> None:
        """End the grants, queued messages and turns of revoked people."""
        async with self._sweeping:
            self._is_due = False
            await self._sweep()

    async def _sweep(self) -> None:
        async for grant in GRANTS.readable(self.context.store):
            if self._cause_of(grant):
                await self.context.transact(partial(self._grant, grant.id), DurablePoint.ADMITTED)
        # Queued items before running turns: an item that is taken meanwhile is found as a turn.
        async for item in INBOX.readable(self.context.store, state="queued"):
            if self.context.people.excluded_by(item.principal):
                await self.context.transact(partial(self._withdraw, item.id), DurablePoint.ADMITTED)
        async for turn in TURNS.readable(self.context.store, state="open"):
            await self.context.transact(partial(self._stop, turn.turn), DurablePoint.ADMITTED)

    async def _grant(self, key: str, reads: Reads) -> Plan:
        grant = await GRANTS.get(reads, key)
        if grant is None or not (cause := self._cause_of(grant)):
            return NOTHING  # another writer has just ended it
        # Names the cause, no person: the daemon's own chain has the operator who revoked.
        conversation, by = grant.conversation, replace(CONSOLE, id=cause)
        writes = revoke_writes(self.context, grant, AT_CONSOLE, by)
        return Plan(conversation=conversation, writes=writes, wake=(conversation,))

    def _cause_of(self, grant: Grant) -> str:
        """Return the cause that ends a grant, for the audit; empty if it stays."""
        people = self.context.people
        if people.revoked_by(grant.holder) or people.revoked_by(grant.granter):
            return "revocation"
        granter = people.identified(grant.granter_sender)
        # A statement may deny them for an hour only; meanwhile the gate asks.
        is_no_approver = bool(grant.granter_sender) and (
            granter is None or self.context.rule_answer(granter, grant.tool).by == "approvers"
        )
        is_out = people.id_excluded_by(grant.holder) or people.id_excluded_by(grant.granter)
        return "configuration" if is_out or is_no_approver else ""

    async def _withdraw(self, key: str, reads: Reads) -> Plan:
        row = await reads.get(RowKind.INBOX, key)
        if row is None or row.state != "queued":
            return NOTHING
        item = INBOX.of(row)
        conversation = item.conversation
        put = item_put(item, "stopped")
        return Plan(conversation=conversation, writes=(put,), wake=(conversation,))

    async def _stop(self, key: str, reads: Reads) -> Plan:
        turn = await TURNS.get(reads, key)
        by = "" if turn is None else self.context.people.excluded_by(turn.item.principal)
        if turn is None or turn.final or not by:
            return NOTHING  # it may go on, or has ended meanwhile and may be erased
        address, conversation = turn.address, turn.item.conversation
        # Only the name of the operator who revoked the person is stored.
        operator = replace(CONSOLE, channel=address.channel, display=by)
        stop = self.context.control(Stop(cause="revoked"), conversation, address, operator)
        return Plan(conversation=conversation, writes=(stop,), wake=(conversation,))
