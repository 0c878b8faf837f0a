"""A tool that does what a test wants and remembers that it did."""

import asyncio
from collections.abc import Awaitable, Callable

from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.tool import Arguments, ToolContext, ToolOutput, ToolSpec
from zeroclaw.value import replace

LOOK = ToolSpec(
    name="look",
    description="looks",
    parameters={"type": "object"},
    effects=frozenset({"read"}),
    risk="low",
    idempotent=True,
)
"""Runs without a question."""
POKE = ToolSpec(
    name="poke", description="pokes", parameters={"type": "object"}, effects=frozenset({"write"})
)
"""Asks first."""
BURN = replace(POKE, name="burn", description="can't be cancelled", cancellable=False)


class PlainTool:
    """Returns `<name> did <arguments>`.

    Attributes:
        runs: The arguments of every run that began.
        ended: How many runs came to their end by themselves.
        hold: Waited for inside each run, when set.
        does: Replaces the run, when set.
        touches: Its resources.
        resolving: Waited for before they are told, when set.
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
