"""A command from a chat or the console, and its reply."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from zeroclaw.envelope import Address, Command, ConversationId, Principal, Reader
from zeroclaw.host.answers import Text
from zeroclaw.inbound.anchors import add_audit
from zeroclaw.inbound.context import InboundContext, Plan, Resolution
from zeroclaw.inbound.live_config import Halt, halt_put, last_halt, switched
from zeroclaw.inbound.pairing import CONSOLE
from zeroclaw.json_fields import text_at
from zeroclaw.store import Commit, DurablePoint, Reads, Store, Write, transact
from zeroclaw.text.language import Language
from zeroclaw.value import Value

AT_CONSOLE = Address(channel=CONSOLE.channel, account="", chat="", direct=True)


class Invocation(Value):
    """One command from a chat or the console; the console's conversation is empty.

    Attributes:
        reads: The reads of its plan.
        resolution: The conversation that the chat pointed to.
    """

    reads: Reads
    command: Command
    address: Address
    principal: Principal
    resolution: Resolution

    @property
    def conversation(self) -> ConversationId:
        """The conversation that it was given in."""
        return self.resolution.conversation

    @property
    def reader(self) -> Reader:
        """The reader of its reply."""
        return Reader(address=self.address, language=self.language)

    @property
    def language(self) -> Language:
        """The language of the person who gave it."""
        return self.principal.language


class Reply(Value):
    """The effects of a command.

    Attributes:
        text: For the person who gave it, in Markdown; empty if the effect is visible anyway.
        writes: Empty if nothing changes.
        scope: The conversation of the writes, if it is not the one of the command.
        resolution: The conversation that the chat points to from now on; None for no change.
        wake: As in `Plan`.
        idle: It writes, but has no effect.
        remaining_command: As in `Plan`.
    """

    text: str = ""
    writes: tuple[Write, ...] = ()
    scope: ConversationId | None = None
    resolution: Resolution | None = None
    wake: tuple[ConversationId, ...] = ()
    idle: bool = False
    remaining_command: Command | None = None


Handler = Callable[[Invocation], Awaitable[Reply]]


async def at_console(
    context: InboundContext, handler: Handler, name: str, request: Mapping[str, object]
) -> Text:
    """Run a command that comes over the control socket, one commit per conversation.

    Args:
        context: Commits the plans.
        handler: Plans the command.
        name: The command's name.
        request: The request with its `words`.

    Raises:
        Conflict: Other writers kept changing the same rows.
    """
    replies: list[str] = []
    is_changed = False
    remaining: Command | None = Command(name=name, rest=text_at(request, "words"))
    while remaining is not None:

        async def planned(reads: Reads, command: Command = remaining) -> Plan:
            invocation = Invocation(
                reads=reads,
                command=command,
                address=AT_CONSOLE,
                principal=CONSOLE,
                resolution=Resolution(conversation=ConversationId("")),
            )
            reply = await handler(invocation)
            by, channel, now = CONSOLE.id, CONSOLE.channel, context.clock.now()
            return Plan(
                conversation=reply.scope,
                writes=await add_audit(context.store, reply.writes, by=by, channel=channel, at=now),
                wake=reply.wake,
                toast=reply.text,
                remaining_command=reply.remaining_command,
            )

        committed = await context.transact(planned, DurablePoint.ANSWERED)
        replies.append(committed.toast)
        is_changed, remaining = is_changed or bool(committed.writes), committed.remaining_command
    return Text(text="\n".join(replies), changed=is_changed)


async def switch(store: Store, *, on: bool, by: str, at: datetime) -> Halt:
    """Halt or resume for the command line; return the newest halt."""

    async def planned(reads: Reads) -> tuple[Commit | None, Halt]:
        last = await last_halt(reads)
        halt = switched(last, on=on, by=by, at=at)
        if halt is None:
            return None, last
        put, channel = halt_put(halt), CONSOLE.channel
        writes = await add_audit(store, (put,), by=CONSOLE.id, channel=channel, at=at)
        return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes), halt

    return await transact(store, planned)
