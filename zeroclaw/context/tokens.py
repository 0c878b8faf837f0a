"""How many tokens a request takes: an upper estimate, and what an endpoint's own counts add (pure).

No tokenizer is at hand for most models, so text is weighed by its kinds of letters. The weights were
fitted in 2026-11 to five vocabularies (SmolLM2's, which counts the most, Llama 3's, Qwen 3's,
cl100k and o200k) so that none counts more: English prose comes out at 1.7 times the truth, German
and Chinese at 1.1 to 1.3, base64 at 1.1, each against the worst of the five.

The estimate gets close by the endpoint's reports: what a request took is known once it was answered,
and the next one is that, and the estimate of what was added since.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase, digits

from msgspec.json import encode

from zeroclaw.message import (
    AssistantMessage,
    FileKind,
    Message,
    ToolDefinition,
    UserMessage,
)
from zeroclaw.value import Hidden, Value, field, replace

_KINDS: tuple[tuple[bytes, float], ...] = (
    (ascii_lowercase.encode(), 0.42),
    (ascii_uppercase.encode(), 1.15),
    (digits.encode(), 1.3),
    (b" \t\r\n", 0.2),
    (bytes(range(0x80, 0x100)), 0.78),
)
_SIGN = 1.0
"""Of any other byte."""
_RUN_BYTES, _IN_A_RUN = 16, 0.25
"""Small letters between two signs of any other kind, beyond which no word is that long; and what
each costs more there."""
_TEXT = 2
_MESSAGE = 24
"""The marks that a chat template puts around a message, and what is said between results and a
person."""
_CALL = 16
_TOOL = 12
_REQUEST = 16
_FILE_BYTES: Mapping[FileKind, int] = {"images": 4_000_000, "audio": 500, "files": 50}
"""Of a file for each token, as a guess, for endpoints count each in their own way: speech of 16 KB a
second at 32 tokens, and pages of 80 KB as pictures of themselves."""
_LEAST_FILE = 1_600
"""Of any file, and of an image whatever its size: endpoints shrink it."""
_LEARNS_FROM = 1_000
"""Estimated tokens of a request below which a report teaches nothing of the ratio: an endpoint's
own hidden prompt would look like a costly tokenizer."""
_PLAUSIBLE = 0.25
"""Of the estimate; endpoints that report less do not count all that they were sent."""
_MOST_RATIO = 4.0
_FALLS = 0.1
_FORGETS = 1.01


class Learned(Value):
    """What a model's endpoint has taught, over all conversations.

    Attributes:
        ratio: By how much its tokenizer counts more than the estimate, 1 for not at all.
        overflows_at: Tokens of a request that were too many, 0 for none that is known of. It grows a
            little with each answer, so that one refusal without a reason is forgotten.
    """

    ratio: float = 1.0
    overflows_at: int = 0


class Reported(Value):
    """What the endpoint said of a conversation's newest answered request.

    Attributes:
        messages: What it held.
        tools: The estimate of its tools.
        tokens: What it took, by the endpoint.
    """

    messages: Hidden[Mapping[Message, int]]
    tools: int
    tokens: int


class Weighed(Value):
    """One conversation's messages on the scale.

    Attributes:
        sizes: The estimates of the newest request's messages, so that none is weighed twice.
        tools: Of the newest request; they hardly ever change.
        tools_tokens: Their estimate.
        reported: Of the newest request that was answered, None for none.
    """

    sizes: Hidden[Mapping[Message, int]] = field(default_factory=dict[Message, int])
    tools: tuple[ToolDefinition, ...] = ()
    tools_tokens: int = 0
    reported: Reported | None = None


def of_text(text: str) -> int:
    """Return at least as many tokens as a text takes; 0 only for none."""
    if not text:
        return 0
    body = text.encode(errors="replace")
    counts = [len(body) - len(body.translate(None, kind)) for kind, _ in _KINDS]
    signs = len(body) - sum(counts)
    weight = signs * _SIGN + sum(
        count * each for count, (_, each) in zip(counts, _KINDS, strict=True)
    )
    runs = counts[0] - _RUN_BYTES * (signs + counts[3] + 1)
    # A tokenizer that works on bytes never makes more of them.
    return math.ceil(min(weight + max(runs, 0) * _IN_A_RUN, len(body))) + _TEXT


def of_message(message: Message) -> int:
    """Return at least as many tokens as a message takes, its template's marks included."""
    size = _MESSAGE + of_text(message.content)
    if isinstance(message, AssistantMessage):
        size += sum(
            _CALL + of_text(f"{call.name}{call.id}{call.arguments}") for call in message.tool_calls
        )
        # One of the two is sent, see `providers/openai/request.py`.
        size += max(of_text(message.reasoning), sum(map(of_text, message.reasoning_details)))
    if isinstance(message, UserMessage):
        size += sum(
            max(file.size_bytes // _FILE_BYTES[file.kind], _LEAST_FILE) for file in message.files
        )
    return size


def of_tools(tools: Iterable[ToolDefinition]) -> int:
    """Return at least as many tokens as tool definitions take."""
    return sum(
        _TOOL + of_text(tool.name + tool.description + encode(tool.parameters).decode())
        for tool in tools
    )


def weighed(
    known: Weighed, messages: Iterable[Message], tools: tuple[ToolDefinition, ...] = ()
) -> Weighed:
    """Put a request on the scale; what lay there before is not weighed again."""
    before = known.sizes
    sizes = {one: before.get(one) or of_message(one) for one in messages}
    size = known.tools_tokens if tools == known.tools else of_tools(tools)
    return replace(known, sizes=sizes, tools=tools, tools_tokens=size)


def of_request(known: Weighed, learned: Learned, messages: Sequence[Message], tools: int) -> int:
    """Return at least as many tokens as a request takes.

    What an earlier request took bounds what is left of it here, by the endpoint's own count.

    Args:
        known: With each of the messages weighed.
        learned: Of the model.
        messages: All of the request.
        tools: Their estimate.
    """
    upper = _upper(known, learned, messages, tools)
    if known.reported is None:
        return upper
    added = Counter(messages) - Counter(known.reported.messages)
    more = sum(known.sizes[one] * count for one, count in added.items())
    more += max(tools - known.reported.tools, 0)
    return min(upper, known.reported.tokens + math.ceil(more * learned.ratio))


def report(
    known: Weighed, learned: Learned, messages: Sequence[Message], tools: int, tokens: int
) -> tuple[Weighed, Learned]:
    """Learn what a request took.

    Args:
        known: With each of the messages weighed.
        learned: Of the model.
        messages: All of the request.
        tools: Their estimate.
        tokens: Of its input, as the endpoint counts; 0 where it does not say.
    """
    estimate = _upper(known, Learned(), messages, tools)
    if tokens < estimate * _PLAUSIBLE:
        return replace(known, reported=None), learned
    reported = Reported(messages=Counter(messages), tools=tools, tokens=tokens)
    learned = replace(learned, overflows_at=math.ceil(learned.overflows_at * _FORGETS))
    guessed = any(isinstance(one, UserMessage) and one.files for one in messages)
    if estimate >= _LEARNS_FROM and not guessed:
        # Rises at once, for a request that is too large is refused; falls slowly.
        seen = min(max(tokens / estimate, 1.0), _MOST_RATIO)
        falling = learned.ratio - _FALLS * (learned.ratio - seen)
        learned = replace(learned, ratio=max(seen, falling))
    return replace(known, reported=reported), learned


def overflowed(learned: Learned, tokens: int, window: int | None = None) -> Learned:
    """Learn that a request was too large.

    Args:
        learned: Until now.
        tokens: Its estimate.
        window: Of the model, where the endpoint said so.
    """
    most = min(tokens, window or tokens)
    return replace(learned, overflows_at=min(most, learned.overflows_at or most))


def _upper(known: Weighed, learned: Learned, messages: Iterable[Message], tools: int) -> int:
    whole = _REQUEST + tools + sum(known.sizes[one] for one in messages)
    return math.ceil(whole * learned.ratio)
