"""The openai provider against a real server that sends exactly the scripted bytes."""

import asyncio
from base64 import b64encode
from contextlib import aclosing

import pytest

from tests.contract.provider_implementations import ask, over, played
from tests.emulators.model_scripts import Received, chunk, delta, ending, role
from tests.emulators.model_server import ModelProcess, ModelServer
from zeroclaw.errors import ProviderOverloaded, ProviderRejected, StreamBroken, ZeroclawError
from zeroclaw.message import FilePart, UserMessage
from zeroclaw.provider import (
    Endpoint,
    Finished,
    ModelRequest,
    Provider,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
)

PINGED = b": ping\r\n\r\n"


def of(server: ModelServer | ModelProcess) -> Provider:
    return over(Endpoint(base_url=server.url, model="m"))


async def play(provider: Provider, text: str = "hi") -> list[StreamEvent]:
    return await played(provider, ask(text))


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_text_arrives_while_the_stream_is_open() -> None:
    """A delta leaves before the next one exists (S2-06, S0-22)."""
    async with ModelServer() as server:
        provider, gate = of(server), server.gate()
        server.say("one ", gate, "two")
        async with aclosing(provider.stream(ask("hi"))) as events:
            assert await anext(events) == TextDelta(text="one ")
            await gate.reached()
            gate.open()
            assert text_of([event async for event in events]) == "two"
        await provider.aclose()


async def test_a_stream_sent_byte_by_byte_is_the_same_answer() -> None:
    """Each byte in a separate HTTP chunk (S1-13)."""
    stream = PINGED + b"".join(
        step.data for step in (delta(content="né 😀"), delta("stop"), chunk(choices=[], usage={}))
    )
    async with ModelServer() as server:
        provider = of(server)
        server.raw(*(stream[at : at + 1] for at in range(len(stream))))
        assert await play(provider) == [TextDelta(text="né 😀"), Finished(reason="stop")]
        await provider.aclose()


async def test_reasoning_and_calls_come_through() -> None:
    async with ModelServer() as server:
        provider = of(server)
        server.calls(("a", {"x": 1}), ("b", "{broken"), text="so", reasoning="hm")
        events = await play(provider)
        calls = [event.call for event in events if isinstance(event, ToolCallReady)]
        assert events[:2] == [ReasoningDelta(text="hm"), TextDelta(text="so")]
        assert [(call.name, call.arguments) for call in calls] == [
            ("a", '{"x": 1}'),
            ("b", "{broken"),
        ]
        await provider.aclose()


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ((delta(content="half").data,), StreamBroken),
        ((b"data: {broken\n\n",), StreamBroken),
        ((), StreamBroken),
        (
            (b'data: {"error":{"message":"m","type":"invalid_request_error"}}\n\n',),
            ProviderRejected,
        ),
        ((b'{"error":{"message":"m"}}',), ProviderRejected),
        ((b"<html>login</html>",), ProviderRejected),
    ],
    ids=["cut", "broken", "nothing", "error event", "error body", "web page"],
)
async def test_bad_input_is_a_clear_error_and_the_next_request_works(
    parts: tuple[bytes, ...], kind: type[ZeroclawError]
) -> None:
    async with ModelServer() as server:
        provider = of(server)
        server.raw(*parts, cut=kind is StreamBroken)
        with pytest.raises(kind):
            await play(provider)
        assert text_of(await play(provider)) == "hi"
        await provider.aclose()


async def test_a_kept_connection_that_the_server_closed_is_replaced_unseen() -> None:
    async with ModelServer() as server:
        provider = of(server)
        await play(provider)
        server.disconnect()
        assert text_of(await play(provider)) == "hi"
        assert len(server.requests) == 3
        await provider.aclose()


async def test_a_request_to_a_busy_endpoint_is_retried() -> None:
    async with ModelServer() as server:
        provider = of(server)
        server.refuse(429, "slow down", headers={"retry-after": "0"}, times=2)
        server.refuse(529, "overloaded", headers={"retry-after": "0"})
        assert text_of(await play(provider)) == "hi"
        server.refuse(429, "slow down", headers={"retry-after": "3600"})
        with pytest.raises(ProviderOverloaded, match="slow down"):
            await play(provider)
        assert len(server.requests) == 5
        await provider.aclose()


async def test_a_picture_crosses_as_it_is() -> None:
    """All of it, among the parts of its message. S1-08."""
    picture = bytes(range(256)) * 1_000
    part = FilePart(
        digest="d", media_type="image/png", name="a.png", number=1, size_bytes=len(picture)
    )
    message = UserMessage(content="look", files=(part,))
    request = ModelRequest(messages=(message,), files={"d": b64encode(picture)})
    async with ModelServer() as server:
        provider = of(server)
        await played(provider, request)
        url = f"data:image/png;base64,{b64encode(picture).decode()}"
        assert server.requests[0].parts == [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        await provider.aclose()


async def test_a_closed_stream_hangs_up() -> None:
    async with ModelServer() as server:
        provider = of(server)
        server.say("one ", server.gate())
        async with aclosing(provider.stream(ask("hi"))) as events:
            await anext(events)
        await server.until(lambda server: server.disconnects == 1)
        await provider.aclose()


@pytest.mark.slow
async def test_sixty_answers_at_once_do_not_mix() -> None:
    """As many as the runtime lets at a model at the same time by default."""
    async with ModelServer() as server:
        provider = of(server)
        for number in range(60):
            server.say(f"answer {number}", key=f"question {number:02}", size=3)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(play(provider, f"question {number:02}")) for number in range(60)
            ]
        assert [text_of(task.result()) for task in tasks] == [f"answer {n}" for n in range(60)]
        await provider.aclose()


@pytest.mark.slow
async def test_the_server_does_the_same_from_a_process_of_its_own() -> None:
    """The parts that journeys use: scripts, gates and requests over its control API."""
    async with ModelProcess() as server:
        provider, gate = of(server), server.gate()
        server.say("one ", gate, "two", key="gated")
        server.raw(
            role().data, delta(content="\u00e9").data, *(s.data for s in ending("stop", (1, 1)))
        )
        assert text_of(await play(provider, "first")) == "é"
        async with asyncio.TaskGroup() as group:
            playing = group.create_task(play(provider, "gated"))
            await gate.reached()
            gate.open()
        assert text_of(playing.result()) == "one two"
        assert [request.last_user for request in server.requests] == ["first", "gated"]
        server.reset()
        assert server.requests == []
        await provider.aclose()


def test_the_round_of_a_request_is_the_number_of_answers_since_the_user_spoke() -> None:
    messages = [
        {"role": role, "content": role}
        for role in ("user", "assistant", "user", "assistant", "tool", "assistant", "tool")
    ]
    received = Received(path="", headers={}, body={"messages": messages, "tools": []})
    assert (received.round, received.last_user, received.tools) == (2, "user", [])
