"""Write a model request as the body of a chat-completions call.

Pure. What is local to us stays here (S1-07, S1-14, S1-16); raw texts of the model, its call
arguments and its structured reasoning, go back byte for byte (S1-10, S1-28).

Messages go in an order that every chat template takes. Mistral's endpoint answers 400 to a user's
message right after a tool's result ("unexpected role"), and the chat templates of Mistral's and
Google's models, which llama.cpp and vLLM run as they are, raise an error unless user and assistant
alternate. Both orders come up here: an edit or a steering message follows the results of a batch,
the next message follows a `/tool` call, and a turn that failed or was stopped leaves no answer
between two messages.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from zeroclaw.message import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from zeroclaw.provider import ModelRequest

# What an operator's `options` may not set, because the rest of the program relies on it.
RESERVED = frozenset({"messages", "tools", "stream", "stream_options", "n"})
BETWEEN = "(I have the results.)"
"""What the assistant says between results and a message of a person."""


def encode_request(
    request: ModelRequest,
    *,
    model: str,
    options: Mapping[str, object],
    max_output_tokens: int | None = None,
) -> bytes:
    """Build the body.

    Args:
        request: What to ask; its own `max_output_tokens` wins over the argument.
        model: The name that the endpoint knows.
        options: More fields of the body, such as `temperature` or `chat_template_kwargs`. An
            endpoint that calls the output bound `max_completion_tokens` gets it from here.
        max_output_tokens: The operator's bound, None for the endpoint's own.
    """
    fields = [("model", _json(model)), ("messages", encode_messages(request.messages))]
    if request.tools:
        fields.append(("tools", _json([_tool(tool) for tool in request.tools])))
    bound = request.max_output_tokens or max_output_tokens
    if bound is not None:
        fields.append(("max_tokens", _json(bound)))
    fields.append(("stream", "true"))
    fields.append(("stream_options", '{"include_usage":true}'))
    fields.extend((name, _json(value)) for name, value in options.items() if name not in RESERVED)
    # A field set twice is the operator's: JSON readers take the last one, a dict does as well.
    return _object(dict(fields)).encode(errors="replace")


def encode_messages(messages: tuple[Message, ...]) -> str:
    """Write the array of messages as JSON, in an order that every endpoint takes."""
    return f"[{','.join(_message(message) for message in alternating(messages))}]"


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


def _message(message: Message) -> str:
    match message:
        case SystemMessage():
            return _said("system", message.content)
        case UserMessage():
            return _said("user", message.content)
        case AssistantMessage():
            return _assistant(message)
        case ToolMessage():
            return _json(
                {
                    "role": "tool",
                    "tool_call_id": message.tool_call_id,
                    "content": message.content,
                }
            )
        case _:
            assert_never(message)


def _said(role: str, content: str) -> str:
    """Write a message of words alone.

    A conversation is sent whole with each request, and for one text the library is much faster
    than for an object that holds it.
    """
    return f'{{"role":"{role}","content":{_json(content)}}}'


def _assistant(message: AssistantMessage) -> str:
    if not (message.reasoning_details or message.reasoning or message.tool_calls):
        return _said("assistant", message.content)
    fields = {"role": '"assistant"', "content": _json(message.content)}
    if message.reasoning_details:
        # The endpoint checks signatures over these; decoding and encoding could change a number
        # or an escape, so the stored texts are put in as they are (S1-28).
        fields["reasoning_details"] = f"[{','.join(message.reasoning_details)}]"
    elif message.reasoning:
        fields["reasoning_content"] = _json(message.reasoning)
    if message.tool_calls:
        fields["tool_calls"] = _json(
            [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in message.tool_calls
            ]
        )
    return _object(fields)


def _tool(tool: ToolDefinition) -> dict[str, object]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters or {"type": "object", "properties": {}},
        },
    }


def _object(fields: Mapping[str, str]) -> str:
    """Join JSON texts to one object."""
    return "{" + ",".join(f"{_json(name)}:{text}" for name, text in fields.items()) + "}"


# Made once: `json.dumps` makes a new one for each call that asks for more than its defaults.
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
