"""How a script is read and played."""

from contextlib import aclosing
from pathlib import Path

import pytest

from tests.fakes.manual_clock import LoopClock
from tests.unit.providers.contexts import context
from zeroclaw.config.model import ProviderSettings
from zeroclaw.errors import (
    ConfigError,
    ContextOverflow,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnauthorized,
    StreamBroken,
    ZeroclawError,
)
from zeroclaw.message import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from zeroclaw.provider import (
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.providers.scripted import ScriptedProvider, open_provider
from zeroclaw.providers.scripted.script import parse_script

SCRIPT = """
[[turn]]
when = "weather"

[[turn.answer]]
steps = [
  { reason = "hm" },
  { say = "Let me look.", chunk_chars = 8, delay_s = 0.5 },
  { call = "shell", arguments = { command = "date" } },
  { call = "read", arguments = '{ "path":"{{user}}" }', id = "mine" },
  { usage = { input_tokens = 7, output_tokens = 3 } },
]

[[turn.answer]]
steps = [{ say = "It says {{result}}, {{receipt}}." }]

[[turn]]
[[turn.answer]]
steps = [{ say = "first" }]

[[turn]]
[[turn.answer]]
steps = [{ say = "second" }, { wait_s = 5 }, { finish = "length" }]
"""
RECEIPT = "zc-receipt-1700000000-abc_-9"


def scripted(text: str = SCRIPT) -> ScriptedProvider:
    return ScriptedProvider(script=parse_script(text), clock=LoopClock())


async def play(provider: ScriptedProvider, *messages: Message) -> list[StreamEvent]:
    request = ModelRequest(messages=(SystemMessage(content="s"), *messages))
    return [event async for event in provider.stream(request)]


async def text(provider: ScriptedProvider, *messages: Message) -> str:
    events = await play(provider, *messages)
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def user(content: str, note: str = "") -> UserMessage:
    return UserMessage(content=content, note=note)


async def test_an_answer_is_played_in_deltas_with_its_calls_at_the_end() -> None:
    assert await play(scripted(), user("Weather?")) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="Let me l"),
        TextDelta(text="ook."),
        ToolCallReady(call=ToolCall(id="call_0", name="shell", arguments='{"command": "date"}')),
        ToolCallReady(call=ToolCall(id="mine", name="read", arguments='{ "path":"Weather?" }')),
        UsageReported(usage=Usage(input_tokens=7, output_tokens=3)),
        Finished(reason="tool_calls"),
    ]


async def test_delays_follow_the_clock() -> None:
    clock = LoopClock()
    started = clock.monotonic()
    await play(scripted(), user("weather"))
    assert clock.monotonic() - started == 1.0


async def test_after_the_tools_result_comes_the_next_answer_with_its_receipt() -> None:
    """The newest receipt of the result is repeated verbatim."""
    result = f"old zc-receipt-1-x\n12:00\n[receipt: {RECEIPT}]"
    answer = await text(
        scripted(),
        user("weather"),
        AssistantMessage(),
        ToolMessage(content="other", tool_call_id="call_0"),
        ToolMessage(content=result, tool_call_id="mine"),
    )
    assert answer == f"It says {result}, {RECEIPT}."


async def test_turns_without_words_to_match_are_taken_in_order() -> None:
    """Matched ones between them, and what the runtime wrote itself, use none up."""
    provider = scripted()
    earlier = (user("a"), AssistantMessage(content="first"), user("weather"), AssistantMessage())
    assert await text(provider, user("a")) == "first"
    assert await text(provider, *earlier, user("b"), user("n", note="runtime")) == "second"


async def test_where_a_conversation_stands_is_not_remembered() -> None:
    """So a script goes on after a restart, and for many conversations at once."""
    provider = scripted()
    assert [await text(provider, user("a")) for _ in range(3)] == ["first"] * 3


async def test_a_finish_can_be_scripted_and_words_are_counted() -> None:
    events = await play(scripted(), user("a"), user("b"))
    assert events[-2:] == [
        UsageReported(usage=Usage(input_tokens=3, output_tokens=1)),
        Finished(reason="length"),
    ]


async def test_placeholders_without_anything_to_show_are_empty() -> None:
    script = '[[turn]]\n[[turn.answer]]\nsteps = [{ say = "<{{result}}{{receipt}}>" }]'
    assert await text(scripted(script), user("a")) == "<>"


@pytest.mark.parametrize(
    "messages",
    [(), (user("a"), user("b"), user("c")), (user("a"), AssistantMessage())],
    ids=["nobody spoke", "no turn left", "no answer left"],
)
async def test_a_script_without_a_line_for_it_refuses(messages: tuple[Message, ...]) -> None:
    with pytest.raises(ProviderRejected, match="the script"):
        await play(scripted(), *messages)


async def test_a_script_may_say_something_otherwise() -> None:
    assert await text(scripted('otherwise = "{{user}}?"'), user("a")) == "a?"


def failing(step: str) -> str:
    return f'[[turn]]\n[[turn.answer]]\nsteps = [{step}, {{ say = "fine" }}]'


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ('{ fail = "overloaded", retry_after_s = 2 }', ProviderOverloaded),
        ('{ say = "x" }, { fail = "overloaded" }', StreamBroken),
        ('{ fail = "rejected" }', ProviderRejected),
        ('{ fail = "unauthorized" }', ProviderUnauthorized),
        ('{ fail = "overflow" }', ContextOverflow),
        ('{ fail = "cut", message = "m" }', StreamBroken),
    ],
)
async def test_every_fault_of_the_contract_can_be_scripted(
    step: str, kind: type[ZeroclawError]
) -> None:
    with pytest.raises(kind):
        await play(scripted(failing(step)), user("a"))


async def test_a_fault_may_pass() -> None:
    provider = scripted(failing('{ fail = "cut", times = 1 }'))
    with pytest.raises(StreamBroken):
        await play(provider, user("a"))
    assert await text(provider, user("a")) == "fine"


async def test_an_answer_with_nothing_in_it_is_refused_as_by_a_model() -> None:
    script = '[[turn]]\n[[turn.answer]]\nsteps = [{ finish = "content_filter" }]'
    with pytest.raises(ProviderRejected, match="content_filter"):
        await play(scripted(script), user("a"))


async def test_an_answer_can_be_left_early() -> None:
    provider = scripted()
    request = ModelRequest(messages=(user("weather"),))
    async with aclosing(provider.stream(request)) as events:
        assert await anext(events) == ReasoningDelta(text="hm")
    await provider.aclose()
    assert provider.facts.calls_tools


def test_the_faults_of_a_script_are_reported_together_with_their_places() -> None:
    script = """
    [[turn]]
    [[turn.answer]]
    steps = [{ say = 1 }, { say = "x", call = "y" }, { sya = "x" }]
    [[turn]]
    [[turn.answer]]
    steps = [{ fail = "boom" }, { usage = { tokens = 1 } }, { wait_s = -1 }]
    """
    with pytest.raises(ConfigError) as caught:
        parse_script(script)
    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "script.turn[0].answer[0].steps[0].say",
        "script.turn[0].answer[0].steps[1]",
        "script.turn[0].answer[0].steps[2]",
        "script.turn[1].answer[0].steps[0].fail",
        "script.turn[1].answer[0].steps[1].usage.tokens",
        "script.turn[1].answer[0].steps[2].wait_s",
    ]


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("turn =", "script: not valid TOML"),
        ("[[turn]]", "script.turn[0].answer: field required"),
        ("[[trun]]", "script.trun: extra inputs"),
        ("[[turn]]\n[[turn.answer]]\nsteps = []", "script.turn[0].answer[0].steps: list should"),
    ],
)
def test_a_script_of_another_shape_is_refused(script: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_script(script)
    assert caught.value.faults[0].startswith(fault)


def test_a_missing_script_file_is_reported_with_its_path(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    settings = ProviderSettings(kind="scripted", script=str(missing))
    with pytest.raises(ConfigError, match="no such file"):
        open_provider(settings, context())
    missing.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="no text"):
        open_provider(settings, context())
    missing.write_text(SCRIPT, encoding="utf-8-sig")
    assert open_provider(settings, context()).facts.model == "scripted"
