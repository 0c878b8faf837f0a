"""How many tokens a request takes, never too few: by the model's tokenizer, else by estimate (pure).

If the model's tokenizer is at hand, it counts each text once, and what a chat template adds around
the texts is estimated. Most models have none at hand; then a text is weighed by its kinds of
characters. The weights were fitted in 2026-11 to five vocabularies (SmolLM2's, which counts the
most, Llama 3's, Qwen 3's, cl100k and o200k) so that none counts more than the estimate. Against the
worst of the five, English prose is estimated at 1.7 times the truth, German and Chinese at 1.1 to
1.3, base64 at 1.1.

The endpoint's reports correct both: the size of an answered request is known, and the next one is
that plus what was added since.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import mul
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
_LEAST_FILE = 1_600
"""The minimum for any file, and for an image of any size: endpoints shrink it."""
_LEARNS_FROM = 1_000
"""Estimated tokens of a request below which a report does not change the ratio: an endpoint's own
hidden prompt would look like a costly tokenizer."""
_COUNTED_CHARS, _COUNTED_AT_ONCE = 65_536, 262_144
"""The limits of one text, and of all texts handed to a tokenizer at once; beyond them a text is
estimated, so that no text takes more than about a tenth of a second."""
_PLAUSIBLE = 0.25
"""Share of the estimate; an endpoint that reports less does not count all that it was sent."""
_MOST_RATIO = 4.0
_FALLS = 0.1
_FORGETS = 1.01


Size = Callable[[str], int]
"""Returns how many tokens a text takes."""


class Learned(Value):
    """What a model's endpoint has taught, over all conversations.

    Attributes:
        ratio: The factor from our estimate to its tokenizer's count, at least 1.
        overflows_at: Tokens of a request that was too large, 0 for none known. It grows a little
            with each answer, so that one refusal without a reason is forgotten.
    """

    ratio: float = 1.0
    overflows_at: int = 0


class Reported(Value):
    """The endpoint's report on a conversation's newest answered request.

    Attributes:
        messages: The request's messages.
        tools: The estimate of its tools.
        tokens: The endpoint's count.
    """

    messages: Hidden[Sequence[Message]]
    tools: int
    tokens: int


class Weighed(Value):
    """The weighed messages of one conversation.

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
    reported: Reported | None = None
    counted: Hidden[Mapping[Message, int]] = field(default_factory=dict[Message, int])
    short: Hidden[Mapping[Message, Message]] = field(default_factory=dict[Message, Message])
    reader: str = ""


def of_text(text: str) -> int:
    """Return an upper estimate of a text's tokens; 0 only for an empty text."""
    if not text:
        return 0
    body = text.encode(errors="replace")
    counts = [len(body) - len(body.translate(None, kind)) for kind in _KINDS]
    signs = len(body) - sum(counts)
    weight = signs * _SIGN + sum(map(mul, counts, _KINDS.values()))
    runs = counts[0] - _RUN_BYTES * (signs + counts[3] + 1)
    # A byte-level tokenizer never makes more tokens than bytes.
    return math.ceil(min(weight + max(runs, 0) * _IN_A_RUN, len(body))) + _TEXT


_of_tool = lru_cache(maxsize=128)(of_text)
"""The same tools are offered in every conversation."""


def of_message(message: Message, size: Size = of_text) -> int:
    """Return an upper estimate of a message's tokens, including its template's marks."""
    whole = _MESSAGE + size(message.content)
    if isinstance(message, AssistantMessage):
        # Some templates write the arguments as a text within a text, with all their quotes escaped.
        whole += sum(
            _CALL + size(f"{call.name}{call.id}{encode(call.arguments).decode()}{call.extra}")
            for call in message.tool_calls
        )
        # Only one of the two is sent, see `providers/openai/request.py`.
        whole += max(size(message.reasoning), sum(map(size, message.reasoning_details)))
    if isinstance(message, UserMessage):
        whole += sum(
            max(file.size_bytes // _FILE_BYTES[file.kind], _LEAST_FILE) for file in message.files
        )
    return whole


def of_tools(tools: Iterable[ToolDefinition], size: Size | None = None) -> int:
    """Return an upper estimate of the tokens of tool definitions.

    Args:
        tools: The tools of a request.
        size: Counts with the model's own tokenizer; it is given the text of the longest template,
            Llama 3's. The default estimate is high enough without that.
    """
    whole = 0
    for tool in tools:
        schema = encode(tool.parameters)
        shown = schema if size is None else laid_out(schema, indent=4)
        whole += _TOOL + (size or _of_tool)(tool.name + tool.description + shown.decode())
    return whole


def size_of(message: Message, known: Weighed) -> int:
    """Return an upper estimate of a message's tokens, from the cache if it was weighed before."""
    return known.counted.get(message) or known.sizes.get(message) or of_message(message)


def of_part(text: str, known: Weighed) -> int:
    """Return the tokens of a part of a message; by its own count if it was counted.

    To be counted, a part is put into a system message of its own.
    """
    return size_of(SystemMessage(content=text), known) - _MESSAGE if text else 0


def weighed(
    known: Weighed, messages: Sequence[Message], tools: tuple[ToolDefinition, ...] = ()
) -> Weighed:
    """Weigh a request; messages that were weighed before are not weighed again."""
    sizes = {**known.sizes, **known.counted}
    for one in messages[alike(known.messages, messages) :]:
        if one not in sizes:
            sizes[one] = of_message(one)
    if len(sizes) > 2 * len(messages):  # most were left out since
        sizes = {one: sizes[one] for one in messages}
    size = known.tools_tokens if tools == known.tools else of_tools(tools)
    return replace(known, messages=tuple(messages), sizes=sizes, tools=tools, tools_tokens=size)


def uncounted(
    known: Weighed, messages: Sequence[Message], tools: tuple[ToolDefinition, ...]
) -> tuple[str, ...]:
    """Return the texts of a request that a tokenizer is to count, newest messages first."""
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
    """Weigh a request with the counts of the model's own tokenizer.

    A message that was over the limit this time is estimated until a later request counts it.

    Args:
        known: The sizes from the conversation's earlier requests.
        messages: All messages of the request.
        tools: Its tools.
        sizes: The counts of the texts from `uncounted`.
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
        if not waiting or chars > _COUNTED_AT_ONCE:  # a message over the limit is never counted
            found[one] = tokens
    if tools != known.tools or not before:
        known = replace(known, tools=tools, tools_tokens=of_tools(tools, size))
    return replace(known, counted=found)


def of_request(known: Weighed, learned: Learned, messages: Sequence[Message], tools: int) -> int:
    """Return an upper estimate of a request's tokens.

    The endpoint's count of an earlier request bounds the part that is still in this one.

    Args:
        known: With each of the messages weighed.
        learned: What is known of the model.
        messages: All messages of the request.
        tools: The tools' estimate.
    """
    upper = _upper(known, learned, messages, tools)
    if known.reported is None:
        return upper
    # Counting takes time per message, and a request mostly begins as the one before.
    same = alike(known.reported.messages, messages)
    added = Counter(messages[same:]) - Counter(known.reported.messages[same:])
    more = sum(known.sizes[one] * count for one, count in added.items())
    more += max(tools - known.reported.tools, 0)
    return min(upper, known.reported.tokens + math.ceil(more * learned.ratio))


def report(
    known: Weighed, learned: Learned, messages: Sequence[Message], tools: int, tokens: int
) -> tuple[Weighed, Learned]:
    """Learn what a request took.

    Args:
        known: With each of the messages weighed.
        learned: What is known of the model.
        messages: All messages of the request.
        tools: The tools' estimate.
        tokens: The endpoint's count of its input; 0 if it reports none.
    """
    estimate = _upper(known, Learned(), messages, tools)
    if tokens < estimate * _PLAUSIBLE:
        return replace(known, reported=None), learned
    reported = Reported(messages=messages, tools=tools, tokens=tokens)
    learned = replace(learned, overflows_at=math.ceil(learned.overflows_at * _FORGETS))
    if estimate >= _LEARNS_FROM and not files_of(messages):  # the size of files is a guess
        # Rises at once, because an oversized request is refused; falls slowly.
        seen = min(max(tokens / estimate, 1.0), _MOST_RATIO)
        falling = learned.ratio - _FALLS * (learned.ratio - seen)
        learned = replace(learned, ratio=max(seen, falling))
    return replace(known, reported=reported), learned


def overflowed(learned: Learned, tokens: int, window: int | None = None) -> Learned:
    """Learn that a request was too large.

    Args:
        learned: What is known of the model.
        tokens: The request's estimate.
        window: The model's window, if the endpoint named it.
    """
    most = min(tokens, window or tokens)
    return replace(learned, overflows_at=min(most, learned.overflows_at or most))


def _upper(known: Weighed, learned: Learned, messages: Iterable[Message], tools: int) -> int:
    whole = _REQUEST + tools + sum(map(known.sizes.__getitem__, messages))
    return math.ceil(whole * learned.ratio)
