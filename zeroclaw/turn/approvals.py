"""Approval requests of a conversation: they end by an answer, at their deadline or with their turn.

The updates of their cards are outbox rows in the commit of the end. So every card with a known ref
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
from zeroclaw.store import DurablePoint, Reads, Rows, Write, readable_of
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

    async def take(self, approval: ApprovalId, item: Item, language: Language) -> Transition:
        """Return the transition of the turn that a request's end causes.

        Args:
            approval: The approval that an answer, or its deadline, has ended.
            item: The control item that reported it.
            language: The language of the turn's person.
        """
        row = await APPROVALS.find(self.services.store, approval)
        if row is None or row.state == "pending":
            writes = (item_put(item, "answered"),)
            return Transition(point=DurablePoint.HOUSEKEEPING, writes=writes)
        now = self.services.clock.now()
        answered = answered_entry(row, item, at=now)
        audited = [answered]
        taken = AnswerTaken(approval=row.id, how="approved", at=now, by=row.by)
        if row.state != "approved":
            denial = refusal_result(
                self.services,
                await ACTIONS.need(self.services.store, row.action),
                wording.refusal_for_model(row),
                outcome="denied",
                by=answered.by,
                for_people=wording.refusal_for_people(row, language),
            )
            audited.append(denial.audited)
            taken = replace(
                taken,
                how="expired" if row.state == "expired" else "denied",
                result=denial.finished.result,
                receipt=denial.finished.receipt,
            )
        return Transition(
            events=(taken,),
            point=DurablePoint.ANSWERED,
            journal=(taken,),
            audited=tuple(audited),
            writes=(item_put(item, "answered"), *await self.card_updates(row)),
        )

    # --- cards ---------------------------------------------------------------------------------

    async def card_updates(self, *changed: Approval) -> tuple[Write, ...]:
        """Return the writes that update every card of these approvals to show their state.

        A card shows all requests that were sent with it. If a crash kept the send of a card from
        being recorded, only the approval that was answered on it may have its ref.
        """
        if not changed:
            return ()  # most turns end without an approval request, and read no row
        cards = dict.fromkeys(approval.card for approval in changed)
        stored = await on_cards(self.services.store, self.conversation, frozenset(cards))
        approvals_by_id = {approval.id: approval for approval in stored}
        approvals_by_id.update({approval.id: approval for approval in changed})
        settles: list[Write] = []
        for card in cards:
            on_card = [approval for approval in approvals_by_id.values() if approval.card == card]
            for ref in dict.fromkeys(ref for approval in on_card for ref in approval.refs):
                outcome = approvals.outcome_of(on_card, ref.address.key())
                settle = Settle(ref=ref, outcome=outcome)
                key = self.services.ids.ulid()
                settles.append(outbox_row(key, settle, self.conversation))
        return tuple(settles)

    async def stop(self, reads: Reads, ids: tuple[ApprovalId, ...], by: str) -> tuple[Write, ...]:
        """Return the writes that end open requests together with their turn."""
        now = self.services.clock.now()
        rows = [await reads.get(APPROVALS.kind, approval) for approval in ids]
        # A yes that the turn has not taken by now runs nothing; a grant for a time stands.
        ended = [
            replace(row, state="stopped", by=by, at=now)
            for row in readable_of(filter(None, rows), APPROVALS.of)
            if row.state == "pending" or row.choice == "once"
        ]
        return (*map(approvals.to_put, ended), *await self.card_updates(*ended))


async def on_cards(
    rows: Rows, conversation: ConversationId, cards: frozenset[str]
) -> tuple[Approval, ...]:
    """Return the approvals of a conversation that are on one of these cards."""
    stored = APPROVALS.readable(rows, conversation=conversation)
    return tuple([approval async for approval in stored if approval.card in cards])


def answered_entry(row: Approval, item: Item, *, at: datetime, detail: str = "") -> audit.Entry:
    """Return the audit entry for the end of a request, as its control item reports it."""
    return audit.Entry(
        kind=audit.Kind.ANSWERED,
        at=at,
        action=row.action,
        tool=row.tool,
        hash=row.action_hash,
        by="deadline" if row.state == "expired" else item.principal.id,
        decision=row.choice or row.state,
        approval=row.id,
        detail=detail,
    )
