"""End what a revoked person has under way: their turns, their messages, their grants.

Operators revoke people, and so does a configuration that no longer lets them in; one in which they
are no approvers any more ends what they granted. The commit or the
reload closes ingress and the gate at once, in memory. This code then ends what was under way. It
repeats until nothing is left, and runs once more at each start, so that a kill in between leaves
nothing running.
"""

import asyncio
from functools import partial

from zeroclaw.conversation.inbox import INBOX, Stop, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.inbound.commands.grants import ending
from zeroclaw.inbound.commands.invocation import AT_CONSOLE
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.pairing import CONSOLE
from zeroclaw.store import DurablePoint, Reads, RowKind
from zeroclaw.value import Struct, field, replace

NOTHING = Plan(conversation=None)


class Revocation(Struct, eq=False):
    """Ends what revoked people have under way.

    Attributes:
        group: Owns the work.
        news: Set whenever people or the policy may have changed; see `OpenRequests`.
    """

    context: InboundContext
    group: asyncio.TaskGroup
    news: asyncio.Event
    _sweeping: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_due: bool = False

    def begin(self) -> None:
        """Start to end what revoked people have under way; never waits.

        A sweep that has not begun yet serves all who ask for one.
        """
        self.news.set()
        if not self._is_due:
            self._is_due = True
            self.group.create_task(self.sweep(), name="revoked")

    async def sweep(self) -> None:
        """End what revoked people have under way."""
        async with self._sweeping:
            self._is_due = False
            await self._sweep()

    async def _sweep(self) -> None:
        async for grant in GRANTS.readable(self.context.store):
            if self._ends(grant):
                await self.context.transact(partial(self._grant, grant.id), DurablePoint.ADMITTED)
        # Queued items before running turns: an item that is taken meanwhile is found as a turn.
        async for item in INBOX.readable(self.context.store, state="queued"):
            if self.context.people.excluded_by(item.principal):
                await self.context.transact(partial(self._withdraw, item.id), DurablePoint.ADMITTED)
        async for turn in TURNS.readable(self.context.store, state="open"):
            await self.context.transact(partial(self._stop, turn.turn), DurablePoint.ADMITTED)

    async def _grant(self, key: str, reads: Reads) -> Plan:
        one = await GRANTS.get(reads, key)
        if one is None or not (cause := self._ends(one)):
            return NOTHING  # another writer has just ended it
        # No person: who revoked whom stands in the daemon's own chain.
        here, by = one.conversation, replace(CONSOLE, id=cause)
        writes = ending(self.context, one, AT_CONSOLE, by)
        return Plan(conversation=here, writes=writes, wake=(here,))

    def _ends(self, one: Grant) -> str:
        """Return what ends a grant, for the audit; empty if it goes on."""
        people = self.context.people
        if people.revoked_by(one.holder) or people.revoked_by(one.granter):
            return "revocation"
        granter = people.identified(one.granter_sender)
        # What a statement takes from them may be theirs again in an hour; the gate asks meanwhile.
        is_no_approver = bool(one.granter_sender) and (
            granter is None or self.context.rule_answer(granter, one.tool).by == "approvers"
        )
        is_out = people.id_excluded_by(one.holder) or people.id_excluded_by(one.granter)
        return "configuration" if is_out or is_no_approver else ""

    async def _withdraw(self, key: str, reads: Reads) -> Plan:
        row = await reads.get(RowKind.INBOX, key)
        if row is None or row.state != "queued":
            return NOTHING
        item = INBOX.of(row)
        here = item.conversation
        return Plan(conversation=here, writes=(item_put(item, "stopped"),), wake=(here,))

    async def _stop(self, key: str, reads: Reads) -> Plan:
        turn = await TURNS.get(reads, key)
        by = "" if turn is None else self.context.people.excluded_by(turn.item.principal)
        if turn is None or turn.final or not by:
            return NOTHING  # it goes on, or has ended meanwhile and may be erased
        address, here = turn.address, turn.item.conversation
        # The operator who revoked the person is known only by name.
        operator = replace(CONSOLE, channel=address.channel, display=by)
        stop = self.context.control(Stop(cause="revoked"), here, address, operator, None)
        return Plan(conversation=here, writes=(stop,), wake=(here,))
