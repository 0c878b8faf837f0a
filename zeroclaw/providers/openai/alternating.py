"""Put messages into an order that every chat template takes.

Many endpoints take any order. Mistral's answers 400 to a user's message right after a tool's result
("unexpected role"), and the chat templates of Mistral's and Google's models, which llama.cpp and
vLLM run as they are, raise an error unless user and assistant alternate. Both orders come up here:
an edit or a steering message follows the results of a batch, the next message follows a `/tool`
call, and a turn that failed or was stopped leaves no answer between two messages.
"""

from collections.abc import Iterable, Iterator

from zeroclaw.message import AssistantMessage, Message, ToolMessage, UserMessage

BETWEEN = "(I have the results.)"
"""What the assistant says between results and a message of a person."""


def alternating(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the same messages, users' neighbours joined, none of them right after a result."""
    last: Message | None = None
    for message in messages:
        match last, message:
            case UserMessage(content=before), UserMessage(content=after):
                last = UserMessage(content=f"{before}\n\n{after}")
                continue
            case ToolMessage(), UserMessage():
                yield last
                yield AssistantMessage(content=BETWEEN)
            case None, _:
                pass
            case _:
                yield last
        last = message
    if last is not None:
        yield last
