"""How the bytes of a 200 become an answer, wherever they are cut."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.errors import (
    ContextOverflow,
    ProviderOverloaded,
    ProviderRejected,
    StreamBroken,
    ZeroclawError,
)
from zeroclaw.message import ToolCall, Usage
from zeroclaw.provider import (
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.providers.openai.body import MAX_ANSWER_BYTES, Body
from zeroclaw.sse import MAX_EVENT_BYTES
from zeroclaw.value import replace

STREAM = (
    '\ufeff: ping\r\n\r\ndata: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\r\n\r\n'
    'data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}\n\n'
    'data: {"choices":[{"delta":{"content":"né 😀"}}]}\n\n: ping\n\n'
    'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":'
    '{"name":"f","arguments":"{\\"x\\":"}}]}}]}\n\n'
    'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},\n'
    'data: "finish_reason":"tool_calls"}]}\n\n'
    'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
    "data: [DONE]\n\n"
).encode()
ANSWER: list[StreamEvent] = [
    ReasoningDelta(text="hm"),
    TextDelta(text="né 😀"),
    ToolCallReady(call=ToolCall(id="a", name="f", arguments='{"x":1}')),
    UsageReported(usage=Usage(input_tokens=3, output_tokens=2)),
    Finished(reason="tool_calls"),
]
TEXT = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def body(*, redact: Callable[[str], str] = str, max_bytes: int = 10_000) -> Body:
    return Body(endpoint="host", redact=redact, max_bytes=max_bytes)


def read(*chunks: bytes) -> list[StreamEvent]:
    reader = body()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.end()]


def without_chance(events: list[StreamEvent]) -> list[StreamEvent]:
    """The events, whatever of them came together."""
    return [
        replace(event, is_last=False) if isinstance(event, TextDelta) else event for event in events
    ]


@pytest.mark.parametrize("point", range(len(STREAM) + 1))
def test_an_answer_is_the_same_for_every_split_point(point: int) -> None:
    """Bytes to typed events, cut anywhere, in a character and in a line end too (S2-21, S1-13)."""
    assert without_chance(read(STREAM[:point], STREAM[point:])) == ANSWER


@given(st.sets(st.integers(0, len(STREAM)), max_size=20))
def test_an_answer_is_the_same_for_any_cutting(points: set[int]) -> None:
    edges = [0, *sorted(points), len(STREAM)]
    events = read(*(STREAM[a:b] for a, b in zip(edges, edges[1:], strict=False)))  # noqa: RUF007
    assert without_chance(events) == ANSWER


def test_what_follows_done_is_not_read() -> None:
    assert read(TEXT, STOP, b"data: [DONE]\n\ndata: {\n\n", b"junk\n\n")[-1] == Finished(
        reason="stop"
    )


def test_an_end_without_done_is_fine_when_there_was_a_finish() -> None:
    """Several servers never send `[DONE]`, some not even the last blank line."""
    assert read(TEXT + STOP.rstrip()) == [TextDelta(text="x"), Finished(reason="stop")]


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n", b'data: {"choices":[{"del'])
def test_an_end_without_a_finish_is_a_broken_stream(end: bytes) -> None:
    with pytest.raises(StreamBroken):
        read(TEXT + end)


def test_an_answer_without_a_stream_is_accepted() -> None:
    whole = b' {"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{}}'
    for point in range(len(whole)):
        assert read(whole[:point], whole[point:]) == [TextDelta(text="hi"), Finished(reason="stop")]
    assert read(b"[" + whole + b"]")[0] == TextDelta(text="hi")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ProviderOverloaded, b'{"error":{"message":"m","code":429}}'),
        (ContextOverflow, b'{"error":{"message":"m","code":"context_length_exceeded"}}'),
        (ProviderRejected, b'{"error":"m"}'),
        (ProviderRejected, b'{"detail":"m"}'),
        (ProviderRejected, b"[]"),
        (ProviderRejected, b"<!doctype html><title>login</title>"),
        (ProviderOverloaded, b'data: {"error":{"type":"overloaded_error"}}\n\n'),
        (ProviderOverloaded, b'event: error\ndata: {"code":503,"message":"m"}\n\n'),
        (ProviderRejected, b"event: error\ndata: it went wrong\n\n"),
        (StreamBroken, b'{"choices":['),
        (StreamBroken, b"data: {\n\n"),
        (StreamBroken, b"data: 7\n\n"),
        (StreamBroken, b""),
        (StreamBroken, b"hello\n\n"),
        (StreamBroken, b" \r\n"),
    ],
)
def test_a_200_that_is_no_answer_is_told_for_what_it_is(
    kind: type[ZeroclawError], text: bytes
) -> None:
    """An error body, an error in the stream, a web page, junk and nothing at all."""
    with pytest.raises(kind):
        read(text)


def test_what_came_before_an_error_has_left() -> None:
    events = body().feed(TEXT + b'data: {"error":{"code":500}}\n\n')
    assert next(events) == TextDelta(text="x")
    with pytest.raises(ProviderOverloaded):
        next(events)


def test_what_is_parsed_at_the_end_is_still_unread() -> None:
    """Whether a call is whole; 50 MB of arguments took two seconds (P9)."""
    reader = body(max_bytes=20_000)
    call = '{"index":0,"id":"a","function":{"name":"f","arguments":"%s"}}' % ("1" * 10_000)
    list(reader.feed(b'data: {"choices":[{"delta":{"tool_calls":[%s]}}]}\n\n' % call.encode()))
    assert reader.unread_bytes >= 10_000


def test_an_error_is_redacted() -> None:
    reader = body(redact=lambda text: text.replace("key", "***"))
    with pytest.raises(ProviderRejected, match="your \\*\\*\\*"):
        list(reader.feed(b'data: {"error":"your key"}\n\n'))


def test_pings_are_no_progress() -> None:
    """So that an endpoint that only pings is found out."""
    reader = body()
    seen: list[bool] = []
    for chunk in (b": ping\n\n", TEXT, b": ping\n\n", b"data: \n\n", b"data: {", STOP[7:]):
        list(reader.feed(chunk))
        seen.append(reader.has_progressed)
    assert seen == [False, True, False, False, False, True]
    assert reader.has_finish


def test_an_endless_answer_ends() -> None:
    reader = body(max_bytes=100)
    assert list(reader.feed(b": ping\n\n" * 12)) == []
    with pytest.raises(StreamBroken, match="more than 100 bytes"):
        list(reader.feed(b": ping\n\n"))


@pytest.mark.parametrize("start", [b'{"choices":[', b" ", b"<html>"])
def test_what_is_no_stream_ends_as_an_event_does(start: bytes) -> None:
    """It is read in one step, which holds everybody up for as long as that takes (P9)."""
    reader = body(max_bytes=MAX_ANSWER_BYTES)
    assert list(reader.feed(start)) == []
    with pytest.raises(StreamBroken, match=f"more than {MAX_EVENT_BYTES} bytes"):
        list(reader.feed(b" " * MAX_EVENT_BYTES))


def test_texts_that_came_together_go_on_as_one() -> None:
    """Every station behind costs something a piece."""
    xx, x = TextDelta(text="xx", joined=2), TextDelta(text="x")
    assert read(TEXT + TEXT + STOP, TEXT)[:2] == [xx, x]
    thought = b'data: {"choices":[{"delta":{"reasoning":"so"}}]}\n\n'
    assert read(TEXT + TEXT + thought + TEXT + STOP)[:3] == [xx, ReasoningDelta(text="so"), x]


def test_a_text_that_came_with_the_end_says_so() -> None:
    """So that nobody shows it as the beginning of more."""
    last = TextDelta(text="x", is_last=True)
    assert read(TEXT, TEXT + STOP + DONE)[:2] == [TextDelta(text="x"), last]
    assert read(TEXT + STOP, DONE)[0] == TextDelta(text="x")
    thought = b'data: {"choices":[{"delta":{"reasoning":"so"}}]}\n\n'
    assert read(TEXT + thought + TEXT + STOP + DONE)[::2][:2] == [TextDelta(text="x"), last]


def test_a_text_is_handed_on_before_the_error_that_came_with_it() -> None:
    """Whoever asks again must know that something has been seen."""
    events = body().feed(TEXT + TEXT + b'data: {"error":{"message":"busy","code":529}}\n\n')
    assert next(events) == TextDelta(text="xx", joined=2)
    with pytest.raises(ZeroclawError):
        next(events)
