"""Every provider's promises."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.contract.provider_implementations import Opener, local, openai, scripted
from zeroclaw.errors import ContextOverflow
from zeroclaw.message import FilePart, UserMessage
from zeroclaw.provider import (
    Finished,
    ModelRequest,
    Provider,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.value import replace

PICTURE = FilePart(digest="d", media_type="image/png", name="a.png", number=1, size_bytes=3)
REAL = [pytest.mark.slow, pytest.mark.needs("llama", "model"), pytest.mark.timeout(300)]
over_those_that_call = pytest.mark.parametrize("opener", [openai, scripted])
over_all = pytest.mark.parametrize(
    "opener",
    [
        pytest.param(openai, id="openai"),
        pytest.param(scripted, id="scripted"),
        pytest.param(local, id="local", marks=REAL),
    ],
)


async def play(provider: Provider, request: ModelRequest) -> list[StreamEvent]:
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


async def listen_at_most(events: AsyncGenerator[StreamEvent, None], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        async for _ in events:
            pass


@over_all
async def test_an_answer_is_typed_events_with_the_finish_last_and_once(
    opener: Opener, small_model: Path
) -> None:
    """Text comes in deltas, usage is reported, `Finished` ends it (S2-21, S0-22)."""
    async with opener(small_model) as stage:
        events = await play(stage.provider, stage.short)
        assert [type(event) for event in events].count(Finished) == 1
        assert isinstance(events[-1], Finished)
        assert any(isinstance(event, TextDelta) and event.text for event in events)
        usage = [event.usage for event in events if isinstance(event, UsageReported)][-1]
        assert usage.output_tokens > 0


@over_those_that_call
async def test_a_tool_call_leaves_whole(opener: Opener, small_model: Path) -> None:
    """One event a call, with the model's raw arguments (S1-10, S1-13, S0-23)."""
    async with opener(small_model) as stage:
        assert stage.calling is not None
        events = await play(stage.provider, stage.calling)
        calls = [event.call for event in events if isinstance(event, ToolCallReady)]
        assert [(call.name, call.arguments) for call in calls] == [("shell", '{"command": "date"}')]
        assert events[-1] == Finished(reason="tool_calls")


@over_all
async def test_an_answer_left_early_disturbs_no_other(opener: Opener, small_model: Path) -> None:
    """Closing the generator ends the call; the provider goes on."""
    async with opener(small_model) as stage:
        async with aclosing(stage.provider.stream(stage.endless)) as events:
            assert isinstance(await anext(events), TextDelta)
        assert isinstance((await play(stage.provider, stage.short))[-1], Finished)


@over_all
async def test_a_cancelled_answer_disturbs_no_other(opener: Opener, small_model: Path) -> None:
    """Cancellation passes through, and the connection is free again."""
    async with opener(small_model) as stage:
        started = asyncio.Event()

        async def listen() -> None:
            async with aclosing(stage.provider.stream(stage.endless)) as events:
                async for _ in events:
                    started.set()

        async with asyncio.TaskGroup() as group:
            listening = group.create_task(listen())
            await started.wait()
            listening.cancel()
        assert listening.cancelled()
        assert isinstance((await play(stage.provider, stage.short))[-1], Finished)


@over_all
async def test_a_time_out_of_the_caller_ends_the_call(opener: Opener, small_model: Path) -> None:
    """Deadlines are the caller's; reaching one leaves the provider usable."""
    async with opener(small_model) as stage:
        async with aclosing(stage.provider.stream(stage.endless)) as events:
            await anext(events)
            with pytest.raises(TimeoutError):
                await listen_at_most(events, 0.01)
        assert isinstance((await play(stage.provider, stage.short))[-1], Finished)


@over_all
async def test_a_request_that_does_not_fit_is_an_overflow(
    opener: Opener, small_model: Path
) -> None:
    """So that the turn can make it smaller; the conversation stays usable."""
    async with opener(small_model) as stage:
        with pytest.raises(ContextOverflow):
            await play(stage.provider, stage.overlong)
        assert isinstance((await play(stage.provider, stage.short))[-1], Finished)


@over_all
async def test_calls_at_the_same_time_do_not_mix(opener: Opener, small_model: Path) -> None:
    async with opener(small_model) as stage:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(play(stage.provider, stage.short)) for _ in range(4)]
        assert all(isinstance(task.result()[-1], Finished) for task in tasks)


@over_all
async def test_a_file_that_is_not_sent_along_is_a_line(opener: Opener, small_model: Path) -> None:
    """Also for a model that takes none: the line names the file, and nothing is fetched. S1-08."""
    async with opener(small_model) as stage:
        message = stage.short.messages[-1]
        assert isinstance(message, UserMessage)
        with_file = replace(message, files=(PICTURE,))
        events = await play(stage.provider, replace(stage.short, messages=(with_file,)))
        assert isinstance(events[-1], Finished)


@over_all
async def test_what_it_takes_is_among_the_parts_of_the_wire(
    opener: Opener, small_model: Path
) -> None:
    """The runtime sends a file to no other."""
    async with opener(small_model) as stage:
        assert stage.provider.facts.takes <= {"images", "audio", "files"}


@over_all
async def test_a_provider_can_be_closed_twice_and_unused(opener: Opener, small_model: Path) -> None:
    async with opener(small_model) as stage:
        await stage.provider.aclose()
        await stage.provider.aclose()
        assert stage.provider.facts.model
