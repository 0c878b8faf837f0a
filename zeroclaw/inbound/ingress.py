"""Where events enter: identify, admit or drop, claim.

Only when `admit` returns may an adapter tell its platform that the event was received (P1). A
stranger leaves a counter and nothing else (P4). What an event does is planned first, committed
with its claim, and announced last; a race with another writer plans anew.
"""

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from datetime import timedelta

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.codec import encode
from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import (
    Accepted,
    Admission,
    Command,
    ConversationId,
    Deleted,
    Duplicate,
    Edited,
    Envelope,
    Ignored,
    ItemId,
    Membership,
    Moved,
    Pressed,
    Principal,
    Said,
)
from zeroclaw.errors import AlreadyClaimed, Conflict, ShuttingDown
from zeroclaw.inbound.answers import Answers
from zeroclaw.inbound.commands.registry import Commands
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.fragments import own_words, piece_of, words
from zeroclaw.inbound.identity import People
from zeroclaw.inbound.limiter import MessageExpiry, Passage, QueueLimit, RateLimiter
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.reassembly import Continuation, Reassembly
from zeroclaw.inbound.revisions import Revisions
from zeroclaw.inbound.strangers import Strangers
from zeroclaw.store import Claim, Commit, DurablePoint, Put, RowKind, Store, Write
from zeroclaw.text import catalogue
from zeroclaw.turn.inbox import (
    Ask,
    Item,
    Obeyed,
    Opening,
    Piece,
    Stop,
    item_put,
)
from zeroclaw.value import replace

CLAIMS_KEPT = timedelta(days=30)
"""Longer than any platform redelivers a message."""
LONGEST_NAME = 255
"""Characters of a file's name that are kept; as long as most disks take."""
TRIES = 8
"""Plans made for one event before giving up; each lost race makes one more."""
REFUSED = 4096
"""Keys of events that were turned away without a row of their own; of more the oldest goes.

Delivered again when there is room, such an event would overtake what was turned away after it. A
start forgets them: a channel goes on behind the position that was committed with the refusal.
"""


class Ingress:
    """Admits events; one for the whole daemon."""

    def __init__(
        self,
        *,
        store: Store,
        people: People,
        strangers: Strangers,
        conversations: Conversations,
        reassembly: Reassembly,
        expiry: MessageExpiry,
        rate_limiter: RateLimiter,
        commands: Commands,
        answers: Answers,
        clock: Clock,
        ids: Ids,
        announce: Callable[[Plan], None],
        waiting_note: Callable[[Item], Write | None],
        put_out: Callable[[], None],
        log: ChannelLog,
        queue_limit: QueueLimit,
        most_files: int,
    ) -> None:
        """Hold what is needed.

        `waiting_note` tells a writer why their message waits; `put_out` ends what people have
        under way who were revoked; `most_files` files come with one message.
        """
        self._store = store
        self._people = people
        self._strangers = strangers
        self._conversations = conversations
        self._reassembly = reassembly
        self._expiry = expiry
        self._rate_limiter = rate_limiter
        self._commands = commands
        self._answers = answers
        self._clock = clock
        self._ids = ids
        self._announce = announce
        self._waiting_note = waiting_note
        self._put_out = put_out
        self._log = log
        self._queue_limit = queue_limit
        self._most_files = most_files
        self._changes = Revisions(store, clock, ids)
        self._refused: OrderedDict[str, None] = OrderedDict()
        self.dropped: Counter[str] = Counter()
        self.open = True

    async def admit(self, envelope: Envelope) -> Admission:
        """Store an event, once.

        Raises:
            ShuttingDown: No more is taken; the platform delivers it again.
            StoreUnusable: Not all of it was stored; the platform must not be told otherwise.
            Conflict: Somebody else kept changing what this event changes.
        """
        channel = envelope.address.channel
        if not self.open:
            message = "zeroclaw is shutting down; the event is taken after the next start"
            raise ShuttingDown(message)
        if envelope.overheard and not self._reassembly.expects(envelope):
            return Ignored()
        principal = self._people.admit(channel, envelope.sender)
        if principal is None:
            return await self._stranger(envelope)
        if not self._refused.keys().isdisjoint(_keys(envelope)):
            return Duplicate()
        if self._strangers.may_claim(envelope):
            claimed = await self._claimed(envelope)
            if claimed is not None:
                return claimed
        async with self._rate_limiter.passing(envelope, principal) as passage:
            plan = await self._passed(envelope, principal, passage)
        if not isinstance(plan, Plan):
            return plan
        if not plan.claimed:
            self._remember(_keys(envelope))
        self._conversations.written(plan.writes)
        self._announce(plan)
        if self._people.put_out_by(principal):
            # Put out between the look at who it is and the commit; what it began is ended.
            self._put_out()
        await self._answer_rest(channel, plan)
        return plan.admission

    def _remember(self, refused: tuple[str, ...]) -> None:
        self._refused.update(dict.fromkeys(refused))
        while len(self._refused) > REFUSED:
            self._refused.popitem(last=False)

    async def _passed(
        self, envelope: Envelope, principal: Principal, passage: Passage
    ) -> Plan | Ignored | Duplicate:
        """Plan and commit what an event does; it counts only if it was none that was known."""
        for _ in range(TRIES):
            # The rest of a message was counted with its beginning.
            if (found := await self._reassembly.continuation(envelope)) is not None:
                plan = self._joined(envelope, principal, found)
            elif envelope.overheard:
                plan = None
            else:
                plan = await self._counted(envelope, principal, passage)
            if plan is None:
                return Ignored()
            with self._reassembly.coming(plan.piece):
                try:
                    await self._store.commit(self._commit(envelope, plan, passage.writes))
                except AlreadyClaimed:
                    # A channel that was cut off at the commit has told nobody what it stored.
                    self._announce(Plan(conversation=plan.conversation, wake=plan.wake))
                    return Duplicate()
                except Conflict:
                    self._conversations.forget(envelope.address, principal)
                    continue
                self._reassembly.happened(envelope, principal, plan.piece)
            if found is None:
                self._rate_limiter.passed(passage)
            return plan
        raise _too_many(envelope.address.channel)

    async def _counted(
        self, envelope: Envelope, principal: Principal, passage: Passage
    ) -> Plan | None:
        if passage.pressing:
            plan = await self._plan(envelope, principal)
            if plan is not None and not plan.idle:
                return plan
            return await self._rate_limiter.refusal(passage) or plan
        return (
            await self._expiry.refusal(envelope, principal)
            or await self._rate_limiter.refusal(passage)
            or await self._plan(envelope, principal)
        )

    async def _stranger(self, envelope: Envelope) -> Admission:
        """Drop what nobody known has sent, or give its sender a code (P4)."""
        if isinstance(envelope.body, Moved):
            # Whoever owns a group need not be known, and its people go with it.
            plan = await self._conversations.move(envelope.address, envelope.body.to)
            return Ignored() if plan is None else await self._met(envelope, plan)
        if self._strangers.hears(envelope):
            async with self._strangers.lock:
                plan = await self._strangers.plan(envelope)
                if plan is not None:
                    return await self._met(envelope, plan)
        self.dropped[envelope.address.channel] += 1
        return Ignored()

    async def _claimed(self, envelope: Envelope) -> Admission | None:
        """Take the printed code from somebody who is let in already; None for any other text."""
        async with self._strangers.lock:
            plan = await self._strangers.claimed(envelope)
            return None if plan is None else await self._met(envelope, plan)

    async def _met(self, envelope: Envelope, plan: Plan) -> Admission:
        try:
            await self._store.commit(self._commit(envelope, plan))
        except AlreadyClaimed:
            return Duplicate()
        self._conversations.written(plan.writes)
        self._announce(plan)
        return Accepted()

    async def _answer_rest(self, channel: str, plan: Plan) -> None:
        """Give the answers that one event holds for other conversations, each in its own commit."""
        while plan.then is not None:
            plan = await self._answer(channel, plan.then)

    async def _answer(self, channel: str, then: Callable[[], Awaitable[Plan]]) -> Plan:
        for _ in range(TRIES):
            plan = await then()
            commit = Commit(
                point=DurablePoint.ANSWERED, conversation=plan.conversation, writes=plan.writes
            )
            try:
                await self._store.commit(commit)
            except Conflict:
                continue
            self._announce(plan)
            return plan
        raise _too_many(channel)

    def _commit(self, envelope: Envelope, plan: Plan, counted: tuple[Write, ...] = ()) -> Commit:
        account = _account(envelope)
        writes: list[Write] = []
        if plan.claimed:
            writes.append(Claim(keys=_keys(envelope), until=self._clock.now() + CLAIMS_KEPT))
        if envelope.position is not None:
            writes.append(
                Put(
                    kind=RowKind.POSITION,
                    key=f"{account}/{envelope.position.scope}",
                    body=encode(envelope.position),
                    place=account,
                )
            )
        writes.extend(plan.writes)
        writes.extend(counted)
        return Commit(
            point=DurablePoint.ADMITTED, conversation=plan.conversation, writes=tuple(writes)
        )

    async def _plan(self, envelope: Envelope, principal: Principal) -> Plan | None:
        match envelope.body:
            case Said(text=text):
                ask = self._ask(text, own_words(envelope), envelope)
                return await self._queue(envelope, principal, ask)
            case Command() as command:
                # Made before the reply's, so that the two are read back in their order.
                id_ = self._ids.ulid()
                plan = await self._commands.plan(command, envelope.address, principal)
                if isinstance(plan, Plan):
                    plan = self._obeyed(envelope, principal, command, plan, ItemId(id_))
                else:
                    plan = await self._queue(envelope, principal, plan)
                return self._without_files(envelope, principal, plan)
            case Pressed() as pressed:
                return await self._answers.press(pressed, principal, self._clock.now())
            case Edited() as edited:
                return await self._changes.edited(envelope, principal, edited)
            case Deleted(message=message):
                return await self._changes.deleted(envelope, principal, message)
            case Moved(to=to):
                return await self._conversations.move(envelope.address, to)
            case Membership(present=present):
                self._log("membership_changed", channel=envelope.address.channel, present=present)
                return None

    def _ask(self, text: str, own: str, envelope: Envelope, *, files: int = 0) -> Ask:
        """Record what came with a message; what their senders call files is cut to a name's length.

        `files` came with its other pieces.
        """
        taken = tuple(
            replace(one, name=one.name[:LONGEST_NAME], media_type=one.media_type[:LONGEST_NAME])
            for one in envelope.attachments[: max(self._most_files - files, 0)]
        )
        left = len(envelope.attachments) - len(taken)
        return Ask(text=text, own=own, attachments=taken, not_taken=left)

    def _joined(self, envelope: Envelope, principal: Principal, found: Continuation) -> Plan:
        """Let an event wait with the message that it is the rest of."""
        last, run = found.last, found.run
        busy = last.content.while_busy if isinstance(last.content, Ask) else "queue"
        said = words(envelope) or ""
        ask = self._ask(said, own_words(envelope), envelope, files=run.files)
        piece = piece_of(run.id, envelope.continues) or Piece(run=run.id, group=run.group)
        item = self._item(
            envelope,
            principal,
            replace(ask, while_busy=busy, piece=piece),
            ItemId(self._ids.ulid()),
            last.conversation,
        )
        here = item.conversation
        return Plan(
            conversation=here,
            writes=(found.still, item_put(item, "queued", expect=0)),
            wake=(here,),
            piece=item,
        )

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
            admitted_at=self._clock.now(),
            message=envelope.message,
            sent_at=envelope.sent_at,
        )

    def _without_files(self, envelope: Envelope, principal: Principal, plan: Plan) -> Plan:
        """Say that files are not taken where they came with a command."""
        if not envelope.attachments:
            return plan
        note = note_row(
            key=self._ids.ulid(),
            conversation=plan.conversation,
            address=envelope.address,
            text=catalogue.NO_FILES_WITH_A_COMMAND.to(principal.language),
        )
        return replace(plan, writes=(*plan.writes, note))

    async def _queue(self, envelope: Envelope, principal: Principal, content: Opening) -> Plan:
        found = await self._conversations.find(envelope.address, principal)
        id_ = ItemId(self._ids.ulid())
        piece = None
        if isinstance(content, Ask):
            piece = piece_of(id_, envelope.continues)
            content = replace(content, while_busy=found.while_busy, piece=piece)
        item = self._item(envelope, principal, content, id_, found.conversation)
        writes = [*found.writes]
        if (refusal := await self._queue_limit.refusal(item, found.writes)) is not None:
            return refusal
        writes.append(item_put(item, "queued", expect=0))
        if isinstance(content, Ask) and content.while_busy == "interrupt":
            stop = replace(
                item,
                id=ItemId(self._ids.ulid()),
                content=Stop(cause="interrupt", before=item.id),
                message="",
            )
            writes.append(item_put(stop, "control", expect=0))
        if (note := self._waiting_note(item)) is not None:
            writes.append(note)
        return Plan(
            conversation=found.conversation,
            writes=tuple(writes),
            wake=(found.conversation,),
            piece=None if piece is None else item,
        )

    def _obeyed(
        self, envelope: Envelope, principal: Principal, command: Command, plan: Plan, id_: ItemId
    ) -> Plan:
        """Keep what was said with what it does."""
        if plan.conversation is None:
            return plan
        said = Obeyed(text=f"/{command.name} {command.rest}".rstrip())
        item = self._item(envelope, principal, said, id_, plan.here or plan.conversation)
        return replace(plan, writes=(*plan.writes, item_put(item, "answered", expect=0)))


def _account(envelope: Envelope) -> str:
    return f"{envelope.address.channel}/{envelope.address.account}"


def _keys(envelope: Envelope) -> tuple[str, ...]:
    """Return what an event is known by when it is delivered again."""
    return tuple(f"{_account(envelope)}/{key}" for key in envelope.dedup)


def _too_many(channel: str) -> Conflict:
    return Conflict(f"`{channel}` could not store an event: too many writers")
