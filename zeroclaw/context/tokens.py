"""How many tokens a request takes, never too few: by the model's own tokenizer, else by estimate (pure).

Where the model's tokenizer is at hand, each text is counted by it once, and what a chat template puts
around the texts is estimated. No tokenizer is at hand for most models; then text is weighed by its
kinds of letters. The weights were fitted in 2026-11 to five vocabularies (SmolLM2's, which counts the
most, Llama 3's, Qwen 3's, cl100k and o200k) so that none counts more: English prose comes out at 1.7
times the truth, German and Chinese at 1.1 to 1.3, base64 at 1.1, each against the worst of the five.

Both get close by the endpoint's reports: what a request took is known once it was answered, and the
next one is that, and what was added since.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase, digits

from msgspec.json import encode
from msgspec.json import format as laid_out

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
_COUNTED_CHARS, _COUNTED_AT_ONCE = 65_536, 262_144
"""Of a text, and of all texts that a tokenizer is handed at once; what is beyond is estimated, so that
no text costs more time than a tenth of a second or so."""
_PLAUSIBLE = 0.25
"""Of the estimate; endpoints that report less do not count all that they were sent."""
_MOST_RATIO = 4.0
_FALLS = 0.1
_FORGETS = 1.01


Size = Callable[[str], int]
"""Tells how many tokens a text takes."""


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

    messages: Hidden[Sequence[Message]]
    tools: int
    tokens: int


class Weighed(Value):
    """One conversation's messages on the scale.

    Attributes:
        messages: Of the newest request; each has its size.
        sizes: Their estimates, and some of older ones, so that none is weighed twice.
        tools: Of the newest request; they hardly ever change.
        tools_tokens: Their estimate.
        reported: Of the newest request that was answered, None for none.
        counted: The sizes of those messages that the model's own tokenizer has counted.
        short: What stands for the newest request's stale results, so that none is shortened twice.
        reader: The tool that they name.
    """

    messages: Hidden[tuple[Message, ...]] = ()
    sizes: Hidden[Mapping[Message, int]] = field(default_factory=dict[Message, int])
    tools: tuple[ToolDefinition, ...] = ()
    tools_tokens: int = 0
    reported: Reported | None = None
    counted: Hidden[Mapping[Message, int]] = field(default_factory=dict[Message, int])
    short: Hidden[Mapping[Message, Message]] = field(default_factory=dict[Message, Message])
    reader: str = ""


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


def of_message(message: Message, size: Size = of_text) -> int:
    """Return at least as many tokens as a message takes, its template's marks included."""
    whole = _MESSAGE + size(message.content)
    if isinstance(message, AssistantMessage):
        # Some templates write the arguments as a text within a text, with all its marks escaped.
        whole += sum(
            _CALL + size(f"{call.name}{call.id}{encode(call.arguments).decode()}")
            for call in message.tool_calls
        )
        # One of the two is sent, see `providers/openai/request.py`.
        whole += max(size(message.reasoning), sum(map(size, message.reasoning_details)))
    if isinstance(message, UserMessage):
        whole += sum(
            max(file.size_bytes // _FILE_BYTES[file.kind], _LEAST_FILE) for file in message.files
        )
    return whole


def of_tools(tools: Iterable[ToolDefinition], size: Size | None = None) -> int:
    """Return at least as many tokens as tool definitions take.

    Args:
        tools: Of a request.
        size: By the model's own tokenizer; it is told what the longest of the templates makes of
            them, Llama 3's. The estimate is high enough without.
    """
    whole = 0
    for tool in tools:
        schema = encode(tool.parameters)
        shown = schema if size is None else laid_out(schema, indent=4)
        whole += _TOOL + (size or of_text)(tool.name + tool.description + shown.decode())
    return whole


def size_of(message: Message, known: Weighed) -> int:
    """Return at least as many tokens as a message takes; one that was weighed before is not again."""
    return known.counted.get(message) or known.sizes.get(message) or of_message(message)


def of_part(text: str, known: Weighed) -> int:
    """Return as many tokens as a part of a message takes; by its own count where it was counted.

    What is to be counted of it is a system message that holds it alone.
    """
    return size_of(SystemMessage(content=text), known) - _MESSAGE if text else 0


def weighed(
    known: Weighed, messages: Sequence[Message], tools: tuple[ToolDefinition, ...] = ()
) -> Weighed:
    """Put a request on the scale; what lay there before is not weighed again."""
    sizes = {**known.sizes, **known.counted}
    for one in messages[alike(known.messages, messages) :]:
        if one not in sizes:
            sizes[one] = of_message(one)
    if len(sizes) > 2 * len(messages):  # most of it was left out since
        sizes = {one: sizes[one] for one in messages}
    size = known.tools_tokens if tools == known.tools else of_tools(tools)
    return replace(known, messages=tuple(messages), sizes=sizes, tools=tools, tools_tokens=size)


def uncounted(
    known: Weighed, messages: Sequence[Message], tools: tuple[ToolDefinition, ...]
) -> tuple[str, ...]:
    """Return the texts of a request that a tokenizer is to count, of the newest messages first."""
    found: dict[str, None] = {}
    left = _COUNTED_AT_ONCE

    def note(text: str) -> int:
        nonlocal left
        if text and len(text) <= min(left, _COUNTED_CHARS):
            found[text] = None
            left -= len(text)
        return 0

    if tools != known.tools or not known.counted:
        of_tools(tools, note)
    for one in reversed(messages):
        if one not in known.counted:
            of_message(one, note)
    return tuple(found)


def counted(
    known: Weighed,
    messages: Iterable[Message],
    tools: tuple[ToolDefinition, ...],
    sizes: Mapping[str, int],
) -> Weighed:
    """Put a request on the scale by the model's own tokenizer.

    A message whose turn has not come yet is estimated until a later request counts it.

    Args:
        known: Of the conversation's earlier requests.
        messages: All of the request.
        tools: Its.
        sizes: Of the texts that were `uncounted`.
    """
    chars = waiting = 0

    def size(text: str) -> int:
        nonlocal chars, waiting
        chars += len(text) if len(text) <= _COUNTED_CHARS else 0
        if text in sizes:
            return sizes[text]
        waiting += 0 < len(text) <= _COUNTED_CHARS
        return of_text(text)

    before, found = known.counted, dict[Message, int]()
    for one in messages:
        chars = waiting = 0
        tokens = before.get(one) or of_message(one, size)
        if not waiting or chars > _COUNTED_AT_ONCE:  # the second never fits
            found[one] = tokens
    if tools != known.tools or not before:
        known = replace(known, tools=tools, tools_tokens=of_tools(tools, size))
    return replace(known, counted=found)


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
    reported = Reported(messages=messages, tools=tools, tokens=tokens)
    learned = replace(learned, overflows_at=math.ceil(learned.overflows_at * _FORGETS))
    if estimate >= _LEARNS_FROM and not files_of(messages):  # whose size is a guess
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
    whole = _REQUEST + tools + sum(map(known.sizes.__getitem__, messages))
    return math.ceil(whole * learned.ratio)
