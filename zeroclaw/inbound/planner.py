"""What the event of somebody who is known does: say, command, press, edit, delete, move."""

from typing import Protocol

from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import (
    Command,
    ConversationId,
    Deleted,
    Edited,
    Envelope,
    ItemId,
    Membership,
    Moved,
    Pressed,
    Principal,
    Said,
)
from zeroclaw.gate.approval import who
from zeroclaw.gate.wording import by_whom
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.registry import Commands
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.conversations import Conversations, Found
from zeroclaw.inbound.fragments import own_words, piece_of, words
from zeroclaw.inbound.limiter import RateLimiter
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.reassembly import Continuation
from zeroclaw.inbound.revisions import Revisions
from zeroclaw.store import Put, Query, RowKind
from zeroclaw.text import catalogue
from zeroclaw.turn.inbox import Ask, Item, Obeyed, Opening, Piece, Stop, item_put
from zeroclaw.value import replace

LONGEST_NAME = 255
"""Characters of a file's name that are kept; as long as most disks take."""


class Turns(Protocol):
    """Knows the turns that run; the turn's runner."""

    def waits_for(self, item: Item) -> tuple[str, ...]:
        """Return the tools whose calls wait for an answer, and a message for them."""
        ...


class Planner:
    """Plans events; one for the whole daemon."""

    def __init__(
        self,
        context: InboundContext,
        *,
        conversations: Conversations,
        limiter: RateLimiter,
        commands: Commands,
        requests: Approvals,
        turns: Turns,
    ) -> None:
        """Hold what carries events out."""
        self._context = context
        self._conversations = conversations
        self._limiter = limiter
        self._commands = commands
        self._requests = requests
        self._turns = turns
        self._revisions = Revisions(context.store, context.clock, context.ids)
        # What waits for a restart does not change.
        self._most_files = context.settings.config.attachments.max_per_message

    async def plan(self, envelope: Envelope, principal: Principal) -> Plan | None:
        """Return what an event does, None for nothing."""
        context = self._context
        match envelope.body:
            case Said(text=text, own=own):
                found = await self._conversations.find(envelope.address, principal)
                ask = self._ask(text, text if own is None else own, envelope)
                return await self._queue(envelope, principal, found, ask)
            case Command() as command:
                # Made before the reply's, so that the two are read back in their order.
                id_ = ItemId(context.ids.ulid())
                plan = await self._commands.plan(command, envelope.address, principal)
                if not isinstance(plan, Plan):
                    found = await self._conversations.find(envelope.address, principal)
                    plan = await self._queue(envelope, principal, found, plan)
                elif plan.conversation is not None:
                    plan = self._obeyed(envelope, principal, command, plan, id_)
                return self._without_files(envelope, principal, plan)
            case Pressed() as pressed:
                return await self._requests.press(pressed, principal, context.clock.now())
            case Edited() as edited:
                return await self._revisions.edited(envelope, principal, edited)
            case Deleted(message=message):
                return await self._revisions.deleted(envelope, principal, message)
            case Moved(to=to):
                return await self._conversations.move(envelope.address, to)
            case Membership(present=present):
                context.log("membership_changed", channel=envelope.address.channel, present=present)
                return None

    def join(self, envelope: Envelope, principal: Principal, found: Continuation) -> Plan:
        """Let an event wait with the message that it is the rest of."""
        last, run = found.last, found.run
        busy = last.content.while_busy if isinstance(last.content, Ask) else "queue"
        said = words(envelope) or ""
        ask = self._ask(said, own_words(envelope), envelope, files=run.files)
        piece = piece_of(run.id, envelope.continues) or Piece(run=run.id, group=run.group)
        content = replace(ask, while_busy=busy, piece=piece)
        id_, here = ItemId(self._context.ids.ulid()), last.conversation
        item = self._item(envelope, principal, content, id_, here)
        writes = (found.still, item_put(item, "queued", expect=0))
        return Plan(conversation=here, writes=writes, wake=(here,), piece=item)

    # --- what starts a turn --------------------------------------------------------------------

    async def _queue(
        self, envelope: Envelope, principal: Principal, found: Found, content: Opening
    ) -> Plan:
        context, here = self._context, found.conversation
        id_, piece = ItemId(context.ids.ulid()), None
        if isinstance(content, Ask):
            piece = None if envelope.continues is None else piece_of(id_, envelope.continues)
            content = replace(content, while_busy=found.while_busy, piece=piece)
        item = self._item(envelope, principal, content, id_, here)
        waiting = await context.store.count(
            Query(kind=RowKind.INBOX, conversation=here, state="queued")
        )
        if waiting >= context.settings.config.runtime.backlog:
            return await self._limiter.no_room(item, waiting, found.writes)
        note = self._waiting_note(item)
        writes = [*found.writes, item_put(item, "queued", expect=0)]
        if isinstance(content, Ask) and content.while_busy == "interrupt":
            stop = replace(
                item,
                id=ItemId(context.ids.ulid()),
                content=Stop(cause="interrupt", before=item.id),
                message="",
            )
            writes.append(item_put(stop, "control", expect=0))
        if note is not None:
            writes.append(note)
        wake, piece_item = (here,), None if piece is None else item
        return Plan(conversation=here, writes=tuple(writes), wake=wake, piece=piece_item)

    def _waiting_note(self, item: Item) -> Put | None:
        """Tell a writer why their message waits, when it is not just the queue (§4)."""
        context, language = self._context, item.principal.language
        if by := context.policy.halted_by:
            text = catalogue.HALTED_AND_NEXT.to(language, who=by_whom(by))
        elif tools := self._turns.waits_for(item):
            names = ", ".join(f"`{tool}`" for tool in dict.fromkeys(tools))
            approvers = who(context.settings.config.approvals.approvers, language)
            text = catalogue.WAITING_AND_NEXT.to(language, who=approvers, tools=names)
        else:
            return None
        key = context.ids.ulid()
        return note_row(key=key, conversation=item.conversation, address=item.address, text=text)

    def _ask(self, text: str, own: str, envelope: Envelope, *, files: int = 0) -> Ask:
        """Record what came with a message; what their senders call files is cut to a name's length.

        `files` came with its other fragments.
        """
        taken = tuple(
            replace(one, name=one.name[:LONGEST_NAME], media_type=one.media_type[:LONGEST_NAME])
            for one in envelope.attachments[: max(self._most_files - files, 0)]
        )
        left = len(envelope.attachments) - len(taken)
        return Ask(text=text, own=own, attachments=taken, not_taken=left)

    def _item(
        self,
        envelope: Envelope,
        principal: Principal,
        content: Opening | Obeyed,
        id_: ItemId,
        conversation: ConversationId,
    ) -> Item:
        return Item(
            id=id_,
            conversation=conversation,
            address=envelope.address,
            principal=principal,
            content=content,
            admitted_at=self._context.clock.now(),
            message=envelope.message,
            sent_at=envelope.sent_at,
        )

    # --- commands ------------------------------------------------------------------------------

    def _obeyed(
        self, envelope: Envelope, principal: Principal, command: Command, plan: Plan, id_: ItemId
    ) -> Plan:
        """Keep what was said with what it does."""
        here = plan.here or plan.conversation
        if here is None:
            return plan
        said = Obeyed(text=f"/{command.name} {command.rest}".rstrip())
        item = self._item(envelope, principal, said, id_, here)
        return replace(plan, writes=(*plan.writes, item_put(item, "answered", expect=0)))

    def _without_files(self, envelope: Envelope, principal: Principal, plan: Plan) -> Plan:
        """Say that files are not taken where they came with a command."""
        if not envelope.attachments:
            return plan
        note = note_row(
            key=self._context.ids.ulid(),
            conversation=plan.conversation,
            address=envelope.address,
            text=catalogue.NO_FILES_WITH_A_COMMAND.to(principal.language),
        )
        return replace(plan, writes=(*plan.writes, note))
