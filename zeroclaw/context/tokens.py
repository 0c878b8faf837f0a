"""How many tokens a request takes, never too few: by the model's tokenizer, else by estimate (pure).

If the model's tokenizer is at hand, it counts each text once, and what a chat template adds around
the texts is estimated. Most models have none at hand; then a text is weighed by its kinds of
characters. The weights were fitted in 2026-11 to five vocabularies (SmolLM2's, which counts the
most, Llama 3's, Qwen 3's, cl100k and o200k) so that none counts more than the estimate. Against the
worst of the five, English prose is estimated at 1.7 times the truth, German and Chinese at 1.1 to
1.3, base64 at 1.1.

The endpoint's reports correct both: the size of an answered request is known, and the next request
is estimated as that size plus the messages since.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import mul
from string import ascii_lowercase, ascii_uppercase, digits

from msgspec.json import encode
from msgspec.json import format as pretty

from zeroclaw.context.history import files_of
from zeroclaw.message import (
    AssistantMessage,
    FileKind,
    Message,
    SystemMessage,
    ToolDefinition,
    UserMessage,
    alike,
)
from zeroclaw.value import Hidden, Value, field, replace

_KINDS: Mapping[bytes, float] = {
    ascii_lowercase.encode(): 0.42,
    ascii_uppercase.encode(): 1.15,
    digits.encode(): 1.3,
    b" \t\r\n": 0.2,
    bytes(range(0x80, 0x100)): 0.78,
}
_SIGN = 1.0
"""The weight of any other byte."""
_RUN_BYTES, _IN_A_RUN = 16, 0.25
"""The longest run of lowercase letters that counts as a word, and the extra weight of each further
letter."""
_TEXT = 2
_MESSAGE = 24
"""The marks that a chat template puts around a message, and the text it adds between results and a
person's message."""
_CALL = 16
_TOOL = 12
_REQUEST = 16
_FILE_BYTES: Mapping[FileKind, int] = {"images": 4_000_000, "audio": 500, "files": 50}
"""Bytes per token by kind of file; a guess, because endpoints count differently: speech of 16 KB a
second at 32 tokens, pages of 80 KB as pictures."""
_MIN_FILE = 1_600
"""The minimum for any file, and for an image of any size: endpoints shrink it."""
_LEARNS_FROM = 1_000
"""Estimated tokens of a request below which a report does not change the ratio: an endpoint's own
hidden prompt would look like a costly tokenizer."""
_COUNTED_CHARS, _COUNTED_AT_ONCE = 65_536, 262_144
"""The limits of one text, and of all texts handed to a tokenizer at once; beyond them a text is
estimated, so that no text takes more than about a tenth of a second."""
_PLAUSIBLE = 0.25
"""Share of the estimate; an endpoint that reports less does not count the whole request."""
_MAX_RATIO = 4.0
_FALLS = 0.1
_FORGETS = 1.01


Size = Callable[[str], int]
"""Returns the number of tokens of a text."""


class Scale(Value):
    """The scale between estimates and a model's own counts, learned over all conversations.

    Attributes:
        ratio: The factor from our estimate to its tokenizer's count, at least 1.
        overflows_at: Tokens of a request that was too large, 0 for none known. It grows a little
            with each answer, so that one refusal without a reason is forgotten.
    """

    ratio: float = 1.0
    overflows_at: int = 0


class Report(Value):
    """The endpoint's report on a conversation's newest answered request.

    Attributes:
        messages: The request's messages.
        tools: The estimate of its tools.
        tokens: The endpoint's count.
    """

    messages: Hidden[Sequence[Message]]
    tools: int
    tokens: int


class TokenCache(Value):
    """The sizes of the messages of one conversation, in tokens.

    Attributes:
        messages: Those of the newest request; each has its size.
        sizes: Their estimates, and some of older ones, so that none is weighed twice.
        tools: The tools of the newest request; they hardly ever change.
        tools_tokens: Their estimate.
        reported: The report on the newest answered request, None for none.
        counted: The sizes of those messages that the model's own tokenizer has counted.
        short: Replacements of the newest request's stale results, so that none is shortened twice.
        reader: The tool that they name.
    """

    messages: Hidden[tuple[Message, ...]] = ()
    sizes: Hidden[Mapping[Message, int]] = field(default_factory=dict[Message, int])
    tools: tuple[ToolDefinition, ...] = ()
    tools_tokens: int = 0
    reported: Report | None = None
    counted: Hidden[Mapping[Message, int]] = field(default_factory=dict[Message, int])
    short: Hidden[Mapping[Message, Message]] = field(default_factory=dict[Message, Message])
    reader: str = ""


def of_text(text: str) -> int:
    """Return an upper estimate of a text's tokens; 0 only for an empty text."""
    if not text:
        return 0
    body = text.encode(errors="replace")
    counts = [len(body) - len(body.translate(None, kind)) for kind in _KINDS]
    other_bytes = len(body) - sum(counts)
    weight = other_bytes * _SIGN + sum(map(mul, counts, _KINDS.values()))
    runs = counts[0] - _RUN_BYTES * (other_bytes + counts[3] + 1)
    # A byte-level tokenizer never makes more tokens than bytes.
    return math.ceil(min(weight + max(runs, 0) * _IN_A_RUN, len(body))) + _TEXT


_of_tool = lru_cache(maxsize=128)(of_text)
"""The same tools are offered in every conversation."""


def of_message(message: Message, size: Size = of_text) -> int:
    """Return an upper estimate of a message's tokens, including its template's marks."""
    tokens = _MESSAGE + size(message.content)
    if isinstance(message, AssistantMessage):
        # Some templates write the arguments as a text within a text, with all their quotes escaped.
        tokens += sum(
            _CALL + size(f"{call.name}{call.id}{encode(call.arguments).decode()}{call.extra}")
            for call in message.tool_calls
        )
        # Only one of the two is sent, see `providers/openai/request.py`.
        tokens += max(size(message.reasoning), sum(map(size, message.reasoning_details)))
    if isinstance(message, UserMessage):
        tokens += sum(
            max(file.size_bytes // _FILE_BYTES[file.kind], _MIN_FILE) for file in message.files
        )
    return tokens


def of_tools(tools: Iterable[ToolDefinition], size: Size | None = None) -> int:
    """Return an upper estimate of the tokens of tool definitions.

    Args:
        tools: The tools of a request.
        size: Counts with the model's own tokenizer; it is given the text of the longest template,
            Llama 3's. The default estimate is high enough without that.
    """
    tokens = 0
    for tool in tools:
        schema = encode(tool.parameters)
        text = schema if size is None else pretty(schema, indent=4)
        tokens += _TOOL + (size or _of_tool)(tool.name + tool.description + text.decode())
    return tokens


def size_of(message: Message, cache: TokenCache) -> int:
    """Return an upper estimate of a message's tokens, from the cache if it was weighed before."""
    return cache.counted.get(message) or cache.sizes.get(message) or of_message(message)


def of_part(text: str, cache: TokenCache) -> int:
    """Return the tokens of a part of a message; by its own count if it was counted.

    To be counted, a part is put into a system message of its own.
    """
    return size_of(SystemMessage(content=text), cache) - _MESSAGE if text else 0


def weigh(
    cache: TokenCache, messages: Sequence[Message], tools: tuple[ToolDefinition, ...] = ()
) -> TokenCache:
    """Weigh a request; messages that were weighed before are not weighed again."""
    sizes = {**cache.sizes, **cache.counted}
    for message in messages[alike(cache.messages, messages) :]:
        if message not in sizes:
            sizes[message] = of_message(message)
    if len(sizes) > 2 * len(messages):  # most were left out since
        sizes = {message: sizes[message] for message in messages}
    size = cache.tools_tokens if tools == cache.tools else of_tools(tools)
    return replace(cache, messages=tuple(messages), sizes=sizes, tools=tools, tools_tokens=size)


def uncounted_texts(
    cache: TokenCache, messages: Sequence[Message], tools: tuple[ToolDefinition, ...]
) -> tuple[str, ...]:
    """Return the texts of a request that a tokenizer is to count, newest messages first."""
    texts: dict[str, None] = {}
    remaining_chars = _COUNTED_AT_ONCE

    def note(text: str) -> int:
        nonlocal remaining_chars
        if text and len(text) <= min(remaining_chars, _COUNTED_CHARS):
            texts[text] = None
            remaining_chars -= len(text)
        return 0

    if tools != cache.tools or not cache.counted:
        of_tools(tools, note)
    for message in reversed(messages):
        if message not in cache.counted:
            of_message(message, note)
    return tuple(texts)


def with_counts(
    cache: TokenCache,
    messages: Iterable[Message],
    tools: tuple[ToolDefinition, ...],
    sizes: Mapping[str, int],
) -> TokenCache:
    """Weigh a request with the counts of the model's own tokenizer.

    A message that was over the limit this time is estimated until a later request counts it.

    Args:
        cache: The sizes from the conversation's earlier requests.
        messages: All messages of the request.
        tools: Its tools.
        sizes: The counts of the texts from `uncounted_texts`.
    """
    chars = uncounted = 0

    def size(text: str) -> int:
        nonlocal chars, uncounted
        chars += len(text) if len(text) <= _COUNTED_CHARS else 0
        if text in sizes:
            return sizes[text]
        uncounted += 0 < len(text) <= _COUNTED_CHARS
        return of_text(text)

    earlier, counts = cache.counted, dict[Message, int]()
    for message in messages:
        chars = uncounted = 0
        tokens = earlier.get(message) or of_message(message, size)
        if not uncounted or chars > _COUNTED_AT_ONCE:  # a message over the limit is never counted
            counts[message] = tokens
    if tools != cache.tools or not earlier:
        cache = replace(cache, tools=tools, tools_tokens=of_tools(tools, size))
    return replace(cache, counted=counts)


def of_request(cache: TokenCache, scale: Scale) -> int:
    """Return an upper estimate of the tokens of the newest request, which was weighed.

    The endpoint's count of an earlier request bounds the part that is still in this one.
    """
    upper, reported = _upper(cache, scale), cache.reported
    if reported is None:
        return upper
    # Counting takes time per message, and a request mostly begins as the one before.
    shared = alike(reported.messages, cache.messages)
    added = Counter(cache.messages[shared:]) - Counter(reported.messages[shared:])
    added_tokens = sum(cache.sizes[message] * count for message, count in added.items())
    added_tokens += max(cache.tools_tokens - reported.tools, 0)
    return min(upper, reported.tokens + math.ceil(added_tokens * scale.ratio))


def report(cache: TokenCache, scale: Scale, tokens: int) -> tuple[TokenCache, Scale]:
    """Learn from the endpoint's count of a request.

    Args:
        cache: The sizes of the request.
        scale: The scale of the model.
        tokens: The endpoint's count of its input; 0 if it reports none.
    """
    estimate = _upper(cache, Scale())
    if tokens < estimate * _PLAUSIBLE:
        return replace(cache, reported=None), scale
    reported = Report(messages=cache.messages, tools=cache.tools_tokens, tokens=tokens)
    scale = replace(scale, overflows_at=math.ceil(scale.overflows_at * _FORGETS))
    if estimate >= _LEARNS_FROM and not files_of(cache.messages):  # the size of files is a guess
        # Rises at once, because an oversized request is refused; falls slowly.
        ratio = min(max(tokens / estimate, 1.0), _MAX_RATIO)
        smoothed = scale.ratio - _FALLS * (scale.ratio - ratio)
        scale = replace(scale, ratio=max(ratio, smoothed))
    return replace(cache, reported=reported), scale


def report_overflow(scale: Scale, tokens: int, window: int | None = None) -> Scale:
    """Learn that a request was too large.

    Args:
        scale: The scale of the model.
        tokens: The request's estimate.
        window: The model's window, if the endpoint named it.
    """
    limit = min(tokens, window or tokens)
    return replace(scale, overflows_at=min(limit, scale.overflows_at or limit))


def _upper(cache: TokenCache, scale: Scale) -> int:
    estimate = _REQUEST + cache.tools_tokens + sum(map(cache.sizes.__getitem__, cache.messages))
    return math.ceil(estimate * scale.ratio)
