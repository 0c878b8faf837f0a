"""Writes that join the commit that ends an outbox row."""

from zeroclaw.conversation.inbox import INBOX, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery.rows import ApprovalCard, FilePost, Item, Settle, TextPost
from zeroclaw.envelope import MessageRef, Reader
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

    async def card_sent(
        self, reads: Reads, item: ApprovalCard, ref: MessageRef
    ) -> tuple[Write, ...]:
        """Record the message of a sent card; if a request on it has ended, show the outcome."""
        requests = [with_ref(request, ref) for request in await requests_of(reads, item.approvals)]
        ended = next((request for request in requests if not request.is_open), None)
        settles = () if ended is None else await self.requests.settled(ended, (ref,))
        return (*map(request_put, requests), *settles)

    async def card_message(self, item: ApprovalCard) -> MessageRef | None:
        """Return the card's message in its chat, if one of its requests has recorded it."""
        requests = await requests_of(self.context.store, item.approvals)
        place = item.address.key()
        refs = (ref for request in requests for ref in request.refs)
        return next((ref for ref in refs if ref.address.key() == place), None)

    async def send_refused(
        self, reads: Reads, row: Row, item: Item | None, reason: str
    ) -> tuple[Write, ...]:
        """Record the failed message, card or file, and report it to the operators."""
        writes: list[Write] = []
        kind: Localized = catalogue.A_MESSAGE
        if isinstance(item, TextPost) and item.turn is not None:
            kind = catalogue.AN_ANSWER
            turn = await TURNS.get(self.context.store, item.turn)
            if turn is not None:
                kind = catalogue.AN_ANSWER_TO.about(who=turn.item.principal.label)
                if (queued := await INBOX.get(reads, turn.item.id)) is not None:
                    writes.append(item_put(queued, "failed"))
        elif isinstance(item, ApprovalCard):
            kind = catalogue.A_CARD
            writes += (
                request_put(replace(request, refused=(*request.refused, row.place)))
                for request in await requests_of(reads, item.approvals)
            )
        elif isinstance(item, FilePost):
            kind = catalogue.A_FILE
            if not item.uncertainty.may_stand:
                # The answer may refer to the file.
                says = catalogue.FILE_NOT_SENT.about(name=item.name, why=reason)
                reader = Reader(address=item.address, language=item.language)
                writes.append(
                    self.context.note(
                        says, reader, row.conversation, quiet=True, reply_to=item.reply_to
                    )
                )
        channel = row.place.partition("/")[0]
        fields = {"channel": channel, "conversation": row.conversation}
        self.context.log("post_refused", **fields, reason=reason, level="warning")
        is_uncertain = item is None or (not isinstance(item, Settle) and item.uncertainty.may_stand)
        line = (catalogue.MAY_HAVE_ARRIVED if is_uncertain else catalogue.PLATFORM_REFUSED).about(
            what=kind, where=channel, why=reason
        )
        failure = Failure(
            id=row.key, reason=f"{channel}: {reason}", line=line, place=row.place if item else ""
        )
        return (*writes, *self.notices.notice(failure))
