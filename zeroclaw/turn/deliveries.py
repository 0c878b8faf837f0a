"""What the end of a delivery means: a card that is known, a message that failed."""

from collections.abc import Callable

from zeroclaw.delivery.rows import Ask, File, Item, Settle, Text, address_of, note_row
from zeroclaw.envelope import ApprovalId, ConversationId, MessageRef
from zeroclaw.gate import approval as approvals
from zeroclaw.store import Row, RowKind, Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn.approvals import ApprovalRequests
from zeroclaw.turn.context import Failure, TurnServices
from zeroclaw.turn.inbox import item_of, item_put
from zeroclaw.turn.turn_row import turn_of


class Deliveries:
    """The outbox's hooks; what they return is committed with the end of the row."""

    def __init__(self, services: Callable[[], TurnServices]) -> None:
        """Hold the services, which hold the outbox, and so are made after its hooks."""
        self._rooms_made = services

    @property
    def _services(self) -> TurnServices:
        return self._rooms_made()

    async def delivered(self, row: Row, item: Text) -> tuple[Write, ...]:  # noqa: ARG002
        """Nothing more: the item's state was recorded with the turn's end."""
        return ()

    async def asked(self, row: Row, item: Ask, ref: MessageRef) -> tuple[Write, ...]:
        """Let the approvals of a card know where it stands; one that ended meanwhile is settled."""
        conversation = row.conversation or ConversationId("")
        asks = ApprovalRequests(self._services, conversation)
        writes: list[Write] = []
        shown: list[approvals.Approval] = []
        for key in item.approvals:
            found = await self._services.store.get(RowKind.APPROVAL, key)
            if found is None:
                continue
            one = approvals.with_ref(approvals.decode(found.body), ref)
            writes.append(approvals.to_put(one, expect=found.version))
            shown.append(one)
        if any(one.state != "pending" for one in shown):
            writes += await asks.settled(*shown, only=ref)
        return tuple(writes)

    async def pressed(self, row: Row, item: Ask) -> MessageRef | None:  # noqa: ARG002
        """Return where a press told that a card stands."""
        for key in item.approvals:
            found = await self._services.store.get(RowKind.APPROVAL, key)
            known = () if found is None else approvals.decode(found.body).refs
            for ref in known:
                if ref.address.key() == item.address.key():
                    return ref
        return None

    async def refused(self, row: Row, item: Item, why: str) -> tuple[Write, ...]:
        """Record that an answer failed, and tell the operators."""
        writes: list[Write] = []
        what: Localized = catalogue.A_MESSAGE
        is_asked_again = False
        if isinstance(item, Text) and item.turn is not None:
            what = catalogue.AN_ANSWER
            turn = await self._services.store.get(RowKind.TURN, item.turn)
            if turn is not None:
                whose = turn_of(turn).item.principal
                what = catalogue.AN_ANSWER_TO.about(who=whose.label)
                taken = await self._services.store.get(RowKind.INBOX, turn_of(turn).item.id)
                if taken is not None:
                    writes.append(item_put(item_of(taken), "failed", expect=taken.version))
        elif isinstance(item, Ask):
            what = catalogue.A_CARD
            again = await self._asked_again(row, item)
            is_asked_again = bool(again)
            writes += again
        elif isinstance(item, File):
            what = catalogue.A_FILE
            if not item.uncertain:
                writes.append(self._not_sent(row, item, why))
        where = address_of(item).channel
        says = catalogue.PLATFORM_REFUSED.about(what=what, where=where, why=why)
        if not isinstance(item, Settle) and item.uncertain:
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
        return note_row(
            key=self._services.ids.ulid(),
            conversation=row.conversation,
            address=item.address,
            text=catalogue.FILE_NOT_SENT.to(item.language, name=item.name, why=why),
            # Where nothing arrives at all, operators were told of the file already.
            quiet=True,
            reply_to=item.reply_to,
            language=item.language,
        )
