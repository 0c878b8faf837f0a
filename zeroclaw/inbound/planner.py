"""The effects of a known sender's event: a message, command, press, edit, deletion or move.

A message that its writer edits or deletes is changed in place while it waits; once a turn has taken
it, the turn gets a control item.
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
from zeroclaw.gate.approval import approver_names
from zeroclaw.gate.wording import by_whom
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.registry import Commands, ignores_words
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.fragments import PartialMessage, as_rest
from zeroclaw.inbound.limiter import InboundEvent, RateLimiter
from zeroclaw.inbound.reassembly import Reassembly
from zeroclaw.store import Put, Row, readable_of
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_invisible, without_tags
from zeroclaw.text.language import Localized
from zeroclaw.turn.runner import TurnRunner
from zeroclaw.value import Struct, replace

LOOK_BACK = 200
"""How many of a chat's newest messages are searched for the original of an edit."""
MAX_NAME_CHARS = 255
"""Stored characters of a file's name; the limit of most file systems."""
Files = tuple[Attachment, ...]

_ESCAPED_CHARS = 500
_ESCAPED_RUN = re.compile(r"((?:⟨U\+[0-9A-F]{4,6}⟩){8})(?:⟨U\+[0-9A-F]{4,6}⟩)+")


class Planner(Struct, eq=False):
    """Plans events; one for the whole daemon."""

    context: InboundContext
    conversations: Conversations
    limiter: RateLimiter
    reassembly: Reassembly
    commands: Commands
    requests: Approvals
    turns: TurnRunner

    async def plan(self, event: InboundEvent) -> Plan | None:
        """Return the effects of an event, None for none."""
        context, envelope, reads = self.context, event.envelope, event.reads
        match envelope.body:
            case Said() as said:
                return await self._queue(event, self._message(said, envelope.attachments))
            case Command() as command:
                if (rest := event.remaining_command) is None:
                    return await self._command(event, command)
                plan = await self.commands.plan(reads, rest, envelope.address, event.principal)
                # No command that starts a turn leaves a rest.
                return plan if isinstance(plan, Plan) else None
            case Pressed() as pressed:
                return await self.requests.press(reads, pressed, event.principal)
            case Edited() | Deleted() as revision:
                return await _revise(context, event, revision)
            case Moved(to=to):
                return await self.conversations.move(reads, envelope.address, to)
            case Membership(present=present):
                context.log("membership_changed", channel=envelope.address.channel, present=present)
                # A plan without writes: the channel learns that a known person did it.
                return Plan(conversation=None)

    def join(self, event: InboundEvent, partial: PartialMessage, last: Item) -> Plan:
        """Queue an event together with the message that it continues, behind its last fragment."""
        envelope = event.envelope
        busy = last.content.while_busy if isinstance(last.content, PersonMessage) else "queue"
        said = as_rest(envelope) or Said(text="")
        message = self._message(said, envelope.attachments, partial.files)
        fragment = self.reassembly.as_fragment(envelope, partial.id)
        fragment = fragment or Fragment(run=partial.id, group=partial.group)
        content = replace(message, while_busy=busy, piece=fragment)
        item = self.context.item(content, last.conversation, envelope, event.principal)
        writes, wake = (item_put(item, "queued"),), (item.conversation,)
        return Plan(conversation=item.conversation, writes=writes, wake=wake, fragment_item=item)

    # --- what starts a turn --------------------------------------------------------------------

    async def _queue(self, event: InboundEvent, content: Opening) -> Plan:
        envelope, principal = event.envelope, event.principal
        context, language = self.context, principal.language
        resolution = await self.conversations.find(event.reads, envelope.address, principal)
        conversation, id_, fragment = resolution.conversation, ItemId(context.ids.ulid()), None
        if isinstance(content, PersonMessage):
            if envelope.continues is not None:
                fragment = self.reassembly.as_fragment(envelope, id_)
            content = replace(content, while_busy=resolution.while_busy, piece=fragment)
        item = context.item(content, conversation, envelope, principal, id_=id_)
        waiting = await context.store.count(INBOX.where(conversation=conversation, state="queued"))
        if waiting >= context.settings.config.runtime.backlog:
            return await self.limiter.queue_full(event, waiting)
        # Tell the sender why their message waits, unless only the queue delays it.
        reason = ""
        if not (halt := context.policy.last_halt).over:
            reason = catalogue.HALTED_AND_NEXT.to(language, who=by_whom(halt.by))
        elif tools := self.turns.waits_for(item):
            names = ", ".join(f"`{tool}`" for tool in dict.fromkeys(tools))
            approvers = approver_names(context.settings.config.approvals.approvers, language)
            reason = catalogue.WAITING_AND_NEXT.to(language, who=approvers, tools=names)
        note = (context.note(reason, event.reader, conversation),) if reason else ()
        stop: tuple[Put, ...] = ()
        if isinstance(content, PersonMessage) and content.while_busy == "interrupt":
            stop_turn = Stop(cause="interrupt", before=id_)
            stop = (context.control(stop_turn, conversation, item.address, principal),)
        return Plan(
            conversation=conversation,
            writes=(*resolution.writes, item_put(item, "queued"), *stop, *note),
            wake=(conversation,),
            fragment_item=item if fragment is not None else None,
        )

    def _message(self, said: Said, files: Files, before: Files = ()) -> PersonMessage:
        """Return the content of a message; `before` are the files of its earlier fragments."""
        limit = self.context.settings.config.attachments.max_per_message
        own = without_tags(said.wrote)
        attachments, text = _files(said, files, before), _escape_quoted(said.text, own)
        accepted = attachments[: max(limit - len(before), 0)]
        dropped = len(attachments) - len(accepted)
        return PersonMessage(text=text, own=own, attachments=accepted, not_taken=dropped)

    async def _command(self, event: InboundEvent, command: Command) -> Plan:
        """Return the effects of a command, with its item in the inbox; it takes no attachments."""
        envelope, principal = event.envelope, event.principal
        # Drawn before the reply's id, so that the command sorts before it.
        id_ = self.context.ids.ulid()
        plan = await self.commands.plan(event.reads, command, envelope.address, principal)
        unused = list[Localized]()
        if not isinstance(plan, Plan):
            plan = await self._queue(event, plan)
            if ignores_words(command):
                unused.append(catalogue.WORDS_BEHIND_A_COMMAND)
        elif plan.origin is not None:
            obeyed = Obeyed(text=f"/{command.name} {command.rest}".rstrip())
            item = self.context.item(obeyed, plan.origin, envelope, principal, id_=id_)
            plan = replace(plan, writes=(*plan.writes, item_put(item, "answered")))
        if envelope.attachments:
            unused.append(catalogue.NO_FILES_WITH_A_COMMAND)
        notes = (self.context.note(says, event.reader, plan.conversation) for says in unused)
        return replace(plan, writes=(*plan.writes, *notes))


def _files(said: Said, attached: Files, before: Files) -> Files:
    """Return the attached files, else the quoted ones; overlong names are cut.

    Each fragment may quote the same file, and a platform may give it a new reference each time.
    """
    old = {replace(file, reference="") for file in before}
    files = (
        replace(file, name=file.name[:MAX_NAME_CHARS], media_type=file.media_type[:MAX_NAME_CHARS])
        for file in attached or [replace(file, quoted=True) for file in said.quoted]
    )
    return tuple(
        file for file in files if not file.quoted or replace(file, reference="") not in old
    )


def _escape_quoted(text: str, own: str) -> str:
    """Escape the invisible characters of a message that quotes other people.

    So the model reads no more than people see. Long runs are shortened, and the total is limited.
    """
    if text == own:
        return text
    escaped = _ESCAPED_RUN.sub(r"\1…", escape_invisible(text))
    return escaped[: 2 * len(text) + _ESCAPED_CHARS]


# --- revisions ------------------------------------------------------------------------------------


async def _revise(
    context: InboundContext, event: InboundEvent, revision: Edited | Deleted
) -> Plan | None:
    """Return the effects of an edit or deletion; None if its message is not in the inbox.

    An edit that changes nothing has no effect: Telegram reports a reaction as an edit
    (tdlib/telegram-bot-api#388 and #773, read 2026-11).
    """
    found = await _original(event, revision.message)
    if found is None:
        return None
    row, item, last = found
    conversation, content = item.conversation, item.content
    match revision:
        case Edited(message=message, said=said):
            own = without_tags(said.wrote)
            text = _escape_quoted(said.text, own)
            if isinstance(last, PersonMessage | Amend) and (last.text, last.own) == (text, own):
                return Plan(conversation=conversation)
            if row.state == "queued" and isinstance(content, PersonMessage):
                if text == own and content.own and content.text.endswith(content.own):
                    # Slack brings along the thread only once, with the message itself.
                    text = content.text.removesuffix(content.own) + own
                changed = replace(item, content=replace(content, text=text, own=own))
                write = item_put(changed, "queued")
                return Plan(conversation=conversation, writes=(write,))
            control = Amend(message=message, text=text, own=own)
        case Deleted(message=message):
            if row.state == "queued":
                write = item_put(item, "superseded")
                # Its files may still be downloading.
                return Plan(conversation=conversation, writes=(write,), wake=(conversation,))
            control = Withdraw(message=message)
    address, principal = event.envelope.address, event.principal
    write = context.control(control, conversation, address, principal, turn=item.turn)
    return Plan(conversation=conversation, writes=(write,), wake=(conversation,))


async def _original(event: InboundEvent, message: str) -> tuple[Row, Item, object] | None:
    """Find a message of this event's sender: its row, its item, and its content as edited last.

    None for another sender's message, for an executed command, and for a refused message.
    """
    place, sender = event.envelope.address.key(), event.envelope.sender.id
    newest, last = INBOX.where(place=place, newest_first=True, limit=LOOK_BACK), None
    found = await event.reads.select(newest)
    for row, item in readable_of(found, lambda row: (row, INBOX.of(row))):
        if isinstance(item.content, Amend) and item.content.message == message:
            last = last or item.content
        if item.message == message and item.principal.sender == sender:
            # Guard the row even if the edit only appends: it must not outlive an erased message.
            await event.reads.get(row.kind, row.key)
            is_refused = isinstance(item.content, Obeyed | TooOld | Unread)
            return None if is_refused else (row, item, last or item.content)
    return None
