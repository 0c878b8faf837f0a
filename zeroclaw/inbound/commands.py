"""The slash commands, the same on every channel.

To add one, name it in `COMMANDS` and give it a branch in `Commands.plan`. A command's effect and
its reply are committed with the claim of its message, so it happens once; `/tool` and `/retry`
take the lane that starts turns, all others are served at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from zeroclaw.clock import Clock, Ids
from zeroclaw.config import WhileBusy
from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import Address, Command, ConversationId, ItemId, Principal
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet
from zeroclaw.inbound import language_command
from zeroclaw.inbound.answers import Answers
from zeroclaw.inbound.conversations import Conversations, Found
from zeroclaw.inbound.forget import ForgetCommand
from zeroclaw.inbound.grant_commands import GrantCommands
from zeroclaw.inbound.pair_command import PairCommand
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.switch import Halt, halt_put
from zeroclaw.store import Write
from zeroclaw.turn.inbox import Again, Cause, Item, Opening, Stop, UseTool, item_put


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHelp:
    """How a command is written, and what it does."""

    usage: str
    does: str


COMMANDS: dict[str, CommandHelp] = {
    "help": CommandHelp(usage="/help", does="this list"),
    "stop": CommandHelp(usage="/stop", does="end the answer that is being written"),
    "retry": CommandHelp(usage="/retry", does="try the newest failed or stopped message again"),
    "new": CommandHelp(usage="/new", does="begin a new conversation; the old one is kept"),
    "queue": CommandHelp(
        usage="/queue steer", does="what messages do that come while I answer; `/queue` explains"
    ),
    "status": CommandHelp(usage="/status", does="what runs, what waits, which channels are up"),
    "pending": CommandHelp(usage="/pending", does="calls that wait for an answer"),
    "approve": CommandHelp(usage="/approve 1 3", does="let these calls run, once"),
    "deny": CommandHelp(usage="/deny 2 because …", does="refuse these calls"),
    "grants": CommandHelp(
        usage="/grants", does="what runs without asking, for how long, and by whom"
    ),
    "revoke": CommandHelp(usage="/revoke 1 3", does="let these ask again, at once"),
    "tool": CommandHelp(usage='/tool shell {"command": "ls"}', does="call a tool yourself"),
    "halt": CommandHelp(usage="/halt", does="stop everything, until /resume"),
    "resume": CommandHelp(usage="/resume", does="go on after /halt"),
    "pair": CommandHelp(
        usage="/pair", does="who wants in and who is in; `/pair approve CODE`, `deny`, `revoke`"
    ),
    "forget": CommandHelp(usage="/forget", does="remove what you said to this bot; asks once more"),
    "language": CommandHelp(
        usage="/language de", does="what language my own sentences are in; `/language` lists them"
    ),
    "whoami": CommandHelp(usage="/whoami", does="who you are to this bot"),
}


MODES: dict[WhileBusy, str] = {
    "queue": "each message waits, and gets an answer of its own.",
    "collect": "what is written in a row is answered together.",
    "steer": "I take it into the running answer, after the next tool calls; else it waits.",
    "interrupt": "it ends the running answer, and I answer the newer one.",
}


class Status(Protocol):
    """Says how the daemon is, for one conversation, in Markdown."""

    async def __call__(self, conversation: ConversationId) -> str:
        """Return the text."""
        ...


class Commands:
    """Plans what a command does; the door commits it."""

    def __init__(
        self,
        *,
        conversations: Conversations,
        answers: Answers,
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
        self._answers = answers
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
        make, here = found.writes, found.conversation
        if command.name not in COMMANDS:
            text = f"I don't know `/{command.name}`; `/help` lists what I know."
            return self._reply(here, address, text, make)
        if not self._may(principal, command.name, address):
            text = (
                f"`/{command.name}` is not for you: {self._why(principal, command.name, address)}"
            )
            return self._reply(here, address, text, make)
        match command.name:
            case "retry":
                return Again()
            case "tool":
                tool, _, arguments = command.rest.partition(" ")
                if tool:
                    return UseTool(tool=tool, arguments=arguments.strip() or "{}")
                text = f"Name the tool: `{COMMANDS['tool'].usage}`"
                return self._reply(here, address, text, make)
            case "new" | "queue":
                return await self._here(command, found, address, principal)
            case "stop":
                meant = await self._conversations.at_work(here)
                stop = self._control(meant, address, principal, "stop")
                return Plan(conversation=here, writes=(*make, stop), wake=(meant,))
            case "halt" | "resume":
                return self._switch(command.name == "halt", here, address, principal, make)
            case "approve" | "deny" | "revoke" | "pair" | "forget" | "language":
                return await self._answered(command, address, principal, found)
            case _:
                text = await self._told(command.name, here, address, principal)
                return self._reply(here, address, text, make)

    async def _answered(
        self, command: Command, address: Address, principal: Principal, found: Found
    ) -> Plan:
        if command.name == "revoke":
            return await self._grants.revoke(command, address, principal, found)
        if command.name == "language":
            chosen = language_command.choose(command.rest, principal)
            writes = (*found.writes, *chosen.writes)
            return self._reply(found.conversation, address, chosen.text, writes)
        if command.name == "forget":
            said = await self._forget.plan(command.rest, address, principal)
            writes = (*found.writes, *said.writes)
            return self._reply(found.conversation, address, said.text, writes)
        if command.name != "pair":
            now = self._clock.now()
            return await self._answers.by_number(command, address, principal, now, found)
        outcome = await self._pair.plan(command.rest, principal)
        writes = (*found.writes, *outcome.writes)
        return self._reply(found.conversation, address, outcome.text, writes)

    async def _told(
        self, name: str, here: ConversationId, address: Address, principal: Principal
    ) -> str:
        match name:
            case "status":
                return await self._status(here)
            case "pending":
                return await self._answers.pending(address, principal, self._clock.now())
            case "grants":
                return await self._grants.listed(here, address, principal)
            case "whoami":
                roles = ", ".join(sorted(principal.roles)) or "none"
                return (
                    f"You are `{principal.id}`, sender `{principal.sender}` on "
                    f"`{principal.channel}`. Roles: {roles}."
                )
            case _:
                lines = (f"`{one.usage}`: {one.does}" for one in COMMANDS.values())
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
        for mode, does in MODES.items():
            if mode == wanted:
                found = await self._conversations.choose(address, principal, mode)
                text = f"From now on: {does}"
                return self._reply(found.conversation, address, text, found.writes)
        lines = (
            f"- `/queue {one}`: {does}{' (now)' if one == found.while_busy else ''}"
            for one, does in MODES.items()
        )
        text = "\n".join(("While I answer, what you write here can do one of these:", *lines))
        return self._reply(found.conversation, address, text, found.writes)

    async def _new(self, address: Address, principal: Principal) -> Plan:
        old, new = await self._conversations.renew(address, principal)
        text = "A new conversation; the old one is kept."
        writes: list[Write] = [*new.writes]
        if old.conversation != new.conversation:
            writes.append(self._control(old.conversation, address, principal, "new"))
        writes.append(self._note(new.conversation, address, text))
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
        text = (
            "Halted: nothing runs and nothing starts, until `/resume`."
            if on
            else "Going on: what waited is answered now."
        )
        halt = Halt(by=principal.display or principal.id, at=self._clock.now()) if on else None
        return Plan(
            conversation=here,
            writes=(*make, halt_put(halt), self._note(here, address, text)),
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
        self, here: ConversationId, address: Address, text: str, make: tuple[Write, ...]
    ) -> Plan:
        return Plan(
            conversation=here,
            writes=(*make, self._note(here, address, text)),
        )

    def _note(self, conversation: ConversationId, address: Address, text: str) -> Write:
        return note_row(key=self._ids.ulid(), conversation=conversation, address=address, text=text)

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
        return self._policy().decide(self._query(principal, name, address)).why
