"""The slash commands, the same on every channel.

To add one, name it in `COMMANDS` and give it a branch in `Commands.plan`. A command's effect and
its reply are committed with the claim of its message, so it happens once; `/tool` and `/retry`
take the lane that starts turns, all others are served at once.
"""

from collections.abc import Callable
from typing import Protocol

from zeroclaw.clock import Clock, Ids
from zeroclaw.config.model import WhileBusy
from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import Address, Command, ConversationId, ItemId, Principal
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet, why_refused
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands import language as language_command
from zeroclaw.inbound.commands.forget import ForgetCommand
from zeroclaw.inbound.commands.grants import GrantCommands
from zeroclaw.inbound.commands.halt import Halt, halt_put
from zeroclaw.inbound.commands.pair import PairCommand
from zeroclaw.inbound.conversations import Conversations, Found
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language, Sentence
from zeroclaw.turn.inbox import Again, Cause, Item, Opening, Stop, UseTool, item_put
from zeroclaw.value import Value, replace


class CommandHelp(Value):
    """How a command is written, and what it does."""

    usage: str
    does: Sentence


COMMANDS: dict[str, CommandHelp] = {
    "help": CommandHelp(usage="/help", does=catalogue.DOES_HELP),
    "stop": CommandHelp(usage="/stop", does=catalogue.DOES_STOP),
    "retry": CommandHelp(usage="/retry", does=catalogue.DOES_RETRY),
    "new": CommandHelp(usage="/new", does=catalogue.DOES_NEW),
    "queue": CommandHelp(usage="/queue steer", does=catalogue.DOES_QUEUE),
    "status": CommandHelp(usage="/status", does=catalogue.DOES_STATUS),
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


class Status(Protocol):
    """Says how the daemon is, for one conversation, in Markdown."""

    async def __call__(self, conversation: ConversationId, language: Language) -> str:
        """Return the text."""
        ...


class Commands:
    """Plans what a command does; ingress commits it."""

    def __init__(
        self,
        *,
        conversations: Conversations,
        requests: Approvals,
        pair: PairCommand,
        grants: GrantCommands,
        forget: ForgetCommand,
        policy: Callable[[], PolicySet],
        status: Status,
        clock: Clock,
        ids: Ids,
    ) -> None:
        """Hold what commands read; `policy` is the one in force now."""
        self._conversations = conversations
        self._requests = requests
        self._pair = pair
        self._grants = grants
        self._forget = forget
        self._policy = policy
        self._status = status
        self._clock = clock
        self._ids = ids

    async def plan(
        self, command: Command, address: Address, principal: Principal
    ) -> Plan | Opening:
        """Return what a command does, or the opening of a turn for the other lane."""
        found = await self._conversations.find(address, principal)
        # A conversation that does not exist yet is made with the reply, never by a read.
        make, here, language = found.writes, found.conversation, principal.language
        if command.name not in COMMANDS:
            text = catalogue.UNKNOWN_COMMAND.to(language, name=command.name)
            return self._reply(here, address, principal, text, make)
        if not self._may(principal, command.name, address):
            why = self._why(principal, command.name, address)
            text = catalogue.COMMAND_IS_NOT_YOURS.to(language, name=command.name, why=why)
            return replace(self._reply(here, address, principal, text, make), idle=True)
        match command.name:
            case "retry":
                return Again()
            case "tool":
                tool, _, arguments = command.rest.partition(" ")
                if tool:
                    return UseTool(tool=tool, arguments=arguments.strip() or "{}")
                text = catalogue.NAME_THE_TOOL.to(language, usage=COMMANDS["tool"].usage)
                return self._reply(here, address, principal, text, make)
            case "new" | "queue":
                return await self._here(command, found, address, principal)
            case "stop":
                meant = await self._conversations.at_work(here)
                stop = self._control(meant, address, principal, "stop")
                idle = not await self._conversations.is_busy(meant)
                return Plan(conversation=here, writes=(*make, stop), wake=(meant,), idle=idle)
            case "halt" | "resume":
                return self._switch(command.name == "halt", here, address, principal, make)
            case "approve" | "deny" | "revoke" | "pair" | "forget" | "language":
                return await self._answered(command, address, principal, found)
            case _:
                text = await self._told(command.name, here, address, principal)
                return self._reply(here, address, principal, text, make)

    async def _answered(
        self, command: Command, address: Address, principal: Principal, found: Found
    ) -> Plan:
        if command.name == "revoke":
            return await self._grants.revoke(command, address, principal, found)
        if command.name == "language":
            chosen = language_command.choose(command.rest, principal)
            writes = (*found.writes, *chosen.writes)
            return self._reply(found.conversation, address, principal, chosen.text, writes)
        if command.name == "forget":
            said = await self._forget.plan(command.rest, address, principal)
            writes = (*found.writes, *said.writes)
            return self._reply(found.conversation, address, principal, said.text, writes)
        if command.name != "pair":
            now = self._clock.now()
            return await self._requests.by_number(command, address, principal, now, found)
        outcome = await self._pair.plan(command.rest, principal, direct=address.direct)
        writes = (*found.writes, *outcome.writes)
        return self._reply(found.conversation, address, principal, outcome.text, writes)

    async def _told(
        self, name: str, here: ConversationId, address: Address, principal: Principal
    ) -> str:
        language = principal.language
        match name:
            case "status":
                return await self._status(here, language)
            case "pending":
                return await self._requests.pending(here, address, principal, self._clock.now())
            case "grants":
                return await self._grants.listed(here, address, principal)
            case "whoami":
                return catalogue.WHO_YOU_ARE.to(
                    language,
                    id=principal.id,
                    sender=principal.sender,
                    channel=principal.channel,
                    roles=", ".join(sorted(principal.roles)) or catalogue.NO_ROLES,
                )
            case _:
                lines = (
                    f"`{one.usage}`: {one.does.to(language)}"
                    for known, one in COMMANDS.items()
                    if self._may(principal, known, address)
                )
                return "\n".join(f"- {line}" for line in lines)

    async def _here(
        self, command: Command, found: Found, address: Address, principal: Principal
    ) -> Plan:
        if command.name == "new":
            return await self._new(address, principal)
        return await self._queue(command.rest.strip(), found, address, principal)

    async def _queue(
        self, wanted: str, found: Found, address: Address, principal: Principal
    ) -> Plan:
        """Tell or change what messages do that come while an answer is being written."""
        language = principal.language
        for mode, does in MODES.items():
            if mode == wanted:
                found = await self._conversations.choose(address, principal, mode)
                text = catalogue.QUEUE_CHOSEN.to(language, does=does)
                return self._reply(found.conversation, address, principal, text, found.writes)
        now = catalogue.QUEUE_IS_NOW.to(language)
        lines = (
            f"- `/queue {one}`: {does.to(language)}{now if one == found.while_busy else ''}"
            for one, does in MODES.items()
        )
        text = "\n".join((catalogue.QUEUE_CHOICES.to(language), *lines))
        return self._reply(found.conversation, address, principal, text, found.writes)

    async def _new(self, address: Address, principal: Principal) -> Plan:
        old, new = await self._conversations.renew(address, principal)
        text = catalogue.NEW_CONVERSATION.to(principal.language)
        writes: list[Write] = [*new.writes]
        if old.conversation != new.conversation:
            writes.append(self._control(old.conversation, address, principal, "new"))
        writes.append(self._note(new.conversation, address, principal, text))
        return Plan(
            conversation=new.conversation,
            writes=tuple(writes),
            wake=(old.conversation,),
        )

    def _switch(
        self,
        on: bool,  # noqa: FBT001  the switch's position
        here: ConversationId,
        address: Address,
        principal: Principal,
        make: tuple[Write, ...],
    ) -> Plan:
        says = catalogue.HALTED if on else catalogue.GOING_ON
        text = says.to(principal.language)
        halt = Halt(by=principal.label, at=self._clock.now()) if on else None
        return Plan(
            conversation=here,
            writes=(*make, halt_put(halt), self._note(here, address, principal, text)),
            switched=True,
            halt=halt,
        )

    def _control(
        self, conversation: ConversationId, address: Address, principal: Principal, cause: Cause
    ) -> Write:
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=conversation,
            address=address,
            principal=principal,
            content=Stop(cause=cause),
            admitted_at=self._clock.now(),
        )
        return item_put(item, "control", expect=0)

    def _reply(
        self,
        here: ConversationId,
        address: Address,
        principal: Principal,
        text: str,
        make: tuple[Write, ...],
    ) -> Plan:
        return Plan(
            conversation=here,
            writes=(*make, self._note(here, address, principal, text)),
        )

    def _note(
        self, conversation: ConversationId, address: Address, principal: Principal, text: str
    ) -> Write:
        return note_row(
            key=self._ids.ulid(),
            conversation=conversation,
            address=address,
            text=text,
            language=principal.language,
        )

    def _query(self, principal: Principal, name: str, address: Address) -> Query:
        # Whose turn runs is checked by whoever holds the conversation; here `own` asks only
        # whether the command may be used at all.
        return Query(
            principal=principal,
            action=f"command:{name}",
            now=self._clock.now(),
            direct=address.direct,
            own=True,
        )

    def _may(self, principal: Principal, name: str, address: Address) -> bool:
        return self._policy().decide(self._query(principal, name, address)).effect == "allow"

    def _why(self, principal: Principal, name: str, address: Address) -> str:
        query = self._query(principal, name, address)
        return why_refused(self._policy(), query, principal.language)
