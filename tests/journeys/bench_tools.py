"""The tools of journeys, run inside the daemon; the bench in the test decides their results.

`peek` only reads, so it is allowed; `knock` writes, so it needs approval; `nap` reads and times out
after half a second; `dig` reads and can't be cancelled safely. Only `peek` is idempotent.
"""

import asyncio
import os

from pydantic import Field
from zeroclaw_test_platform.wire import line, read, text_of

from tests.journeys.bench import Bench
from zeroclaw import Arguments, ToolContext, ToolFailed, ToolOutput, ToolSpec
from zeroclaw.config.model import ProviderSettings
from zeroclaw.provider import Endpoint, Provider, ProviderContext
from zeroclaw.tools import ModelSchema, ToolArguments, parse
from zeroclaw.value import Value, replace

PORT_VARIABLE = "JOURNEY_BENCH_PORT"
SHELVES = tuple(f"look_at_shelf_{number:02}" for number in range(1, 44))
"""Together with the daemon's thirteen tools and the bench's four these are sixty."""


class BenchArguments(ToolArguments):
    """The arguments of every tool of the bench."""

    what: str = Field(min_length=1, description="What to do.")
    times: int = Field(default=1, ge=1, le=9)


class BenchTool(Value):
    """One tool of the bench."""

    spec: ToolSpec

    def check(self, arguments: Arguments) -> Arguments:
        return parse(BenchArguments, arguments).model_dump()

    def describe(self, arguments: Arguments) -> str:
        return f"{self.spec.name} {parse(BenchArguments, arguments).what}"

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        await asyncio.sleep(0)
        return ()

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        port = int(os.environ[PORT_VARIABLE])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=Bench.line_bytes)
        try:
            request = {"tool": self.spec.name, "arguments": dict(arguments)}
            writer.write(line(request))
            answer = await read(reader)
        finally:
            writer.close()
        if answer is None:
            raise ToolFailed("the bench went away")
        match text_of(answer, "raise"):
            case "":
                return ToolOutput(
                    text=text_of(answer, "text"), is_error=answer.get("is_error") is True
                )
            case "failed":
                raise ToolFailed(text_of(answer, "text"))
            case _:
                raise RuntimeError(text_of(answer, "text"))


def tools(*_: object) -> tuple[BenchTool, ...]:
    """Return all tools of the bench."""
    parameters = ModelSchema(BenchArguments)
    return (
        BenchTool(
            spec=ToolSpec(
                name="peek",
                description="Look at something.",
                parameters=parameters,
                effects=frozenset({"read"}),
                idempotent=True,
                risk="low",
            )
        ),
        BenchTool(
            spec=ToolSpec(
                name="knock",
                description="Change something.",
                parameters=parameters,
                effects=frozenset({"write"}),
            )
        ),
        BenchTool(
            spec=ToolSpec(
                name="nap",
                description="Look at something for half a second at most.",
                parameters=parameters,
                effects=frozenset({"read"}),
                risk="low",
                timeout_s=0.5,
            )
        ),
        BenchTool(
            spec=ToolSpec(
                name="dig",
                description="Look at something, to the end.",
                parameters=parameters,
                effects=frozenset({"read"}),
                cancellable=False,
                risk="low",
            )
        ),
    )


def shelves(*_: object) -> tuple[BenchTool, ...]:
    """Return the tools of a second package, which some journeys install."""
    return tuple(
        BenchTool(
            spec=ToolSpec(
                name=name,
                description="Look at a shelf, and tell what stands there.",
                parameters=ModelSchema(BenchArguments),
                effects=frozenset({"read"}),
                idempotent=True,
                risk="low",
            )
        )
        for name in SHELVES
    )


class Chatter:
    """A provider whose model can't call tools."""

    def __init__(self, endpoint: Provider) -> None:
        """Forward every request to an endpoint."""
        self.stream, self.aclose = endpoint.stream, endpoint.aclose
        self.facts = replace(endpoint.facts, calls_tools=False)


def chatter(settings: ProviderSettings, context: ProviderContext) -> Chatter:
    """Open it over the endpoint of `[provider]`."""
    endpoint = Endpoint(
        base_url=settings.base_url, model=settings.model, api_key=context.secrets["api_key"]
    )
    return Chatter(context.open_endpoint(endpoint))
