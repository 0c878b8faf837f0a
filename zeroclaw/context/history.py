"""Prepare the stored conversation for the model; the one place for this rule (S1-29).

Pure, and only a view: the journal keeps every message and every result.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, count, repeat
from operator import attrgetter, is_, not_

from zeroclaw.gate.receipt import detach
from zeroclaw.message import (
    AssistantMessage,
    FileKind,
    FilePart,
    Message,
    ToolMessage,
    UserMessage,
    of_type,
)
from zeroclaw.text.escape import shortened
from zeroclaw.value import replace

_FILES, _REASONING = attrgetter("files"), attrgetter("reasoning", "reasoning_details")
FILES_STAY = 4
"""How many of the newest messages of people show their files; S3-08 does the same with results."""


def prepare_request_messages(
    messages: Iterable[Message], *, notes: str = ""
) -> tuple[Message, ...]:
    """Return the messages of a request; the stored ones are not changed.

    Reasoning stays in answers that made tool calls, in every later request and block for block,
    because thinking models refuse the request without it; it is dropped from all other answers
    (S1-25, S1-26, S1-28). All other fields stay; the provider that writes the wire format knows
    which of them are local.

    Args:
        messages: A system message first, then the stored ones.
        notes: Text for the newest message of a person, empty for none. It is added only there, so
            that the next request begins like this one (S2-05, K25).
    """
    prepared = tuple(messages)
    if {*map(_REASONING, of_type(prepared, AssistantMessage))} - {("", ())}:
        prepared = tuple(map(_trimmed, prepared))
    return _with_notes(prepared, notes) if notes else prepared


def with_file_parts(
    messages: Sequence[Message], *, takes: Collection[FileKind], max_files: int, max_bytes: int
) -> tuple[Message, ...]:
    """Return messages with only the files that a request shows.

    Those are the files of the newest messages, within the limits; a line replaces a file that was
    shown earlier, so that requests stay small. The model reads the name of a file that it can't take.
    """
    prepared = list(messages)
    remaining = FILES_STAY
    for index in range(len(prepared) - 1, -1, -1):
        message = prepared[index]
        if not isinstance(message, UserMessage) or message.note:
            continue
        shown: list[FilePart] = []
        lines: list[str] = []
        for file in filter(lambda file: file.kind in takes, message.files):
            if remaining > 0 and max_files > 0 and file.size_bytes <= max_bytes:
                max_files, max_bytes = max_files - 1, max_bytes - file.size_bytes
                shown.append(file)
            else:
                lines.append(file.instead)
        if message.files:
            text = "\n".join((message.content, *lines))
            prepared[index] = replace(message, content=text, files=tuple(shown))
        remaining -= 1
    return tuple(prepared)


def files_of(messages: Sequence[Message]) -> tuple[FilePart, ...]:
    """Return all files of the messages."""
    return tuple(chain.from_iterable(map(_FILES, of_type(messages, UserMessage))))


def _with_notes(messages: tuple[Message, ...], notes: str) -> tuple[Message, ...]:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and not message.note:
            noted = replace(message, content=f"{notes}\n\n{message.content}")
            return (*messages[:index], noted, *messages[index + 1 :])
    return messages


def _trimmed(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and not message.tool_calls:
        return replace(message, reasoning="", reasoning_details=())
    return message


# --- stale results -------------------------------------------------------------------------------

# Old tool results are shown in one line each (K14). A result is stale when its turn is four turns of
# people old, or when there are more than fifteen results and it is not among the last five. Stale
# results are replaced in steps of several turns or results, so that the beginning of the request
# stays the same, byte for byte, from one request to the next: endpoints cache their work on a common
# prefix.
OLD_TURNS = 4
STEP_TURNS = 4
MAX_RESULTS = 15
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
    messages: Sequence[Message], *, reader: str = "", short: Mapping[Message, Message] = _NONE
) -> tuple[Message, ...]:
    """Return the messages with stale results replaced by one line each.

    Args:
        messages: Without a system message; not changed.
        reader: The tool that reads a result again, empty for none.
        short: Replacements from an earlier call with the same reader.
    """
    results = _indexes(messages, ToolMessage)
    if not results:
        return tuple(messages)
    users = _indexes(messages, UserMessage)
    turns = [*compress(users, map(not_, map(_NOTE, map(messages.__getitem__, users))))]
    stale_turns = max(len(turns) - OLD_TURNS, 0) // STEP_TURNS * STEP_TURNS
    end = turns[stale_turns] if stale_turns else 0
    if len(results) > MAX_RESULTS:
        stale_results = (len(results) - LEFT_RESULTS) // STEP_RESULTS * STEP_RESULTS
        end = max(end, results[stale_results - 1] + 1)
    result = list(messages)
    stale = results[: bisect_left(results, end)]
    lengths = map(len, map(_CONTENT, map(messages.__getitem__, stale)))
    for index in compress(stale, map(SHORT_CHARS.__lt__, lengths)):
        message = result[index]
        result[index] = short.get(message) or in_one_line(message, reader=reader)
    return tuple(result)


def _indexes(messages: Sequence[Message], kind: type[Message]) -> list[int]:
    # No Python loop: each request calls this over all messages.
    return [*compress(count(), map(is_, map(type, messages), repeat(kind)))]


def in_one_line(message: Message, *, reader: str = "") -> Message:
    """Return a result as one line above its receipt; short ones and other messages unchanged."""
    if not isinstance(message, ToolMessage):
        return message
    text, token = detach(message.content)
    if len(text) <= SHORT_CHARS or text.startswith(_OPENING):
        return message
    error = f": {_first_line(text)}" if message.is_error else ""
    hint = f"; `{reader}` with id `{token}` reads it again" if reader and token else ""
    lines = text.count("\n") + 1
    line = (
        f"{_OPENING}`{message.tool_name}`{error}; its {len(text):,} characters in "
        f"{lines:,} lines are left out here{hint}]"
    )
    receipt = message.content[len(text) :]
    return replace(message, content=f"{line}{receipt}")


def _first_line(text: str) -> str:
    """Return the first line of a tool's text, without the header and the fence around it."""
    head, _, body = text.partition("\n")
    if body.startswith(_FENCE):
        head = body.partition("\n")[2].partition("\n")[0]
    return shortened(head, _LINE_CHARS)
