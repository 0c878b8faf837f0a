"""Scriptable tools, their contexts, and the processes that tools reported."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.manual_clock import ManualClock
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.tool import Arguments, Spawned, ToolContext, ToolOutput, ToolSpec
from zeroclaw.value import replace

LOOK = ToolSpec(
    name="look",
    description="looks",
    parameters={"type": "object"},
    effects=frozenset({"read"}),
    risk="low",
    idempotent=True,
)
"""Needs no approval."""
POKE = ToolSpec(
    name="poke", description="pokes", parameters={"type": "object"}, effects=frozenset({"write"})
)
"""Needs an approval."""
BURN = replace(POKE, name="burn", description="can't be cancelled", cancellable=False)


class PlainTool:
    """Returns `<name> did <arguments>`.

    Attributes:
        runs: The arguments of every run that began.
        ended: The number of runs that ended by themselves.
        hold: If set, each run waits for it.
        does: If set, replaces the run.
        touches: The resources of a call.
        resolving: If set, `resources` waits for it.
    """

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self.runs: list[dict[str, object]] = []
        self.ended = 0
        self.hold: asyncio.Event | None = None
        self.does: Callable[[ToolContext], Awaitable[ToolOutput]] | None = None
        self.resolving: asyncio.Event | None = None
        self.touches: tuple[str, ...] = ("file:/notes/1",)

    def check(self, arguments: Arguments) -> Arguments:
        if "bad" in arguments:
            raise ToolArgumentsInvalid(("bad: not this",))
        return arguments

    def describe(self, arguments: Arguments) -> str:
        return f"{self.spec.name} {sorted(arguments)}"

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        if self.resolving is not None:
            await self.resolving.wait()
        await asyncio.sleep(0)
        return self.touches

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        self.runs.append(dict(arguments))
        if self.hold is not None:
            await self.hold.wait()
        output = ToolOutput(text=f"{self.spec.name} did {dict(arguments)}")
        if self.does is not None:
            output = await self.does(context)
        self.ended += 1
        return output


# --- the context of a call ------------------------------------------------------------------------

SOMEBODY = Principal(id="person:ada", roles=frozenset(), channel="web", sender="ada")
AT_HOME = Address(channel="web", account="local", chat="ada", direct=True)


@dataclass(kw_only=True)
class Records:
    """Every recorded process group, in order, with None for "reaped"."""

    seen: list[Spawned | None] = field(default_factory=list[Spawned | None])

    async def spawned(self, group: Spawned | None) -> None:
        self.seen.append(group)

    @property
    def pgid(self) -> int:
        """The first group's id."""
        [first] = [group for group in self.seen[:1] if group is not None]
        return first.pgid


def everything(resource: str) -> bool:
    """Permit every file, as without a policy."""
    return resource.startswith("file:/")


def tool_context(
    workspace: Path, records: Records | None = None, permits: Callable[[str], bool] = everything
) -> ToolContext:
    return ToolContext(
        conversation=ConversationId("01CONVERSATION"),
        principal=SOMEBODY,
        address=AT_HOME,
        workspace=workspace,
        clock=ManualClock(),
        spawned=(records or Records()).spawned,
        max_file_bytes=1_000_000,
        permits=permits,
    )
