"""The request on the wire, byte for byte."""

import json
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct
from msgspec.json import decode

from tests.fakes.loop_steps import calls_made
from zeroclaw.message import (
    AssistantMessage,
    FilePart,
    Message,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from zeroclaw.provider import ModelRequest, Written
from zeroclaw.providers.openai.request import BETWEEN, USUAL, Dialect, alternating, encode_request
from zeroclaw.value import replace

# The reference transcript of the wire-format document (featherless-ai/open-agent-loops), as the
# second request of its example sends it.
DOCUMENT = """
[
  { "role": "system", "content": "You are a helpful weather assistant." },

  { "role": "user", "content": "What's the weather in NYC and London?" },

  {
    "role": "assistant",
    "content": "",
    "tool_calls": [
      { "id": "call_a", "type": "function",
        "function": { "name": "get_weather", "arguments": "{\\"city\\":\\"NYC\\"}" } },
      { "id": "call_b", "type": "function",
        "function": { "name": "get_weather", "arguments": "{\\"city\\":\\"London\\"}" } }
    ]
  },

  { "role": "tool", "tool_call_id": "call_a", "content": "72°F and sunny" },
  { "role": "tool", "tool_call_id": "call_b", "content": "55°F and rainy" }
]
"""
THINKING = """
{ "role": "assistant",
  "content": "",
  "reasoning_content": "The user wants two cities. I'll call get_weather for each.",
  "tool_calls": [
    { "id": "call_a", "type": "function",
      "function": { "name": "get_weather", "arguments": "{\\"city\\":\\"NYC\\"}" } },
    { "id": "call_b", "type": "function",
      "function": { "name": "get_weather", "arguments": "{\\"city\\":\\"London\\"}" } }
  ]
}
"""
CALLS = (
    ToolCall(id="call_a", name="get_weather", arguments='{"city":"NYC"}'),
    ToolCall(id="call_b", name="get_weather", arguments='{"city":"London"}'),
)
TRANSCRIPT: tuple[Message, ...] = (
    SystemMessage(content="You are a helpful weather assistant."),
    UserMessage(content="What's the weather in NYC and London?", note="local"),
    AssistantMessage(tool_calls=CALLS, finish_reason="tool_calls", is_error=True, mark="runtime"),
    ToolMessage(content="72°F and sunny", tool_call_id="call_a", tool_name="get_weather"),
    ToolMessage(content="55°F and rainy", tool_call_id="call_b", is_error=True),
)
PLAIN, SHORT = Dialect(takes_vendor_fields=False), Dialect(has_short_ids=True)


def compact(document: str) -> str:
    """The document's JSON without its layout; order of fields and characters kept."""
    return json.dumps(json.loads(document), ensure_ascii=False, separators=(",", ":"))


class Body(Struct):
    """The one field that is compared byte for byte."""

    messages: Raw


def sent(*messages: Message) -> str:
    """The array of messages as it goes out."""
    body = encode_request(ModelRequest(messages=messages), model="m", options={})
    return bytes(decode(body, type=Body).messages).decode()


def body_of(request: ModelRequest, **options: object) -> dict[str, object]:
    return json.loads(encode_request(request, model="m", options=options))


def test_the_reference_transcript_goes_out_exactly_as_the_document_has_it() -> None:
    """Roles verbatim, empty content kept, local fields dropped.

    S1-01, S1-04, S1-07, S1-08, S1-09, S1-14, S1-15, S1-16.
    """
    assert sent(*TRANSCRIPT) == compact(DOCUMENT)


def test_what_an_endpoint_attached_to_a_call_goes_back_byte_for_byte() -> None:
    extra = '{"google": {"thought_signature":"c2ln\\/w=="}}'
    message = AssistantMessage(tool_calls=(replace(CALLS[0], extra=extra),))
    assert f',"extra_content":{extra}}}' in sent(message)


def test_no_two_calls_go_out_under_one_id() -> None:
    """DeepSeek, Moonshot, OpenAI and Anthropic refuse each later request that repeats one (S1-18).

    Some models number the calls of each answer anew, each `/tool` has the same id, and a model may
    copy an id that it was sent.
    """

    def batch(*ids: str) -> tuple[Message, ...]:
        calls = tuple(replace(CALLS[0], id=id_) for id_ in ids)
        results = (ToolMessage(content=id_, tool_call_id=id_) for id_ in ids)
        return (AssistantMessage(tool_calls=calls), *results)

    messages = (*batch("a", "b"), *batch("a"), *batch("a", "000003000", "a"))
    cache: dict[object, Written] = {}
    before, whole = (ModelRequest(messages=some, kept=cache) for some in (messages[:-1], messages))
    encode_request(before, model="m", options={})
    found = json.loads(encode_request(whole, model="m", options={}))["messages"]
    calls = [call["id"] for message in found for call in message.get("tool_calls", ())]
    assert calls == ["a", "b", "000003000", "000005000", "000005001", "000005002"]
    results = [message for message in found if message["role"] == "tool"]
    assert [result["tool_call_id"] for result in results] == calls
    assert [result["content"] for result in results] == ["a", "b", "a", "a", "000003000", "a"]


def test_an_answer_of_words_alone_goes_out_as_its_words() -> None:
    """Role and content, and no field that is empty. S1-09."""
    found = sent(AssistantMessage(content="Sunny.", finish_reason="stop"))
    assert json.loads(found) == [{"role": "assistant", "content": "Sunny."}]


def test_reasoning_rides_beside_the_calls_under_the_documents_name() -> None:
    """Flat reasoning goes back as `reasoning_content` (S1-25, S1-27)."""
    message = AssistantMessage(
        tool_calls=CALLS, reasoning="The user wants two cities. I'll call get_weather for each."
    )
    assert sent(message) == f"[{compact(THINKING)}]"


def test_structured_reasoning_goes_back_verbatim_and_instead_of_the_flat_text() -> None:
    """Blocks are put in as stored: spaces, escapes and number forms included (S1-27, S1-28)."""
    blocks = ('{"type": "reasoning.text", "n": 1.00, "signature":"a\\u002fb"}', '{"type":"x"}')
    message = AssistantMessage(content="c", reasoning="display", reasoning_details=blocks)
    assert sent(message) == (
        '[{"role":"assistant","content":"c","reasoning_details":['
        '{"type": "reasoning.text", "n": 1.00, "signature":"a\\u002fb"},{"type":"x"}]}]'
    )


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ('{ "a" :1.0,"a":2}', '{ "a" :1.0,"a":2}'),
        ("", "{}"),
        ("{broken \u2028 é 😀", '{"unreadable": "{broken \\u2028 \\u00e9 \\ud83d\\ude00"}'),
        ('{"a":NaN}', '{"unreadable": "{\\"a\\":NaN}"}'),
        ('{"a":1e999}', '{"unreadable": "{\\"a\\":1e999}"}'),
        ("[1]", '{"unreadable": "[1]"}'),
        ('{"a":"\ud800', '{"unreadable": "{\\"a\\":\\"\\ud800"}'),
    ],
)
def test_arguments_cross_byte_for_byte_unless_no_endpoint_could_read_them(
    raw: str, arguments: str
) -> None:
    """VLLM, llama.cpp and Ollama refuse each later request that holds such a call (S1-10, S1-12)."""
    message = AssistantMessage(tool_calls=(ToolCall(id="i", name="n", arguments=raw),))
    found = json.loads(sent(message))
    assert found[0]["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("read_file", "read_file"),
        ("", "_"),
        ("shell<|channel|>commentary", "shell__channel__commentary"),
        ("default_api.shell", "default_api_shell"),
        ("n\ud800" * 50, "n_" * 32),
    ],
)
def test_a_name_that_no_tool_has_goes_out_as_one_that_a_tool_could_have(
    raw: str, name: str
) -> None:
    """OpenAI and Anthropic refuse each later request with another one."""
    message = AssistantMessage(tool_calls=(ToolCall(id="i", name=raw, arguments="{}"),))
    found = json.loads(sent(message))
    assert found[0]["tool_calls"][0]["function"]["name"] == name


@pytest.mark.parametrize("content", ["", " \n"])
def test_a_message_without_words_goes_out_with_some(content: str) -> None:
    """Mistral, Moonshot and Anthropic refuse an empty one: an answer of reasoning, a blank mail."""
    body = json.loads(sent(UserMessage(content=content), AssistantMessage(content=content)))
    assert [message["content"] for message in body] == ["(no text)", "(no text)"]


def test_a_request_asks_for_a_stream_with_usage() -> None:
    """Nothing beside what is needed goes out: no tools, no bound unless set (S1-03)."""
    request = ModelRequest(messages=(UserMessage(content="hi"),), correlation="local")
    assert body_of(request) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_tools_and_the_bound_are_offered() -> None:
    """A schema goes without what a model learns nothing from."""
    schema: dict[str, object] = {"type": "object", "required": [], "additionalProperties": False}
    tool = ToolDefinition(name="t", description="d", parameters=schema)
    bare = ToolDefinition(name="b", description="")
    body = body_of(ModelRequest(messages=(), tools=(tool, bare), max_output_tokens=9))
    assert body["max_tokens"] == 9
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "t", "description": "d", "parameters": {"type": "object"}},
        },
        {
            "type": "function",
            "function": {
                "name": "b",
                "description": "",
                "parameters": {"type": "object", "properties": {}},
            },
        },
    ]


def test_the_operators_options_are_added_but_never_replace_the_conversation() -> None:
    """Models keep interleaved thinking only on request, each by its own switch."""
    thinking = {"enable_thinking": True, "clear_thinking": False}
    body = body_of(
        ModelRequest(messages=(UserMessage(content="hi"),)),
        chat_template_kwargs=thinking,
        temperature=0.2,
        messages=[],
        stream=False,
    )
    assert body["chat_template_kwargs"] == thinking
    assert body["temperature"] == 0.2
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert body["stream"] is True


def test_half_a_character_does_not_keep_a_request_from_going_out() -> None:
    """A platform may hand over half of a surrogate pair; UTF-8 can't carry it."""
    assert b'"content":"a?"' in encode_request(
        ModelRequest(messages=(UserMessage(content="a\ud83d"),)), model="m", options={}
    )


def part(number: int, media_type: str, name: str = "") -> FilePart:
    return FilePart(
        digest=f"d{number}", media_type=media_type, name=name, number=number, size_bytes=3
    )


PARTS = """
[
  { "role": "user", "content": [
    { "type": "text", "text": "look\\n[file 5 is not shown]" },
    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
    { "type": "input_audio", "input_audio": { "data": "BBBB", "format": "wav" } },
    { "type": "input_audio", "input_audio": { "data": "BBBB", "format": "mp3" } },
    { "type": "input_audio", "input_audio": { "data": "BBBB", "format": "m4a" } },
    { "type": "input_audio", "input_audio": { "data": "BBBB", "format": "ogg" } },
    { "type": "file", "file": { "filename": "a\\".pdf", "file_data": "data:application/pdf;base64,CCCC" } },
    { "type": "file", "file": { "filename": "file 6", "file_data": "data:application/pdf;base64,CCCC" } }
  ] }
]
"""
BYTES = {"d1": b"AAAA", "d2": b"BBBB", "d3": b"BBBB", "d4": b"CCCC", "d6": b"CCCC"} | {
    "d7": b"BBBB",
    "d8": b"BBBB",
}


def test_files_go_out_as_the_parts_of_the_document() -> None:
    """Behind the text, as they came and in their order; a line stands for one that is not here.

    S1-08.
    """
    files = (
        part(1, "image/png"),
        part(2, "audio/wav"),
        part(3, "audio/mpeg"),
        part(7, "audio/mp4"),
        part(8, "audio/ogg"),
        part(4, "application/pdf", 'a".pdf'),
        part(5, "image/png"),
        part(6, "application/pdf"),
    )
    message = UserMessage(content="look", files=files)
    request = ModelRequest(messages=(message,), files=BYTES)
    body = encode_request(request, model="m", options={})
    assert bytes(decode(body, type=Body).messages).decode() == compact(PARTS)


def test_a_message_none_of_whose_files_is_here_is_its_text() -> None:
    """Endpoints that take nothing else know no parts. S1-08."""
    message = UserMessage(content="look", files=(part(5, "image/png"), part(6, "audio/wav")))
    text = "look\\n[file 5 is not shown]\\n[file 6 is not shown]"
    assert sent(message) == f'[{{"role":"user","content":"{text}"}}]'


def test_messages_that_are_joined_keep_their_files() -> None:
    """A turn that failed leaves no answer between two of them."""
    first = UserMessage(content="one", files=(part(1, "image/png"),))
    second = UserMessage(content="two", files=(part(4, "application/pdf", "b"),))
    body = json.loads(
        encode_request(ModelRequest(messages=(first, second), files=BYTES), model="m", options={})
    )
    [message] = body["messages"]
    assert [part_["type"] for part_ in message["content"]] == ["text", "image_url", "file"]
    assert message["content"][0]["text"] == "one\n\ntwo"


def test_half_a_character_in_a_name_does_not_keep_a_file_from_going_out() -> None:
    """Its bytes go as they are."""
    message = UserMessage(content="a", files=(part(4, "application/pdf", "a\ud83d"),))
    request = ModelRequest(messages=(message,), files=BYTES)
    assert b'"filename":"a?","file_data":"data:application/pdf;base64,CCCC"' in encode_request(
        request, model="m", options={}
    )


def test_a_request_shows_no_bytes_where_it_is_printed() -> None:
    """Logs and failed tests print requests."""
    assert "AAAA" not in repr(ModelRequest(messages=(), files=BYTES))


def test_the_requests_own_bound_wins_over_the_operators() -> None:
    def bound(own: int | None) -> object:
        request = ModelRequest(messages=(), max_output_tokens=own)
        body = json.loads(encode_request(request, model="m", options={}, max_output_tokens=7))
        return body["max_tokens"]

    assert (bound(None), bound(3)) == (7, 3)


odd_texts = st.text(st.sampled_from('a\n"é\ud800\udc00'), max_size=3)
any_call = st.builds(ToolCall, id=odd_texts, name=odd_texts, arguments=odd_texts)
any_file = st.builds(
    FilePart,
    digest=st.sampled_from("pq"),
    media_type=st.just("image/png"),
    name=st.just("n"),
    number=st.just(1),
    size_bytes=st.just(1),
)
any_message = (
    st.builds(SystemMessage, content=odd_texts)
    | st.builds(UserMessage, content=odd_texts, files=st.lists(any_file, max_size=1).map(tuple))
    | st.builds(
        AssistantMessage,
        content=odd_texts,
        tool_calls=st.lists(any_call, max_size=2).map(tuple),
        reasoning=odd_texts,
        reasoning_details=st.sampled_from([(), ('{"a":1.0}',)]),
    )
    | st.builds(ToolMessage, content=odd_texts, tool_call_id=odd_texts)
)


@given(
    pool=st.lists(any_message, min_size=1, max_size=5),
    requests=st.lists(
        st.tuples(
            st.lists(st.integers(0, 4), min_size=1, max_size=8),
            st.dictionaries(st.sampled_from("pq"), st.just(b"AAAA")),
            st.sampled_from([USUAL, PLAIN, SHORT]),
        ),
        max_size=6,
    ),
)
def test_a_cached_message_changes_no_later_request(
    pool: list[Message], requests: list[tuple[list[int], dict[str, bytes], Dialect]]
) -> None:
    """Whatever messages are the same, come and go, however and with whichever files they are sent."""
    cache: dict[object, Written] = {}
    for places, shown, dialect in requests:
        messages = tuple(pool[at % len(pool)] for at in places)
        plain = ModelRequest(messages=messages, files=shown)
        anew = encode_request(plain, model="m", options={}, dialect=dialect)
        again = replace(plain, kept=cache)
        assert encode_request(again, model="m", options={}, dialect=dialect) == anew
        assert all(len(known) == len(written) for known, written in cache.values())


def test_the_cache_drops_messages_that_are_gone() -> None:
    """As when a summary stands for most of a conversation."""
    cache: dict[object, Written] = {}
    many = tuple(AssistantMessage(content=str(n)) for n in range(9))
    encode_request(ModelRequest(messages=many, kept=cache), model="m", options={})
    assert [known for known, _ in cache.values()] == [many]
    encode_request(ModelRequest(messages=many[:2], kept=cache), model="m", options={})
    assert [known for known, _ in cache.values()] == [many[:2]]


def test_a_cached_message_is_reused_in_the_same_dialect_only() -> None:
    """In one that was learned a long conversation takes as little work as in the usual one."""
    cache: dict[object, Written] = {}
    message = AssistantMessage(content="so", reasoning="hm", tool_calls=CALLS)
    request = ModelRequest(messages=(message,) * 200, kept=cache)
    encode_request(request, model="m", options={})
    assert b'"hm"' not in encode_request(request, model="m", options={}, dialect=PLAIN)
    assert list(cache) == [PLAIN]
    again = partial(encode_request, request, model="m", options={}, dialect=PLAIN)
    assert calls_made(again) < 200


def test_a_message_with_a_file_is_not_cached() -> None:
    """It is megabytes, and shown for a while only."""
    cache: dict[object, Written] = {}
    plain, shown = (
        AssistantMessage(content="so"),
        UserMessage(content="look", files=(part(1, "image/png"),)),
    )
    request = ModelRequest(messages=(plain, shown, plain), files={"d1": b"AA"}, kept=cache)
    encode_request(request, model="m", options={})
    assert [known for known, _ in cache.values()] == [(plain,)]


# --- an order that every endpoint and every chat template takes -----------------------------------

SYSTEM = SystemMessage(content="be kind")
ASKED = AssistantMessage(content="looking")
RESULT = ToolMessage(content="42", tool_call_id="a", tool_name="look")


def user_message(text: str) -> UserMessage:
    return UserMessage(content=text)


def test_what_alternates_stays_as_it_is() -> None:
    """Nothing is touched in the usual conversation."""
    usual = (
        SYSTEM,
        user_message("one"),
        ASKED,
        RESULT,
        RESULT,
        AssistantMessage(content="42"),
        user_message("two"),
    )
    assert tuple(alternating(usual)) == usual
    assert tuple(alternating(())) == ()


def test_messages_of_people_in_a_row_become_one() -> None:
    """A turn that failed leaves no answer between two messages."""
    assert tuple(
        alternating((SYSTEM, user_message("one"), user_message("two"), user_message("three")))
    ) == (SYSTEM, user_message("one\n\ntwo\n\nthree"))


def test_a_message_after_results_comes_after_a_word_of_the_assistant() -> None:
    """After `/tool`, after an edit, after steering."""
    assert tuple(
        alternating((user_message("go"), ASKED, RESULT, user_message("and"), user_message("now?")))
    ) == (
        user_message("go"),
        ASKED,
        RESULT,
        AssistantMessage(content=BETWEEN),
        user_message("and\n\nnow?"),
    )


@given(st.lists(st.sampled_from([SYSTEM, user_message("one"), user_message("two"), ASKED, RESULT])))
def test_no_order_is_left_that_a_template_refuses(messages: list[Message]) -> None:
    """No user after user or result; all words stay, in order; doing it twice changes nothing."""
    made = tuple(alternating(messages))
    pairs = pairwise(made)
    refused = [
        pair
        for pair in pairs
        if isinstance(pair[0], UserMessage | ToolMessage) and isinstance(pair[1], UserMessage)
    ]
    assert refused == []
    texts = "\n\n".join(message.content for message in made if message.content != BETWEEN)
    assert texts == "\n\n".join(message.content for message in messages)
    assert tuple(alternating(made)) == made
