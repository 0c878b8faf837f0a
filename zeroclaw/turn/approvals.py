"""Approval requests of a conversation: how they end, by an answer, their deadline or their turn.

The updates of their cards are outbox rows, committed together with the end. So every known card
shows how its requests ended.
"""

from datetime import datetime

from zeroclaw.conversation.inbox import Item, item_put
from zeroclaw.delivery.rows import Settle, outbox_row
from zeroclaw.envelope import ApprovalId, ConversationId
from zeroclaw.gate import approval as approvals
from zeroclaw.gate import audit, wording
from zeroclaw.gate.action import ACTIONS
from zeroclaw.gate.approval import APPROVALS, Approval
from zeroclaw.store import DurablePoint, Reads, Rows, Write
from zeroclaw.text.language import Language
from zeroclaw.turn.context import TurnServices
from zeroclaw.turn.entries import AnswerTaken
from zeroclaw.turn.session import Transition
from zeroclaw.turn.tool_calls import refusal_result
from zeroclaw.value import Struct, replace


class ApprovalRequests(Struct, eq=False):
    """The approval requests of one conversation."""

    services: TurnServices
    conversation: ConversationId

    # --- answers -------------------------------------------------------------------------------

    async def taken(self, approval: ApprovalId, item: Item, language: Language) -> Transition:
        """Return what the end of a request means for its turn.

        Args:
            approval: The approval that an answer, or its deadline, has ended.
            item: The control item that reported it.
            language: The language of the turn's person.
        """
        one = await APPROVALS.get(self.services.store, approval)
        if one is None or one.state == "pending":
            done = (item_put(item, "answered"),)
            return Transition(point=DurablePoint.HOUSEKEEPING, writes=done)
        now = self.services.clock.now()
        answered = answered_entry(one, item, at=now)
        audited = [answered]
        entry = AnswerTaken(approval=one.id, how="approved", at=now, by=one.by)
        if one.state != "approved":
            denied = refusal_result(
                self.services,
                await ACTIONS.need(self.services.store, one.action),
                wording.refusal_for_model(one),
                outcome="denied",
                by=answered.by,
                for_people=wording.refusal_for_people(one, language),
            )
            audited.append(denied.audited)
            entry = replace(
                entry,
                how="expired" if one.state == "expired" else "denied",
                result=denied.finished.result,
                receipt=denied.finished.receipt,
            )
        return Transition(
            events=(entry,),
            point=DurablePoint.ANSWERED,
            journal=(entry,),
            audited=tuple(audited),
            writes=(item_put(item, "answered"), *await self.settled(one)),
        )

    # --- cards ---------------------------------------------------------------------------------

    async def settled(self, *changed: Approval) -> tuple[Write, ...]:
        """Return the writes that update every card of these approvals to show their state.

        A card shows all requests that were sent with it. If the sending of a card was not recorded,
        only the approval that was answered on it may know its ref.
        """
        if not changed:
            # Most turns end without an approval request; then nothing is read.
            return ()
        cards = dict.fromkeys(one.card for one in changed)
        shown = await on_cards(self.services.store, self.conversation, frozenset(cards))
        family = {one.id: one for one in shown}
        family.update({one.id: one for one in changed})
        settles: list[Write] = []
        for card in cards:
            asked = [one for one in family.values() if one.card == card]
            for ref in dict.fromkeys(ref for one in asked for ref in one.refs):
                outcome = approvals.outcome_of(asked, ref.address.key())
                settle = Settle(ref=ref, outcome=outcome)
                key = self.services.ids.ulid()
                settles.append(outbox_row(key, settle, self.conversation))
        return tuple(settles)

    async def stopped(
        self, reads: Reads, ids: tuple[ApprovalId, ...], by: str
    ) -> tuple[Write, ...]:
        """Return the writes that end open requests together with their turn."""
        now = self.services.clock.now()
        known = [await APPROVALS.get(reads, approval) for approval in ids]
        # A yes that the turn has not taken by now runs nothing; a grant for a time stands.
        ended = [
            replace(one, state="stopped", by=by, at=now)
            for one in known
            if one is not None and (one.state == "pending" or one.choice == "once")
        ]
        return (*map(approvals.to_put, ended), *await self.settled(*ended))


async def on_cards(
    rows: Rows, conversation: ConversationId, cards: frozenset[str]
) -> tuple[Approval, ...]:
    """Return the approvals of a conversation that are on one of these cards."""
    known = APPROVALS.all(rows, conversation=conversation)
    return tuple([one async for one in known if one.card in cards])


def answered_entry(one: Approval, item: Item, *, at: datetime, detail: str = "") -> audit.Entry:
    """Return the audit entry for the end of a request, as its control item reports it."""
    return audit.Entry(
        kind=audit.Kind.ANSWERED,
        at=at,
        action=one.action,
        tool=one.tool,
        hash=one.action_hash,
        by="deadline" if one.state == "expired" else item.principal.id,
        decision=one.choice or one.state,
        approval=one.id,
        detail=detail,
    )
