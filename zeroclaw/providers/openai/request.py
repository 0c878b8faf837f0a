"""Encodes a model request as the body of a chat-completions call.

Pure. Local fields are left out (S1-07, S1-14, S1-16). The model's raw texts, its call arguments and
structured reasoning, are sent back byte for byte (S1-10, S1-28), except what endpoints refuse to
read: one such message would end its conversation, since every later request holds it.

Messages are sent in an order that every chat template accepts. Mistral's endpoint answers 400 to a
user message right after a tool result ("unexpected role"). The chat templates of Mistral's and
Google's models, which llama.cpp and vLLM run unchanged, raise an error unless user and assistant
alternate. Both orders occur here: an edit or a steering message follows the results of a batch, the
next message follows a `/tool` call, and a turn that failed or was stopped leaves no answer between
two messages.

Endpoints differ in their `Dialect`, which the provider learns from their refusals.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import assert_never, cast

from msgspec import Raw
from msgspec.json import encode

from zeroclaw.json_fields import is_object_text
from zeroclaw.message import (
    AssistantMessage,
    FilePart,
    Message,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    UserMessage,
    alike,
    of_type,
)
from zeroclaw.provider import ModelRequest
from zeroclaw.value import Value, replace

# Fields that the operator's `options` may not set, because the rest of the program relies on them.
RESERVED = frozenset({"messages", "tools", "stream", "stream_options", "n"})
_UNSAID: tuple[tuple[str, object], ...] = (("additionalProperties", False), ("required", []))
"""Parts of a tool's schema that cost tokens and do not help a model; calls are checked anyway."""
_SOUNDS = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}
_ODD: frozenset[tuple[type, type]] = frozenset(
    ((UserMessage, UserMessage), (ToolMessage, UserMessage))
)
"""Neighbours that some chat templates reject."""
_SHORT_ID, _NEW_ID = re.compile("[A-Za-z0-9]{9}"), re.compile("[0-9]{9}")
_NOT_IN_A_NAME, _NAME_CHARS = re.compile("[^A-Za-z0-9_-]"), 64
_CALLS, _ID = attrgetter("tool_calls"), attrgetter("id")
NO_TEXT = "(no text)"
"""The text of an answer that was only reasoning, and of a message without one, such as a blank mail:
Mistral, Moonshot and Anthropic refuse empty ones."""
_NO_TOOL = ToolDefinition(name="none", description="Stands for no tool. Never call it.")
BETWEEN = "(I have the results.)"
"""The assistant message inserted between tool results and a person's message."""


class Dialect(Value):
    """The variant of the wire format that an endpoint accepts.

    Attributes:
        limit: Its name for the limit of the answer.
        takes_vendor_fields: It accepts the fields that other endpoints send and want back:
            reasoning, and the `extra` of calls.
        needs_reasoning: It requires reasoning in each answer with calls.
        has_short_ids: Ids of calls are nine letters and digits.
        takes_tools: The model may be sent tools.
        needs_tools: It requires some wherever a message has calls or results.
        takes_system: It takes a system message; else a person's first message begins with it.
        takes_stream_options: It takes the field that asks for the usage.
    """

    limit: str = "max_tokens"
    takes_vendor_fields: bool = True
    needs_reasoning: bool = False
    has_short_ids: bool = False
    takes_tools: bool = True
    needs_tools: bool = False
    takes_system: bool = True
    takes_stream_options: bool = True


USUAL = Dialect()


def encode_request(
    request: ModelRequest,
    *,
    model: str,
    options: Mapping[str, object],
    dialect: Dialect = USUAL,
    max_output_tokens: int | None = None,
    tools: Raw | None = None,
) -> bytes:
    """Build the request body.

    Args:
        request: The request; its own `max_output_tokens` overrides the argument.
        model: The endpoint's name of the model.
        options: More fields of the body, such as `temperature` or `chat_template_kwargs`.
        dialect: The endpoint's dialect.
        max_output_tokens: The operator's limit, None for the endpoint's own.
        tools: The request's tools if already encoded; see `encode_tools`.
    """
    body: dict[str, object] = {"model": model, "messages": _encoded_messages(request, dialect)}
    if request.tools and dialect.takes_tools:
        body["tools"] = encode_tools(request.tools) if tools is None else tools
    elif dialect.needs_tools and any(of_type(request.messages, ToolMessage)):
        body["tools"] = encode_tools((_NO_TOOL,))
    bound = request.max_output_tokens or max_output_tokens
    if bound is not None:
        body[dialect.limit] = bound
    body["stream"] = True
    if dialect.takes_stream_options:
        body["stream_options"] = {"include_usage": True}
    body |= {name: value for name, value in options.items() if name not in RESERVED}
    return _encoded(body)


def encode_tools(tools: Iterable[ToolDefinition]) -> Raw:
    """Encode tools for a request body; worth caching, since most requests have the same tools."""
    return Raw(_encoded([_tool(tool) for tool in tools]))


def _encoded_messages(request: ModelRequest, dialect: Dialect) -> Raw:
    """Encode the messages; reuse the encoded prefix shared with the conversation's last request."""
    messages, files = request.messages, request.files
    if not dialect.takes_system:
        messages = tuple(map(_as_users, messages))
    messages = tuple(alternating(messages))
    earlier, written = request.kept.get(dialect, ((), ()))
    shared = alike(earlier, messages)
    unwritten = tuple(_with_own_ids(messages, shared, dialect)) if messages[shared:] else ()
    if dialect != USUAL:
        unwritten = tuple(_in_dialect(message, dialect) for message in unwritten)
    written = (*written[:shared], *(_encoded(_message(message, files)) for message in unwritten))
    # Stop caching at the first message with files: its files are sent for a while only.
    new = enumerate(unwritten, shared)
    with_files = (at for at, added in new if isinstance(added, UserMessage) and added.files)
    cached = next(with_files, len(messages))
    request.kept.clear()
    request.kept[dialect] = messages[:cached], written[:cached]
    return Raw(b"[%b]" % b",".join(written))


def _encoded(body: object) -> bytes:
    try:
        return encode(body)
    except UnicodeEncodeError:  # UTF-8 can't carry an unpaired surrogate
        return encode(_encodable(body))


def alternating(messages: Sequence[Message]) -> Iterable[Message]:
    """Return the messages with adjacent user messages joined, none right after a tool result."""
    if _ODD.isdisjoint(pairwise(map(type, messages))):
        return messages
    return _alternating(messages)


def _alternating(messages: Iterable[Message]) -> Iterator[Message]:
    last, *further = messages
    for message in further:
        if isinstance(message, UserMessage):
            if isinstance(last, UserMessage):
                text = f"{last.content}\n\n{message.content}"
                last = UserMessage(content=text, files=last.files + message.files)
                continue
            if isinstance(last, ToolMessage):
                yield last
                last = AssistantMessage(content=BETWEEN)
        yield last
        last = message
    yield last


def _with_own_ids(messages: Sequence[Message], start: int, dialect: Dialect) -> Iterator[Message]:
    """Yield the messages from `start` on, with a new id for each call whose id can't be sent.

    Ids are the model's: some number the calls of each answer anew, and each `/tool` has the same.
    DeepSeek, Moonshot, OpenAI and Anthropic refuse a request that repeats one. A new id depends only
    on the messages before it, so that a request begins like the last one; an id that looks like one
    is never sent, since a model may copy it.
    """
    first = start
    while first and isinstance(messages[first], ToolMessage):
        first -= 1  # to the calls that the results belong to
    answers = of_type(messages[:first], AssistantMessage)
    taken = {*map(_ID, chain.from_iterable(map(_CALLS, answers)))}
    sent_as: dict[str, list[str]] = {}
    for at in range(first, len(messages)):
        message = messages[at]
        if isinstance(message, AssistantMessage) and message.tool_calls:
            sent_as.clear()
            calls: list[ToolCall] = []
            for place, call in enumerate(message.tool_calls):
                is_short = not dialect.has_short_ids or _SHORT_ID.fullmatch(call.id)
                is_sent = is_short and call.id not in taken and not _NEW_ID.fullmatch(call.id)
                calls.append(call if is_sent else replace(call, id=f"{at:06}{place:03}"))
                taken.add(call.id)
                sent_as.setdefault(call.id, []).append(calls[-1].id)
            message = replace(message, tool_calls=tuple(calls))
        elif isinstance(message, ToolMessage) and sent_as.get(message.tool_call_id):
            message = replace(message, tool_call_id=sent_as[message.tool_call_id].pop(0))
        if at >= start:
            yield message


def _as_users(message: Message) -> Message:
    is_system = isinstance(message, SystemMessage)
    return UserMessage(content=message.content) if is_system else message


def _in_dialect(message: Message, dialect: Dialect) -> Message:
    """Return a message as an endpoint accepts it."""
    if not isinstance(message, AssistantMessage):
        return message
    calls = message.tool_calls
    if not dialect.takes_vendor_fields:
        calls = tuple(replace(call, extra="") for call in calls)
        message = replace(message, reasoning="", reasoning_details=())
    elif dialect.needs_reasoning and calls:
        message = replace(message, reasoning=message.reasoning or " ")
    return replace(message, tool_calls=calls)


def _message(message: Message, files: Mapping[str, bytes]) -> dict[str, object]:
    # No `match`, whose patterns take three times as long: this runs for every message of a request.
    if isinstance(message, UserMessage):
        content = _content(message, files) if message.files else _some(message.content)
        return {"role": "user", "content": content}
    if isinstance(message, AssistantMessage):
        return _assistant(message)
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    return {"role": "system", "content": message.content}


def _content(message: UserMessage, files: Mapping[str, bytes]) -> object:
    """Return a text, or its parts if files are sent (S1-08).

    Base64 needs no JSON escaping, so it is inserted raw: scanning megabytes for quotes would delay
    other tasks.
    """
    sent = [(file, files[file.digest]) for file in message.files if file.digest in files]
    lines = [file.instead for file in message.files if file.digest not in files]
    text = "\n".join((message.content, *lines))
    return [{"type": "text", "text": text}, *(_part(*pair) for pair in sent)] if sent else text


def _part(file: FilePart, base64: bytes) -> dict[str, object]:
    data = Raw(b'"%b"' % base64)
    url = Raw(b'"data:%b;base64,%b"' % (file.media_type.encode(), base64))
    match file.kind:
        case "images":
            return {"type": "image_url", "image_url": {"url": url}}
        case "audio":
            usual = file.media_type.removeprefix("audio/")
            sound = {"data": data, "format": _SOUNDS.get(file.media_type, usual)}
            return {"type": "input_audio", "input_audio": sound}
        case "files":
            name = file.name or f"file {file.number}"
            return {"type": "file", "file": {"filename": name, "file_data": url}}
        case _:
            assert_never(file.kind)


def _assistant(message: AssistantMessage) -> dict[str, object]:
    content = message.content if message.tool_calls else _some(message.content)
    wire: dict[str, object] = {"role": "assistant", "content": content}
    if message.reasoning_details:
        # The endpoint verifies signatures over these. Decoding and encoding could change a number
        # or an escape, so the stored texts are inserted as they are (S1-28).
        blocks = (block.encode(errors="replace") for block in message.reasoning_details)
        wire["reasoning_details"] = [Raw(block) for block in blocks]
    elif message.reasoning:
        wire["reasoning_content"] = message.reasoning
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _name(call.name), "arguments": _arguments(call.arguments)},
                **({"extra_content": Raw(call.extra.encode())} if call.extra else {}),
            }
            for call in message.tool_calls
        ]
    return wire


def _some(text: str) -> str:
    return text if text.strip() else NO_TEXT


def _name(raw: str) -> str:
    """Return a call's name with what OpenAI and Anthropic refuse replaced; models make some up."""
    return _NOT_IN_A_NAME.sub("_", raw)[:_NAME_CHARS] or "_"


def _arguments(raw: str) -> str:
    """Return a call's arguments as JSON: vLLM, llama.cpp and Ollama parse those of earlier calls."""
    text = raw if raw.strip() else "{}"
    return text if is_object_text(text) else json.dumps({"unreadable": raw})


def _tool(tool: ToolDefinition) -> dict[str, object]:
    schema = {key: value for key, value in tool.parameters.items() if (key, value) not in _UNSAID}
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": schema or {"type": "object", "properties": {}},
        },
    }


def _encodable(value: object) -> object:
    """Return a JSON value with a question mark in place of each unpaired surrogate."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case dict():
            fields = cast("dict[str, object]", value)
            return {_encodable(name): _encodable(inner) for name, inner in fields.items()}
        case list() | tuple():
            return [_encodable(inner) for inner in cast("Iterable[object]", value)]
        case _:
            return value
