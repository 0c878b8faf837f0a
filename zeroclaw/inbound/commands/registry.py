"""The slash commands, the same on every channel.

To add one, name it in `COMMANDS` and give it a handler in `Commands`. A command's effect and its
reply are committed with the claim of its message, so it happens once. `/tool`, `/retry` and
`/compact` use the lane that starts turns; all others are served at once.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from zeroclaw.channel import Menu, MenuEntry
from zeroclaw.config.model import WhileBusy
from zeroclaw.context.composer import RequestSources
from zeroclaw.context.offers import Offers
from zeroclaw.context.skills import LISTED_CHARS
from zeroclaw.conversation.inbox import Again, Cause, Opening, Stop, Summarise, UseTool
from zeroclaw.envelope import Address, Command, ConversationId, Principal, is_off_the_record
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet, why_refused
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.forget import forget
from zeroclaw.inbound.commands.grants import GrantCommands
from zeroclaw.inbound.commands.invocation import Handler, Invocation, Reply
from zeroclaw.inbound.commands.pair import PairCommand
from zeroclaw.inbound.commands.reports import StatusCommand, context_window, usage
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, OPERATOR, Chosen, Contact
from zeroclaw.inbound.live_config import halt_put, switched
from zeroclaw.limits.budget import UsageBudget
from zeroclaw.store import Reads, RowKind, Write
from zeroclaw.text import catalogue
from zeroclaw.text.escape import shortened
from zeroclaw.text.language import LANGUAGES, NAMES, Language, Sentence, language_of
from zeroclaw.value import Struct, Value


class CommandHelp(Value):
    """How a command is written, and what it does."""

    usage: str
    does: Sentence


COMMANDS: dict[str, CommandHelp] = {
    "help": CommandHelp(usage="/help", does=catalogue.DOES_HELP),
    "stop": CommandHelp(usage="/stop", does=catalogue.DOES_STOP),
    "retry": CommandHelp(usage="/retry", does=catalogue.DOES_RETRY),
    "new": CommandHelp(usage="/new", does=catalogue.DOES_NEW),
    "otr": CommandHelp(usage="/otr", does=catalogue.DOES_OTR),
    "queue": CommandHelp(usage="/queue steer", does=catalogue.DOES_QUEUE),
    "status": CommandHelp(usage="/status", does=catalogue.DOES_STATUS),
    "usage": CommandHelp(usage="/usage", does=catalogue.DOES_USAGE),
    "context": CommandHelp(usage="/context", does=catalogue.DOES_CONTEXT),
    "tools": CommandHelp(usage="/tools", does=catalogue.DOES_TOOLS),
    "compact": CommandHelp(usage="/compact", does=catalogue.DOES_COMPACT),
    "pending": CommandHelp(usage="/pending", does=catalogue.DOES_PENDING),
    "approve": CommandHelp(usage="/approve 1 3", does=catalogue.DOES_APPROVE),
    "deny": CommandHelp(usage="/deny 2 because …", does=catalogue.DOES_DENY),
    "grants": CommandHelp(usage="/grants", does=catalogue.DOES_GRANTS),
    "revoke": CommandHelp(usage="/revoke 1 3", does=catalogue.DOES_REVOKE),
    "tool": CommandHelp(usage='/tool shell {"command": "ls"}', does=catalogue.DOES_TOOL),
    "halt": CommandHelp(usage="/halt", does=catalogue.DOES_HALT),
    "resume": CommandHelp(usage="/resume", does=catalogue.DOES_RESUME),
    "pair": CommandHelp(usage="/pair", does=catalogue.DOES_PAIR),
    "forget": CommandHelp(usage="/forget", does=catalogue.DOES_FORGET),
    "language": CommandHelp(usage="/language de", does=catalogue.DOES_LANGUAGE),
    "whoami": CommandHelp(usage="/whoami", does=catalogue.DOES_WHOAMI),
}


MODES: dict[WhileBusy, Sentence] = {
    "queue": catalogue.QUEUE_QUEUE,
    "collect": catalogue.QUEUE_COLLECT,
    "steer": catalogue.QUEUE_STEER,
    "interrupt": catalogue.QUEUE_INTERRUPT,
}


OFF: dict[Language, frozenset[str]] = {"en": frozenset({"off"}), "de": frozenset({"off", "aus"})}
"""The words that end `/otr`."""


class Commands(Struct, eq=False, kw_only=True):
    """Plans commands; ingress commits them."""

    context: InboundContext
    conversations: Conversations
    requests: Approvals
    pair: PairCommand
    grants: GrantCommands
    status: StatusCommand
    budget: UsageBudget
    sources: RequestSources

    def _handlers(self) -> dict[str, Handler]:
        """Return the handlers by name; `plan` handles commands that start a turn."""
        return {
            "help": self._help,
            "stop": self._stop,
            "new": self._new,
            "otr": self._otr,
            "queue": self._queue,
            "status": self.status.told,
            "usage": partial(usage, self.context, self.budget),
            "tools": partial(_told_offers, self.sources.offers),
            "context": partial(context_window, self.context.store, self.sources),
            "pending": self.requests.pending,
            "approve": self.requests.by_number,
            "deny": self.requests.by_number,
            "grants": self.grants.listed,
            "revoke": self.grants.revoke,
            "tool": _name_the_tool,
            "halt": self._switch,
            "resume": self._switch,
            "pair": self.pair.plan,
            "forget": partial(forget, self.context),
            "language": _language,
            "whoami": _whoami,
        }

    async def plan(
        self, reads: Reads, command: Command, address: Address, principal: Principal
    ) -> Plan | Opening:
        """Return what a command does, or the opening of a turn for the other lane."""
        # The reply's commit creates a missing conversation; reading never does.
        found = await self.conversations.find(reads, address, principal)
        given = Invocation(
            reads=reads, command=command, address=address, principal=principal, found=found
        )
        name, language = command.name, principal.language
        tool, _, arguments = command.rest.partition(" ")
        if name not in COMMANDS:
            reply = Reply(text=catalogue.UNKNOWN_COMMAND.to(language, name=name))
        elif not self._may(given, name):
            why = why_refused(self.context.policy(), self._query(given, name), language)
            reply = Reply(text=catalogue.COMMAND_IS_NOT_YOURS.to(language, name=name, why=why))
        elif name == "retry":
            return Again()
        elif name == "compact":
            return Summarise()
        elif name == "tool" and tool:
            return UseTool(tool=tool, arguments=arguments.strip() or "{}")
        else:
            reply = await self._handlers()[name](given)
        return self._planned(given, reply)

    def _planned(self, given: Invocation, reply: Reply) -> Plan:
        found = reply.found or given.found
        writes = (*found.writes, *reply.writes)
        if reply.text:
            note = self.context.note(
                reply.text, given.address, found.conversation, language=given.language
            )
            writes = (*writes, note)
        return Plan(
            conversation=reply.scope or found.conversation,
            here=found.conversation,
            writes=writes,
            wake=reply.wake,
            idle=reply.idle or not reply.writes,
            remaining_command=reply.remaining_command,
        )

    async def _help(self, given: Invocation) -> Reply:
        lines = (
            f"- `{one.usage}`: {one.does.to(given.language)}"
            for name, one in COMMANDS.items()
            if self._may(given, name)
        )
        return Reply(text="\n".join(lines))

    async def _stop(self, given: Invocation) -> Reply:
        meant = await self.conversations.at_work(given.here)
        await given.reads.get(RowKind.CONVERSATION, meant)  # guards it: it may be erased meanwhile
        return Reply(
            writes=(self._control(meant, given, "stop"),),
            wake=(meant,),
            idle=not await self.conversations.is_busy(meant),
        )

    async def _new(self, given: Invocation) -> Reply:
        old, new = await self.conversations.renew(given)
        is_other = old.conversation != new.conversation
        is_off = is_off_the_record(new.conversation)
        says = catalogue.NEW_OFF_THE_RECORD if is_off else catalogue.NEW_CONVERSATION
        return Reply(
            text=_alone(given, says),
            found=new,
            writes=(self._control(old.conversation, given, "new"),) if is_other else (),
            wake=(old.conversation,),
        )

    async def _otr(self, given: Invocation) -> Reply:
        """Leave the record, or return to the earlier conversation on it; see `retention/erase.py`."""
        language = given.language
        if given.command.rest.strip().lower() not in OFF[language]:
            begun = await self.conversations.leave_the_record(given)
            says = catalogue.OFF_THE_RECORD if begun else catalogue.OFF_THE_RECORD_ALREADY
            return Reply(text=_alone(given, says), found=begun)
        found = await self.conversations.go_on_record(given)
        if found is None:
            return Reply(text=catalogue.ON_RECORD_ALREADY.to(language))
        old, on_record = found
        is_busy = await self.conversations.is_busy(old.conversation)
        return Reply(
            text=catalogue.ON_RECORD_AGAIN.to(language),
            found=on_record,
            writes=(self._control(old.conversation, given, "stop"),) if is_busy else (),
            wake=(old.conversation,),
        )

    async def _queue(self, given: Invocation) -> Reply:
        """Tell or change what happens to messages that come while an answer is being written."""
        language, wanted = given.language, given.command.rest.strip()
        for mode, does in MODES.items():
            if mode == wanted:
                found = await self.conversations.choose(given, mode)
                return Reply(text=catalogue.QUEUE_CHOSEN.to(language, does=does), found=found)
        now = catalogue.QUEUE_IS_NOW.to(language)
        lines = (
            f"- `/queue {one}`: {does.to(language)}{now if one == given.found.while_busy else ''}"
            for one, does in MODES.items()
        )
        return Reply(text="\n".join((catalogue.QUEUE_CHOICES.to(language), *lines)))

    async def _switch(self, given: Invocation) -> Reply:
        on, by, now = given.command.name == "halt", given.principal.label, self.context.clock.now()
        halt = switched(self.context.policy.last_halt, on=on, by=by, at=now)
        if halt is None:
            return Reply(text=catalogue.NOTHING_IS_HALTED.to(given.language))
        says = catalogue.HALTED if on else catalogue.GOING_ON
        return Reply(text=says.to(given.language), writes=(halt_put(halt),))

    def _control(self, conversation: ConversationId, given: Invocation, cause: Cause) -> Write:
        stop = Stop(cause=cause)
        return self.context.control(stop, conversation, given.address, given.principal, None)

    def _query(self, given: Invocation, name: str) -> Query:
        # The holder of the conversation checks whose turn is running; `own` only asks here whether
        # the command may be used at all.
        return self.context.query(
            given.principal, f"command:{name}", direct=given.address.direct, own=True
        )

    def _may(self, given: Invocation, name: str) -> bool:
        return self.context.policy().decide(self._query(given, name)).effect == "allow"


def _alone(given: Invocation, says: Sentence) -> str:
    """Return the reply of a command without arguments, with a note if it was given some."""
    reply = says.to(given.language)
    if not given.command.rest.strip():
        return reply
    return catalogue.WORDS_BEHIND_A_COMMAND.to(given.language, reply=reply)


async def _told_offers(offers: Offers, given: Invocation) -> Reply:
    """List the tools by group, and the skills, that this person may have here."""
    groups = offers.groups_for(given.principal, given.address, given.here)
    skills = offers.skills_for(given.principal, given.address)
    lines = [
        f"- {name}: {', '.join(f'`{one.name}`' for one in every)}" for name, every in groups.items()
    ]
    if skills:
        told = (
            f"- `{one.name}`: {shortened(one.description, LISTED_CHARS)}" for one in skills.values()
        )
        lines += ("", catalogue.SKILLS_ARE.to(given.language), *told)
    return Reply(text="\n".join(lines) or catalogue.TOOLS_NONE.to(given.language))


async def _name_the_tool(given: Invocation) -> Reply:
    return Reply(text=catalogue.NAME_THE_TOOL.to(given.language, usage=COMMANDS["tool"].usage))


async def _language(given: Invocation) -> Reply:
    """Choose the language of the bot's own sentences, on every channel where the person is known.

    It overrides the configuration. The reply is in the chosen language; without a supported one, it
    lists the choices.
    """
    wanted, now = language_of(given.command.rest), given.language
    if wanted is None:
        choices = ", ".join(f"{NAMES[one]} (`/language {one}`)" for one in LANGUAGES)
        return Reply(text=catalogue.LANGUAGES_SPOKEN.to(now, choices=choices, name=NAMES[now]))
    chosen = Chosen(person=given.principal.id, language=wanted)
    put = LANGUAGE_CHOICES.put(chosen.person, chosen)
    return Reply(text=catalogue.LANGUAGE_CHOSEN.to(wanted, name=NAMES[wanted]), writes=(put,))


async def _whoami(given: Invocation) -> Reply:
    principal = given.principal
    text = catalogue.WHO_YOU_ARE.to(
        given.language,
        id=principal.id,
        sender=principal.sender,
        channel=principal.channel,
        roles=", ".join(sorted(principal.roles)) or catalogue.NO_ROLES,
    )
    return Reply(text=text)


# --- the menu ------------------------------------------------------------------------------------


def menu_of(channel: str, policy: PolicySet, operators: Iterable[Contact], now: datetime) -> Menu:
    """Return the menu of a channel: the commands that the policy lets its people use.

    Args:
        channel: Its name.
        policy: The policy in force.
        operators: The operators' contacts, on any channel.
        now: For statements that hold only at some times.
    """
    return Menu(
        everyone=_entries(channel, frozenset(), policy, now),
        operators=_entries(channel, frozenset({OPERATOR}), policy, now),
        operator_senders=tuple(
            dict.fromkeys(contact.sender for contact in operators if contact.channel == channel)
        ),
        ask={one: catalogue.DOES_ASK.to(one) for one in LANGUAGES},
        typed={one: catalogue.TYPED_BEHIND_A_COMMAND.to(one) for one in LANGUAGES},
    )


def _entries(
    channel: str, roles: frozenset[str], policy: PolicySet, now: datetime
) -> tuple[MenuEntry, ...]:
    # A person whom no statement names, in a private chat; they may always see what is theirs.
    somebody = Principal(id=f"{channel}:", roles=roles, channel=channel, sender="")
    return tuple(
        MenuEntry(name=name, does={one: told.does.to(one).replace("`", "") for one in LANGUAGES})
        for name, told in COMMANDS.items()
        if policy.decide(
            Query(principal=somebody, action=f"command:{name}", now=now, direct=True, own=True)
        ).effect
        == "allow"
    )
