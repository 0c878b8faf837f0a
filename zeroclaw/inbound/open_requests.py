"""Open approval requests of every kind: their cards, their reminders, their ends at the deadline.

Turns and strangers only store their requests. One task compares the stored requests with the current
time, people, policy and channels, and acts on them: whenever a request, a notice, a person, the
configuration or a channel has changed, at the next deadline, and each minute while a call waits,
because a policy may depend on the hour. So it misses no change, and a kill only delays it.

A call's request gets a card in each chat of the people who may answer it now. If none of them can be
reached, the chat of the turn gets one note; the request stays open, because an approver may come. Its
approvers get one reminder before its deadline. The reminder is committed together with a claim, and
only while the request is unanswered. So a restart does not repeat it, and a kill can't leave only one
of the two. A pairing request gets a card for every operator, and is deleted a day after its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from zeroclaw.conversation.message_text import span
from zeroclaw.conversation.turn_row import TURNS, TurnRow
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard, outbox_row
from zeroclaw.envelope import Reader
from zeroclaw.errors import AlreadyClaimed, Conflict, RecordUnreadable
from zeroclaw.gate import approval as approvals
from zeroclaw.gate import wording
from zeroclaw.gate.approval import APPROVALS, Approval
from zeroclaw.host.clock import wait_at_most
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals, give_numbers
from zeroclaw.inbound.context import NOTHING, InboundContext, Plan
from zeroclaw.inbound.operators import Notices
from zeroclaw.inbound.pairing import PAIRINGS, PairingRequest
from zeroclaw.store import Claim, DurablePoint, Put, Reads, RowKind, scan
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, field, replace

RECHECK_S = 60.0
"""Seconds until an open call is checked again, if nothing has changed; a policy names hours, so a
minute is soon enough."""
REST_RATIO, LONGEST_REST_S = 3, 1.0
"""A check is followed by a rest of so many times its length, which leaves time to others (P9)."""
MIN_LEAD_S = 10.0
"""With less time than this left, an approver would read a reminder too late."""
CLAIM_AGE = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
Check = tuple[Plan, float | None]
"""The writes of now, and the seconds until the next check; None for none."""


class OpenRequests(Struct, eq=False):
    """Shows, reminds of and ends open requests, and posts notices; one for the whole daemon.

    Attributes:
        wakeup: Set when something has changed that the next check depends on.
    """

    context: InboundContext
    requests: Approvals
    notices: Notices
    wakeup: asyncio.Event
    # Cards that need no more reminders.
    _reminded: set[str] = field(default_factory=set[str])

    async def end_overdue(self) -> None:
        """End the calls' requests whose deadline has come; their turns get an answer."""
        store, past = self.context.store, self.context.clock.now() + _INSTANT
        async for call in APPROVALS.readable(store, state="pending", due_before=past):
            with suppress(Conflict):  # other writers were first each time: the next check ends it
                plan = partial(self.requests.expired, call.id)
                await self.context.transact(plan, DurablePoint.ANSWERED)

    async def keep(self) -> None:
        """Check all requests now, at deadlines and after changes, until cancelled."""
        clock = self.context.clock
        while True:
            self.wakeup.clear()
            began = clock.monotonic()
            await self.notices.post()
            wait_s = await self.check()
            # Each card of a burst sets `wakeup` three times, and each check reads all of them.
            await clock.sleep(min(REST_RATIO * (clock.monotonic() - began), LONGEST_REST_S))
            if wait_s is None:
                await self.wakeup.wait()
            else:
                await wait_at_most(wait_s, self.wakeup.wait(), clock=clock)

    async def check(self) -> float | None:
        """Check each request; return the seconds until the next check, None for no deadline."""
        await self.end_overdue()
        store, cards = self.context.store, dict[str, list[Approval]]()
        waits: list[float | None] = []
        async for call in APPROVALS.readable(store, state="pending"):
            cards.setdefault(call.card, []).append(call)
            left_s = (call.deadline_at - self.context.clock.now()).total_seconds()
            waits.append(min(left_s, RECHECK_S))
        self._reminded &= cards.keys()
        for card, calls in cards.items():
            keys = [call.id for call in sorted(calls, key=lambda call: call.order)]
            wait_s = await self._commit(partial(self._card, keys), DurablePoint.ASKED)
            waits.append(wait_s)
            if wait_s is None:
                self._reminded.add(card)
        async for row in scan(store, PAIRINGS.where()):
            check = partial(self._stranger, row.key)
            waits.append(await self._commit(check, DurablePoint.HOUSEKEEPING))
        return min((wait_s for wait_s in waits if wait_s is not None), default=None)

    async def _commit(
        self, check: Callable[[Reads], Awaitable[Check]], point: DurablePoint
    ) -> float | None:
        wait_s: float | None = None

        async def planned(reads: Reads) -> Plan:
            nonlocal wait_s
            plan, wait_s = await check(reads)
            return plan

        try:
            await self.context.transact(planned, point)
        except Conflict:
            return 0.0  # other writers were first each time: check again
        except (AlreadyClaimed, RecordUnreadable):
            return None  # an earlier process sent the reminder; or a row is damaged
        return wait_s

    # --- calls ---------------------------------------------------------------------------------

    async def _card(self, keys: Iterable[str], reads: Reads) -> Check:
        """Send a batch's card to the chats that have none, else its reminder."""
        stored = [await APPROVALS.get(reads, key) for key in keys]
        calls = tuple(self.context.in_force(call) for call in stored if call and call.is_open)
        # Read past `reads`: a turn's address never changes, but its row does.
        turn = await TURNS.get(self.context.store, calls[0].turn) if calls else None
        if turn is None:
            return NOTHING, None
        first, conversation, chat = calls[0], calls[0].conversation, turn.address
        reached = self.notices.operators.approvers(
            first.requester,
            chat,
            {call.tool for call in calls},
            refused=first.refused,
            requester_may_answer=first.requester_may_answer,
        )
        if not reached and not first.is_unheard:
            unheard = (replace(call, is_unheard=True) for call in calls)
            writes = (*map(approvals.to_put, unheard), self._unreachable(calls, turn))
            return Plan(conversation=conversation, writes=writes), RECHECK_S
        numbered_in = partial(approvals.number_of, first)
        readers = tuple(reader for reader in reached if not numbered_in(reader.address.key()))
        if not readers:
            return self._reminder(calls)
        numbered, counters = await give_numbers(reads, calls, readers)
        places = {reader.address.key(): reader.address for reader in readers}
        ids = tuple(call.id for call in numbered)
        cards = (
            ApprovalCard(address=to, card=approvals.card_of(numbered, place), approvals=ids)
            for place, to in places.items()
        )
        is_noted = bool(first.numbers) or chat.key() in places
        writes = (
            *map(approvals.to_put, numbered),
            *counters,
            *(outbox_row(self.context.ids.ulid(), card, conversation) for card in cards),
            *(() if is_noted else (self._waiting(numbered, turn),)),
        )
        return Plan(conversation=conversation, writes=writes), RECHECK_S

    def _waiting(self, calls: tuple[Approval, ...], turn: TurnRow) -> Put:
        """Return the note to a turn's chat that names the approvers."""
        who = approvals.approver_names(calls[0].approvers, turn.item.principal.language)
        says = catalogue.WAITING_FOR.about(who=who, tools=_tools(calls))
        return self.context.note(says, _reader(turn), calls[0].conversation)

    def _unreachable(self, calls: tuple[Approval, ...], turn: TurnRow) -> Put:
        """Return the note to a turn's chat that no approver can be reached."""
        until = wording.ended(calls[0], turn.item.principal.language)
        says = catalogue.NO_APPROVER_REACHED.about(tools=_tools(calls), until=until)
        return self.context.note(says, _reader(turn), calls[0].conversation)

    def _reminder(self, calls: tuple[Approval, ...]) -> Check:
        """Return the reminder of a card if it is time; a card that was never sent needs none."""
        settings, now = self.context.settings.config.approvals, self.context.clock.now()
        lead_s = settings.timeout_s * settings.remind_share
        if calls[0].card in self._reminded or lead_s < MIN_LEAD_S:
            return NOTHING, None
        deadline = min(call.deadline_at for call in calls)
        left_s = (deadline - now).total_seconds()
        if left_s > lead_s:
            return NOTHING, left_s - lead_s
        notes = self._notes(calls, left_s)
        if left_s <= 0 or not notes:
            return NOTHING, None
        claimed = tuple(f"reminded/{call.id}" for call in calls)
        claim = Claim(keys=claimed, until=deadline + CLAIM_AGE)
        return Plan(conversation=None, writes=(claim, *notes)), None

    def _notes(self, calls: tuple[Approval, ...], left_s: float) -> tuple[Put, ...]:
        """Return a reminder for each chat that has the card."""
        places = {ref.address.key(): ref.address for call in calls for ref in call.refs}
        notes: list[Put] = []
        for place, address in places.items():
            hints = ", ".join(_reply_hint(call, place) for call in calls)
            says = catalogue.ABOUT_TO_EXPIRE.about(calls=hints, left=span(left_s))
            reader = Reader(address=address, language=approvals.language_in(calls[0], place))
            notes.append(self.context.note(says, reader, quiet=True))
        return tuple(notes)

    # --- strangers -----------------------------------------------------------------------------

    async def _stranger(self, key: str, reads: Reads) -> Check:
        """End a pairing request at its deadline; a day later delete it, with its messages."""
        row, now = await reads.get(RowKind.STRANGER, key), self.context.clock.now()
        if row is None:
            return NOTHING, None
        request = PAIRINGS.of(row)
        if row.due_at is not None and now < row.due_at:
            left_s = (row.due_at - now).total_seconds()
            return (await self._introduce(reads, request) if request.is_open else NOTHING), left_s
        if request.is_open:
            expired = approvals.expire(request, now)
            settles = await self.requests.settled(expired, expired.refs)
            return Plan(conversation=None, writes=(pairing.to_put(expired), *settles)), 0.0
        deletes = (PAIRINGS.delete(key), *map(OUTBOX.delete, request.messages))
        return Plan(conversation=None, writes=deletes), None

    async def _introduce(self, reads: Reads, request: PairingRequest) -> Plan:
        """Send the card to operators who have none, without the code: only its hash is stored."""
        readers = tuple(
            reader
            for reader in self.notices.operators.readers()
            if not approvals.number_of(request, reader.address.key())
        )
        if not readers or self.context.people.identified(request.identity):
            return NOTHING  # all have it, or the stranger was admitted without an answer
        writes = await self.requests.put_to(reads, readers, request)
        return Plan(conversation=None, writes=writes)


def _reader(turn: TurnRow) -> Reader:
    return Reader(address=turn.address, language=turn.item.principal.language)


def _tools(calls: tuple[Approval, ...]) -> str:
    return ", ".join(dict.fromkeys(f"`{call.tool}`" for call in calls))


def _reply_hint(call: Approval, place: str) -> str:
    number = approvals.number_of(call, place)
    return f"`{call.tool}` (`/approve {number}`, `/deny {number}`)" if number else f"`{call.tool}`"
