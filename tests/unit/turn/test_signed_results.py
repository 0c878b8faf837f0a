"""Results by their receipts, found from the end of a history."""

from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.gate.receipt import detach
from zeroclaw.message import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from zeroclaw.turn.receipts import signed_results

TOKENS = [f"zc-receipt-{number}-{'A' * 43}" for number in range(4)]

calls = st.builds(ToolCall, id=st.just("c"), name=st.sampled_from("ab"), arguments=st.just("{}"))
contents = st.builds(
    "{}\n[receipt: {}]".format, st.sampled_from("xy"), st.sampled_from([*TOKENS, "none"])
)
messages = st.lists(
    st.builds(UserMessage, content=st.just("hi"))
    | st.builds(AssistantMessage, tool_calls=st.lists(calls, max_size=3).map(tuple))
    | st.builds(ToolMessage, content=contents, tool_call_id=st.just("c")),
    max_size=12,
)


def from_the_beginning(history: list[Message]) -> dict[str, tuple[ToolCall, str]]:
    found: dict[str, tuple[ToolCall, str]] = {}
    waiting: list[ToolCall] = []
    for message in history:
        if isinstance(message, AssistantMessage):
            waiting = [*message.tool_calls]
        elif isinstance(message, ToolMessage) and waiting:
            call = waiting.pop(0)
            text, token = detach(message.content)
            if token is not None:
                found[token] = (call, text)
    return found


@given(messages, st.sets(st.sampled_from(TOKENS)))
def test_what_is_sought_is_found_as_in_the_whole_history(
    history: list[Message], sought: set[str]
) -> None:
    """The newest counts, and what does not stand there is not found."""
    whole = from_the_beginning(history)
    found = signed_results(history, frozenset(sought))
    assert found.items() <= whole.items()
    assert found.keys() & sought == whole.keys() & sought
