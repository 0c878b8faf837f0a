"""The plan of an event, made before the first write, and the services that plans are made with.

Ingress commits a plan's writes together with the event's claim, and only then announces it.
"""

from collections.abc import Awaitable, Callable

from zeroclaw.channel import Log
from zeroclaw.clock import Clock, Ids
from zeroclaw.config.model import CurrentConfig, WhileBusy
from zeroclaw.conversation.inbox import Control, Item, Obeyed, Opening, TooOld, Unread, item_put
from zeroclaw.delivery.rows import TextPost, outbox_row
from zeroclaw.envelope import (
    Address,
    Command,
    ConversationId,
    Envelope,
    ItemId,
    Principal,
    Reader,
    TurnId,
)
from zeroclaw.gate.approval import Approval
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.ruling import Ruling, rule_answer
from zeroclaw.inbound.identity import People
from zeroclaw.inbound.live_config import LivePolicy
from zeroclaw.store import Commit, DurablePoint, Put, Reads, Store, Write, transact
from zeroclaw.text.language import Localized
from zeroclaw.value import Struct, Value, replace


class Plan(Value):
    """The effects of one event.

    Attributes:
        conversation: The scope of the writes; None for the daemon's own.
        writes: Committed together with the claim.
        origin: The conversation in which a command was given, if it is not the scope.
        fragment_item: The queued item of a message that was split, whose rest may still come.
        toast: A short reply to the sender alone; it may be lost.
        reply_wanted: The toast asks for a reason.
        wake: Conversations with new items in their inbox.
        idle: Its only effect is a reply, so it counts against the sender's rate limit.
        claimed: Whether the event's keys are claimed, so that a redelivery is recognised. An event
            that is refused without a reply needs no claim: its redelivery is refused again.
        remaining_command: The rest of a command, to be planned after this commit: a commit has one
            scope, and the rest belongs to another.
    """

    conversation: ConversationId | None
    writes: tuple[Write, ...] = ()
    origin: ConversationId | None = None
    fragment_item: Item | None = None
    toast: str = ""
    reply_wanted: bool = False
    wake: tuple[ConversationId, ...] = ()
    idle: bool = False
    claimed: bool = True
    remaining_command: Command | None = None


NOTHING = Plan(conversation=None)


class Resolution(Value):
    """A conversation, and the writes that create it, or that make an address point to it.

    Attributes:
        while_busy: The mode for messages that arrive while an answer is being written.
    """

    conversation: ConversationId
    writes: tuple[Write, ...] = ()
    while_busy: WhileBusy = "queue"


class InboundContext(Struct, frozen=True, kw_only=True):
    """The services of this room; one for the whole daemon.

    Attributes:
        store: The store.
        clock: For deadlines and ages.
        ids: For rows, and for codes.
        settings: The configuration in force.
        policy: The policy in force.
        people: The people of the configuration, and those admitted or revoked since.
        redact: Redacts text that people type.
        log: Logs events.
        announce: Announces a committed plan to the other rooms; never waits.
    """

    store: Store
    clock: Clock
    ids: Ids
    settings: CurrentConfig
    policy: LivePolicy
    people: People
    redact: Callable[[str], str]
    log: Log
    announce: Callable[[Plan], None]

    async def transact(self, plan: Callable[[Reads], Awaitable[Plan]], point: DurablePoint) -> Plan:
        """Commit a plan, which is made again after a conflict, and announce it.

        Raises:
            Conflict: Other writers were first each time.
        """

        async def planned(reads: Reads) -> tuple[Commit | None, Plan]:
            result = await plan(reads)
            commit = Commit(point=point, conversation=result.conversation, writes=result.writes)
            return commit if result.writes else None, result

        committed = await transact(self.store, planned)
        self.announce(committed)
        return committed

    def note(
        self,
        says: Localized | str,
        reader: Reader,
        conversation: ConversationId | None = None,
        *,
        quiet: bool = False,
        reply_to: str = "",
    ) -> Put:
        """Return the write that sends a text to a chat; see `TextPost`."""
        address, language = reader.address, reader.language
        text = says if isinstance(says, str) else says.to(language)
        post = TextPost(
            address=address, text=text, language=language, quiet=quiet, reply_to=reply_to
        )
        return outbox_row(self.ids.ulid(), post, conversation)

    def item(
        self,
        content: Opening | Control | Obeyed | TooOld | Unread,
        conversation: ConversationId,
        source: Envelope | Address,
        principal: Principal,
        *,
        id_: str = "",
        turn: TurnId | None = None,
    ) -> Item:
        """Return an inbox item that is admitted now.

        Args:
            content: Its content.
            conversation: The conversation of the inbox.
            source: The message, or only its address if the item is no message.
            principal: The sender.
            id_: Empty for a new one.
            turn: The turn that it steers, if any.
        """
        is_message = isinstance(source, Envelope)
        return Item(
            id=ItemId(id_ or self.ids.ulid()),
            conversation=conversation,
            address=source.address if is_message else source,
            principal=principal,
            content=content,
            admitted_at=self.clock.now(),
            message=source.message if is_message else "",
            sent_at=source.sent_at if is_message else None,
            turn=turn,
        )

    def control(
        self,
        content: Control,
        conversation: ConversationId,
        address: Address,
        principal: Principal,
        turn: TurnId | None = None,
    ) -> Put:
        """Return the write of a control item that is admitted now; see `item`."""
        return item_put(self.item(content, conversation, address, principal, turn=turn), "control")

    def query(
        self, principal: Principal, action: str, *, direct: bool | None, own: bool | None
    ) -> Query:
        """Return the query whether a principal may do something now."""
        now = self.clock.now()
        return Query(principal=principal, action=action, now=now, direct=direct, own=own)

    def in_force(self, request: Approval) -> Approval:
        """Return an open request with its current approvers: a reload applies to it too."""
        now = self.settings.config.approvals
        may_answer = request.requester_may_answer and now.requester_may_answer
        return replace(request, approvers=now.approvers, requester_may_answer=may_answer)

    def rule_answer(self, principal: Principal, tool: str) -> Ruling:
        """Decide whether a principal may answer requests about a tool now."""
        query = self.query(principal, f"approve:{tool}", direct=None, own=None)
        approvers = self.settings.config.approvals.approvers
        return rule_answer(query, policy=self.policy(), approvers=approvers)

    def may_approve(self, principal: Principal, tool: str) -> bool:
        """Whether a principal may answer requests about a tool now."""
        return self.rule_answer(principal, tool).decision.effect == "allow"

    def approver_now(self, identity: str, tool: str) -> Principal | None:
        """Return the principal of an identity if they may answer requests about a tool now."""
        found = self.people.identified(identity)
        return found if found is not None and self.may_approve(found, tool) else None

    def may(
        self,
        principal: Principal,
        action: str,
        *,
        direct: bool | None = None,
        own: bool | None = True,
    ) -> bool:
        """Whether the policy lets a principal do something now."""
        query = self.query(principal, action, direct=direct, own=own)
        return self.policy().decide(query).effect == "allow"
