"""Writes that join the commit that ends an outbox row: who is told, and what follows."""

from zeroclaw.conversation.inbox import INBOX, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery.rows import ApprovalCard, FilePost, Item, Settle, TextPost
from zeroclaw.envelope import MessageRef
from zeroclaw.gate.approval import with_ref
from zeroclaw.inbound.approvals import Approvals, request_put, requests_of
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.operators import Notices
from zeroclaw.store import Reads, Row, Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn.context import Failure
from zeroclaw.value import Struct, replace


class OutboxHooks(Struct, eq=False):
    """The outbox's hooks, see `outbox.Hooks`."""

    context: InboundContext
    requests: Approvals
    notices: Notices

    async def asked(self, reads: Reads, item: ApprovalCard, ref: MessageRef) -> tuple[Write, ...]:
        """Record the message of a card that was sent; if a request on it has ended, settle it."""
        known = [with_ref(one, ref) for one in await requests_of(reads, item.approvals)]
        ended = next((one for one in known if not one.is_open), None)
        settles = () if ended is None else await self.requests.settled(ended, (ref,))
        return (*map(request_put, known), *settles)

    async def pressed(self, item: ApprovalCard) -> MessageRef | None:
        """Return the card's message in its chat, if one of its requests knows it."""
        found = await requests_of(self.context.store, item.approvals)
        here = item.address.key()
        refs = (ref for one in found for ref in one.refs)
        return next((ref for ref in refs if ref.address.key() == here), None)

    async def refused(
        self, reads: Reads, row: Row, item: Item | None, why: str
    ) -> tuple[Write, ...]:
        """Record that an answer failed, and report it to the operators."""
        writes: list[Write] = []
        what: Localized = catalogue.A_MESSAGE
        if isinstance(item, TextPost) and item.turn is not None:
            what = catalogue.AN_ANSWER
            turn = await TURNS.get(self.context.store, item.turn)
            if turn is not None:
                what = catalogue.AN_ANSWER_TO.about(who=turn.item.principal.label)
                if (taken := await INBOX.get(reads, turn.item.id)) is not None:
                    writes.append(item_put(taken, "failed"))
        elif isinstance(item, ApprovalCard):
            what = catalogue.A_CARD
            writes += (
                request_put(replace(one, refused=(*one.refused, row.place)))
                for one in await requests_of(reads, item.approvals)
            )
        elif isinstance(item, FilePost):
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
        where, here = row.place.partition("/")[0], row.conversation
        self.context.log("post_refused", channel=where, conversation=here, why=why, level="warning")
        is_uncertain = item is None or (not isinstance(item, Settle) and item.uncertainty.may_stand)
        says = (
            catalogue.MAY_HAVE_ARRIVED.about(what=what, where=where, why=why)
            if is_uncertain
            else catalogue.PLATFORM_REFUSED.about(what=what, where=where, why=why)
        )
        told = Failure(
            id=row.key, reason=f"{where}: {why}", line=says, place=row.place if item else ""
        )
        return (*writes, *self.notices.line(told))
