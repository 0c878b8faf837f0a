"""Local models call tools if their chat template supports tools.

No packaged model calls tools, so the answers come from a server that writes what llama.cpp's does
(read off the packaged build, 2026-11: a first delta without content, calls in pieces, usage with
timings at the end); the real one's prompt shows how it formats definitions.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.provider_implementations import over, played
from tests.emulators import llama_child
from tests.emulators.gguf_files import CALLS, CHATS, gguf, with_tools
from tests.emulators.model_server import ModelServer
from tests.unit.providers.contexts import context
from zeroclaw.config.model import ProviderSettings
from zeroclaw.host.http import HttpRequest, http_client
from zeroclaw.message import ToolCall, ToolDefinition, Usage, UserMessage
from zeroclaw.provider import (
    Endpoint,
    Finished,
    ModelRequest,
    Provider,
    ProviderFacts,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.providers.local import LocalProvider, LocalRules, open_provider
from zeroclaw.providers.local.provider import NO_TOOLS_NOTE
from zeroclaw.value import replace

WEATHER = ToolDefinition(
    name="get_weather",
    description="Tell the weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
)
REQUEST = ModelRequest(
    messages=(UserMessage(content="What is the weather in Paris?"),), tools=(WEATHER,)
)


def chunk(delta: Mapping[str, object], finish: str | None = None, **fields: object) -> bytes:
    """One event, with the fields that llama.cpp's server writes and in its order."""
    body = {
        "choices": [{"finish_reason": finish, "index": 0, "delta": delta}],
        "created": 1795319962,
        "id": "chatcmpl-FSUHg7hlPyyK7kfkpzBTCmlQFAHerx3F",
        "model": "m",
        "system_fingerprint": "b0-unknown",
        "object": "chat.completion.chunk",
        **fields,
    }
    return f"data: {json.dumps(body)}\n\n".encode()


def call(index: int, arguments: str, **fields: str) -> bytes:
    """A piece of a call; the first has an id, a type and a name."""
    function = (
        {"name": fields.pop("name"), "arguments": arguments} if fields else {"arguments": arguments}
    )
    return chunk({"tool_calls": [{"index": index, **fields, "function": function}]})


LLAMA = (
    chunk({"role": "assistant", "content": None}),
    chunk({"content": "Let me look."}),
    call(0, "", id="aB3", type="function", name="get_weather"),
    call(0, '{"city":'),
    call(0, ' "Paris"}'),
    call(1, "{", id="cD4", type="function", name="get_weather"),
    call(1, '"city": "Rome"}'),
    chunk({}, "tool_calls"),
    chunk(
        {},
        choices=[],
        usage={"completion_tokens": 30, "prompt_tokens": 120, "total_tokens": 150},
        timings={"predicted_n": 30, "predicted_ms": 500.0},
    ),
    b"data: [DONE]\n\n",
)


async def facts_of(model: Path) -> ProviderFacts:
    """Return the facts of a configured model file; opened on a thread, as the daemon does."""
    settings = ProviderSettings(model_file=str(model))
    provider = await asyncio.to_thread(open_provider, settings, context())
    return provider.facts


@asynccontextmanager
async def local(model: Path, server: ModelServer) -> AsyncGenerator[Provider, None]:
    """The local provider as it is opened for a file, over a child that leads to the server."""
    facts = await facts_of(model)
    model.with_name(f"{model.name}.url").write_text(server.url.removesuffix("/v1"))
    provider = LocalProvider(
        rules=LocalRules(model_file=model),
        facts=facts,
        context=replace(context(), open_endpoint=over),
        child=Path(llama_child.__file__),
    )
    try:
        yield provider
    finally:
        await provider.aclose()


@pytest.mark.slow
@pytest.mark.needs("llama")
async def test_a_model_whose_template_has_a_place_for_tools_calls_them(tmp_path: Path) -> None:
    """The definitions are sent, and the calls come back whole and in order."""
    model = tmp_path / "m.gguf"
    model.write_bytes(gguf(CALLS))
    async with ModelServer() as server, local(model, server) as provider:
        server.raw(*LLAMA)
        assert await played(provider, REQUEST) == [
            TextDelta(text="Let me look."),
            UsageReported(usage=Usage(input_tokens=120, output_tokens=30)),
            ToolCallReady(
                call=ToolCall(id="aB3", name="get_weather", arguments='{"city": "Paris"}')
            ),
            ToolCallReady(
                call=ToolCall(id="cD4", name="get_weather", arguments='{"city": "Rome"}')
            ),
            Finished(reason="tool_calls"),
        ]
        assert server.requests[0].tools == ["get_weather"]


@pytest.mark.slow
@pytest.mark.needs("llama")
async def test_a_model_whose_template_has_no_tools_gets_none(tmp_path: Path) -> None:
    """And the operator reads at the start that it only chats (S0-15)."""
    model = tmp_path / "m.gguf"
    model.write_bytes(gguf(CHATS))
    async with ModelServer() as server, local(model, server) as provider:
        assert not provider.facts.calls_tools
        await played(provider, REQUEST)
        assert server.requests[0].tools == []
    assert (await facts_of(model)).note == NO_TOOLS_NOTE


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.needs("llama", "model")
async def test_the_real_server_writes_definitions_into_the_prompt(
    tmp_path: Path, small_model: Path
) -> None:
    """The shipped weights, with a template that has a place for tools."""
    endpoints: list[Endpoint] = []

    def wrap(endpoint: Endpoint) -> Provider:
        endpoints.append(endpoint)
        return over(endpoint)

    model = await asyncio.to_thread(with_tools, small_model, tmp_path / "m.gguf")
    assert (await facts_of(model)).calls_tools
    provider = LocalProvider(
        rules=LocalRules(model_file=model, threads=1),
        facts=ProviderFacts(model=model.stem, context_tokens=1024),
        context=replace(context(), open_endpoint=wrap),
    )
    await provider.start()
    prompt = await prompt_of(endpoints[0])
    await provider.aclose()
    assert '"name": "get_weather"' in prompt


async def prompt_of(endpoint: Endpoint) -> str:
    """Return the prompt that llama.cpp's server makes of a request with a tool."""
    tool = {
        "type": "function",
        "function": {"name": WEATHER.name, "parameters": WEATHER.parameters},
    }
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    http = http_client()
    request = HttpRequest(
        url=f"{endpoint.base_url.removesuffix('/v1')}/apply-template",
        headers={"Authorization": f"Bearer {endpoint.api_key}", "Content-Type": "application/json"},
        body=json.dumps(body).encode(),
    )
    async with http.open(request) as answer:
        prompt = b"".join([piece async for piece in answer.chunks])
    await http.aclose()
    return str(json.loads(prompt)["prompt"])
