"""The slash commands, the same on every channel.

To add one, name it in `COMMANDS` and give it a handler in `Commands`. A command's effect and its
reply are committed with the claim of its message, so it happens once. `/tool`, `/retry` and
`/compact` use the turn lane; all others are executed at once.
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
from zeroclaw.gate.policy import PolicySet, refusal_reason
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.forget import forget
from zeroclaw.inbound.commands.grants import GrantCommands
from zeroclaw.inbound.commands.invocation import Handler, Invocation, Reply
from zeroclaw.inbound.commands.pair import PairCommand
from zeroclaw.inbound.commands.reports import StatusCommand, context_window, usage
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, OPERATOR, LanguageChoice
from zeroclaw.inbound.live_config import halt_put, switched
from zeroclaw.limits.budget import UsageBudget
from zeroclaw.store import Reads, RowKind, Write
from zeroclaw.text import catalogue
from zeroclaw.text.escape import shortened
from zeroclaw.text.language import LANGUAGES, NAMES, Language, Sentence, language_of
from zeroclaw.value import Struct, Value, replace

OFF = frozenset({"off", "aus"})
"""The words that end `/otr`."""


class CommandHelp(Value):
    """An example of a command, and its description.

    Attributes:
        words: The words that it takes, None for any.
    """

    usage: str
    does: Sentence
    words: frozenset[str] | None = frozenset()

    def menu_text(self, language: Language) -> str:
        """Return the description without markup."""
        return self.does.to(language).replace("`", "")


COMMANDS: dict[str, CommandHelp] = {
    "help": CommandHelp(usage="/help", does=catalogue.DOES_HELP),
    "stop": CommandHelp(usage="/stop", does=catalogue.DOES_STOP),
    "retry": CommandHelp(usage="/retry", does=catalogue.DOES_RETRY),
    "new": CommandHelp(usage="/new", does=catalogue.DOES_NEW),
    "otr": CommandHelp(usage="/otr", does=catalogue.DOES_OTR, words=OFF | {"on", "an"}),
    "queue": CommandHelp(usage="/queue steer", does=catalogue.DOES_QUEUE, words=None),
    "status": CommandHelp(usage="/status", does=catalogue.DOES_STATUS),
    "usage": CommandHelp(usage="/usage", does=catalogue.DOES_USAGE),
    "context": CommandHelp(usage="/context", does=catalogue.DOES_CONTEXT),
    "tools": CommandHelp(usage="/tools", does=catalogue.DOES_TOOLS),
    "compact": CommandHelp(usage="/compact", does=catalogue.DOES_COMPACT),
    "pending": CommandHelp(usage="/pending", does=catalogue.DOES_PENDING),
    "approve": CommandHelp(usage="/approve 1 3", does=catalogue.DOES_APPROVE, words=None),
    "deny": CommandHelp(usage="/deny 2 because …", does=catalogue.DOES_DENY, words=None),
    "grants": CommandHelp(usage="/grants", does=catalogue.DOES_GRANTS),
    "revoke": CommandHelp(usage="/revoke 1 3", does=catalogue.DOES_REVOKE, words=None),
    "tool": CommandHelp(
        usage='/tool shell {"command": "ls"}', does=catalogue.DOES_TOOL, words=None
    ),
    "halt": CommandHelp(usage="/halt", does=catalogue.DOES_HALT),
    "resume": CommandHelp(usage="/resume", does=catalogue.DOES_RESUME),
    "pair": CommandHelp(usage="/pair", does=catalogue.DOES_PAIR, words=None),
    "forget": CommandHelp(usage="/forget", does=catalogue.DOES_FORGET, words=None),
    "language": CommandHelp(usage="/language de", does=catalogue.DOES_LANGUAGE, words=None),
    "whoami": CommandHelp(usage="/whoami", does=catalogue.DOES_WHOAMI),
}


MODES: dict[WhileBusy, Sentence] = {
    "queue": catalogue.QUEUE_QUEUE,
    "collect": catalogue.QUEUE_COLLECT,
    "steer": catalogue.QUEUE_STEER,
    "interrupt": catalogue.QUEUE_INTERRUPT,
}


def ignores_words(command: Command) -> bool:
    """Whether a command came with words that it does not take: a part of a message, probably."""
    words, taken = command.rest.strip().lower(), COMMANDS[command.name].words
    return bool(words) and taken is not None and words not in taken


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
            "status": self.status.reply,
            "usage": partial(usage, self.context, self.budget),
            "tools": partial(_list_offers, self.sources.offers),
            "context": partial(context_window, self.context.store, self.sources),
            "pending": self.requests.pending,
            "approve": self.requests.by_number,
            "deny": self.requests.by_number,
            "grants": self.grants.listed,
            "revoke": self.grants.revoke,
            "tool": _tool_usage,
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
        """Return the effects of a command, or the opening of a turn for the turn lane."""
        # The reply's commit creates a missing conversation; reading never does.
        found = await self.conversations.find(reads, address, principal)
        invocation = Invocation(
            reads=reads, command=command, address=address, principal=principal, resolution=found
        )
        name, language = command.name, principal.language
        tool, _, arguments = command.rest.partition(" ")
        if name not in COMMANDS:
            reply = Reply(text=catalogue.UNKNOWN_COMMAND.to(language, name=name))
        elif not self._may(invocation, name):
            reason = refusal_reason(self.context.policy(), self._query(invocation, name), language)
            reply = Reply(text=catalogue.COMMAND_IS_NOT_YOURS.to(language, name=name, why=reason))
        elif name == "retry":
            return Again()
        elif name == "compact":
            return Summarise()
        elif name == "tool" and tool:
            return UseTool(tool=tool, arguments=arguments.strip() or "{}")
        else:
            reply = await self._handlers()[name](invocation)
            if ignores_words(command):
                unused = catalogue.WORDS_BEHIND_A_COMMAND.to(language)
                reply = replace(reply, text=f"{reply.text} {unused}".strip())
        return self._planned(invocation, reply)

    def _planned(self, invocation: Invocation, reply: Reply) -> Plan:
        found = reply.resolution or invocation.resolution
        writes = (*found.writes, *reply.writes)
        if reply.text:
            note = self.context.note(reply.text, invocation.reader, found.conversation)
            writes = (*writes, note)
        return Plan(
            conversation=reply.scope or found.conversation,
            origin=found.conversation,
            writes=writes,
            wake=reply.wake,
            idle=reply.idle or not reply.writes,
            remaining_command=reply.remaining_command,
        )

    async def _help(self, invocation: Invocation) -> Reply:
        lines = (
            f"- `{command.usage}`: {command.does.to(invocation.language)}"
            for name, command in COMMANDS.items()
            if self._may(invocation, name)
        )
        return Reply(text="\n".join(lines))

    async def _stop(self, invocation: Invocation) -> Reply:
        conversation = await self.conversations.active(invocation.conversation)
        # Guard it: it may be erased meanwhile.
        await invocation.reads.get(RowKind.CONVERSATION, conversation)
        return Reply(
            writes=(self._control(conversation, invocation, "stop"),),
            wake=(conversation,),
            idle=not await self.conversations.is_busy(conversation),
        )

    async def _new(self, invocation: Invocation) -> Reply:
        old, new = await self.conversations.renew(invocation)
        is_off = is_off_the_record(new.conversation)
        sentence = catalogue.NEW_OFF_THE_RECORD if is_off else catalogue.NEW_CONVERSATION
        return Reply(
            text=sentence.to(invocation.language),
            resolution=new,
            writes=(self._control(old, invocation, "new"),) if old != new.conversation else (),
            wake=(old,),
        )

    async def _otr(self, invocation: Invocation) -> Reply:
        """Leave the record, or return to the earlier conversation on it; see `retention/erase.py`."""
        language = invocation.language
        if invocation.command.rest.strip().lower() not in OFF:
            resolution = await self.conversations.leave_the_record(invocation)
            sentence = catalogue.OFF_THE_RECORD if resolution else catalogue.OFF_THE_RECORD_ALREADY
            return Reply(text=sentence.to(language), resolution=resolution)
        resumed = await self.conversations.resume_record(invocation)
        if resumed is None:
            return Reply(text=catalogue.ON_RECORD_ALREADY.to(language))
        old, on_record = resumed
        is_busy = await self.conversations.is_busy(old)
        return Reply(
            text=catalogue.ON_RECORD_AGAIN.to(language),
            resolution=on_record,
            writes=(self._control(old, invocation, "stop"),) if is_busy else (),
            wake=(old,),
        )

    async def _queue(self, invocation: Invocation) -> Reply:
        """Show or set what happens to messages that arrive while an answer is being written."""
        language, argument = invocation.language, invocation.command.rest.strip()
        for mode, does in MODES.items():
            if mode == argument:
                found = await self.conversations.set_mode(invocation, mode)
                return Reply(text=catalogue.QUEUE_CHOSEN.to(language, does=does), resolution=found)
        current, mark = invocation.resolution.while_busy, catalogue.QUEUE_IS_NOW.to(language)
        lines = (
            f"- `/queue {mode}`: {does.to(language)}{mark if mode == current else ''}"
            for mode, does in MODES.items()
        )
        return Reply(text="\n".join((catalogue.QUEUE_CHOICES.to(language), *lines)))

    async def _switch(self, invocation: Invocation) -> Reply:
        on, by = invocation.command.name == "halt", invocation.principal.label
        halt = switched(self.context.policy.last_halt, on=on, by=by, at=self.context.clock.now())
        if halt is None:
            return Reply(text=catalogue.NOTHING_IS_HALTED.to(invocation.language))
        sentence = catalogue.HALTED if on else catalogue.RESUMED
        return Reply(text=sentence.to(invocation.language), writes=(halt_put(halt),))

    def _control(self, conversation: ConversationId, invocation: Invocation, cause: Cause) -> Write:
        stop = Stop(cause=cause)
        return self.context.control(stop, conversation, invocation.address, invocation.principal)

    def _query(self, invocation: Invocation, name: str) -> Query:
        # The holder of the conversation checks whether the running turn is the person's; `own`
        # only asks here whether they may use the command at all.
        return self.context.query(
            invocation.principal, f"command:{name}", direct=invocation.address.direct, own=True
        )

    def _may(self, invocation: Invocation, name: str) -> bool:
        return self.context.policy().decide(self._query(invocation, name)).effect == "allow"


async def _list_offers(offers: Offers, invocation: Invocation) -> Reply:
    """List the tools by group, and the skills, that this person may have here."""
    groups = offers.groups_for(invocation.principal, invocation.address, invocation.conversation)
    skills = offers.skills_for(invocation.principal, invocation.address)
    lines = [
        f"- {group}: {', '.join(f'`{tool.name}`' for tool in tools)}"
        for group, tools in groups.items()
    ]
    if skills:
        listed = (
            f"- `{skill.name}`: {shortened(skill.description, LISTED_CHARS)}"
            for skill in skills.values()
        )
        lines += ("", catalogue.SKILLS_ARE.to(invocation.language), *listed)
    return Reply(text="\n".join(lines) or catalogue.TOOLS_NONE.to(invocation.language))


async def _tool_usage(invocation: Invocation) -> Reply:
    return Reply(text=catalogue.NAME_THE_TOOL.to(invocation.language, usage=COMMANDS["tool"].usage))


async def _language(invocation: Invocation) -> Reply:
    """Choose the language of the bot's own sentences, on every channel where the person is known.

    It overrides the configuration. The reply is in the chosen language; without a supported one, it
    lists the choices.
    """
    choice, now = language_of(invocation.command.rest), invocation.language
    if choice is None:
        choices = ", ".join(f"{NAMES[language]} (`/language {language}`)" for language in LANGUAGES)
        return Reply(text=catalogue.LANGUAGES_SPOKEN.to(now, choices=choices, name=NAMES[now]))
    chosen = LanguageChoice(person=invocation.principal.id, language=choice)
    put = LANGUAGE_CHOICES.put(chosen.person, chosen)
    return Reply(text=catalogue.LANGUAGE_CHOSEN.to(choice, name=NAMES[choice]), writes=(put,))


async def _whoami(invocation: Invocation) -> Reply:
    principal = invocation.principal
    text = catalogue.WHO_YOU_ARE.to(
        invocation.language,
        id=principal.id,
        sender=principal.sender,
        channel=principal.channel,
        roles=", ".join(sorted(principal.roles)) or catalogue.NO_ROLES,
    )
    return Reply(text=text)


# --- the menu ------------------------------------------------------------------------------------


def menu_of(channel: str, policy: PolicySet, operators: Iterable[Principal], now: datetime) -> Menu:
    """Return the menu of a channel: the commands that the policy lets its people use.

    Args:
        channel: Its name.
        policy: The policy in force.
        operators: The operators, under each of their ids.
        now: For statements that hold only at some times.
    """
    return Menu(
        everyone=_entries(channel, frozenset(), policy, now),
        operators=_entries(channel, frozenset({OPERATOR}), policy, now),
        operator_senders=tuple(
            dict.fromkeys(person.sender for person in operators if person.channel == channel)
        ),
        ask={language: catalogue.DOES_ASK.to(language) for language in LANGUAGES},
        typed={language: catalogue.TYPED_BEHIND_A_COMMAND.to(language) for language in LANGUAGES},
    )


def _entries(
    channel: str, roles: frozenset[str], policy: PolicySet, now: datetime
) -> tuple[MenuEntry, ...]:
    # A person whom no statement names, in a private chat, for whom `own` holds.
    anyone = Principal(id=f"{channel}:", roles=roles, channel=channel, sender="")
    return tuple(
        MenuEntry(name=name, does={code: entry.menu_text(code) for code in LANGUAGES})
        for name, entry in COMMANDS.items()
        if policy.decide(
            Query(principal=anyone, action=f"command:{name}", now=now, direct=True, own=True)
        ).effect
        == "allow"
    )
