"""An order that every endpoint and every chat template takes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.message import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from zeroclaw.providers.openai.request import BETWEEN, alternating

SYSTEM = SystemMessage(content="be kind")
ASKED = AssistantMessage(content="looking")
RESULT = ToolMessage(content="42", tool_call_id="a", tool_name="look")


def said(text: str) -> UserMessage:
    return UserMessage(content=text)


def test_what_alternates_stays_as_it_is() -> None:
    """Nothing is touched in the usual conversation."""
    usual = (
        SYSTEM,
        said("one"),
        ASKED,
        RESULT,
        RESULT,
        AssistantMessage(content="42"),
        said("two"),
    )
    assert tuple(alternating(usual)) == usual
    assert tuple(alternating(())) == ()


def test_messages_of_people_in_a_row_become_one() -> None:
    """A turn that failed leaves no answer between two messages."""
    assert tuple(alternating((SYSTEM, said("one"), said("two"), said("three")))) == (
        SYSTEM,
        said("one\n\ntwo\n\nthree"),
    )


def test_a_message_after_results_comes_after_a_word_of_the_assistant() -> None:
    """After `/tool`, after an edit, after steering."""
    assert tuple(alternating((said("go"), ASKED, RESULT, said("and"), said("now?")))) == (
        said("go"),
        ASKED,
        RESULT,
        AssistantMessage(content=BETWEEN),
        said("and\n\nnow?"),
    )


@given(st.lists(st.sampled_from([SYSTEM, said("one"), said("two"), ASKED, RESULT])))
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
    kept = "\n\n".join(message.content for message in made if message.content != BETWEEN)
    assert kept == "\n\n".join(message.content for message in messages)
    assert tuple(alternating(made)) == made
