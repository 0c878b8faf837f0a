"""Replace old tool results by one line each in what the model is shown (K14).

Pure, and only a view: the journal keeps every result. A result is stale when its turn is four turns
of people old, or when there are more than fifteen results and it is not among the last five. Stale
results are replaced in steps of several turns or results, so that the beginning of the request
stays the same, byte for byte, from one request to the next: endpoints cache their work on a common
prefix.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import compress, count, repeat
from operator import attrgetter, is_, not_

from zeroclaw.gate.receipt import detach
from zeroclaw.message import Message, ToolMessage, UserMessage
from zeroclaw.text.escape import shortened
from zeroclaw.value import replace

OLD_TURNS = 4
STEP_TURNS = 4
MOST_RESULTS = 15
LEFT_RESULTS = 5
STEP_RESULTS = 10
SHORT_CHARS = 240
"""A result up to this length is shown whole: the line that replaces it would be as long."""
_LINE_CHARS = 200
_FENCE = "```"
_OPENING = "[an earlier result of "
_CONTENT, _NOTE = attrgetter("content"), attrgetter("note")
_NONE: Mapping[Message, Message] = {}


def with_stale_results(
    messages: Sequence[Message], *, reader: str = "", known: Mapping[Message, Message] = _NONE
) -> tuple[Message, ...]:
    """Return the messages with stale results replaced by one line each.

    Args:
        messages: Without a system message; not changed.
        reader: The tool that reads a result again, empty for none.
        known: Replacements from an earlier call with the same reader.
    """
    results = _places(messages, ToolMessage)
    if not results:
        return tuple(messages)
    said = _places(messages, UserMessage)
    turns = [*compress(said, map(not_, map(_NOTE, map(messages.__getitem__, said))))]
    old = max(len(turns) - OLD_TURNS, 0) // STEP_TURNS * STEP_TURNS
    end = turns[old] if old else 0
    if len(results) > MOST_RESULTS:
        many = (len(results) - LEFT_RESULTS) // STEP_RESULTS * STEP_RESULTS
        end = max(end, results[many - 1] + 1)
    shown = list(messages)
    stale = results[: bisect_left(results, end)]
    lengths = map(len, map(_CONTENT, map(messages.__getitem__, stale)))
    for at in compress(stale, map(SHORT_CHARS.__lt__, lengths)):
        one = shown[at]
        shown[at] = known.get(one) or in_one_line(one, reader=reader)
    return tuple(shown)


def _places(messages: Sequence[Message], kind: type[Message]) -> list[int]:
    # No Python loop: each request calls this over all that was said.
    return [*compress(count(), map(is_, map(type, messages), repeat(kind)))]


def in_one_line(message: Message, *, reader: str = "") -> Message:
    """Return a result as one line above its receipt; short ones and other messages unchanged."""
    if not isinstance(message, ToolMessage):
        return message
    text, token = detach(message.content)
    if len(text) <= SHORT_CHARS or text.startswith(_OPENING):
        return message
    said = f": {_first_line(text)}" if message.is_error else ""
    again = f"; `{reader}` with id `{token}` reads it again" if reader and token else ""
    lines = text.count("\n") + 1
    line = (
        f"{_OPENING}`{message.tool_name}`{said}; its {len(text):,} characters in "
        f"{lines:,} lines are left out here{again}]"
    )
    receipt = message.content[len(text) :]
    return replace(message, content=f"{line}{receipt}")


def _first_line(text: str) -> str:
    """Return the first line of a tool's text, without the header and the fence around it."""
    head, _, body = text.partition("\n")
    if body.startswith(_FENCE):
        head = body.partition("\n")[2].partition("\n")[0]
    return shortened(head, _LINE_CHARS)
