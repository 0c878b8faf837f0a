"""Writes that join the commit that ends an outbox row: who is told, and what follows."""

from zeroclaw.conversation.inbox import INBOX, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery.rows import ApprovalCard, File, Item, Settle, Text, address_of
from zeroclaw.envelope import MessageRef
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.approval import Approval
from zeroclaw.inbound.approvals import Approvals, requests_of
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.deadlines import Deadlines
from zeroclaw.inbound.operators import Notices
from zeroclaw.store import Row, Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn.approvals import card_rows
from zeroclaw.turn.context import Failure
from zeroclaw.value import Struct


class OutboxHooks(Struct, eq=False):
    """The outbox's hooks, see `outbox.Hooks`."""

    context: InboundContext
    requests: Approvals
    deadlines: Deadlines
    notices: Notices

    async def asked(self, row: Row, item: ApprovalCard, ref: MessageRef) -> tuple[Write, ...]:
        """Watch the deadline of a card that was sent; if its request has ended, settle it."""
        if row.conversation is not None:
            self.deadlines.shown(item)
        return await self.requests.shown(item.approvals, ref)

    async def pressed(self, row: Row, item: ApprovalCard) -> MessageRef | None:  # noqa: ARG002
        """Return the card's message, if a press has revealed it."""
        return await self.requests.stands(item.approvals, item.address)

    async def refused(self, row: Row, item: Item, why: str) -> tuple[Write, ...]:
        """Record that an answer failed, and report it to the operators."""
        writes: list[Write] = []
        what: Localized = catalogue.A_MESSAGE
        is_asked_again = False
        if isinstance(item, Text) and item.turn is not None:
            what = catalogue.AN_ANSWER
            turn = await TURNS.get(self.context.store, item.turn)
            if turn is not None:
                what = catalogue.AN_ANSWER_TO.about(who=turn.item.principal.label)
                taken, version = await INBOX.read(self.context.store, turn.item.id)
                if taken is not None:
                    writes.append(item_put(taken, "failed", expect=version))
        elif isinstance(item, ApprovalCard):
            what = catalogue.A_CARD
            again = await self._asked_again(row, item)
            is_asked_again = bool(again)
            writes += again
        elif isinstance(item, File):
            what = catalogue.A_FILE
            if not item.uncertainty.may_stand:
                # The answer may refer to the file.
                note = catalogue.FILE_NOT_SENT.to(item.language, name=item.name, why=why)
                writes.append(
                    self.context.note(
                        note,
                        item.address,
                        row.conversation,
                        language=item.language,
                        quiet=True,
                        reply_to=item.reply_to,
                    )
                )
        where = address_of(item).channel
        says = catalogue.PLATFORM_REFUSED.about(what=what, where=where, why=why)
        if not isinstance(item, Settle) and item.uncertainty.may_stand:
            says = catalogue.MAY_HAVE_ARRIVED.about(what=what, where=where, why=why)
        if is_asked_again:
            says = catalogue.ASKED_IN_PRIVATE.about(where=where, why=why)
        told = Failure(id=row.key, why=f"{where}: {why}", says=says, place=row.place)
        return (*writes, *self.notices.line(told))

    async def _asked_again(self, row: Row, item: ApprovalCard) -> tuple[Write, ...]:
        """Send a card to each approver after their shared chat refused it.

        Nothing if its questions have ended, or if no other approver can be asked.
        """
        here = row.conversation
        if here is None or item.address.direct:
            return ()
        found = await requests_of(self.context.store, item.approvals)
        card = tuple(one for one, _ in found if isinstance(one, Approval))
        if all(one.state != "pending" for one in card):
            return ()
        tools = {one.tool for one in card}
        readers = tuple(
            one
            for one in self.notices.operators.each_approver(card[0].requester, item.address, tools)
            if all(not approvals.number_of(shown, one.address.key()) for shown in card)
        )
        numbered, counters = await self.requests.numbers.give(card, readers, here)
        pairs = zip(numbered, found, strict=True)
        puts = (approvals.to_put(one, expect=version) for one, (_, version) in pairs)
        cards = card_rows(numbered, readers, here, self.context.ids)
        return (*puts, *counters, *cards) if cards else ()
