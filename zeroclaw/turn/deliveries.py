"""What the end of a delivery means that failed."""

from collections.abc import Callable

from zeroclaw.conversation.inbox import INBOX, item_put
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery.rows import Ask, File, Item, Settle, Text, address_of, outbox_row
from zeroclaw.envelope import ApprovalId
from zeroclaw.store import Row, Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn.approvals import ApprovalRequests
from zeroclaw.turn.context import Failure, TurnServices


class Deliveries:
    """What a refused row means; what is returned is committed with its end."""

    def __init__(self, services: Callable[[], TurnServices]) -> None:
        """Hold the services, which hold the outbox, and so are made after its hooks."""
        self._services_made = services

    @property
    def _services(self) -> TurnServices:
        return self._services_made()

    async def refused(self, row: Row, item: Item, why: str) -> tuple[Write, ...]:
        """Record that an answer failed, and tell the operators."""
        writes: list[Write] = []
        what: Localized = catalogue.A_MESSAGE
        is_asked_again = False
        if isinstance(item, Text) and item.turn is not None:
            what = catalogue.AN_ANSWER
            turn = await TURNS.get(self._services.store, item.turn)
            if turn is not None:
                what = catalogue.AN_ANSWER_TO.about(who=turn.item.principal.label)
                taken, version = await INBOX.read(self._services.store, turn.item.id)
                if taken is not None:
                    writes.append(item_put(taken, "failed", expect=version))
        elif isinstance(item, Ask):
            what = catalogue.A_CARD
            again = await self._asked_again(row, item)
            is_asked_again = bool(again)
            writes += again
        elif isinstance(item, File):
            what = catalogue.A_FILE
            if not item.uncertainty.may_stand:
                writes.append(self._not_sent(row, item, why))
        where = address_of(item).channel
        says = catalogue.PLATFORM_REFUSED.about(what=what, where=where, why=why)
        if not isinstance(item, Settle) and item.uncertainty.may_stand:
            says = catalogue.MAY_HAVE_ARRIVED.about(what=what, where=where, why=why)
        if is_asked_again:
            says = catalogue.ASKED_IN_PRIVATE.about(where=where, why=why)
        told = self._services.failed(
            Failure(id=row.key, why=f"{where}: {why}", says=says, place=row.place)
        )
        return (*writes, *told)

    async def _asked_again(self, row: Row, item: Ask) -> tuple[Write, ...]:
        """Put a card to each approver that the chat of all of them refused."""
        if row.conversation is None or item.address.direct:
            return ()
        asks = ApprovalRequests(self._services, row.conversation)
        return await asks.put_again(map(ApprovalId, item.approvals), item.address)

    def _not_sent(self, row: Row, item: File, why: str) -> Write:
        """Tell the people of a chat that a file does not come, of which an answer may speak."""
        return outbox_row(
            self._services.ids.ulid(),
            Text(
                address=item.address,
                text=catalogue.FILE_NOT_SENT.to(item.language, name=item.name, why=why),
                quiet=True,
                reply_to=item.reply_to,
                language=item.language,
            ),
            row.conversation,
        )
