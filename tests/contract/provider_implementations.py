"""The providers under the contract suite, each with requests of known behaviour."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.emulators.model_server import ModelServer
from tests.fakes.manual_clock import LoopClock
from tests.unit.providers.contexts import context
from zeroclaw.config.model import ProviderSettings
from zeroclaw.host.http import http_client
from zeroclaw.message import UserMessage
from zeroclaw.provider import (
    Endpoint,
    ModelRequest,
    Provider,
    ProviderFacts,
    StreamEvent,
    TextDelta,
)
from zeroclaw.providers.local import LocalProvider, LocalRules
from zeroclaw.providers.local.provider import CHILD
from zeroclaw.providers.openai import OpenAIProvider
from zeroclaw.providers.scripted import ScriptedProvider
from zeroclaw.providers.scripted.script import parse_script
from zeroclaw.value import replace


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A provider, and requests with known outcomes.

    Attributes:
        provider: The provider under test.
        short: A request that gets some text.
        endless: A request whose answer continues until its reader leaves.
        overlong: A request that does not fit the window.
        calling: A request that gets a tool call; None if the model can't call tools.
    """

    provider: Provider
    short: ModelRequest
    endless: ModelRequest
    overlong: ModelRequest
    calling: ModelRequest | None = None


Opener = Callable[[Path], AbstractAsyncContextManager[Stage]]


def ask(text: str, *, bound: int | None = None) -> ModelRequest:
    """One user message."""
    return ModelRequest(messages=(UserMessage(content=text),), max_output_tokens=bound)


async def played(provider: Provider, request: ModelRequest) -> list[StreamEvent]:
    """Play one request; return its events with adjacent deltas merged, since their borders vary."""
    async with aclosing(provider.stream(request)) as events:
        return [
            replace(event, is_last=False) if isinstance(event, TextDelta) else event
            async for event in events
        ]


def over(endpoint: Endpoint) -> OpenAIProvider:
    """A provider over real sockets."""
    return OpenAIProvider(
        endpoint=endpoint, http=http_client(), context=context(), settings=ProviderSettings()
    )


@asynccontextmanager
async def openai(_: Path) -> AsyncGenerator[Stage, None]:
    async with ModelServer() as server:
        server.say("a", server.gate(), key="endless", times=None)
        server.refuse(400, "too long", code="context_length_exceeded", key="overlong", times=None)
        server.call("shell", {"command": "date"}, key="calling", times=None)
        provider = over(Endpoint(base_url=server.url, model="m"))
        try:
            yield Stage(
                provider=provider,
                short=ask("hello"),
                endless=ask("endless"),
                overlong=ask("overlong"),
                calling=ask("calling"),
            )
        finally:
            await provider.aclose()


SCRIPT = """
otherwise = "hello"

[[turn]]
when = "endless"
[[turn.answer]]
steps = [{ say = "a" }, { wait_s = 1e9 }]

[[turn]]
when = "overlong"
[[turn.answer]]
steps = [{ fail = "overflow" }]

[[turn]]
when = "calling"
[[turn.answer]]
steps = [{ call = "shell", arguments = { command = "date" } }]
"""


@asynccontextmanager
async def scripted(_: Path) -> AsyncGenerator[Stage, None]:
    yield Stage(
        provider=ScriptedProvider(script=parse_script(SCRIPT), clock=LoopClock()),
        short=ask("hello"),
        endless=ask("endless"),
        overlong=ask("overlong"),
        calling=ask("calling"),
    )


def local_provider(model: Path, *, child: Path = CHILD) -> LocalProvider:
    """The real model, in its child."""
    return LocalProvider(
        # One thread: with other tests in parallel two would spin, each waiting for the other.
        rules=LocalRules(model_file=model, threads=1),
        facts=ProviderFacts(model=model.stem, context_tokens=2048, calls_tools=False),
        context=replace(context(), open_endpoint=over),
        child=child,
    )


@asynccontextmanager
async def local(model: Path) -> AsyncGenerator[Stage, None]:
    provider = local_provider(model)
    try:
        yield Stage(
            provider=provider,
            short=ask("Say hello.", bound=8),
            endless=ask("Count from one to a thousand in words.", bound=1500),
            overlong=ask("word " * 4000),
        )
    finally:
        await provider.aclose()
