"""A command as given in a chat or at the console, and its reply."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from zeroclaw.envelope import Address, Command, ConversationId, Principal
from zeroclaw.host.answers import Text
from zeroclaw.inbound.anchors import on_record
from zeroclaw.inbound.context import InboundContext, Plan, Resolution
from zeroclaw.inbound.live_config import Halt, halt_put, last_halt, switched
from zeroclaw.inbound.pairing import CONSOLE
from zeroclaw.json_fields import text_at
from zeroclaw.store import Commit, DurablePoint, Reads, Store, Write, transact
from zeroclaw.text.language import Language
from zeroclaw.value import Value

AT_CONSOLE = Address(channel=CONSOLE.channel, account="", chat="", direct=True)


class Invocation(Value):
    """One command: what, where and by whom.

    Attributes:
        reads: What its plan reads through.
        found: The conversation that it was given in.
    """

    reads: Reads
    command: Command
    address: Address
    principal: Principal
    found: Resolution

    @property
    def here(self) -> ConversationId:
        """The conversation that it was given in."""
        return self.found.conversation

    @property
    def language(self) -> Language:
        """The language of the person who gave it."""
        return self.principal.language


class Reply(Value):
    """The effects of a command.

    Attributes:
        text: For the person who gave it, in Markdown; empty if the effect is visible anyway.
        writes: Empty when nothing is changed.
        scope: The conversation of the writes, if it is not the one of the command.
        found: The conversation that the address points to from now on, None if that stays.
        wake: As in `Plan`.
        idle: It writes, but changes nothing.
        remaining_command: As in `Plan`.
    """

    text: str = ""
    writes: tuple[Write, ...] = ()
    scope: ConversationId | None = None
    found: Resolution | None = None
    wake: tuple[ConversationId, ...] = ()
    idle: bool = False
    remaining_command: Command | None = None


Handler = Callable[[Invocation], Awaitable[Reply]]


async def at_console(
    context: InboundContext, handler: Handler, name: str, asked: Mapping[str, object]
) -> Text:
    """Do what the command line asks for over the control socket, one conversation after another.

    Args:
        context: Commits it.
        handler: Plans it.
        name: The command's name.
        asked: The request with its `words`.

    Raises:
        Conflict: Other writers kept changing the same rows.
    """
    told: list[str] = []
    is_changed = False
    left: Command | None = Command(name=name, rest=text_at(asked, "words"))
    while left is not None:

        async def planned(reads: Reads, command: Command = left) -> Plan:
            given = Invocation(
                reads=reads,
                command=command,
                address=AT_CONSOLE,
                principal=CONSOLE,
                found=Resolution(conversation=ConversationId("")),
            )
            reply = await handler(given)
            by, channel, now = CONSOLE.id, CONSOLE.channel, context.clock.now()
            return Plan(
                conversation=reply.scope,
                writes=await on_record(context.store, reply.writes, by=by, channel=channel, at=now),
                wake=reply.wake,
                toast=reply.text,
                remaining_command=reply.remaining_command,
            )

        made = await context.transact(planned, DurablePoint.ANSWERED)
        told.append(made.toast)
        is_changed, left = is_changed or bool(made.writes), made.remaining_command
    return Text(text="\n".join(told), changed=is_changed)


async def switch(store: Store, *, on: bool, by: str, at: datetime) -> Halt:
    """Turn the switch for the command line; return the newest halt."""

    async def planned(reads: Reads) -> tuple[Commit | None, Halt]:
        last = await last_halt(reads)
        halt = switched(last, on=on, by=by, at=at)
        if halt is None:
            return None, last
        put, channel = halt_put(halt), CONSOLE.channel
        writes = await on_record(store, (put,), by=CONSOLE.id, channel=channel, at=at)
        return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes), halt

    return await transact(store, planned)
