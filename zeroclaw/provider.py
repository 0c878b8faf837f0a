"""The contract of a model provider: one request in, one typed stream out."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from zeroclaw.channel import Log
from zeroclaw.clock import Clock, Ids
from zeroclaw.message import FileKind, FinishReason, Message, ToolCall, ToolDefinition, Usage
from zeroclaw.value import Hidden, Value, field

Written = tuple[tuple[Message, ...], tuple[bytes, ...]]
"""A prefix of a request's messages, and each one's encoding for an endpoint."""


class ModelRequest(Value):
    """One model call.

    Attributes:
        messages: Already prepared: the system message first, reasoning trimmed (S1-29).
        tools: Empty for none.
        max_output_tokens: None leaves it to the endpoint.
        correlation: The id shared by everything in the turn (S0-08); for logs, not sent.
        files: The messages' files in base64, by digest; a file missing here is replaced by a line.
        model: Another model of the same endpoint, empty for the one it was opened for.
        kept: A cache for the conversation's requests. The provider stores the encoded messages of
            the latest one here, since the next begins with the same ones; the key is any hashable
            value that identifies the encoding.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    max_output_tokens: int | None = None
    correlation: str = ""
    files: Hidden[Mapping[str, bytes]] = field(default_factory=dict[str, bytes])
    model: str = ""
    kept: Hidden[dict[object, Written]] = field(default_factory=dict[object, Written])


class TextDelta(Value):
    """More of the answer's text.

    Attributes:
        joined: How many of the endpoint's chunks were joined into this one; chunks that arrive
            together are joined.
        is_last: The end of the answer arrived together with it. False if that is not known.
    """

    text: str
    joined: int = 1
    is_last: bool = False


class ReasoningDelta(Value):
    """More of the reasoning.

    Attributes:
        text: Flat text, empty when the delta is a structured block.
        details: JSON texts of whole structured blocks, in order; empty for flat text.
        takes_back: All text of the answer so far was reasoning, the beginning of `text`.
    """

    text: str = ""
    details: tuple[str, ...] = ()
    takes_back: bool = False


class ToolCallReady(Value):
    """A whole tool call; never a fragment of one (S0-23, S1-13)."""

    call: ToolCall


class UsageReported(Value):
    """Tokens of this call; the last report counts."""

    usage: Usage


class Finished(Value):
    """The stream ended normally; always the last event."""

    reason: FinishReason


StreamEvent = TextDelta | ReasoningDelta | ToolCallReady | UsageReported | Finished


class ProviderFacts(Value):
    """The facts about a model that the runtime needs before it calls it.

    Attributes:
        model: The name shown to people and in logs.
        context_tokens: The context window; None if unknown.
        context_from: The source of `context_tokens`, for people; empty if unknown.
        calls_tools: Tool definitions are worth sending (S0-15).
        note: One line shown at start, empty for none.
        takes: The kinds of files that the model accepts.
        counted_by: The name of the tokenizer, for people; empty for none. See `Counting`.
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
    """Return the effective context window, and its source.

    The known window of the model comes first. A configured value is used if nothing is known; it
    can also lower a known window, to cap costs, but never raise it.

    Args:
        known: The window according to the endpoint, the model file or the table; None if unknown.
        said_by: The source of `known`.
        configured: The configured window, None for none.
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

    Must be safe for concurrent calls. A provider retries only before the first byte of an answer;
    after that, it raises errors at once.
    """

    @property
    def facts(self) -> ProviderFacts:
        """The current facts about the model."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events in order, `Finished` last, exactly once.

        Closing the generator early (`contextlib.aclosing`) ends the call and frees its connection.
        An answer without text, call or reasoning is an error that names the finish reason:
        `StreamBroken` if asking once more may help.

        Raises:
            ProviderOverloaded: Try again later; nothing was yielded.
            ProviderUnreachable: Likewise; nothing answers at its address.
            ContextOverflow: The request is too large.
            ProviderUnauthorized: The key was refused.
            ProviderUnusable: The model, or something it needs here, is missing; the text says what
                to do.
            ProviderRejected: The request was refused, or an error came instead of an answer.
            StreamBroken: The stream was cut, stalled or unreadable after it began, or ended without
                a finish.
        """
        ...

    async def aclose(self) -> None:
        """Free connections and child processes; safe to call twice."""
        ...


@runtime_checkable
class Preloading(Protocol):
    """A provider with a slow first answer that can warm up before the first call."""

    async def start(self) -> None:
        """Warm up; calls work without it.

        Raises:
            NeedsOperator: The provider can't get ready; the text says what to do.
        """
        ...


@runtime_checkable
class Measuring(Protocol):
    """A provider that can ask its endpoint for the model's context window."""

    async def measure(self) -> None:
        """Ask, unless the window is known; it stays unknown if there is no answer."""
        ...


@runtime_checkable
class Counting(Protocol):
    """A model's tokenizer: of a provider, or from a tokenizer file of the operator."""

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """Return each text's length in tokens, in order.

        Marks of the chat template are counted as plain text. Work that takes more than a few
        milliseconds is done off the event loop.

        Returns:
            None while it can't count, such as before the model is loaded.
        """
        ...


class Endpoint(Value):
    """An OpenAI-compatible endpoint that a provider runs itself.

    Attributes:
        base_url: Up to and including `/v1`.
        model: The name to request, also shown to people.
        api_key: Empty for none; not part of the `repr`.
        context_tokens: The context window; None if unknown.
        tokenize_url: Where llama.cpp's server counts tokens; empty if it can't.
    """

    base_url: str
    model: str
    api_key: Hidden[str] = ""
    context_tokens: int | None = None
    tokenize_url: str = ""


class ProviderContext(Value):
    """The services that a provider's factory gets besides its settings.

    Attributes:
        clock: The only source of time.
        ids: Generates the API key of an endpoint that a provider runs itself.
        jitter: Returns a new random number from 0 up to 1; spreads retries.
        log: Logs events without message bodies.
        redact: Removes known secrets and secret patterns from a foreign text.
        secrets: Resolved secret references of the provider's settings, by key; not part of the
            `repr`.
        models: The directory of model files, for a provider that runs one itself.
        open_endpoint: Opens the provider to which a wrapping provider passes its requests.
        tokenizer: The operator's tokenizer file, None for none.
    """

    clock: Clock
    ids: Ids
    jitter: Callable[[], float]
    log: Log
    redact: Callable[[str], str]
    secrets: Hidden[Mapping[str, str]]
    models: Path
    open_endpoint: Callable[[Endpoint], Provider]
    tokenizer: Counting | None = None
