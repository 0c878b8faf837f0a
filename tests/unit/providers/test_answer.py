"""How the chunks of many dialects, and the bytes of a 200, become one typed stream."""

import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.loop_steps import calls_made
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
from zeroclaw.providers.openai.answer import (
    MAX_BLOCK_CHARS,
    MAX_CALLS,
    MAX_SAID_CHARS,
    THOUGHT_TAGS,
    Assembly,
    ThoughtSplitter,
    error_in,
)
from zeroclaw.providers.openai.body import MAX_ANSWER_BYTES, Body
from zeroclaw.providers.openai.refusal import error_for
from zeroclaw.sse import MAX_EVENT_BYTES
from zeroclaw.value import replace

Fields = dict[str, object]


def delta(finish: str | None = None, **fields: object) -> Fields:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def fragment(
    arguments: object = None, *, index: int | None = None, id_: str = "", name: str = ""
) -> Fields:
    function: Fields = {"arguments": arguments}
    function |= {"name": name} if name else {}
    call: Fields = {"function": function}
    call |= {"index": index} if index is not None else {}
    call |= {"id": id_, "type": "function"} if id_ else {}
    return delta(tool_calls=[call])


def events_of(*chunks: Fields) -> list[StreamEvent]:
    assembly = Assembly()
    events = [event for chunk in chunks for event in (*assembly.take(chunk), *assembly.take_text())]
    return [*events, *assembly.end()]


def calls_of(*chunks: Fields, finish: str = "tool_calls") -> list[ToolCall]:
    events = events_of(*chunks, delta(finish))
    return [event.call for event in events if isinstance(event, ToolCallReady)]


def call(arguments: str, *, id_: str = "call_0", name: str = "f") -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=arguments)


def test_an_answer_is_text_then_usage_then_the_finish() -> None:
    """The role-only chunk says nothing; the finish is last, exactly once (S2-21)."""
    assert events_of(
        delta(role="assistant", content=""),
        delta(content="Hel"),
        delta(content="lo"),
        delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    ) == [
        TextDelta(text="Hel"),
        TextDelta(text="lo"),
        UsageReported(usage=Usage(input_tokens=3, output_tokens=2)),
        Finished(reason="stop"),
    ]


def test_a_call_leaves_whole_and_its_arguments_are_byte_for_byte() -> None:
    """Fragments are joined by index, interleaved or not (S1-10, S1-13, S0-23)."""
    assert calls_of(
        fragment("", index=0, id_="a", name="f"),
        fragment('{ "x"', index=0),
        fragment('{"y":', index=1, id_="b", name="g"),
        fragment(" :1}", index=0),
        fragment(None, index=1),
        fragment("2}", index=1),
    ) == [call('{ "x" :1}', id_="a"), call('{"y":2}', id_="b", name="g")]


@given(raw=st.lists(st.text(max_size=30), min_size=1, max_size=4), data=st.data())
def test_no_cutting_of_arguments_changes_them(raw: list[str], data: st.DataObject) -> None:
    """However the calls of one answer are cut up and interleaved, they leave as written (S1-13)."""
    raw = [text.encode("utf-8", "ignore").decode() for text in raw]
    heads = [fragment("", index=i, id_="call_0", name="f") for i in range(len(raw))]
    pieces = [[fragment(character, index=i) for character in text] for i, text in enumerate(raw)]
    turns = data.draw(st.permutations([i for i, text in enumerate(raw) for _ in text]))
    mixed = [pieces[i].pop(0) for i in turns]
    assert calls_of(*heads, *mixed) == [call(text) for text in raw]


def test_colliding_ids_are_no_trouble() -> None:
    """Every call named `call_0`, with and without indexes (S1-18)."""
    indexed = (
        fragment("{}", index=0, id_="call_0", name="f"),
        fragment("[]", index=1, id_="call_0", name="f"),
    )
    bare = (fragment("{}", id_="call_0", name="f"), fragment('{"a":1}', id_="call_0", name="f"))
    assert calls_of(*indexed) == [call("{}"), call("[]")]
    assert calls_of(*bare) == [call("{}"), call('{"a":1}')]


def test_a_missing_index_is_tolerated() -> None:
    """A named fragment begins a call, an unnamed one goes on with the last."""
    assert calls_of(
        fragment('{"a"', id_="1", name="f"),
        fragment(":1}"),
        fragment('{"b"', id_="2", name="g"),
        fragment(":2}", id_="2", name="g"),
    ) == [call('{"a":1}', id_="1"), call('{"b":2}', id_="2", name="g")]


def test_whole_calls_that_all_claim_index_0_stay_apart() -> None:
    """As Gemini's compatible endpoint sends them."""
    assert calls_of(
        fragment("{}", index=0, id_="a", name="f"), fragment("{}", index=0, id_="b", name="g")
    ) == [call("{}", id_="a"), call("{}", id_="b", name="g")]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (json.dumps('{"a": "\\u0062", "a": 1}'), '{"a": "\\u0062", "a": 1}'),
        (json.dumps("[1]"), json.dumps("[1]")),
        (json.dumps(json.dumps("{}")), json.dumps(json.dumps("{}"))),
        ('"{}', '"{}'),
    ],
)
def test_arguments_that_are_a_text_of_json_are_that_text(sent: str, expected: str) -> None:
    """As some servers send those of Qwen's models: encoded twice; the gate parses what is inside."""
    assert calls_of(fragment(sent, index=0, id_="1", name="f")) == [call(expected, id_="1")]


@pytest.mark.parametrize("index", [0, None])
def test_a_fragment_goes_on_with_the_call_whose_id_it_has(index: int | None) -> None:
    """Where no index tells: an unknown id, as of a call that has just got one, tells nothing."""
    assert calls_of(
        fragment('{"a"', index=index, id_="1", name="f"),
        fragment('{"b"', index=index, id_="2", name="g"),
        fragment(":1}", index=index, id_="1"),
        fragment(":2}", index=index, id_="3"),
    ) == [call('{"a":1}', id_="1"), call('{"b":2}', id_="2", name="g")]


def test_a_name_repeated_in_every_fragment_is_one_call() -> None:
    assert calls_of(
        fragment('{"a"', index=0, id_="a", name="f"), fragment(":1}", index=0, name="f")
    ) == [call('{"a":1}', id_="a")]


def test_calls_leave_in_order_of_index_and_a_missing_id_is_filled() -> None:
    assert calls_of(fragment("{}", index=1, name="g"), fragment("{}", index=0, name="f")) == [
        call("{}"),
        call("{}", id_="call_1", name="g"),
    ]


def test_a_fragment_without_a_name_or_a_beginning_becomes_a_nameless_call() -> None:
    """The runtime then tells the model that there is no such tool."""
    assert calls_of(fragment("{}")) == [call("{}", name="")]


def test_an_answer_of_more_calls_than_anybody_asks_for_is_broken() -> None:
    """Each would be refused by itself, with a receipt and its place in the audit (P9)."""
    assembly, most = Assembly(), MAX_CALLS
    assembly.take(delta(tool_calls=[{"index": number, "id": "a"} for number in range(most)]))
    with pytest.raises(StreamBroken, match="more than 256 calls"):
        assembly.take(fragment("{}", index=most, id_="a", name="f"))


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (Fields(), 64),
        (Fields(index=0, data="x" * 1_024), 1_024),
        (Fields(tree=[Fields()] * 256), 768),
    ],
    ids=["empty", "data", "tree"],
)
def test_an_answer_of_more_reasoning_than_any_model_writes_is_broken(
    block: Fields, size: int
) -> None:
    """Empty blocks, or trees, in a body of 64 MiB would take gigabytes (P9)."""
    assembly = Assembly()
    assembly.take(delta(reasoning_details=[block] * (MAX_BLOCK_CHARS // size * 9 // 10)))
    with pytest.raises(StreamBroken, match="more than 4,194,304 characters of reasoning"):
        assembly.take(delta(reasoning_details=[block] * (MAX_BLOCK_CHARS // size // 5)))


def test_a_value_that_is_sent_again_counts_once() -> None:
    assembly, tree = Assembly(), Fields(index=0, tree=[Fields()] * 20_000)
    assembly.take(delta(reasoning_details=[tree] * 100))
    assert assembly.unsaid_bytes < MAX_BLOCK_CHARS // 50


@pytest.mark.parametrize(
    "more",
    [delta(content="x" * 1_024), fragment("x" * 1_024), delta(reasoning_content="x" * 1_024)],
    ids=["text", "arguments", "reasoning"],
)
def test_an_answer_that_never_ends_is_broken(more: Fields) -> None:
    """Otherwise people would receive message after message of it without end (P9)."""
    assembly = Assembly()

    def say(times: int) -> None:
        for _ in range(times):
            assembly.take(more)
            assembly.take_text()

    say(MAX_SAID_CHARS // 1_024)
    with pytest.raises(StreamBroken, match="more than 1,048,576 characters"):
        say(1)


@pytest.mark.parametrize("label", ["id", "name", "extra"])
def test_a_call_with_an_endless_label_is_broken(label: str) -> None:
    """Every later request of the conversation would hold it (P9)."""
    long = "x" * (MAX_SAID_CHARS - 1_000)
    calls: dict[str, Fields] = {
        "id": {"id": long, "function": {"name": "f"}},
        "name": {"function": {"name": long}},
        "extra": {"function": {"name": "f"}, "extra_content": {"signature": long}},
    }
    assembly = Assembly()
    assembly.take(delta(tool_calls=[{"index": 0, **calls[label]}]))
    with pytest.raises(StreamBroken, match="more than 1,048,576 characters"):
        assembly.take(delta(tool_calls=[{"index": 1, **calls[label]}]))


def test_a_name_that_is_repeated_for_ever_is_broken() -> None:
    """Whether the call has ended is read anew with each piece of it (P9)."""
    assembly = Assembly()
    assembly.take(fragment('{"a": "' + "x" * 1_000_000, name="f"))
    with pytest.raises(StreamBroken, match="repeats the name"):
        assembly.take(delta(tool_calls=[{"function": {"name": "f", "arguments": "x"}}] * 64))


@pytest.mark.parametrize(
    ("name", "fragment"),
    [
        ("tool_calls", {"index": 0, "id": "0", "function": {"name": "f", "arguments": "x"}}),
        ("tool_calls", {"index": 0, "function": {"arguments": "x"}}),
        ("reasoning_details", {"index": 0, "type": "a", "text": "x"}),
        ("reasoning_details", {"index": 0, "text": "x"}),
    ],
)
def test_a_fragment_costs_few_steps_however_much_came_before(name: str, fragment: Fields) -> None:
    """A hostile endpoint sends a hundred thousand in one event (P9)."""
    assembly = Assembly()
    calls = [{"index": 0, "id": f"{n}", "function": {"name": "f"}} for n in range(MAX_CALLS)]
    assembly.take(delta(tool_calls=calls))
    assembly.take(delta(reasoning_details=[{"index": n, "type": "a"} for n in range(1_000)]))
    chunk: Fields = {"choices": [{"delta": {name: [fragment] * 100}}]}
    assert calls_made(lambda: assembly.take(chunk)) <= 40 * 100


def test_arguments_that_an_endpoint_parsed_are_written_again() -> None:
    assert calls_of(fragment({"a": "é"}, index=0, name="f")) == [call('{"a": "é"}')]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_call_that_a_limit_cut_off_does_not_leave(finish: str) -> None:
    """Half a call is none; a whole one before it is (S0-23)."""
    chunks = (fragment("{}", index=0, name="f"), fragment('{"a', index=1, name="g"))
    assert calls_of(*chunks, finish=finish) == [call("{}")]
    assert calls_of(*chunks, finish="stop") == [call("{}"), call('{"a', id_="call_1", name="g")]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_both_names_of_flat_reasoning_are_one_channel(field: str) -> None:
    """`reasoning` (vLLM) and `reasoning_content` (DeepSeek) (S1-24)."""
    assert events_of(delta(**{field: "hm"}), delta(content="x"), delta("stop")) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="x"),
        Finished(reason="stop"),
    ]


def test_reasoning_sent_under_both_names_is_taken_once() -> None:
    assert events_of(delta(reasoning="hm", reasoning_content="hm"), delta("stop")) == [
        ReasoningDelta(text="hm"),
        Finished(reason="stop"),
    ]


def test_structured_blocks_are_merged_by_index_and_leave_in_order() -> None:
    """Text grows, the signature is kept, an encrypted block shows nothing (S1-27, S1-28)."""
    text, encrypted = "reasoning.text", "reasoning.encrypted"
    events = events_of(
        delta(reasoning_details=[{"type": text, "index": 0, "text": "I ", "signature": None}]),
        delta(reasoning_details=[{"type": text, "index": 0, "format": None}]),
        delta(reasoning_details=[{"type": text, "index": 0, "text": "see"}]),
        delta(reasoning_details=[{"index": 0, "signature": "s/g==", "type": None}, "no block"]),
        delta(reasoning_details=[{"type": encrypted, "index": 0, "data": "AA"}]),
        delta(reasoning_details=[{"type": encrypted, "index": 0, "data": "BB", "id": "r"}]),
        delta(reasoning_details=[{"type": "reasoning.summary", "summary": "so"}]),
        delta("stop"),
    )
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == [
        "I ",
        "see",
        "so",
        "",
    ]
    details = [event.details for event in events if isinstance(event, ReasoningDelta)][-1]
    assert [json.loads(block) for block in details] == [
        {"type": text, "index": 0, "text": "I see", "signature": "s/g==", "format": None},
        {"type": encrypted, "index": 0, "data": "AABB", "id": "r"},
        {"type": "reasoning.summary", "summary": "so"},
    ]


def test_a_flat_text_beside_blocks_is_their_display_and_not_shown_twice() -> None:
    """OpenRouter sends both."""
    block = {"type": "reasoning.text", "index": 0, "text": "hm"}
    events = events_of(delta(reasoning="hm", reasoning_details=[block]), delta("stop"))
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == ["hm", ""]


def test_content_in_parts_is_text_and_thinking() -> None:
    """Mistral's shape."""
    parts: list[object] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, 0]},
        {"type": "text", "text": "yes"},
        "?",
    ]
    assert events_of(delta(content=parts), delta("stop")) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="yes"),
        Finished(reason="stop"),
    ]


HARMONY = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}"
THOUGHTS_IN_TAGS = pytest.mark.parametrize(
    ("sent", "thought", "text"),
    [
        ("<think>hm</think>\n\nYes.\n", "hm", "Yes.\n"),
        (
            "\n<think>\na < b, </thin\n</think>Yes <think>or</think> no",
            "\na < b, </thin\n",
            "Yes <think>or</think> no",
        ),
        ("<think>a<think>b</think> c</think>", "a<think>b", "c</think>"),
        ("<think>hm", "hm", "<think>hm"),
        (" <think>hm</thi", "hm</thi", "<think>hm</thi"),
        ("<think>\n\n</think>\n\nYes", "\n\n", "Yes"),
        ("Write <think>hm</think>", "", "Write <think>hm</think>"),
        ("<thinking>hm", "", "<thinking>hm"),
        ("  <thi", "", "<thi"),
        ("\n</think>\n\nx</think>", "", "x</think>"),
        ("`</think>` ends it", "", "`</think>` ends it"),
        ("</thi", "", "</thi"),
        ("[THINK]a [/THINK</think>[/THINK]Yes [THINK]", "a [/THINK</think>", "Yes [THINK]"),
        ("[/THINK]Yes", "", "Yes"),
        ("[THIS](link) [THINK]", "", "[THIS](link) [THINK]"),
        ("[THINK]hm</think>", "hm</think>", "[THINK]hm</think>"),
        (
            HARMONY.format("hm <|end|> <|end|><|start", "Yes<|"),
            "hm <|end|> <|end|><|start",
            "Yes<|",
        ),
        (
            HARMONY.replace("analysis", "commentary").format("I look.", "Yes"),
            "<|message|>I look.",
            "Yes",
        ),
        (
            HARMONY.format(
                "hm<|end|><|start|>assistant<|channel|>commentary<|message|>I look.", "Yes"
            ),
            "hm<|end|><|start|>assistant<|channel|>commentary<|message|>I look.",
            "Yes",
        ),
        ("<|channel|>final<|message|>Yes", "", "Yes"),
        ("<|channel|>fin", "", "<|channel|>fin"),
        ("<|channel|>other<|message|>Yes", "", "<|channel|>other<|message|>Yes"),
    ],
)


@THOUGHTS_IN_TAGS
@given(cuts=st.sets(st.integers(1, 60)))
def test_thoughts_in_tags_before_the_text_are_reasoning(
    sent: str, thought: str, text: str, cuts: set[int]
) -> None:
    """As servers without a parser for the model send them, cut anywhere."""
    places = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    pieces = [delta(content=sent[a:b]) for a, b in pairwise(places)]
    events = events_of(*pieces, delta("stop"))
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == thought
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).lstrip() == text
    assert all(event.text for event in events if isinstance(event, ReasoningDelta | TextDelta))


@THOUGHTS_IN_TAGS
def test_thoughts_that_come_letter_by_letter_are_the_same(
    sent: str, thought: str, text: str
) -> None:
    """What may begin a tag is held back, and belongs to what it stands in if it does not."""
    events = events_of(*(delta(content=letter) for letter in sent), delta("stop"))
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == thought
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).lstrip() == text


@pytest.mark.parametrize("rest", [delta("length"), fragment("{}", index=0, name="f")])
def test_unclosed_thoughts_are_shown_only_where_an_answer_is_whole(rest: Fields) -> None:
    """A limit cut them off, or a call stands for the answer."""
    events = events_of(delta(content="[THINK]hm"), rest, delta("length"))
    assert [event for event in events if isinstance(event, TextDelta)] == []
    assert ReasoningDelta(text="hm") in events


@pytest.mark.parametrize("tag", THOUGHT_TAGS)
def test_no_piece_of_an_answer_takes_more_for_all_that_came_before(tag: str) -> None:
    """Even where each looks like the beginning of a tag (P9)."""
    assembly = Assembly()
    events = [*assembly.take(delta(content=tag)), *assembly.take_text()]
    held = (THOUGHT_TAGS[tag] or tag)[:-1]

    def take() -> None:
        for _ in range(100):
            assembly.take(delta(content=held))
            events.extend(assembly.take_text())

    take()
    assert calls_made(take) <= 100 * 100
    texts = [event.text for event in events if isinstance(event, ReasoningDelta | TextDelta)]
    assert held * 200 == "".join(texts) + held * (THOUGHT_TAGS[tag] != "")


LONE = "Okay.\nA lobster\n</think>\n\nAn animal."


@pytest.mark.parametrize("cut", [*range(1, len(LONE)), None])
def test_thoughts_whose_opening_tag_is_in_the_prompt_are_taken_back(cut: int | None) -> None:
    """As vLLM without a parser sends those of DeepSeek-R1; the text before the tag was shown (P6)."""
    first, rest = LONE[:cut], LONE[cut:] if cut else ""
    events = events_of(delta(content=first), delta(content=rest), delta("stop"))
    taken_back_at = next(at for at, event in enumerate(events) if isinstance(event, ReasoningDelta))
    assert events[taken_back_at] == ReasoningDelta(text="Okay.\nA lobster\n", takes_back=True)
    texts = [event.text for event in events[taken_back_at:] if isinstance(event, TextDelta)]
    assert "".join(texts) == "An animal."


@pytest.mark.parametrize(
    "text",
    [
        "It ends with </think>\n\nYes",
        "It ends with\n</think> and so on",
        "It ends with\n</think>",
        "```\nhm\n</think>\n\n```\nYes",
        "It is <think>\nhm\n</think>\n\nYes",
        "It is\n</think> or\n</think>\n\nYes",
    ],
)
def test_an_answer_about_tags_is_shown_as_it_is(text: str) -> None:
    for pieces in ((text,), text):
        events = events_of(*(delta(content=piece) for piece in pieces), delta("stop"))
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
        assert not any(isinstance(event, ReasoningDelta) for event in events)


@pytest.mark.parametrize(
    ("text", "thought", "answer", "still"),
    [
        (LONE, "Okay.\nA lobster\n", "An animal.", True),
        ("hm</think>Yes", "hm", "Yes", True),
        ("<think>hm</think>Yes", "hm", "Yes", True),
        ("Yes", "Yes", "Yes", False),
    ],
)
def test_thoughts_of_a_model_that_is_known_to_begin_with_them_are_never_shown(
    text: str, thought: str, answer: str, still: object
) -> None:
    """An answer without a closing tag has none, and the model begins with them no more."""
    thoughts = ThoughtSplitter(is_opened=True)
    assembly = Assembly(thoughts=thoughts)
    chunks = (*(delta(content=piece) for piece in text), delta("stop"))
    events = [event for chunk in chunks for event in (*assembly.take(chunk), *assembly.take_text())]
    events += assembly.end()
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == thought
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == answer
    assert thoughts.is_opened is still


@pytest.mark.parametrize("reason", ["length", "tool_calls"])
def test_a_model_that_closes_no_thoughts_is_not_known_to_begin_with_them(reason: str) -> None:
    """Anybody can ask for a lone tag, and others' cut answers must not stay hidden for it (P9)."""
    thoughts = ThoughtSplitter(is_opened=True)
    assembly = Assembly(thoughts=thoughts)
    calls = [{"index": 0, "id": "1", "function": {"name": "look", "arguments": "{}"}}]
    text = {"content": "Yes", "tool_calls": calls if reason == "tool_calls" else []}
    assembly.take({"choices": [{"index": 0, "delta": text}]})
    assembly.take(delta(reason))
    assert not any(isinstance(event, TextDelta) for event in assembly.end())
    assert thoughts.is_opened is False


@pytest.mark.parametrize("text", ["<think>", " <think>\n</think>\n"])
def test_tags_without_thoughts_are_nothing(text: str) -> None:
    with pytest.raises(StreamBroken, match="nothing"):
        events_of(delta(content=text), delta("stop"))


def test_what_an_answer_of_nothing_used_is_reported() -> None:
    """A reasoning model may use up its whole limit for it."""
    assembly = Assembly()
    assembly.take(delta("length") | {"usage": {"completion_tokens": 9}})
    events = assembly.end()
    assert next(events) == UsageReported(usage=Usage(output_tokens=9))
    with pytest.raises(ProviderRejected, match="nothing"):
        next(events)


def test_a_refusal_in_its_own_field_is_shown() -> None:
    assert TextDelta(text="I can't.") in events_of(delta(refusal="I can't."), delta("stop"))


def test_a_character_cut_in_two_escapes_is_put_together() -> None:
    """JSON escapes may split a pair over two deltas; a lone half becomes U+FFFD."""
    assert events_of(delta(content="a\ud83d"), delta(content="\ude00b"), delta("stop"))[:2] == [
        TextDelta(text="a"),
        TextDelta(text="😀b"),
    ]
    assert events_of(delta(content="a\ud83d"), delta("stop"))[1] == TextDelta(text="\ufffd")
    assert events_of(delta(reasoning="a\ud83d"), delta("stop"))[1] == ReasoningDelta(text="\ufffd")
    assert calls_of(fragment("\ud83d", index=0), fragment("\ude00", index=0))[0].arguments == "😀"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("content_filter: PROHIBITED_CONTENT", "content_filter"),
        ("tool_calls", "stop"),
    ],
)
def test_finish_reasons_become_the_four(sent: str, expected: str) -> None:
    assert events_of(delta(content="x"), delta(sent))[-1] == Finished(reason=expected)  # pyright: ignore[reportArgumentType]  # a parametrized literal


def test_calls_that_end_with_stop_are_still_calls() -> None:
    """Several servers say `stop` after tool calls (S0-24)."""
    assert events_of(fragment("{}", index=0, name="f"), delta("stop"))[-1] == Finished(
        reason="tool_calls"
    )


@pytest.mark.parametrize(
    ("sent", "usage"),
    [
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(input_tokens=9, cached_tokens=4),
        ),
        (
            {"completion_tokens": 2, "prompt_cache_hit_tokens": 3},
            Usage(output_tokens=2, cached_tokens=3),
        ),
        ({"prompt_tokens": None, "cached_tokens": 1}, Usage(cached_tokens=1)),
        (
            {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 331},
            Usage(input_tokens=12, output_tokens=319),
        ),
        (
            {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 10**30},
            Usage(input_tokens=12, output_tokens=2),
        ),
        ({"total_tokens": 331}, Usage()),
        ({"prompt_tokens": -5, "completion_tokens": True}, Usage()),
        ({"prompt_tokens": 10**30, "completion_tokens": 1e308, "cached_tokens": "9"}, Usage()),
    ],
)
def test_usage_is_read_in_every_dialect(sent: Fields, usage: Usage) -> None:
    chunks = (delta(content="x"), delta("stop"))
    assert UsageReported(usage=usage) in events_of(*chunks, {"usage": sent})
    assert UsageReported(usage=usage) in events_of(*chunks, {"x_groq": {"usage": sent}})
    in_choice: Fields = {"choices": [{"delta": {}, "finish_reason": "stop", "usage": sent}]}
    assert UsageReported(usage=usage) in events_of(delta(content="x"), in_choice)


def test_the_last_usage_counts_and_is_reported_once() -> None:
    events = events_of(
        {"usage": {"prompt_tokens": 1}}, delta("stop", content="x"), {"usage": {"prompt_tokens": 2}}
    )
    assert [event.usage for event in events if isinstance(event, UsageReported)] == [
        Usage(input_tokens=2)
    ]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_answer_with_nothing_in_it_is_an_error_that_names_the_reason(text: str) -> None:
    with pytest.raises(ProviderRejected, match=r"nothing \(finish reason `length`\)"):
        events_of(delta(content=text), delta("length"))


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "?"])
def test_an_answer_with_nothing_in_it_that_no_limit_explains_is_broken(finish: str) -> None:
    """Gemini's models send such ones after results; asked once more, they answer."""
    with pytest.raises(StreamBroken, match="nothing"):
        events_of(delta(content=" "), delta(finish))


def test_a_reason_for_an_empty_answer_is_one_line() -> None:
    """It is a foreign text, and goes to the chat and the log (P10)."""
    with pytest.raises(StreamBroken) as caught:
        events_of(delta("a`\n\x1b[2J\ud800" + "x" * 1_000_000))
    assert str(caught.value).startswith(
        "the model answered with nothing (finish reason `a' [2J xxx"
    )
    assert len(str(caught.value)) < 300


def test_an_answer_of_reasoning_alone_is_one() -> None:
    assert events_of(delta(reasoning="hm"), delta("stop"))[-1] == Finished(reason="stop")


@pytest.mark.parametrize(
    "finish",
    [
        "error",
        "abort",
        "insufficient_system_resource",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
    ],
)
def test_a_finish_that_the_model_did_not_choose_is_broken(finish: str) -> None:
    """OpenRouter; vLLM and SGLang that shut down; DeepSeek under load; Gemini.

    Half an answer would be shown as the whole one.
    """
    with pytest.raises(StreamBroken, match="with an error"):
        events_of(delta(finish, content="half"))


def test_what_an_endpoint_attaches_to_a_call_goes_with_it() -> None:
    """Gemini 3 refuses a call that comes back without its signature."""
    attached = {"google": {"thought_signature": "c2ln/+=="}}
    function: Fields = {"name": "f", "arguments": "{}"}
    (made,) = calls_of(delta(tool_calls=[{"function": function, "extra_content": attached}]))
    assert json.loads(made.extra) == attached


def test_unexpected_choices_and_shapes_are_skipped() -> None:
    strange: list[Fields] = [
        {},
        {"choices": None},
        {"choices": ["x", {"index": 1, "delta": {"content": "no"}}, {"delta": None}]},
        delta(content=7, tool_calls="x", reasoning_details={}),
        delta(tool_calls=[None]),
        {"usage": None},
    ]
    assert events_of(*strange, delta("stop", content="x")) == [
        TextDelta(text="x"),
        Finished(reason="stop"),
    ]


def test_an_answer_that_was_not_streamed_is_read_too() -> None:
    assembly = Assembly()
    message = {
        "content": None,
        "tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": "{}"}},
            {"id": "a", "function": {"name": "f", "arguments": "{}"}},
        ],
    }
    assembly.take({"choices": [{"message": message, "finish_reason": None}]})
    ready = ToolCallReady(call=call("{}", id_="a"))
    assert tuple(assembly.end(is_stream=False)) == (ready, ready, Finished(reason="tool_calls"))


ERRORS: list[tuple[Fields, object]] = [
    ({"error": {"message": "m"}}, {"message": "m"}),
    ({"error": "m", "choices": []}, "m"),
    ({"choices": [{"error": {"code": 502}}]}, {"code": 502}),
    ({"object": "error", "message": "m"}, {"object": "error", "message": "m"}),
    ({"error": None, "choices": [{"delta": {}}, 1]}, None),
]


@pytest.mark.parametrize(("chunk", "error"), ERRORS)
def test_an_error_in_a_chunk_is_found(chunk: Fields, error: object) -> None:
    assert error_in(chunk) == error


EXTRAS: Fields = {
    "id": "x",
    "model": "m",
    "object": "chat.completion.chunk",
    "usage": None,
    "error": None,
}


@given(
    st.lists(st.text(alphabet=st.characters(exclude_categories=[]), max_size=4), max_size=6),
    st.booleans(),
    st.sets(st.integers(0, 5)),
)
def test_a_piece_of_text_is_read_as_any_chunk_is(
    texts: list[str], ascii_only: bool, handed_on: set[int]
) -> None:
    """What is quick to read and what is not say the same, halves of letters included.

    So do pieces that are handed on together, and one by one.
    """
    quick, slow = Assembly(), Assembly()
    read = {quick: "", slow: ""}

    def hand_on(assembly: Assembly) -> None:
        for event in assembly.take_text():
            assert isinstance(event, TextDelta)
            read[assembly] += event.text

    for at, text in enumerate(texts):
        chunk = {**EXTRAS, **delta(content=text)}
        if not quick.take_piece(json.dumps(chunk, ensure_ascii=ascii_only)):
            quick.take(chunk)
        slow.take(chunk)
        hand_on(slow)
        if at in handed_on:
            hand_on(quick)
    hand_on(quick)
    assert read[quick] == read[slow]


@pytest.mark.parametrize(
    "chunk",
    [
        {**EXTRAS, **delta(role="assistant", content="a")},
        {**EXTRAS, **delta("stop", content="a")},
        {**EXTRAS, **delta(content="a"), "usage": {"prompt_tokens": 3}},
        {**EXTRAS, **delta(content="a"), "x_groq": {"usage": {}}},
        {**EXTRAS, **delta(content="a"), "error": "no"},
        {**EXTRAS, **delta(content="a"), "object": "error"},
        {**EXTRAS, "choices": [{"index": 1, "delta": {"content": "a"}}]},
        {**EXTRAS, "choices": [{"delta": {"content": "a"}, "error": "no"}]},
        {**EXTRAS, "choices": [{"delta": {"content": "a"}, "message": {}}]},
        {**EXTRAS, "choices": []},
        {**EXTRAS, **fragment("{}", id_="c", name="f")},
    ],
)
def test_a_chunk_that_says_more_is_no_piece_of_text(chunk: Fields) -> None:
    assert not Assembly().take_piece(json.dumps(chunk))


# --- the bytes of an answer, wherever they are cut ------------------------------------------------

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
    UsageReported(usage=Usage(input_tokens=3, output_tokens=2)),
    ToolCallReady(call=ToolCall(id="a", name="f", arguments='{"x":1}')),
    Finished(reason="tool_calls"),
]
TEXT = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def body(*, redact: Callable[[str], str] = str, max_bytes: int = 10_000) -> Body:
    error_of = partial(error_for, endpoint="host", redact=redact)
    return Body(endpoint="host", error_of=error_of, max_bytes=max_bytes)


def read(*chunks: bytes) -> list[StreamEvent]:
    reader = body()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.end()]


def without_chance(events: list[StreamEvent]) -> list[StreamEvent]:
    """The events, without how they were grouped."""
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
def test_a_200_that_is_no_answer_is_reported_as_such(
    kind: type[ZeroclawError], text: bytes
) -> None:
    """An error body, an error in the stream, a web page, junk and nothing at all."""
    with pytest.raises(kind):
        read(text)


def test_a_number_that_would_become_infinity_is_no_part_of_an_answer() -> None:
    """It was written as a word that no endpoint reads, into each later request."""
    details = b'"delta":{"reasoning_details":[{"a":1e999}]},"finish_reason":"stop"'
    with pytest.raises(StreamBroken, match="not JSON"):
        read(b'data: {"choices":[{%b}]}\n\n' % details)


def test_what_came_before_an_error_has_left() -> None:
    events = body().feed(TEXT + b'data: {"error":{"code":500}}\n\n')
    assert next(events) == TextDelta(text="x")
    with pytest.raises(ProviderOverloaded):
        next(events)


def test_events_parsed_at_the_end_are_still_unread() -> None:
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


def test_an_answer_that_says_null_as_a_text_is_not_finished() -> None:
    """A pause of two seconds, or a cut, used to end it as if it were whole."""
    reader = body()
    list(reader.feed(b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"null"}]}\n\n'))
    assert not reader.has_finish
    with pytest.raises(StreamBroken, match="without a finish"):
        list(reader.end())


def test_an_endless_answer_ends() -> None:
    reader = body(max_bytes=100)
    assert list(reader.feed(b": ping\n\n" * 12)) == []
    with pytest.raises(StreamBroken, match="more than 100 bytes"):
        list(reader.feed(b": ping\n\n"))


@pytest.mark.parametrize("start", [b'{"choices":[', b" ", b"<html>"])
def test_a_body_that_is_no_stream_ends_as_an_event_does(start: bytes) -> None:
    """It is read in one step, which delays every chat for as long as that takes (P9)."""
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
    """So that it is not shown as the beginning of more."""
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
