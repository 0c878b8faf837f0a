"""The messages of a model request, as they are stored.

Field names follow the chat-completions wire format. Fields marked "Local" never leave the process
(S1-07, S1-14, S1-16). Only `context/history.py` decides which reasoning is sent back.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, count, repeat
from operator import is_, ne
from typing import Literal

from zeroclaw.value import Value, field

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
FileKind = Literal["images", "audio", "files"]
"""Files that a model may accept, by the part of the wire format that carries them."""
ToolOutcome = Literal["ok", "failed", "denied", "cancelled", "unknown"]
"""How a tool call ended; `unknown` if it may have run."""


class Usage(Value):
    """Tokens of one or more model calls; supports `+`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output; cached tokens are part of the input."""
        return self.input_tokens + self.output_tokens


NO_USAGE = Usage()


class ToolCall(Value):
    """One call as the model wrote it.

    Attributes:
        id: The model's label. Opaque, may collide, never used for pairing (S1-18, K9).
        name: The tool's name; the tool may not exist.
        arguments: Raw JSON text, byte for byte as the model emitted it (S1-10).
        extra: JSON text that the endpoint attached and wants back verbatim, empty for none.
    """

    id: str
    name: str
    arguments: str
    extra: str = ""


class SystemMessage(Value):
    """Instructions; plain text."""

    content: str


class FilePart(Value):
    """A file of a user's message, by reference; the bytes are in a blob.

    Attributes:
        digest: The blob's digest.
        media_type: Determined from the bytes.
        name: The sender's file name, on one line, with no invisible characters.
        number: The number by which the message's text refers to it.
        size_bytes: Its size as received.
    """

    digest: str
    media_type: str
    name: str
    number: int
    size_bytes: int

    @property
    def kind(self) -> FileKind:
        """The part of the wire format that carries it."""
        return file_kind(self.media_type)

    @property
    def instead(self) -> str:
        """The line that takes its place when it is not sent."""
        return f"[file {self.number} is not shown]"


def file_kind(media_type: str) -> FileKind:
    """Return which part of the wire format carries a file."""
    match media_type.partition("/")[0]:
        case "image":
            return "images"
        case "audio":
            return "audio"
        case _:
            return "files"


class UserMessage(Value):
    """A message of a person.

    Attributes:
        content: The text, which names the files.
        note: Local. The reason why the runtime wrote this itself; empty for a person's message.
        files: The attached files that a model may be sent; see `ModelRequest.files`.
    """

    content: str
    note: str = ""
    files: tuple[FilePart, ...] = ()


class AssistantMessage(Value):
    """One answer of the model.

    Attributes:
        content: The text, empty for an answer that only calls tools.
        tool_calls: In the model's order.
        reasoning: Flat reasoning text, empty for none.
        reasoning_details: Structured blocks, each the JSON text of one block; sent back verbatim
            and in order (S1-28).
        finish_reason: Local. None while unknown.
        is_error: Local. The stream failed after this text.
        mark: Local. `stopped` or `interrupted` for the text shown up to that moment; `runtime` for
            a message that the runtime wrote (an operator's own tool call).
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    reasoning_details: tuple[str, ...] = ()
    finish_reason: FinishReason | None = None
    is_error: bool = False
    mark: Literal["", "stopped", "interrupted", "runtime"] = ""


class ToolMessage(Value):
    """The result of one call; paired with its call by position.

    Attributes:
        content: The text for the model; its last line is the receipt.
        tool_call_id: Echo of the call's id.
        tool_name: Local.
        is_error: Local; the model sees only the text (S1-16).
        for_people: Local. The text for a person who called the tool themselves, without the
            receipt; empty if it is the model's.
    """

    content: str
    tool_call_id: str
    tool_name: str = ""
    is_error: bool = False
    for_people: str = ""


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class ToolDefinition(Value):
    """A tool as described to the model; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, object] = field(default_factory=dict[str, object])


def alike(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return the length of the common prefix of two message sequences.

    Avoids a Python-level loop: a conversation has hundreds of messages.
    """
    return next(compress(count(), map(ne, before, after)), min(len(before), len(after)))


def of_type(messages: Sequence[Message], kind: type[Message]) -> Iterator[Message]:
    """Return the messages of one type, for the same reason without a Python-level loop."""
    return compress(messages, map(is_, map(type, messages), repeat(kind)))
