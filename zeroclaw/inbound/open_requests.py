"""Open approval requests of every kind: shown to approvers, reminded of, ended at their deadline.

Turns and strangers only store their requests. One task compares what is stored with the time, the
people, the policy and the channels of the moment, and does what is due: whenever a request, a
notice, a person, the configuration or a channel has changed, at the next deadline, and each minute
while a call waits, because a policy may depend on the hour. So no change can be missed, and a kill
in between only delays what it was about to do.

A call's request is shown to everyone who may answer it now, once in each chat. If nobody who may can
be reached, the chat that asked is told so, once; the request stays, because somebody may come. Its
approvers get one reminder before its deadline. A reminder is committed together with a claim, and only
while the request is unanswered. So a restart does not repeat it, and a kill can't leave only one of the
two. A request about a stranger is shown to every operator, and is deleted a day after its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from zeroclaw.conversation.message_text import span
from zeroclaw.conversation.turn_row import TURNS, TurnRow
from zeroclaw.delivery.rows import OUTBOX, ApprovalCard, outbox_row
from zeroclaw.errors import AlreadyClaimed, Conflict, RecordUnreadable
from zeroclaw.gate import approval as approvals
from zeroclaw.gate import wording
from zeroclaw.gate.approval import APPROVALS, Approval
from zeroclaw.host.clock import wait_at_most
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals, give_numbers
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.operators import Notices
from zeroclaw.inbound.pairing import STRANGERS, Stranger
from zeroclaw.store import Claim, DurablePoint, Put, Reads, RowKind, scan
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, field, replace

LOOK_AGAIN_S = 60.0
"""Seconds until an open call is looked at again, if nothing has changed; a policy names hours, so a
minute is soon enough."""
REST, LONGEST_REST_S = 3, 1.0
"""A look is followed by a rest of so many times its length: the share of everybody else (P9)."""
LEAST_S = 10.0
"""With less time left than this, an approver would read a reminder too late."""
CLAIM_KEPT = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
Look = tuple[Plan, float | None]
"""What to write now, and after how many seconds to look again; None for never."""
NOTHING = Plan(conversation=None)


class OpenRequests(Struct, eq=False):
    """Does what is due for open requests, and for notices to operators; the daemon has one.

    Attributes:
        news: Set when something has changed that decides what is due.
    """

    context: InboundContext
    requests: Approvals
    notices: Notices
    news: asyncio.Event
    # The cards that need no reminder any more.
    _reminded: set[str] = field(default_factory=set[str])

    async def end_overdue(self) -> None:
        """End the calls' requests whose deadline has come; a turn learns it like an answer."""
        store, past = self.context.store, self.context.clock.now() + _INSTANT
        async for one in APPROVALS.readable(store, state="pending", due_before=past):
            with suppress(Conflict):  # others were first each time: the next look ends it
                await self.context.transact(
                    partial(self.requests.expired, one.id), DurablePoint.ANSWERED
                )

    async def keep(self) -> None:
        """Do what is due, now and whenever that has changed."""
        clock = self.context.clock
        while True:
            self.news.clear()
            began = clock.monotonic()
            await self.notices.post()
            wait_s = await self.look()
            # Each card of a burst is news three times, and each look is at all of them.
            await clock.sleep(min(REST * (clock.monotonic() - began), LONGEST_REST_S))
            if wait_s is None:
                await self.news.wait()
            else:
                await wait_at_most(wait_s, self.news.wait(), clock=clock)

    async def look(self) -> float | None:
        """Do what is due for each request; return after how many seconds more may be due."""
        await self.end_overdue()
        store, cards = self.context.store, dict[str, list[Approval]]()
        waits: list[float | None] = []
        async for call in APPROVALS.readable(store, state="pending"):
            cards.setdefault(call.card, []).append(call)
            left_s = (call.deadline_at - self.context.clock.now()).total_seconds()
            waits.append(min(left_s, LOOK_AGAIN_S))
        self._reminded &= cards.keys()
        for card, calls in cards.items():
            keys = [one.id for one in sorted(calls, key=lambda one: one.order)]
            wait_s = await self._done(partial(self._card, keys), DurablePoint.ASKED)
            waits.append(wait_s)
            if wait_s is None:
                self._reminded.add(card)
        async for row in scan(store, STRANGERS.where()):
            looked = partial(self._stranger, row.key)
            waits.append(await self._done(looked, DurablePoint.HOUSEKEEPING))
        return min((one for one in waits if one is not None), default=None)

    async def _done(
        self, look: Callable[[Reads], Awaitable[Look]], point: DurablePoint
    ) -> float | None:
        wait_s: float | None = None

        async def planned(reads: Reads) -> Plan:
            nonlocal wait_s
            plan, wait_s = await look(reads)
            return plan

        try:
            await self.context.transact(planned, point)
        except Conflict:
            return 0.0  # others were first each time: look again
        except (AlreadyClaimed, RecordUnreadable):
            return None  # an earlier process sent the reminder; or a row is damaged
        return wait_s

    # --- calls ---------------------------------------------------------------------------------

    async def _card(self, keys: Iterable[str], reads: Reads) -> Look:
        """Show a batch's open calls in the chats that have no card of them, else remind of it."""
        found = [await APPROVALS.get(reads, key) for key in keys]
        asked = tuple(self.context.in_force(one) for one in found if one and one.is_open)
        # Read past `reads`: where a turn answers never changes, but the rest of its row does.
        turn = await TURNS.get(self.context.store, asked[0].turn) if asked else None
        if turn is None:
            return NOTHING, None
        first, here, where = asked[0], asked[0].conversation, turn.address
        reached = self.notices.operators.approvers(
            first.requester,
            where,
            {one.tool for one in asked},
            refused=first.refused,
            requester_may_answer=first.requester_may_answer,
        )
        if not reached and not first.is_unheard:
            told = (replace(one, is_unheard=True) for one in asked)
            puts = map(approvals.to_put, told)
            return Plan(conversation=here, writes=(*puts, self._nobody(asked, turn))), LOOK_AGAIN_S
        readers = tuple(one for one in reached if not approvals.number_of(first, one.address.key()))
        if not readers:
            return self._reminder(asked)
        numbered, counters = await give_numbers(reads, asked, readers)
        places = {one.address.key(): one.address for one in readers}
        ids = tuple(one.id for one in numbered)
        cards = (
            ApprovalCard(address=to, card=approvals.card_of(numbered, place), approvals=ids)
            for place, to in places.items()
        )
        is_told = bool(first.numbers) or where.key() in places
        writes = (
            *map(approvals.to_put, numbered),
            *counters,
            *(outbox_row(self.context.ids.ulid(), card, here) for card in cards),
            *(() if is_told else (self._waiting(numbered, turn),)),
        )
        return Plan(conversation=here, writes=writes), LOOK_AGAIN_S

    def _waiting(self, asked: tuple[Approval, ...], turn: TurnRow) -> Put:
        """Return the note that tells the chat of a turn whom it waits for."""
        language = turn.item.principal.language
        who = approvals.who(asked[0].approvers, language)
        text = catalogue.WAITING_FOR.to(language, who=who, tools=_tools(asked))
        return self.context.note(text, turn.address, asked[0].conversation, language=language)

    def _nobody(self, asked: tuple[Approval, ...], turn: TurnRow) -> Put:
        """Return the note that tells the chat of a turn that it waits for nobody who can answer."""
        language = turn.item.principal.language
        until = wording.ended(asked[0], language)
        text = catalogue.NOBODY_TO_ASK.to(language, tools=_tools(asked), until=until)
        return self.context.note(text, turn.address, asked[0].conversation, language=language)

    def _reminder(self, asked: tuple[Approval, ...]) -> Look:
        """Remind of a card if it is time; one that no chat has by then needs no reminder."""
        settings, now = self.context.settings.config.approvals, self.context.clock.now()
        lead_s = settings.timeout_s * settings.remind_share
        if asked[0].card in self._reminded or lead_s < LEAST_S:
            return NOTHING, None
        deadline = min(one.deadline_at for one in asked)
        left_s = (deadline - now).total_seconds()
        if left_s > lead_s:
            return NOTHING, left_s - lead_s
        notes = self._notes(asked, left_s)
        if left_s <= 0 or not notes:
            return NOTHING, None
        told = tuple(f"reminded/{one.id}" for one in asked)
        claim = Claim(keys=told, until=deadline + CLAIM_KEPT)
        return Plan(conversation=None, writes=(claim, *notes)), None

    def _notes(self, asked: tuple[Approval, ...], left_s: float) -> tuple[Put, ...]:
        """Return a reminder for each approver who has the card."""
        places = {ref.address.key(): ref.address for one in asked for ref in one.refs}
        return tuple(
            self.context.note(
                catalogue.ABOUT_TO_EXPIRE.to(
                    approvals.language_in(asked[0], place),
                    calls=", ".join(_named(one, place) for one in asked),
                    left=span(left_s),
                ),
                address,
                quiet=True,
            )
            for place, address in places.items()
        )

    # --- strangers -----------------------------------------------------------------------------

    async def _stranger(self, key: str, reads: Reads) -> Look:
        """End a request at its deadline; a day later delete it, and the messages with its code."""
        row, now = await reads.get(RowKind.STRANGER, key), self.context.clock.now()
        if row is None:
            return NOTHING, None
        one = STRANGERS.of(row)
        if row.due_at is not None and now < row.due_at:
            left_s = (row.due_at - now).total_seconds()
            return (await self._introduced(reads, one) if one.is_open else NOTHING), left_s
        if one.is_open:
            ended = approvals.expire(one, now)
            settles = await self.requests.settled(ended, ended.refs)
            return Plan(conversation=None, writes=(pairing.to_put(ended), *settles)), 0.0
        deletes = (STRANGERS.delete(key), *map(OUTBOX.delete, one.messages))
        return Plan(conversation=None, writes=deletes), None

    async def _introduced(self, reads: Reads, one: Stranger) -> Plan:
        """Show a stranger to the operators who have no card; of the code only a hash is known."""
        readers = tuple(
            reader
            for reader in self.notices.operators.readers()
            if not approvals.number_of(one, reader.address.key())
        )
        if not readers or self.context.people.identified(one.identity):
            return NOTHING  # or they have been let in without an answer
        writes = await self.requests.put_to(reads, readers, one)
        return Plan(conversation=None, writes=writes)


def _tools(asked: tuple[Approval, ...]) -> str:
    return ", ".join(dict.fromkeys(f"`{one.tool}`" for one in asked))


def _named(one: Approval, place: str) -> str:
    number = approvals.number_of(one, place)
    return f"`{one.tool}` (`/approve {number}`, `/deny {number}`)" if number else f"`{one.tool}`"
