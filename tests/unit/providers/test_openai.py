"""Requests to an endpoint: retries, patience and cleaning up, in virtual time."""

import asyncio
import json
from contextlib import aclosing

import pytest

from tests.fakes.loop_steps import loop_steps
from tests.fakes.manual_clock import LoopClock
from tests.unit.providers.contexts import context
from tests.unit.providers.fake_http import FakeHttp, Part, Played
from zeroclaw.config.model import ProviderSettings
from zeroclaw.errors import (
    ConfigError,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnauthorized,
    ProviderUnreachable,
    ProviderUnusable,
    StreamBroken,
    ZeroclawError,
)
from zeroclaw.foreign import Raised, call
from zeroclaw.host.http import (
    HttpConnectFailed,
    HttpCut,
    HttpFailed,
    HttpPoolExhausted,
    HttpTimedOut,
)
from zeroclaw.message import (
    AssistantMessage,
    FileKind,
    Message,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from zeroclaw.provider import (
    Endpoint,
    Finished,
    ModelRequest,
    ProviderFacts,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from zeroclaw.providers.openai import OpenAIProvider, open_provider
from zeroclaw.value import replace

KEY = "sk-" + "k" * 20
TEXT = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
GOOD = Played(parts=(TEXT, STOP, DONE))
ANSWER: list[StreamEvent] = [TextDelta(text="x"), Finished(reason="stop")]
BUSY = Played(status=503)
CUT = HttpCut("cut")
REQUEST = ModelRequest(messages=(UserMessage(content="hi"),))


def _redact(text: str) -> str:
    return text.replace("hunter2", "***")


def provider(
    http: FakeHttp,
    *,
    base_url: str = "https://host/v1/",
    key: str = KEY,
    attempts: int = 4,
    model: str = "m",
    window: int | None = 8192,
) -> OpenAIProvider:
    return OpenAIProvider(
        endpoint=Endpoint(base_url=base_url, model=model, api_key=key, context_tokens=window),
        http=http,
        context=replace(context(), redact=_redact),
        settings=ProviderSettings(stall_s=10.0, attempts=attempts),
    )


async def ask(http: FakeHttp, endpoint: OpenAIProvider | None = None) -> list[StreamEvent]:
    return [event async for event in (endpoint or provider(http)).stream(REQUEST)]


@pytest.mark.parametrize(
    ("before", "again", "after"),
    [
        (b'data: {"choices":[', b"{},", b"{}]}\n\n" + TEXT + STOP),
        (
            b'data: {"choices":[{"delta":{"reasoning_details":[',
            b'{"text":"x"},',
            b"{}]}}]}\n\n" + STOP,
        ),
        (b'{"choices":[{"message":{"content":[', b'{"text":"x"},', b"{}]}}]}"),
    ],
)
async def test_no_answer_holds_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, before: bytes, again: bytes, after: bytes
) -> None:
    """A hostile endpoint sends a hundred thousand of anything in one event (P9)."""
    many = b"".join((before, again * 20_000, after))
    pieces = (many[at : at + 4_096] for at in range(0, len(many), 4_096))
    parts = tuple(part for piece in pieces for part in (piece, 0.0))
    with loop_steps(monkeypatch) as steps:
        await asyncio.sleep(0)  # whole turns of the loop are counted
        assert await ask(FakeHttp(Played(parts=parts)))
        await asyncio.sleep(0)
    assert steps.taken() <= (6_000, "")


async def test_what_came_before_an_error_leaves_in_a_large_piece_too() -> None:
    """It is parsed in a thread, and an answer of which people read a part is not asked for again."""
    error = b'data: {"error":{"code":503,"message":"no"}}\n\n'
    http = FakeHttp(Played(parts=(TEXT * 300 + error,)), GOOD)
    events: list[StreamEvent] = []

    async def listen() -> None:
        async for event in provider(http).stream(REQUEST):
            events.append(event)  # noqa: PERF401  what came before an error stays

    with pytest.raises(StreamBroken):
        await listen()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "x" * 300
    assert len(http.requests) == 1


async def test_a_request_carries_the_key_and_the_conversation() -> None:
    """One POST to chat/completions; the key only in its header (S1-03)."""
    http = FakeHttp(GOOD)
    assert await ask(http) == ANSWER
    assert [request.url for request in http.requests] == ["https://host/v1/chat/completions"]
    assert http.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in http.requests[0].body
    assert b'"content":"hi"' in http.requests[0].body


async def test_without_a_key_no_authorization_is_sent() -> None:
    http = FakeHttp(GOOD)
    assert [event async for event in provider(http, key="").stream(REQUEST)] == ANSWER
    assert "Authorization" not in http.requests[0].headers


async def test_a_busy_endpoint_is_asked_again_later_and_later() -> None:
    """Back-off doubles from half a second; jitter takes up to half off."""
    http = FakeHttp(BUSY, HttpConnectFailed("refused"), Played(status=429), GOOD)
    assert await ask(http) == ANSWER
    assert http.sent_at == [0.0, 0.375, 1.125, 2.625]


async def test_the_log_says_why_an_endpoint_is_asked_again() -> None:
    """Who has only the journal sees why an answer was slow; an endpoint's words may quote people."""
    facts = list[dict[str, object]]()

    def log(event: str, /, **fields: object) -> None:
        facts.append({"event": event, **fields})

    quoting = Played(status=503, parts=(b'{"error":"busy with `hi`"}',))
    http = FakeHttp(quoting, HttpConnectFailed("refused"), GOOD)
    endpoint = provider(http)
    endpoint.context = replace(endpoint.context, log=log, jitter=lambda: 1 / 3)
    assert await ask(http, endpoint) == ANSWER
    again = {"event": "provider_retried", "endpoint": "host"}
    assert facts == [
        {**again, "attempt": 1, "wait_s": 0.3, "reason": "`host` is busy (503)"},
        {**again, "attempt": 2, "wait_s": 0.7, "reason": "`host` can't be reached"},
    ]


async def test_retry_after_is_obeyed_to_the_letter() -> None:
    http = FakeHttp(Played(status=429, headers={"retry-after": "7"}), GOOD)
    assert await ask(http) == ANSWER
    assert http.sent_at == [0.0, 7.0]


async def test_a_retry_after_that_is_too_long_is_raised_at_once() -> None:
    http = FakeHttp(Played(status=429, headers={"retry-after": "600"}))
    with pytest.raises(ProviderOverloaded) as caught:
        await ask(http)
    assert caught.value.retry_after_s == 600.0


async def test_attempts_are_bounded() -> None:
    http = FakeHttp(BUSY, BUSY, BUSY, Played(status=503, parts=(b'{"error":"still busy"}',)))
    with pytest.raises(ProviderOverloaded, match=r"`host` is busy \(503\): still busy"):
        await ask(http)
    assert len(http.requests) == 4


async def test_a_connection_closed_before_the_answer_costs_a_try() -> None:
    """The endpoint may have charged for the request, so `attempts` counts it like any other."""
    http = FakeHttp(CUT, CUT, CUT, GOOD)
    assert await ask(http) == ANSWER
    assert http.sent_at == [0.0, 0.375, 1.125, 2.625]


async def test_connections_that_are_always_closed_end_as_unreachable() -> None:
    http = FakeHttp(CUT, CUT, CUT, CUT, CUT)
    with pytest.raises(ProviderUnreachable, match="closed the connection unanswered"):
        await ask(http)
    assert len(http.requests) == 4


async def test_an_endpoint_that_is_not_there_is_not_busy() -> None:
    """It is tried as often, and the text says where to look; no password of its address (P8, P10)."""
    http = FakeHttp(*(HttpConnectFailed("connection refused") for _ in range(4)))
    endpoint = provider(http, base_url="http://user:pass@host:9/v1", key="")
    with pytest.raises(ProviderUnreachable) as caught:
        await ask(http, endpoint)
    assert str(caught.value) == (
        "`host:9` can't be reached: connection refused; see that it runs, and that "
        "`provider.base_url` is its address"
    )
    assert len(http.requests) == 4


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (HttpTimedOut("nothing came for 10 s"), ProviderUnreachable),
        (HttpFailed("bad address"), ProviderRejected),
        (Played(status=401), ProviderUnauthorized),
        (Played(status=404), ProviderUnusable),
        (Played(status=302), ProviderRejected),
    ],
)
async def test_a_failure_that_no_retry_mends_is_raised_at_once(
    failure: Played | HttpFailed, kind: type[ZeroclawError]
) -> None:
    """Silence was waited for long enough; a refusal stays one."""
    http = FakeHttp(failure)
    with pytest.raises(kind):
        await ask(http)
    assert len(http.requests) == 1


CALLED: tuple[Message, ...] = (
    SystemMessage(content="rules"),
    UserMessage(content="hi"),
    AssistantMessage(
        tool_calls=(
            ToolCall(id="call_0", name="f", arguments="{}", extra='{"google":{"s":"x"}}'),
            ToolCall(id="D681PevKs", name="f", arguments="{}"),
        ),
        reasoning="hm",
    ),
    ToolMessage(content="1", tool_call_id="call_0"),
    ToolMessage(content="2", tool_call_id="D681PevKs"),
)


@pytest.mark.parametrize(
    ("status", "refusal", "before", "after"),
    [
        pytest.param(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            '"max_tokens":9',
            '"max_completion_tokens":9',
            id="OpenAI's reasoning models",
        ),
        pytest.param(
            400,
            "System role not supported",
            '"role":"system","content":"rules"},{"role":"user","content":"hi"',
            '"role":"user","content":"rules\\n\\nhi"',
            id="vLLM with Gemma 2's template",
        ),
        pytest.param(
            400,
            "Developer instruction is not enabled for models/gemma-3-27b-it",
            '"role":"system","content":"rules"},{"role":"user","content":"hi"',
            '"role":"user","content":"rules\\n\\nhi"',
            id="Gemini with Gemma 3",
        ),
        pytest.param(
            400,
            "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are "
            "not permitted', 'input': {'include_usage': True}}]",
            '"stream":true,"stream_options"',
            '"stream":true}',
            id="old servers",
        ),
        *(
            pytest.param(
                400, message, '"content":"2"}],"max_tokens"', '"content":"2"}],"tools":[{', id=name
            )
            for name, message in (
                (
                    "LiteLLM, with tools in the history alone",
                    "litellm.UnsupportedParamsError: Anthropic doesn't support tool calling without "
                    "`tools=` param specified.",
                ),
                (
                    "Bedrock, likewise",
                    "The toolConfig field must be defined when using toolUse and toolResult content "
                    "blocks.",
                ),
            )
        ),
        pytest.param(
            400,
            "'messages.1' : for 'role:assistant' the following must be satisfied"
            "[('messages.1' : property 'reasoning_content' is unsupported)]",
            '"reasoning_content":"hm"',
            '"content":"","tool_calls"',
            id="Groq",
        ),
        pytest.param(
            422,
            [
                {
                    "loc": ["messages", 1, "reasoning_content"],
                    "msg": "Extra inputs are not permitted",
                }
            ],
            '"extra_content":{"google":{"s":"x"}}',
            '"arguments":"{}"}},{',
            id="Mistral, after Gemini",
        ),
        pytest.param(
            400,
            "Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9.",
            '"tool_call_id":"call_0"',
            '"tool_call_id":"000002000"',
            id="Mistral, after another model or `/tool`",
        ),
        pytest.param(
            500,
            "Tool call IDs should be alphanumeric strings with length 9!",
            '"id":"call_0"',
            '"id":"000002000"',
            id="llama.cpp with Mistral's template",
        ),
        pytest.param(
            400,
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            '"id":"call_0"',
            '"id":"000002000"',
            id="Anthropic, after Kimi",
        ),
    ],
)
async def test_an_endpoint_gets_its_own_dialect_once_a_refusal_named_it(
    status: int, refusal: object, before: str, after: str
) -> None:
    """Each of these ended every later turn of the conversation, or every summary."""
    refused = Played(status=status, parts=(json.dumps({"message": refusal}).encode(),))
    http = FakeHttp(refused, GOOD, GOOD)
    request, endpoint = ModelRequest(messages=CALLED, max_output_tokens=9), provider(http)
    for _ in range(2):
        assert [event async for event in endpoint.stream(request)] == ANSWER
    first, *others = (request.body.decode() for request in http.requests)
    assert (before in first, after in first) == (True, False)
    assert [(before in body, after in body) for body in others] == [(False, True)] * 2
    assert all('"id":"D681PevKs"' in body for body in (first, *others))


async def test_a_refusal_that_names_the_same_dialect_again_is_raised() -> None:
    body = b'{"error":"property \'reasoning_content\' is unsupported"}'
    http = FakeHttp(*(Played(status=400, parts=(body,)) for _ in range(2)))
    with pytest.raises(ProviderRejected, match="is unsupported"):
        await ask(http)
    assert len(http.requests) == 2


GROQ = b'{"error":{"message":"property \'reasoning_content\' is unsupported","code":400}}'
DEEPSEEK = b'{"error":{"message":"`reasoning_content` must be passed back to the API","code":400}}'
SHORT_OF = b'{"error":{"message":"a call is missing a thought_signature","code":400}}'


def refused(*saids: bytes) -> list[Played]:
    return [Played(status=400, parts=(body,)) for body in saids]


@pytest.mark.parametrize("body", [GROQ, b"data: %b\n\n" % GROQ])
async def test_a_dialect_is_also_learned_from_an_error_in_a_200(body: bytes) -> None:
    """As proxies and routers pass on what another endpoint refused."""
    http = FakeHttp(Played(parts=(body,)), GOOD)
    assert await ask(http) == ANSWER


async def test_a_dialect_learned_after_part_of_an_answer_counts_from_the_next_request() -> None:
    """The turn asks for an answer once more of which people may have read a part, not the provider."""
    http = FakeHttp(Played(parts=(TEXT, b"data: %b\n\n" % GROQ)), GOOD)
    request, endpoint = ModelRequest(messages=CALLED), provider(http)
    with pytest.raises(StreamBroken, match="is unsupported"):
        _ = [event async for event in endpoint.stream(request)]
    assert [event async for event in endpoint.stream(request)] == ANSWER
    assert [b'"reasoning_content"' in request.body for request in http.requests] == [True, False]


async def test_a_server_that_takes_anothers_place_gets_its_own_dialect() -> None:
    """Behind one address; what was learned of the other one ended every call's turn until a restart."""
    first, second = refused(GROQ, DEEPSEEK)
    http = FakeHttp(first, GOOD, second, GOOD)
    request, endpoint = ModelRequest(messages=CALLED), provider(http)
    for _ in range(2):
        assert [event async for event in endpoint.stream(request)] == ANSWER
    sent = [b'"reasoning_content"' in request.body for request in http.requests]
    assert sent == [True, False, False, True]


async def test_a_dialect_that_is_refused_for_anything_else_is_forgotten() -> None:
    """It may be another server's, or words of a person that a refusal quoted."""
    first, second = refused(GROQ, SHORT_OF)
    http = FakeHttp(first, GOOD, second, GOOD)
    request, endpoint = ModelRequest(messages=CALLED), provider(http)
    assert [event async for event in endpoint.stream(request)] == ANSWER
    with pytest.raises(ProviderRejected, match="thought_signature"):
        _ = [event async for event in endpoint.stream(request)]
    assert [event async for event in endpoint.stream(request)] == ANSWER
    sent = [b'"reasoning_content"' in request.body for request in http.requests]
    assert sent == [True, False, False, True]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/deepseek-r1:1.5b does not support tools"),
        (404, "No endpoints found that support tool use. To learn more, visit: https://x"),
        (400, "`tool calling` is not supported with this model"),
    ],
    ids=["Ollama", "OpenRouter", "Groq"],
)
async def test_a_model_that_takes_no_tools_can_chat(status: int, message: str) -> None:
    """Every message was refused; the prompt says that there are none from the next one on."""
    refusal = Played(status=status, parts=(json.dumps({"error": {"message": message}}).encode(),))
    http = FakeHttp(refusal, GOOD, GOOD, refused(SHORT_OF)[0])
    endpoint, tools = provider(http), (ToolDefinition(name="f", description="", parameters={}),)
    request = replace(REQUEST, tools=tools)
    for _ in range(2):
        assert [event async for event in endpoint.stream(request)] == ANSWER
        assert not endpoint.facts.calls_tools
    bodies = [json.loads(request.body) for request in http.requests]
    assert [len(message.get("tools", ())) for message in bodies] == [1, 0, 0]
    with pytest.raises(ProviderRejected):
        _ = [event async for event in endpoint.stream(request)]
    assert endpoint.facts.calls_tools


async def test_an_endpoint_that_refuses_every_dialect_is_asked_a_few_times() -> None:
    """It may say the contrary each time, for ever."""
    http = FakeHttp(*refused(*(GROQ, DEEPSEEK) * 9))
    with pytest.raises(ProviderRejected):
        await ask(http)
    assert len(http.requests) == 3


async def test_a_refusal_that_names_no_dialect_is_raised_at_once() -> None:
    """VLLM's limit."""
    body = b"{\"message\":\"'max_tokens' or 'max_completion_tokens' is too large: 9\"}"
    with pytest.raises(ProviderRejected):
        await ask(FakeHttp(Played(status=400, parts=(body,))))


@pytest.mark.parametrize(
    "body",
    [
        b"The `reasoning_content` in the thinking mode must be passed back to the API.",
        b"Missing `reasoning_content` field in the assistant message at message index 1.",
        b"thinking is enabled but reasoning_content is missing in assistant tool call message",
    ],
)
async def test_a_call_without_reasoning_is_sent_with_some_to_who_needs_it(body: bytes) -> None:
    """DeepSeek and Moonshot, after `/tool` or another model."""
    http = FakeHttp(Played(status=400, parts=(body,)), GOOD)
    bare = AssistantMessage(tool_calls=(ToolCall(id="a", name="f", arguments="{}"),))
    request = ModelRequest(messages=(*CALLED[1:], bare))
    assert [event async for event in provider(http).stream(request)] == ANSWER
    first, second = (json.loads(request.body)["messages"] for request in http.requests)
    assert [message.get("reasoning_content") for message in first] == [None, "hm", None, None, None]
    assert [message.get("reasoning_content") for message in second] == [None, "hm", None, None, " "]


def thinking(text: str, **fields: str) -> Played:
    body = json.dumps({"choices": [{"delta": {"content": text, **fields}}]}).encode()
    return Played(parts=(b"data: %b\n\n" % body, STOP, DONE))


async def test_a_model_that_began_with_thoughts_is_known_to_do_so_until_it_does_not() -> None:
    """Each model of an endpoint apart; the first answer's thoughts were on the screen (P6)."""
    lone, plain = thinking("hm\n</think>\n\nYes"), thinking("Yes")
    http = FakeHttp(lone, thinking("hm"), lone, thinking("Yes", reasoning="hm"), plain, plain)
    endpoint, other = provider(http), replace(REQUEST, model="n")
    anew = [ReasoningDelta(text="hm\n", takes_back=True), TextDelta(text="Yes")]
    with_thoughts = [ReasoningDelta(text="hm\n"), TextDelta(text="Yes")]
    text: list[StreamEvent] = [TextDelta(text="Yes")]
    for request, answer in (
        (REQUEST, anew),
        (other, [TextDelta(text="hm")]),
        (REQUEST, with_thoughts),
        (REQUEST, [ReasoningDelta(text="hm"), *text]),
        (REQUEST, text),
        (REQUEST, text),
    ):
        events = [chunk async for chunk in endpoint.stream(request)]
        assert [event for event in events if not isinstance(event, Finished)] == answer


async def test_a_tag_that_a_conversation_is_about_may_be_quoted() -> None:
    text = "It is:\n</think>\n\nYes"
    request = replace(REQUEST, messages=(UserMessage(content="say </think> on a line"),))
    events = [chunk async for chunk in provider(FakeHttp(thinking(text))).stream(request)]
    assert events == [TextDelta(text=text), Finished(reason="stop")]


async def test_a_full_pool_is_waited_for() -> None:
    http = FakeHttp(HttpPoolExhausted("all in use"), GOOD)
    assert await ask(http) == ANSWER


async def test_an_error_in_the_stream_is_retried_only_before_any_text() -> None:
    """A 200 may still be a refusal; after the first event no request is made twice."""
    busy = b'data: {"error":{"code":503}}\n\n'
    http = FakeHttp(Played(parts=(busy,)), GOOD)
    assert await ask(http) == ANSWER
    http = FakeHttp(Played(parts=(TEXT, busy)), GOOD)
    with pytest.raises(StreamBroken, match="busy"):
        await ask(http)
    assert len(http.requests) == 1


@pytest.mark.parametrize(
    "parts",
    [
        (TEXT, HttpCut("cut")),
        (HttpCut("cut"),),
        (TEXT, HttpTimedOut("late")),
        (TEXT, 11.0),
        (11.0,),
    ],
    ids=["cut", "cut at once", "timed out", "stalled", "stalled at once"],
)
async def test_a_stream_that_began_and_ends_is_broken(parts: tuple[Part, ...]) -> None:
    """Cut or stalled after the headers: asked again by the turn, not here."""
    http = FakeHttp(Played(parts=parts))
    with pytest.raises(StreamBroken):
        await ask(http)
    assert (len(http.requests), http.open_answers) == (1, 0)


async def test_an_endpoint_that_never_sends_a_finish_is_believed_from_its_second_answer_on() -> (
    None
):
    """Some proxies send `[DONE]` alone, also where the answer behind them was cut off."""
    bare = Played(parts=(TEXT, DONE))
    endpoint = provider(FakeHttp(bare, bare, bare, Played(parts=(TEXT, b"")), bare, GOOD, bare))
    ends = [await call(lambda: ask(FakeHttp(), endpoint)) for _ in range(7)]
    broken = [isinstance(end, Raised) and isinstance(end.error, StreamBroken) for end in ends]
    assert broken == [True, False, False, True, True, False, True]
    assert [end for end in ends if not isinstance(end, Raised)] == [ANSWER] * 3


async def test_pings_do_not_keep_a_stalled_stream_alive() -> None:
    """The watchdog counts data events only."""
    http = FakeHttp(Played(parts=(TEXT, *(4.0, PING) * 4, STOP)))
    with pytest.raises(StreamBroken, match="sent nothing for 10 s"):
        await ask(http)


async def test_a_request_that_stands_in_a_queue_is_waited_for() -> None:
    """DeepSeek says so by comments, and lets go after ten minutes; OpenRouter sends them, too."""
    queued = (*(4.0, PING) * 140, 4.0)
    assert await ask(FakeHttp(Played(parts=(*queued, TEXT, STOP, DONE)))) == ANSWER
    with pytest.raises(StreamBroken, match="sent nothing for 10 s"):
        await ask(FakeHttp(Played(parts=(*queued, *queued, TEXT, STOP, DONE))))


@pytest.mark.parametrize("silence", [HttpTimedOut("nothing came for 10 s"), Played(parts=(11.0,))])
async def test_silence_reads_alike_before_an_answer_and_within_it(
    silence: Played | HttpFailed,
) -> None:
    """Where one is taken for the other on a busy machine, operators read it once (P9)."""
    with pytest.raises((ProviderUnreachable, StreamBroken)) as caught:
        await ask(FakeHttp(silence))
    assert str(caught.value).endswith("sent nothing for 10 s")


async def test_slow_data_is_not_a_stall() -> None:
    http = FakeHttp(Played(parts=(*(9.0, TEXT) * 5, 9.0, STOP, DONE)))
    assert (await ask(http))[-1] == Finished(reason="stop")


async def test_the_time_of_the_consumer_does_not_count() -> None:
    http = FakeHttp(Played(parts=(TEXT, TEXT, STOP, DONE)))
    clock, events = LoopClock(), list[StreamEvent]()
    async for event in provider(http).stream(REQUEST):
        await clock.sleep(60)
        events.append(event)
    assert events[-1] == Finished(reason="stop")


async def read_at(http: FakeHttp) -> list[tuple[type[StreamEvent], float]]:
    """Return when each event of an answer is read."""
    clock = LoopClock()
    return [
        (type(event), round(clock.monotonic(), 3)) async for event in provider(http).stream(REQUEST)
    ]


async def test_an_answer_whose_pieces_come_fast_is_read_every_50_ms() -> None:
    """Its beginning is shown at once, and its end is known as soon as it is read."""
    role = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
    http = FakeHttp(Played(parts=(role, 0.01, TEXT, TEXT, TEXT, STOP, 0.01, DONE)))
    texts = [(TextDelta, 0.01), (TextDelta, 0.06), (TextDelta, 0.11)]
    assert await read_at(http) == [*texts, (Finished, 0.17)]
    assert http.unread == 3


async def test_an_answer_whose_pieces_come_slowly_is_read_piece_by_piece() -> None:
    """Waiting twice for each piece costs a quarter more than waiting once."""
    http = FakeHttp(Played(parts=(2.0, TEXT, *(0.1, TEXT) * 3, 0.1, STOP, DONE)))
    texts = [(TextDelta, at) for at in (2.0, 2.1, 2.2, 2.3)]
    assert await read_at(http) == [*texts, (Finished, 2.4)]
    assert http.unread == 0


async def test_an_answer_that_becomes_fast_or_slow_is_read_accordingly() -> None:
    http = FakeHttp(
        Played(parts=(2.0, TEXT, 0.01, TEXT, TEXT, 0.1, TEXT, 0.1, TEXT, 0.1, STOP, DONE))
    )
    texts = [(TextDelta, at) for at in (2.0, 2.01, 2.06, 2.21, 2.31)]
    assert await read_at(http) == [*texts, (Finished, 2.41)]
    assert http.unread == 2


async def test_pings_between_two_readings_do_not_make_an_answer_wait_for_ever() -> None:
    """The time in which nothing is read is time in which the endpoint said nothing."""
    with pytest.raises(StreamBroken, match="sent nothing for 10 s"):
        await ask(FakeHttp(Played(parts=(TEXT, *[b": ping\n\n"] * 1000, STOP, DONE))))


@pytest.mark.parametrize("rest", [(100.0,), (HttpCut("cut"),)], ids=["silence", "a cut"])
async def test_after_the_finish_nothing_can_break_the_answer(rest: tuple[Part, ...]) -> None:
    """Only the usage is lost when a server forgets to end its stream."""
    assert await ask(FakeHttp(Played(parts=(TEXT, STOP, *rest)))) == ANSWER


async def test_the_end_of_the_body_is_read_so_that_the_connection_is_kept() -> None:
    http = FakeHttp(GOOD)
    await ask(http)
    assert http.read_to_the_end == 1


@pytest.mark.parametrize(
    "rest",
    [(5.0, b"x"), (0.15, b"x", 0.15, b"x"), (HttpCut("cut"),)],
    ids=["slow", "dripping", "cut"],
)
async def test_a_body_that_goes_on_after_done_is_left(rest: tuple[Part, ...]) -> None:
    http = FakeHttp(Played(parts=(TEXT, STOP, DONE, *rest)))
    assert await ask(http) == ANSWER
    assert http.open_answers == 0


async def test_closing_early_frees_the_connection() -> None:
    """Whoever stops listening ends the call."""
    http = FakeHttp(Played(parts=(TEXT, TEXT)))
    async with aclosing(provider(http).stream(REQUEST)) as events:
        assert await anext(events) == TextDelta(text="x")
        assert http.open_answers == 1
    assert http.open_answers == 0


async def test_a_refusal_never_shows_a_secret() -> None:
    """Endpoints quote what they were sent; our key and known secrets are taken out (P8)."""
    body = f'{{"error":{{"message":"bad key {KEY} or hunter2"}}}}'.encode()
    with pytest.raises(ProviderUnauthorized) as caught:
        await ask(FakeHttp(Played(status=401, parts=(body,))))
    assert str(caught.value) == (
        "`host` refused the key (401): bad key *** or ***; check `provider.api_key`"
    )


@pytest.mark.parametrize(
    "parts",
    [(b"half", 60.0), (b"half", HttpCut("cut")), (b"half" * 100_000,)],
    ids=["slow", "cut", "huge"],
)
async def test_a_refusal_that_does_not_end_is_reported_as_far_as_it_came(
    parts: tuple[Part, ...],
) -> None:
    with pytest.raises(ProviderRejected, match=r"\(400\): half"):
        await ask(FakeHttp(Played(status=400, parts=parts)))


@pytest.mark.parametrize(
    ("base_url", "model", "events", "takes"),
    [
        ("https://api.openai.com/v1", "gpt-5-mini", None, ("images", "files")),
        ("https://api.openai.com/v1", "gpt-3.5-turbo", None, ()),
        ("https://api.anthropic.com/v1", "claude-haiku-4-5", None, ("images",)),
        ("http://127.0.0.1:11434/v1", "gpt-5-mini", None, ()),
        ("http://127.0.0.1:11434/v1", "llava", ("images",), ("images",)),
        ("https://api.openai.com/v1", "gpt-5-mini", (), ()),
    ],
)
async def test_what_a_model_takes_is_configured_or_known_of_its_makers_endpoint(
    base_url: str, model: str, events: tuple[FileKind, ...] | None, takes: tuple[FileKind, ...]
) -> None:
    """A name proves nothing elsewhere. S1-08."""
    settings = ProviderSettings(kind="openai", base_url=base_url, model=model, takes=events)
    endpoint = open_provider(settings, context())
    assert endpoint.facts.takes == frozenset(takes)
    await endpoint.aclose()


async def test_facts_name_the_configuration() -> None:
    http = FakeHttp()
    endpoint = provider(http, base_url="https://user:pass@host:8443/v1", key="")
    assert endpoint.facts == ProviderFacts(
        model="m", context_tokens=8192, context_from="the configuration"
    )
    await endpoint.aclose()
    await endpoint.aclose()
    assert http.closed == 2


async def test_the_opener_reads_the_configuration() -> None:
    """The key is a resolved secret; white space around it came from its file."""
    settings = ProviderSettings(
        kind="openai", base_url="https://host/v1", model="m", context_tokens=4096
    )
    endpoint = open_provider(settings, context(api_key=f" {KEY}\n"))
    assert endpoint.facts == ProviderFacts(
        model="m", context_tokens=4096, context_from="the configuration"
    )
    await endpoint.aclose()


async def test_an_address_with_a_password_is_not_shown() -> None:
    address = "https://user:pass@host:8443/v1"
    endpoint = provider(FakeHttp(Played(status=404)), base_url=address, key="")
    with pytest.raises(ProviderUnusable, match=r"^`host:8443` has no such model"):
        await anext(endpoint.stream(REQUEST))


def test_a_login_in_the_address_beside_a_key_is_a_fault() -> None:
    """No request could carry both; without this every turn would fail in aiohttp's words (P10)."""
    with pytest.raises(ConfigError) as caught:
        provider(FakeHttp(), base_url="https://user:pass@host/v1", key="k")
    assert caught.value.faults == (
        "provider.base_url: names a user, and `provider.api_key` a key; keep one",
    )


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\x00"])
def test_a_key_that_no_header_can_carry_is_a_fault_that_does_not_show_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        provider(FakeHttp(), key=key)
    assert caught.value.faults == (
        "provider.api_key: holds characters that no HTTP header can carry",
    )
    assert key not in repr(Endpoint(base_url="", model="m", api_key=key))
