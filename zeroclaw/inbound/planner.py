"""What the event of a known sender does: say, command, press, edit, delete, move.

If its writer edits or withdraws a message while it waits, it is changed in place; after a turn has
taken it, the turn gets a control item.
"""

import re

from zeroclaw.conversation.inbox import (
    INBOX,
    Amend,
    Fragment,
    Item,
    Obeyed,
    Opening,
    PersonMessage,
    Stop,
    TooOld,
    Unread,
    Withdraw,
    item_put,
)
from zeroclaw.envelope import (
    Attachment,
    Command,
    Deleted,
    Edited,
    ItemId,
    Membership,
    Moved,
    Pressed,
    Said,
)
from zeroclaw.gate.approval import who
from zeroclaw.gate.wording import by_whom
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.registry import Commands
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.fragments import rest_of
from zeroclaw.inbound.limiter import Passage, RateLimiter
from zeroclaw.inbound.reassembly import Continuation, Reassembly
from zeroclaw.store import Put, Row, readable_of
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_invisible, without_tags
from zeroclaw.turn.runner import TurnRunner
from zeroclaw.value import Struct, replace

LOOK_BACK = 200
"""How many of a chat's newest messages are searched for the original of an edit."""
LONGEST_NAME = 255
"""Stored characters of a file's name; as long as most disks allow."""
Files = tuple[Attachment, ...]

_UNSEEN_CHARS = 500
_UNSEEN_RUN = re.compile(r"((?:⟨U\+[0-9A-F]{4,6}⟩){8})(?:⟨U\+[0-9A-F]{4,6}⟩)+")


class Planner(Struct, eq=False):
    """Plans events; one for the whole daemon."""

    context: InboundContext
    conversations: Conversations
    limiter: RateLimiter
    reassembly: Reassembly
    commands: Commands
    requests: Approvals
    turns: TurnRunner

    async def plan(self, passage: Passage) -> Plan | None:
        """Return the effects of an event, None for none."""
        context, envelope, reads = self.context, passage.envelope, passage.reads
        match envelope.body:
            case Said() as said:
                return await self._queue(passage, self._ask(said, envelope.attachments))
            case Command() as command:
                return await self._command(passage, command)
            case Pressed() as pressed:
                return await self.requests.press(reads, pressed, passage.principal)
            case Edited() | Deleted() as revision:
                return await revised(context, passage, revision)
            case Moved(to=to):
                return await self.conversations.move(reads, envelope.address, to)
            case Membership(present=present):
                context.log("membership_changed", channel=envelope.address.channel, present=present)
                # Nothing to do, but the channel may want to know that a known person did it.
                return Plan(conversation=None)

    def join(self, passage: Passage, found: Continuation) -> Plan:
        """Queue an event together with the message that it continues."""
        envelope, last, run = passage.envelope, found.last, found.run
        busy = last.content.while_busy if isinstance(last.content, PersonMessage) else "queue"
        ask = self._ask(rest_of(envelope) or Said(text=""), envelope.attachments, run.files)
        piece = self.reassembly.piece(envelope, run.id) or Fragment(run=run.id, group=run.group)
        content = replace(ask, while_busy=busy, piece=piece)
        here = last.conversation
        item = self.context.item(content, here, envelope, passage.principal)
        writes = (item_put(item, "queued"),)
        return Plan(conversation=here, writes=writes, wake=(here,), fragment_item=item)

    # --- what starts a turn --------------------------------------------------------------------

    async def _queue(self, passage: Passage, content: Opening) -> Plan:
        envelope, principal = passage.envelope, passage.principal
        context, language = self.context, principal.language
        found = await self.conversations.find(passage.reads, envelope.address, principal)
        here, id_, piece = found.conversation, ItemId(context.ids.ulid()), None
        if isinstance(content, PersonMessage):
            if envelope.continues is not None:
                piece = self.reassembly.piece(envelope, id_)
            content = replace(content, while_busy=found.while_busy, piece=piece)
        item = context.item(content, here, envelope, principal, id_=id_)
        waiting = await context.store.count(INBOX.where(conversation=here, state="queued"))
        if waiting >= context.settings.config.runtime.backlog:
            return await self.limiter.no_room(passage, waiting)
        # Tell the sender why their message waits, if it is not just the queue (§4).
        why = ""
        if not (halt := context.policy.last_halt).over:
            why = catalogue.HALTED_AND_NEXT.to(language, who=by_whom(halt.by))
        elif tools := self.turns.waits_for(item):
            names = ", ".join(f"`{tool}`" for tool in dict.fromkeys(tools))
            approvers = who(context.settings.config.approvals.approvers, language)
            why = catalogue.WAITING_AND_NEXT.to(language, who=approvers, tools=names)
        note = (context.note(why, item.address, here),) if why else ()
        stop: tuple[Put, ...] = ()
        if isinstance(content, PersonMessage) and content.while_busy == "interrupt":
            cause = Stop(cause="interrupt", before=id_)
            stop = (context.control(cause, here, item.address, principal, None),)
        return Plan(
            conversation=here,
            writes=(*found.writes, item_put(item, "queued"), *stop, *note),
            wake=(here,),
            fragment_item=item if piece is not None else None,
        )

    def _ask(self, said: Said, files: Files, before: Files = ()) -> PersonMessage:
        """Return the content of a message; `before` are the files of its earlier fragments."""
        most = self.context.settings.config.attachments.max_per_message
        own = without_tags(said.wrote)
        found, text = _files(said, files, before), _seen(said.text, own)
        taken = found[: max(most - len(before), 0)]
        left = len(found) - len(taken)
        return PersonMessage(text=text, own=own, attachments=taken, not_taken=left)

    async def _command(self, passage: Passage, command: Command) -> Plan:
        """Return the effects of a command, including its own item; attached files are not taken."""
        envelope, principal = passage.envelope, passage.principal
        # Made before the reply's id, so that the two are read back in this order.
        id_ = self.context.ids.ulid()
        plan = await self.commands.plan(passage.reads, command, envelope.address, principal)
        if not isinstance(plan, Plan):
            plan = await self._queue(passage, plan)
        elif plan.here is not None:
            said = Obeyed(text=f"/{command.name} {command.rest}".rstrip())
            item = self.context.item(said, plan.here, envelope, principal, id_=id_)
            plan = replace(plan, writes=(*plan.writes, item_put(item, "answered")))
        if not envelope.attachments:
            return plan
        text = catalogue.NO_FILES_WITH_A_COMMAND.to(principal.language)
        note = self.context.note(text, envelope.address, plan.conversation)
        return replace(plan, writes=(*plan.writes, note))


def _files(said: Said, own: Files, before: Files) -> Files:
    """Return the files of a message, or else those that it is about; overlong names are cut.

    Each fragment may be about the same file, and a platform may refer to it anew each time.
    """
    known = {replace(one, reference="") for one in before}
    found = (
        replace(one, name=one.name[:LONGEST_NAME], media_type=one.media_type[:LONGEST_NAME])
        for one in own or [replace(one, quoted=True) for one in said.quoted]
    )
    return tuple(one for one in found if not one.quoted or replace(one, reference="") not in known)


def _seen(text: str, own: str) -> str:
    """Return a message in which the model reads no more of other people's words than people see.

    Long runs of invisible characters are shortened, and the total length is limited.
    """
    if text == own:
        return text
    shown = _UNSEEN_RUN.sub(r"\1…", escape_invisible(text))
    return shown[: 2 * len(text) + _UNSEEN_CHARS]


# --- revisions ------------------------------------------------------------------------------------


async def revised(
    context: InboundContext, passage: Passage, revision: Edited | Deleted
) -> Plan | None:
    """Replace or withdraw a message that still waits; None for one that was not taken.

    An edit that changes nothing has no effect: Telegram tells of a reaction as of an edit
    (tdlib/telegram-bot-api#388 and #773, read 2026-11).
    """
    found = await _original(passage, revision.message)
    if found is None:
        return None
    row, item, last = found
    here, content = item.conversation, item.content
    match revision:
        case Edited(message=message, said=said):
            own = without_tags(said.wrote)
            text = _seen(said.text, own)
            if isinstance(last, PersonMessage | Amend) and (last.text, last.own) == (text, own):
                return Plan(conversation=here)
            if row.state == "queued" and isinstance(content, PersonMessage):
                if text == own and content.own and content.text.endswith(content.own):
                    # Slack brings along the thread only once, with the message itself.
                    text = content.text.removesuffix(content.own) + own
                changed = replace(item, content=replace(content, text=text, own=own))
                write = item_put(changed, "queued")
                return Plan(conversation=here, writes=(write,))
            late = Amend(message=message, text=text, own=own)
        case Deleted(message=message):
            if row.state == "queued":
                write = item_put(item, "superseded")
                # Its files may still be downloading.
                return Plan(conversation=here, writes=(write,), wake=(here,))
            late = Withdraw(message=message)
    at, by = passage.envelope.address, passage.principal
    write = context.control(late, here, at, by, turn=item.turn)
    return Plan(conversation=here, writes=(write,), wake=(here,))


async def _original(passage: Passage, message: str) -> tuple[Row, Item, object] | None:
    """Find the message that this sender wrote, and its content as it was edited last.

    Another sender's edit finds nothing.

    The edit of an executed command finds nothing either, because its effect is done, nor that of a
    message that was refused.
    """
    place, sender = passage.envelope.address.key(), passage.envelope.sender.id
    newest, last = INBOX.where(place=place, newest_first=True, limit=LOOK_BACK), None
    found = await passage.reads.select(newest)
    for row, item in readable_of(found, lambda row: (row, INBOX.of(row))):
        if isinstance(item.content, Amend) and item.content.message == message:
            last = last or item.content
        if item.message == message and item.principal.sender == sender:
            # Guards it even if it is not changed: an edit must not outlive an erased message.
            await passage.reads.get(row.kind, row.key)
            is_refused = isinstance(item.content, Obeyed | TooOld | Unread)
            return None if is_refused else (row, item, last or item.content)
    return None
