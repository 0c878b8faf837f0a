"""Counting tokens: never fewer than there are, and close once an endpoint has reported."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.context.samples import COUNTED, TEXTS, VOCABULARIES
from zeroclaw.context.tokens import (
    Scale,
    TokenCache,
    of_message,
    of_request,
    of_text,
    of_tools,
    report,
    report_overflow,
    size_of,
    uncounted_texts,
    weigh,
    with_counts,
)
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
from zeroclaw.value import replace

MESSAGES: tuple[Message, ...] = (
    SystemMessage(content=TEXTS["English"]),
    UserMessage(content=TEXTS["German"]),
    AssistantMessage(tool_calls=(ToolCall(id="call_0", name="fetch", arguments='{"url": "x"}'),)),
    ToolMessage(content=TEXTS["JSON"], tool_call_id="call_0", tool_name="fetch"),
    AssistantMessage(content=TEXTS["Chinese"]),
)
MORE = UserMessage(content=TEXTS["code"])
NEW = Scale()


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("name", TEXTS)
def test_an_estimate_is_never_below_the_truth(name: str, vocabulary: str) -> None:
    """For none of five vocabularies."""
    assert of_text(TEXTS[name]) >= COUNTED[name][VOCABULARIES.index(vocabulary)]


@pytest.mark.parametrize("name", ["English", "German", "Chinese", "code", "JSON", "base64", "log"])
def test_an_estimate_is_not_far_above_the_vocabulary_that_counts_most(name: str) -> None:
    """Else a conversation would be summed up long before it must."""
    assert of_text(TEXTS[name]) <= 2 * max(COUNTED[name])


@given(st.text())
def test_a_text_takes_something_and_no_more_than_its_bytes(text: str) -> None:
    """A tokenizer that works on bytes never makes more of them; only nothing takes nothing."""
    assert (of_text(text) > 0) == bool(text)
    assert of_text(text) <= len(text.encode()) + 2


def test_half_of_a_surrogate_pair_is_weighed() -> None:
    """A model's broken text reaches the scale as it is."""
    assert of_text("\ud83d") > 0


def test_a_message_takes_more_than_its_text() -> None:
    """Its marks, the calls in it, and its reasoning in one of two forms."""
    plain = AssistantMessage(content="Yes.")
    assert of_message(plain) > of_text("Yes.")
    calls = (ToolCall(id="call_0", name="shell", arguments='{"command": "ls"}'),)
    assert of_message(AssistantMessage(content="Yes.", tool_calls=calls)) > of_message(plain)
    flat = AssistantMessage(content="Yes.", reasoning="because of this")
    whole_message = AssistantMessage(
        content="Yes.", reasoning="because of this", reasoning_details=('{"text": "because"}',)
    )
    assert of_message(plain) < of_message(flat) <= of_message(whole_message)


def test_tools_take_their_schema() -> None:
    """With every word that a model reads of it."""
    schema: dict[str, object] = {"type": "object", "properties": {"url": {"type": "string"}}}
    tool = ToolDefinition(name="fetch", description="Read a page.", parameters=schema)
    assert of_tools((tool,)) > of_text(f"fetchRead a page.{json.dumps(schema)}") / 2
    assert of_tools((tool, tool)) == 2 * of_tools((tool,))
    assert of_tools(()) == 0


def test_no_message_is_weighed_twice() -> None:
    """What lay on the scale keeps its weight, and is forgotten once most of it has gone."""
    first = weigh(TokenCache(sizes={MORE: 7}), (*MESSAGES, MORE))
    assert first.sizes[MORE] == 7
    assert first.sizes[MESSAGES[0]] == of_message(MESSAGES[0])
    assert weigh(first, MESSAGES).sizes == first.sizes
    assert set(weigh(first, MESSAGES[:1]).sizes) == {MESSAGES[0]}


def test_tools_are_weighed_anew_only_where_they_changed() -> None:
    """The same ones keep the weight that they had."""
    tool = ToolDefinition(name="fetch", description="Read a page.")
    cache = weigh(TokenCache(tools=(tool,), tools_tokens=7), MESSAGES, (replace(tool),))
    assert cache.tools_tokens == 7
    changed = replace(tool, description="Read a whole page.")
    assert weigh(cache, MESSAGES, (changed,)).tools_tokens == of_tools((changed,))
    assert weigh(cache, MESSAGES).tools_tokens == 0


def test_what_was_reported_bounds_the_next_request() -> None:
    """It takes what the last one took, and the estimate of what was added."""
    cache = weigh(TokenCache(tools_tokens=100), MESSAGES)
    guess = of_request(cache, NEW)
    cache, scale = report(cache, NEW, guess // 2)
    assert scale == NEW
    longer = (*MESSAGES, MORE)
    cache = weigh(cache, longer)
    assert of_request(cache, scale) == guess // 2 + of_message(MORE)
    more_tools, fewer_tools = replace(cache, tools_tokens=130), replace(cache, tools_tokens=70)
    assert of_request(more_tools, scale) == guess // 2 + of_message(MORE) + 30
    assert of_request(fewer_tools, scale) == guess // 2 + of_message(MORE)
    # One message twice is two messages.
    cache = weigh(cache, (*longer, MORE))
    assert of_request(cache, scale) == guess // 2 + 2 * of_message(MORE)


def test_a_request_that_lost_its_beginning_is_bounded_by_both() -> None:
    """By the estimate of what is left, where that is less than what was reported."""
    cache = weigh(TokenCache(), MESSAGES)
    guess = of_request(cache, NEW)
    cache, scale = report(cache, NEW, guess - 10)
    rest = MESSAGES[4:]
    assert of_request(weigh(cache, rest), scale) == of_request(weigh(TokenCache(), rest), NEW)


def test_a_report_that_can_not_be_true_is_not_believed() -> None:
    """Some endpoints count only what they had not kept, and some say nothing."""
    cache, scale = report(weigh(TokenCache(), MESSAGES), NEW, 1)
    assert (cache.reported, scale) == (None, NEW)


def test_a_tokenizer_that_counts_more_is_learned_at_once_and_unlearned_slowly() -> None:
    """One small request with a hidden prompt in front teaches nothing."""
    cache = weigh(TokenCache(), MESSAGES)
    guess = of_request(cache, NEW)
    _, scale = report(cache, NEW, guess * 3 // 2)
    assert scale.ratio == pytest.approx(1.5, rel=0.01)
    assert of_request(cache, scale) >= guess * 3 // 2
    _, less = report(cache, scale, guess)
    assert less.ratio == pytest.approx(1.45, rel=0.01)
    _, most = report(cache, scale, guess * 100)
    assert most.ratio == 4.0
    assert report(weigh(TokenCache(), MESSAGES[:1]), NEW, 5_000)[1] == NEW


def test_a_request_that_was_too_large_bounds_all_that_follow() -> None:
    """By its estimate, or by the window where the endpoint named it; the least of them stays."""
    assert report_overflow(NEW, 9_000) == Scale(overflows_at=9_000)
    assert report_overflow(NEW, 9_000, 8_192) == Scale(overflows_at=8_192)
    assert report_overflow(Scale(overflows_at=8_000), 9_000) == Scale(overflows_at=8_000)
    assert report_overflow(Scale(ratio=2.0, overflows_at=8_000), 500).overflows_at == 500


@pytest.mark.parametrize(
    ("media_type", "size_bytes", "tokens"),
    [
        ("image/png", 3_000_000, 1_600),
        ("audio/wav", 3_000_000, 6_000),
        ("application/pdf", 200_000, 4_000),
        ("application/pdf", 20, 1_600),
    ],
)
def test_a_file_takes_room_too(media_type: str, size_bytes: int, tokens: int) -> None:
    """As much as is guessed; what was guessed teaches nothing of a tokenizer."""
    part = FilePart(digest="d", media_type=media_type, name="a", number=1, size_bytes=size_bytes)
    plain = UserMessage(content="word " * 2_000)
    shown = UserMessage(content=plain.content, files=(part,))
    assert of_message(shown) == of_message(plain) + tokens
    for message, learns in ((plain, True), (shown, False)):
        cache = weigh(TokenCache(), (message,))
        cache, scale = report(cache, Scale(), 2 * of_message(message))
        assert (scale.ratio > 1) is learns
        assert cache.reported is not None


def test_a_refusal_is_forgotten_in_the_course_of_many_answers() -> None:
    """One that had no reason must not make all conversations short for ever."""
    cache = weigh(TokenCache(), MESSAGES)
    scale = report_overflow(NEW, 1_000)
    for _ in range(70):
        cache, scale = report(cache, scale, 1_500)
    assert 2_000 < scale.overflows_at < 2_200


def sizes(texts: tuple[str, ...], each: int = 3) -> dict[str, int]:
    return dict.fromkeys(texts, each)


TOOL = ToolDefinition(name="fetch", description="Read a page.", parameters={"type": "object"})


def test_each_text_is_counted_once() -> None:
    """Of the newest messages first, and the tools before them; then only what is new."""
    texts = uncounted_texts(TokenCache(), MESSAGES, (TOOL,))
    assert texts[0].startswith("fetchRead a page.{\n    ")
    assert texts[1] == TEXTS["Chinese"]
    assert texts[-1] == TEXTS["English"]
    cache = with_counts(TokenCache(), MESSAGES, (TOOL,), sizes(texts))
    assert uncounted_texts(cache, MESSAGES, (TOOL,)) == ()
    assert uncounted_texts(cache, (*MESSAGES, MORE), (TOOL,)) == (TEXTS["code"],)
    changed = (replace(TOOL, description="Read a whole page."),)
    assert len(uncounted_texts(cache, MESSAGES, changed)) == 1


def test_what_a_tokenizer_counted_is_what_a_message_takes() -> None:
    """With the marks around it, which no text holds; and it is kept for the next request."""
    cache = with_counts(
        TokenCache(), MESSAGES, (TOOL,), sizes(uncounted_texts(TokenCache(), MESSAGES, (TOOL,)))
    )
    cache = weigh(cache, (*MESSAGES, MORE), (TOOL,))
    assert size_of(MESSAGES[0], cache) == 3 + of_message(UserMessage(content=""))
    assert size_of(MESSAGES[2], cache) == 3 + 16 + of_message(UserMessage(content=""))
    assert cache.tools_tokens == 3 + 12
    assert size_of(MORE, cache) == of_message(MORE)
    assert size_of(MORE, TokenCache()) == of_message(MORE)
    cache = with_counts(cache, (MORE,), (TOOL,), sizes((TEXTS["code"],)))
    assert (set(cache.counted), cache.tools_tokens) == ({MORE}, 3 + 12)


def test_a_tokenizer_is_handed_no_more_than_it_can_bear() -> None:
    """A text that is too long, or too many at once, is estimated."""
    long = UserMessage(content="x" * 65_537)
    assert uncounted_texts(TokenCache(), (long,), ()) == ()
    assert with_counts(TokenCache(), (long,), (), {}).counted == {long: of_message(long)}
    messages = tuple(UserMessage(content=f"{n}" * 65_536) for n in range(5))
    texts = uncounted_texts(TokenCache(), messages, ())
    assert [text[0] for text in texts] == ["4", "3", "2", "1"]
    cache = with_counts(TokenCache(), messages, (), dict.fromkeys(texts, 7))
    assert size_of(messages[0], weigh(cache, messages)) == of_message(messages[0])
    (rest,) = uncounted_texts(cache, messages, ())
    assert rest[0] == "0", "its turn comes with the next request"
    cache = with_counts(cache, messages, (), {rest: 7})
    assert {size_of(message, cache) for message in messages} == {
        7 + of_message(UserMessage(content=""))
    }
    assert uncounted_texts(cache, messages, ()) == ()


def test_a_message_that_is_too_much_for_a_tokenizer_is_not_handed_to_it_again() -> None:
    """What it holds beyond is estimated for good."""
    calls = (ToolCall(id="", name=f"{n}", arguments="x" * 60_000) for n in range(9))
    huge = AssistantMessage(tool_calls=tuple(calls))
    texts = uncounted_texts(TokenCache(), (huge,), ())
    assert len(texts) == 4
    cache = with_counts(TokenCache(), (huge,), (), dict.fromkeys(texts, 7))
    assert uncounted_texts(cache, (huge,), ()) == ()


@pytest.mark.parametrize("name", ["English", "German", "Chinese", "code", "JSON", "base64"])
def test_a_call_is_weighed_as_the_longest_of_the_templates_writes_it(name: str) -> None:
    """As a text within a text, with its marks escaped."""
    arguments = json.dumps({"text": TEXTS[name]})
    call = ToolCall(id="call_0", name="remember", arguments=arguments)
    texts = uncounted_texts(TokenCache(), (AssistantMessage(tool_calls=(call,)),), ())
    assert texts == (f"remembercall_0{json.dumps(arguments, ensure_ascii=False)}",)
