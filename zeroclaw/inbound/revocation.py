"""End what a revoked person has under way: their turns, their messages, their grants.

Operators revoke people, and so does a configuration that no longer lets them in; one in which they
are no approvers any more ends what they granted. The commit or the
reload closes ingress and the gate at once, in memory. This code then ends what was under way. It
repeats until nothing is left, and runs once more at each start, so that a kill in between leaves
nothing running.
"""

import asyncio
from contextlib import suppress

from zeroclaw.conversation.inbox import INBOX, Stop, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.errors import Conflict
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.inbound.commands.grants import ending
from zeroclaw.inbound.commands.invocation import AT_CONSOLE
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.pairing import CONSOLE
from zeroclaw.store import Commit, DurablePoint, Write, readable
from zeroclaw.value import Struct, replace


class Revocation(Struct, eq=False):
    """Ends what revoked people have under way.

    Attributes:
        group: Owns the work.
        news: Set whenever people or the policy may have changed; see `OpenRequests`.
    """

    context: InboundContext
    group: asyncio.TaskGroup
    news: asyncio.Event

    def begin(self) -> None:
        """Start to end what revoked people have under way; never waits."""
        self.news.set()
        self.group.create_task(self.sweep(), name="revoked")

    def end_what_is_left_of(self, principal: Principal) -> None:
        """Begin if the sender was revoked between their identification and their commit."""
        if self.context.people.excluded_by(principal):
            self.begin()

    async def sweep(self) -> None:
        """End what revoked people have under way."""
        await self._end_grants()
        # Queued items before running turns: an item that is taken meanwhile is found as a turn.
        while not await self._withdraw():
            pass
        await self._stop()

    async def _end_grants(self) -> None:
        async for one, version in readable(
            self.context.store, GRANTS.where(), lambda row: (GRANTS.of(row), row.version)
        ):
            if cause := self._ends(one):
                # No person: who revoked whom stands in the daemon's own chain.
                by = replace(CONSOLE, id=cause)
                writes = ending(self.context, one, version, AT_CONSOLE, by)
                with suppress(Conflict):  # another writer has just ended it
                    await self._commit(one.conversation, *writes)

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

    async def _withdraw(self) -> bool:
        """End queued items; False if one was taken meanwhile."""
        queued = INBOX.where(state="queued")
        async for row, item in readable(
            self.context.store, queued, lambda row: (row, INBOX.of(row))
        ):
            if self.context.people.excluded_by(item.principal):
                ended = item_put(item, "stopped", expect=row.version)
                try:
                    await self._commit(item.conversation, ended)
                except Conflict:
                    return False
        return True

    async def _stop(self) -> None:
        running = TURNS.where(state="open")
        async for item in readable(self.context.store, running, lambda row: TURNS.of(row).item):
            if by := self.context.people.excluded_by(item.principal):
                address, here = item.address, item.conversation
                operator = _operator(address, by)
                stop = self.context.control(Stop(cause="revoked"), here, address, operator, None)
                await self._commit(here, stop)

    async def _commit(self, here: ConversationId, *writes: Write) -> None:
        """Commit in a conversation, and wake it."""
        point = DurablePoint.ADMITTED
        await self.context.store.commit(Commit(point=point, conversation=here, writes=writes))
        self.context.announce(Plan(conversation=here, wake=(here,)))


def _operator(address: Address, display: str) -> Principal:
    """Return the operator who revoked a person, known only by name."""
    return replace(CONSOLE, channel=address.channel, display=display)
