"""What travels to the model, as it is stored.

Field names follow the chat-completions wire; what is marked local never leaves the process
(S1-07, S1-14, S1-16). Which reasoning is sent back is decided once, in `context/history.py`.
"""

from collections.abc import Sequence
from itertools import compress, count
from operator import ne
from typing import Literal

from zeroclaw.value import Value, field

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
FileKind = Literal["images", "audio", "files"]
"""What a model may take beside text, by the part of the wire that carries it."""


class Usage(Value):
    """Tokens of one or more model calls; adds up."""

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
        id: The model's label. Opaque, may collide, is never used to pair (S1-18, K9).
        name: The tool's name; may be one that does not exist.
        arguments: Raw JSON text, byte for byte as the model emitted it (S1-10).
    """

    id: str
    name: str
    arguments: str


class SystemMessage(Value):
    """Instructions; plain text."""

    content: str


class FilePart(Value):
    """A file of a user's message, by reference: its bytes are in a blob.

    Attributes:
        digest: Of the blob.
        media_type: By its bytes.
        name: What its sender called it, on one line in which all is seen.
        number: What the message's text calls it by.
        size_bytes: As it came.
    """

    digest: str
    media_type: str
    name: str
    number: int
    size_bytes: int

    @property
    def kind(self) -> FileKind:
        """Which part of the wire carries it."""
        return file_kind(self.media_type)

    @property
    def instead(self) -> str:
        """The line that stands for it where it is not shown."""
        return f"[file {self.number} is not shown]"


def file_kind(media_type: str) -> FileKind:
    """Return which part of the wire carries a file."""
    match media_type.partition("/")[0]:
        case "image":
            return "images"
        case "audio":
            return "audio"
        case _:
            return "files"


class UserMessage(Value):
    """What a person said.

    Attributes:
        content: The text, which names the files.
        note: Local. Why the runtime wrote this itself, empty for a person's own words.
        files: Of those that came with it, what a model may be sent; see `ModelRequest.files`.
    """

    content: str
    note: str = ""
    files: tuple[FilePart, ...] = ()


class AssistantMessage(Value):
    """One answer of the model.

    Attributes:
        content: The text, empty for a pure tool-call answer.
        tool_calls: In the model's order.
        reasoning: Flat reasoning text, empty for none.
        reasoning_details: Structured blocks, each the JSON text of one block; resent verbatim
            and in order (S1-28).
        finish_reason: Local. None while unknown.
        is_error: Local. The stream failed after this much.
        mark: Local. `stopped` or `interrupted` when it is what had been shown by then;
            `runtime` when the runtime wrote it (an operator's own tool call).
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    reasoning_details: tuple[str, ...] = ()
    finish_reason: FinishReason | None = None
    is_error: bool = False
    mark: Literal["", "stopped", "interrupted", "runtime"] = ""


class ToolMessage(Value):
    """The result of one call; pairs with its call by position.

    Attributes:
        content: What the model reads; its last line is the receipt.
        tool_call_id: Echo of the call's id.
        tool_name: Local.
        is_error: Local; the model sees only the text (S1-16).
        for_people: Local. What somebody reads who called the tool themselves, where it is not what
            the model reads; without the receipt.
    """

    content: str
    tool_call_id: str
    tool_name: str = ""
    is_error: bool = False
    for_people: str = ""


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class ToolDefinition(Value):
    """A tool as the model is told of it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, object] = field(default_factory=dict[str, object])


def alike(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return how many messages two requests have in common, from the first one on.

    Without a step of Python for each of them: a conversation has hundreds.
    """
    return next(compress(count(), map(ne, before, after)), min(len(before), len(after)))
