"""Ingress, where events enter: identify → limit → reassemble → plan → commit → announce.

Each step passes the event on, refuses it, or plans its effects. An adapter may confirm an event to
its platform only when `admit` returns (P1). The effects are planned first, committed with the
event's claim, and announced last; after a conflict they are planned again. A stranger's event takes
the same way with another plan: it is counted and dropped, or gets a code (P4).
"""

import asyncio
from collections import Counter
from contextlib import nullcontext
from datetime import timedelta

from zeroclaw.envelope import (
    Accepted,
    Admission,
    Answered,
    Duplicate,
    Envelope,
    Ignored,
    Moved,
    Position,
    Pressed,
)
from zeroclaw.errors import AlreadyClaimed, ShuttingDown
from zeroclaw.inbound.anchors import add_audit
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.limiter import InboundEvent
from zeroclaw.inbound.planner import Planner
from zeroclaw.inbound.revocation import Revocation
from zeroclaw.inbound.strangers import Strangers
from zeroclaw.store import Claim, Commit, DurablePoint, Put, Reads, RowKind, transact
from zeroclaw.table import Column, Stays, Table, json_codec
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, field

CLAIMS_KEPT = timedelta(days=30)
"""Longer than any platform redelivers a message."""

POSITIONS = Table(
    kind=RowKind.POSITION,
    codec=json_codec(Position),
    columns=frozenset({Column.PLACE}),
    keeps=Stays(until="a newer one of its scope"),
)


class Ingress(Struct, eq=False):
    """Admits events, step by step; one for the whole daemon.

    Attributes:
        dropped: Events of strangers that were ignored since the start, by channel.
        open: Whether ingress still takes events.
    """

    context: InboundContext
    strangers: Strangers
    planner: Planner
    revocation: Revocation
    dropped: Counter[str] = field(default_factory=Counter[str])
    open: bool = True
    # Grants are numbered in one row, so many at once would conflict again and again.
    _granting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def admit(self, envelope: Envelope) -> Admission:
        """Store an event, once.

        Raises:
            ShuttingDown: Ingress takes no more events; the platform delivers it again.
            StoreUnusable: Not all of it was stored; the adapter must not confirm it.
            Conflict: Other writers were first each time.
        """
        if not self.open:
            message = "zeroclaw is shutting down; the event is taken after the next start"
            raise ShuttingDown(message)
        people, version = self.context.people, self.context.people.version
        principal = people.admit(envelope.address.channel, envelope.sender)
        if envelope.overheard and not self.planner.reassembly.expects(envelope):
            self.planner.reassembly.overhear(envelope, principal)
            return Ignored()
        if envelope.continues is not None:
            for earlier in self.planner.reassembly.take_overheard(envelope):
                await self.admit(earlier)
        async with (
            self.strangers.lock_for(principal),
            self.planner.limiter.track(envelope, principal) as event,
        ):
            if event is not None and event.is_duplicate:
                return Duplicate()
            body = envelope.body
            is_grant = isinstance(body, Pressed) and body.choice == "for_a_time"
            async with self._granting if is_grant else nullcontext():
                plan = await self._commit(envelope, event)
            while event is not None and isinstance(plan, Plan) and plan.remaining_command:
                self.context.announce(plan)
                event.remaining_command = plan.remaining_command
                plan = await self._commit(envelope, event)
        if not isinstance(plan, Plan):
            is_refused = principal is None and isinstance(plan, Ignored)
            return self._answer_stranger(envelope) if is_refused else plan
        self.context.announce(plan)
        if people.version != version:
            # A person may have been revoked between plan and commit: end the effects of the event.
            self.revocation.begin()
        if not plan.toast:
            return Accepted()
        return Answered(text=plan.toast, reply_wanted=plan.reply_wanted)

    def _answer_stranger(self, envelope: Envelope) -> Admission:
        """Ignore a stranger's event, except for a press of a button in a group.

        Platforms show an unanswered press as a broken bot, and people who see the card know of the
        bot anyway. A reason comes as a message, which is ignored.
        """
        body = envelope.body
        if not isinstance(body, Pressed) or body.reason or envelope.address.direct:
            return Ignored()
        language = self.context.people.language
        return Answered(text=catalogue.NOT_YOURS_TO_ANSWER.to(language))

    async def _commit(
        self, envelope: Envelope, event: InboundEvent | None
    ) -> Plan | Ignored | Duplicate:
        """Plan an event and commit it, unless it is a duplicate."""
        claim = Claim(keys=envelope.keys, until=self.context.clock.now() + CLAIMS_KEPT)
        position = _position(envelope)
        committed: Plan | None = None

        async def planned(reads: Reads) -> tuple[Commit | None, Plan | None]:
            plan = await self._plan(reads, envelope, event)
            if plan is None:
                return None, None
            # An event of several commits is claimed by the last one: if that is not reached, the
            # platform delivers the event again. What was done is then said again, and the rest done.
            is_last = plan.remaining_command is None
            claimed = (claim,) * (plan.claimed and is_last)
            counted = () if event is None else event.writes
            by = envelope.identity if event is None else event.principal.id
            name, now = envelope.address.channel, self.context.clock.now()
            writes = await add_audit(self.context.store, plan.writes, by=by, channel=name, at=now)
            commit = Commit(
                point=DurablePoint.ADMITTED,
                conversation=plan.conversation,
                writes=(*claimed, *(position if is_last else ()), *writes, *counted),
            )
            return commit, plan

        try:
            committed = await transact(self.context.store, planned)
        except AlreadyClaimed:
            return Duplicate()
        finally:
            self.planner.reassembly.committed(envelope, committed)
        if committed is None:
            if event is None and not isinstance(envelope.body, Moved):
                self.dropped[envelope.address.channel] += 1
            return Ignored()
        if event is not None:
            event.committed = committed
        return committed

    async def _plan(
        self, reads: Reads, envelope: Envelope, event: InboundEvent | None
    ) -> Plan | None:
        """Return the effects of an event in the current state, from the first step that has any."""
        if event is None:
            if isinstance(envelope.body, Moved):
                # The owner of a group may be a stranger, and its people move with it.
                move = self.planner.conversations.move
                return await move(reads, envelope.address, envelope.body.to)
            return await self.strangers.plan(reads, envelope, is_known=False)
        # Each new plan counts from scratch.
        event.reads, event.buckets, event.writes, event.over_limit = reads, {}, (), False
        if self.strangers.claim is not None:
            plan = await self.strangers.plan(reads, envelope, is_known=True)
            if plan is not None:
                return plan
        # Before the limits: the rest of a message was counted with its beginning.
        if (found := await self.planner.reassembly.continued(reads, envelope)) is not None:
            return self.planner.join(event, *found)
        if envelope.overheard:
            return None
        is_answer = event.lane == "answers"
        if not is_answer and (plan := await self.planner.limiter.refusal(event)) is not None:
            return plan
        plan = await self.planner.plan(event)
        if is_answer and (plan is None or plan.idle):
            return await self.planner.limiter.refusal(event) or plan
        return plan


def _position(envelope: Envelope) -> tuple[Put, ...]:
    """Return the write of the position from which to catch up after downtime."""
    if envelope.position is None:
        return ()
    key = f"{envelope.account}/{envelope.position.scope}"
    return (POSITIONS.put(key, envelope.position, place=envelope.account),)
