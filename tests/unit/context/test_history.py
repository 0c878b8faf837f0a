"""What of the stored conversation goes to the model."""

from zeroclaw.context.history import prepare_request_messages
from zeroclaw.message import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

SYSTEM = SystemMessage(content="You are a helpful weather assistant.")
USER = UserMessage(content="What's the weather in NYC and London?")
CALLS = (
    ToolCall(id="call_a", name="get_weather", arguments='{"city":"NYC"}'),
    ToolCall(id="call_b", name="get_weather", arguments='{"city":"London"}'),
)
ASKING = AssistantMessage(
    tool_calls=CALLS, reasoning="Two cities.", reasoning_details=('{"b": 1}', '{"a":2}')
)
SUNNY = ToolMessage(content="72°F and sunny", tool_call_id="call_a")
RAINY = ToolMessage(content="55°F and rainy", tool_call_id="call_b")
ANSWER = AssistantMessage(
    content="NYC is 72°F and sunny; London is 55°F and rainy.",
    reasoning="Now I know.",
    reasoning_details=('{"c": 3}',),
)
STORED: tuple[Message, ...] = (SYSTEM, USER, ASKING, SUNNY, RAINY, ANSWER)


def test_the_reference_transcript_is_sent_as_it_is_stored() -> None:
    """The five messages of the second request, in order (S1-04, S1-06)."""
    assert prepare_request_messages(STORED[:5]) == STORED[:5]


def test_reasoning_goes_along_with_tool_calls_on_all_later_requests() -> None:
    """Text and blocks, verbatim and in order (S1-25, S1-28)."""
    later = (*STORED, UserMessage(content="And Paris?"))
    assert prepare_request_messages(later)[2] == ASKING


def test_reasoning_of_a_plain_answer_stays_home() -> None:
    """The model sees the answer without it (S1-06, S1-26)."""
    plain = AssistantMessage(content=ANSWER.content)
    assert prepare_request_messages(STORED)[5] == plain


def test_the_stored_messages_are_left_alone() -> None:
    """A fresh tuple; storage keeps the reasoning (S1-26, S1-29)."""
    kept = list(STORED)
    prepared = prepare_request_messages(kept)
    assert kept == list(STORED)
    assert prepared is not STORED
    assert ANSWER.reasoning == "Now I know."


def test_reasoning_is_one_normalised_text_whatever_it_was_called() -> None:
    """The stored message has one reasoning field; nobody downstream sees the wire's names (S1-24)."""
    flat = AssistantMessage(tool_calls=CALLS[:1], reasoning="because")
    assert prepare_request_messages([flat]) == (flat,)


def test_a_summary_joins_the_system_message() -> None:
    """It stands at index 0, after the prompt, so no second system message is sent."""
    prepared = prepare_request_messages((SYSTEM, USER), summary="They talked of rain.")
    folded = (
        "You are a helpful weather assistant.\n\n"
        "[Previous conversation summary: They talked of rain.]"
    )
    assert prepared == (SystemMessage(content=folded), USER)


def test_a_summary_without_a_system_message_becomes_one() -> None:
    """It stands at index 0."""
    folded = SystemMessage(content="[Previous conversation summary: Rain.]")
    assert prepare_request_messages((USER,), summary="Rain.") == (folded, USER)


def test_notes_go_along_with_the_newest_words_of_a_person() -> None:
    """Before them, so that what was sent before begins the same; what the runtime wrote has none."""
    edited = UserMessage(content="[edited]", note="edited")
    later = UserMessage(content="And Paris?")
    asked = (*STORED, later, ASKING, SUNNY, RAINY, edited)
    prepared = prepare_request_messages(asked, notes="[Ada lives in Paris]")
    noted = UserMessage(content="[Ada lives in Paris]\n\nAnd Paris?")
    plain = prepare_request_messages(asked)
    assert prepared == tuple(noted if one is later else one for one in plain)


def test_notes_without_words_of_a_person_go_nowhere() -> None:
    """A history that begins with a summary may have none."""
    assert prepare_request_messages((SYSTEM, ANSWER), notes="x") == prepare_request_messages(
        (SYSTEM, ANSWER)
    )
