"""The contract of a model provider: one request in, one typed stream out."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from zeroclaw.clock import Clock, Ids
from zeroclaw.message import FileKind, FinishReason, Message, ToolCall, ToolDefinition, Usage
from zeroclaw.value import Hidden, Value, field

Written = tuple[tuple[Message, ...], tuple[bytes, ...]]
"""The messages that a request began with, and how each was written for an endpoint."""


class ModelRequest(Value):
    """One call of the model.

    Attributes:
        messages: Already prepared: the system message first, reasoning trimmed (S1-29).
        tools: Empty for none.
        max_output_tokens: None leaves it to the endpoint.
        correlation: The id that the whole turn carries (S0-08); for logs, not for the wire.
        files: The bytes of the messages' files in base64, by digest; a line stands for each file
            that is not here.
        model: Another one of the same endpoint, empty for the one that it is opened for.
        kept: What providers have written of the conversation's newest request, each under a name of
            its own; the next one begins as it did.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    max_output_tokens: int | None = None
    correlation: str = ""
    files: Hidden[Mapping[str, bytes]] = field(default_factory=dict[str, bytes])
    model: str = ""
    kept: Hidden[dict[str, Written]] = field(default_factory=dict[str, Written])


class TextDelta(Value):
    """More of the answer's text.

    Attributes:
        joined: How many pieces of the endpoint it is made of; those that come together are joined.
        is_last: The answer's end came together with it. False where that is not known.
    """

    text: str
    joined: int = 1
    is_last: bool = False


class ReasoningDelta(Value):
    """More of the reasoning.

    Attributes:
        text: Flat text, empty when the delta is a structured block.
        details: JSON texts of whole structured blocks, in order; empty for flat text.
    """

    text: str = ""
    details: tuple[str, ...] = ()


class ToolCallReady(Value):
    """A whole tool call; never a fragment of one (S0-23, S1-13)."""

    call: ToolCall


class UsageReported(Value):
    """Tokens of this call; the last report counts."""

    usage: Usage


class Finished(Value):
    """The stream ended as it should; always the last event."""

    reason: FinishReason


StreamEvent = TextDelta | ReasoningDelta | ToolCallReady | UsageReported | Finished


class ProviderFacts(Value):
    """What the runtime must know about a model before it asks.

    Attributes:
        model: The name shown to people and in logs.
        context_tokens: The window; None when unknown.
        context_from: Who says so, for people; empty when unknown.
        calls_tools: Tool definitions are worth sending (S0-15).
        note: One line for the person at start, empty for none.
        takes: What it takes beside text.
        counted_by: What counts its tokens as the model does, for people; empty where nothing does.
            See `Counting`.
    """

    model: str
    context_tokens: int | None = None
    context_from: str = ""
    calls_tools: bool = True
    note: str = ""
    takes: frozenset[FileKind] = frozenset()
    counted_by: str = ""


def bounded_window(
    known: int | None, said_by: str, configured: int | None
) -> tuple[int | None, str]:
    """Return the window that counts, and who says so.

    What is known of the model comes first. What a person configures stands where nothing is known,
    and makes the window smaller where they want to pay for less; it makes none larger than it is.

    Args:
        known: By the endpoint, the model file or the table; None for by none.
        said_by: Which of them.
        configured: None where it is not.
    """
    if configured is None:
        return known, "" if known is None else said_by
    if known is None:
        return configured, "the configuration"
    if configured < known:
        return configured, f"the configuration, of the {known:,} that {said_by} names"
    if configured > known:
        return known, f"{said_by}, which the {configured:,} of the configuration can't make larger"
    return known, said_by


class Provider(Protocol):
    """A model endpoint.

    Safe for concurrent calls. A provider retries only before the first byte of an answer; after
    it, errors leave at once.
    """

    @property
    def facts(self) -> ProviderFacts:
        """What is known about the model now."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events in order, `Finished` last, exactly once.

        Closing the generator early (`contextlib.aclosing`) ends the call and frees its
        connection. An answer without text, call or reasoning is an error that names the finish
        reason.

        Raises:
            ProviderOverloaded: Try again later; nothing was yielded.
            ProviderUnreachable: Likewise; nothing answers at its address.
            ContextOverflow: The request is too large.
            ProviderUnauthorized: The key was refused.
            ProviderUnusable: The model, or what it needs here, is missing; the text says what to do.
            ProviderRejected: The request was refused, or an error came instead of an answer.
            StreamBroken: The stream was cut, stalled or unreadable after it began, or ended
                without a finish.
        """
        ...

    async def aclose(self) -> None:
        """Free connections and child processes; safe twice."""
        ...


class ProviderLog(Protocol):
    """Where a provider writes facts: an event in the past tense and its fields, no bodies."""

    def __call__(self, event: str, /, **fields: object) -> None:
        """Record one fact."""
        ...


@runtime_checkable
class Preloading(Protocol):
    """A provider that takes a while until its first answer, and can begin before it is asked."""

    async def start(self) -> None:
        """Make ready; asking works without it.

        Raises:
            NeedsOperator: It can't be made ready; the text says what to do.
        """
        ...


@runtime_checkable
class Measuring(Protocol):
    """A provider that can ask for the window of its model where nobody has told it."""

    async def measure(self) -> None:
        """Ask, unless it is known; a window that can't be found out stays unknown."""
        ...


@runtime_checkable
class Counting(Protocol):
    """What has the tokenizer of a model: a provider, or a file of the operator."""

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """Return how many tokens each text takes, by itself and in this order.

        Marks of the chat template are counted as the plain text that they are here. What takes more
        than a few milliseconds is done off the loop.

        Returns:
            None while it can't be told, such as before the model is loaded.
        """
        ...


class Endpoint(Value):
    """An OpenAI-compatible endpoint that a provider runs by itself.

    Attributes:
        base_url: Up to and with `/v1`.
        model: The name to ask for, also shown to people.
        api_key: Empty for none; not part of the `repr`.
        context_tokens: The window; None when unknown.
        tokenize_url: Where llama.cpp's server counts tokens, empty for nowhere.
    """

    base_url: str
    model: str
    api_key: Hidden[str] = ""
    context_tokens: int | None = None
    tokenize_url: str = ""


class ProviderContext(Value):
    """All that the opener of a provider is handed beside its settings.

    Attributes:
        clock: The only source of time.
        ids: Makes the key of an endpoint that a provider runs by itself.
        jitter: A number from 0 up to 1, another one each time; spreads retries.
        log: Facts without bodies.
        redact: Takes known secrets and secret patterns out of a foreign text.
        secrets: Resolved secret references of the provider's settings, by key; not part of the
            `repr`.
        models: The directory of model files, for a provider that runs one itself.
        open_endpoint: Opens the provider that a wrapping one hands its requests to.
        tokenizer: Of the file that the operator gave, None for none.
    """

    clock: Clock
    ids: Ids
    jitter: Callable[[], float]
    log: ProviderLog
    redact: Callable[[str], str]
    secrets: Hidden[Mapping[str, str]]
    models: Path
    open_endpoint: Callable[[Endpoint], Provider]
    tokenizer: Counting | None = None
