"""The control lane of a conversation: items that steer a running turn or come between turns."""

from collections.abc import Callable, Container
from functools import partial

from zeroclaw.conversation.attachments import with_files_unread
from zeroclaw.conversation.inbox import (
    INBOX,
    Amend,
    ApprovalAnswered,
    Item,
    PersonMessage,
    Revoked,
    Stop,
    Withdraw,
    came_after,
    item_put,
    said_by,
)
from zeroclaw.conversation.message_text import first_id, messages, origins, own_text, whole_text
from zeroclaw.envelope import ApprovalId, Principal
from zeroclaw.gate import audit
from zeroclaw.gate.approval import APPROVALS, to_put
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.taint import Source, named
from zeroclaw.message import UserMessage
from zeroclaw.store import DurablePoint, Reads, Write
from zeroclaw.text import catalogue
from zeroclaw.turn.approvals import ApprovalRequests, answered_entry
from zeroclaw.turn.context import TurnContext, TurnServices
from zeroclaw.turn.entries import Noted, Steered, TurnOpened
from zeroclaw.turn.session import ConversationSession, Tell, Transition
from zeroclaw.turn.signals import AbortRequested
from zeroclaw.value import replace


class ControlLane:
    """Serves one conversation's control lane."""

    def __init__(self, services: TurnServices, session: ConversationSession) -> None:
        """Begin with no item seen."""
        self._services = services
        self._session = session
        self._approvals = ApprovalRequests(services, session.conversation)
        self._seen: set[str] = set()

    async def watch(
        self, turn: TurnContext, open_approvals: Callable[[], Container[ApprovalId]], tell: Tell
    ) -> None:
        """Pass every control item to the running turn, until cancelled.

        Args:
            turn: The turn.
            open_approvals: Returns the approvals that the turn waits for.
            tell: Passes a transition to the turn.
        """
        while True:
            await turn.control_arrived.wait()
            turn.control_arrived.clear()
            for item in await self._items():
                if item.id not in self._seen:
                    self._seen.add(item.id)
                    await self._during(item, turn.opened, open_approvals(), tell)

    async def between(self) -> None:
        """Serve the lane while no turn runs."""
        for item in await self._items():
            transition = await self._session.transact(await self._afterwards(item))
            self._services.outbox.announce_written(transition.writes)

    async def take_edits(self, owner: Principal) -> tuple[tuple[Steered, ...], tuple[Write, ...]]:
        """Return the person's own stored edits as messages of the running turn, after a batch.

        All others stay in the lane until `between` notes them.
        """
        now, items = self._services.clock.now(), await self._items()
        edits = [item for item in items if _is_edit(item) and item.principal.id == owner.id]
        steered = (
            Steered(
                user=UserMessage(content=_wording(item), note="edited"),
                item=item.id,
                at=now,
                untrusted=_origins(item),
            )
            for item in edits
        )
        return tuple(steered), tuple(item_put(item, "joined") for item in edits)

    async def take_steering(
        self, reads: Reads, owner: Principal
    ) -> tuple[tuple[Steered, ...], tuple[Write, ...]]:
        """Return messages that the turn's own person wrote to steer it, as messages of the turn."""
        now = self._services.clock.now()
        entries: list[Steered] = []
        writes: list[Write] = []
        queued = INBOX.all(reads, conversation=self._session.conversation, state="queued")
        for message in messages(tuple([item async for item in queued if _steers(item, owner)])):
            contents = [item.content for item in message if isinstance(item.content, PersonMessage)]
            if any(map(_has_files, contents)) or self._services.reassembly_s(first_id(message[0])):
                # Its files have to be downloaded or reported, or more pieces of it may come. So it
                # starts a turn or waits for the next batch, and no later message overtakes it.
                break
            quoted = sum(len(content.attachments) for content in contents)
            text = said_by(message[0], with_files_unread(whole_text(contents), quoted))
            steered = Steered(
                user=UserMessage(content=text),
                item=message[0].id,
                at=now,
                own=(own_text(contents),),
                untrusted=origins(contents),
            )
            entries.append(steered)
            writes += (item_put(item, "joined") for item in message)
        return tuple(entries), tuple(writes)

    async def _items(self) -> tuple[Item, ...]:
        conversation = self._session.conversation
        items = INBOX.all(self._services.store, conversation=conversation, state="control")
        return tuple([item async for item in items])

    async def _during(
        self, item: Item, opened: TurnOpened, open_approvals: Container[ApprovalId], tell: Tell
    ) -> None:
        owner = opened.principal
        match item.content:
            case Stop() as stop if not self._is_meant(stop, item, opened):
                await tell(await self._afterwards(item))
            case Stop(cause=cause):
                if cause not in ("halt", "revoked") and not self._may_stop(item.principal, owner):
                    who, language = owner.label, item.principal.language
                    text = catalogue.ONLY_THEY_MAY_STOP.to(language, who=who)
                    if cause != "stop":  # it takes effect once this turn has been answered
                        text = catalogue.OTHER_ANSWER_FIRST.to(language, who=who)
                    await tell(self._answered(item, text))
                    return
                by = item.principal.display if cause == "revoked" else item.principal.label
                abort = AbortRequested(cause=cause, by=by)
                await tell(Transition(events=(abort,), writes=(item_put(item, "answered"),)))
            case ApprovalAnswered(approval=approval) if approval in open_approvals:
                await tell(await self._approvals.take(approval, item, owner.language))
            case ApprovalAnswered() | Revoked():
                await tell(await self._afterwards(item))
            case Amend() | Withdraw():
                pass  # for `take_edits` or `between`
            case _:
                message = f"the item `{item.id}` is in the wrong lane"
                raise ValueError(message)

    def _is_meant(self, stop: Stop, item: Item, opened: TurnOpened) -> bool:
        """Whether a stop is about the turn that runs, and not about an earlier one or none."""
        match stop:
            case Stop(cause="interrupt", before=before):
                # Nor does a newer message end another person's turn, or the one that it began.
                is_older = before is None or opened.item < before
                return is_older and item.principal.id == opened.principal.id
            case Stop(cause="stop"):
                return came_after(item.id, opened.item)
            case Stop(cause="new" | "forget"):
                return opened.turn < item.id  # messages collected by a `/new` are answered first
            case Stop(cause="revoked"):
                return bool(self._services.revoked_by(opened.principal))
            case _:
                return True

    async def _afterwards(self, item: Item) -> Transition:
        """Return the transition for an item that no running turn can take."""
        match item.content:
            case Stop(cause="stop"):
                return self._answered(item, catalogue.NOTHING_RUNNING.to(item.principal.language))
            case ApprovalAnswered(approval=approval):
                return Transition(plan=partial(self._late_answer, item, approval))
            case Revoked(grant=grant, tool=tool):
                entry = audit.Entry(
                    kind=audit.Kind.REVOKED,
                    at=self._services.clock.now(),
                    tool=tool,
                    by=item.principal.id,
                    detail=grant,
                )
                return replace(self._answered(item), audited=(entry,))
            case Amend() | Withdraw():
                noted = Noted(
                    text=_wording(item),
                    why="edited",
                    at=self._services.clock.now(),
                    untrusted=_origins(item),
                    by=item.principal.id,
                )
                return Transition(
                    point=DurablePoint.HOUSEKEEPING,
                    journal=(noted,),
                    writes=(item_put(item, "joined"),),
                )
            case _:
                return self._answered(item)

    async def _late_answer(self, item: Item, approval: ApprovalId, reads: Reads) -> Transition:
        """Record an answer whose turn is over: no call ran because of it, and its cards show that.

        The approver gave it between `/stop` or `/halt` and the end of the turn, which has ended the
        request, or the turn no longer exists. A grant for a time stands.
        """
        row = await APPROVALS.find(reads, approval)
        if row is None:
            return self._answered(item)
        if row.state == "approved" and row.choice == "once":
            row = replace(row, state="stopped", by="")
        answered = answered_entry(row, item, at=self._services.clock.now(), detail="late")
        settles = await self._approvals.card_updates(row)
        return Transition(
            point=DurablePoint.HOUSEKEEPING,
            audited=(answered,),
            writes=(item_put(item, "answered"), to_put(row), *settles),
        )

    def _answered(self, item: Item, text: str = "") -> Transition:
        writes = [item_put(item, "answered")]
        if text:
            writes.append(self._services.reply(item, text))
        return Transition(point=DurablePoint.HOUSEKEEPING, writes=tuple(writes))

    def _may_stop(self, principal: Principal, owner: Principal) -> bool:
        query = Query(
            principal=principal,
            action="command:stop",
            now=self._services.clock.now(),
            own=principal.id == owner.id,
        )
        return self._services.gate.policy().decide(query).effect == "allow"


def _steers(item: Item, owner: Principal) -> bool:
    """Whether a message is meant to steer the running turn of this person."""
    is_for_it = isinstance(item.content, PersonMessage) and item.content.while_busy == "steer"
    return is_for_it and item.principal.id == owner.id


def _has_files(message: PersonMessage) -> bool:
    """Whether a person sent files; those of a quoted message may be left out."""
    return message.not_taken > 0 or not all(attachment.quoted for attachment in message.attachments)


def _is_edit(item: Item) -> bool:
    return isinstance(item.content, Amend | Withdraw)


def _origins(item: Item) -> tuple[Source, ...]:
    """Return the sources of untrusted text in an edited message."""
    content = item.content
    is_quoting = isinstance(content, Amend) and content.own != content.text
    return (named("quoted"),) if is_quoting else ()


def _wording(item: Item) -> str:
    """Return an edit in words for the model."""
    writer, content = item.principal.label, item.content
    if isinstance(content, Amend):
        return f"[{writer} edited their message. It now reads:]\n{content.text}"
    return f"[{writer} deleted their message.]"
