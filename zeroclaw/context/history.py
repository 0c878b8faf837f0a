"""Prepare the stored conversation for the model; the one place for this rule (S1-29)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, compress, repeat
from operator import attrgetter, is_

from zeroclaw.message import AssistantMessage, FileKind, FilePart, Message, UserMessage
from zeroclaw.value import replace

_FILES, _REASONING = attrgetter("files"), attrgetter("reasoning", "reasoning_details")
FILES_STAY = 4
"""How many of the newest messages of people show their files; S3-08 does the same with results."""


def prepare_request_messages(
    messages: Iterable[Message], *, notes: str = ""
) -> tuple[Message, ...]:
    """Return the messages of a request; the stored ones are not changed.

    Reasoning is sent with answers that made tool calls, in every later request and block for block,
    because thinking models refuse the request without it; it is dropped from all other answers
    (S1-25, S1-26, S1-28). Everything else is passed on; the provider that writes the wire format
    knows which fields are local.

    Args:
        messages: A system message first, then the stored ones.
        notes: Text for the newest message of a person, empty for none. It is added only there, so
            that what is sent again begins as it did (S2-05, K25).
    """
    prepared = tuple(messages)
    if {*map(_REASONING, _those(prepared, AssistantMessage))} - {("", ())}:
        prepared = tuple(map(_trimmed, prepared))
    return _with_notes(prepared, notes) if notes else prepared


def with_file_parts(
    messages: Sequence[Message], *, takes: Collection[FileKind], most_files: int, most_bytes: int
) -> tuple[Message, ...]:
    """Return messages with only the files that a request shows.

    Those are the files of the newest messages, within the limits; a line replaces a file that was
    shown earlier, so that requests stay small. Of a file that the model can't take it reads the
    name.
    """
    made = list(messages)
    fresh = FILES_STAY
    for place in range(len(made) - 1, -1, -1):
        message = made[place]
        if not isinstance(message, UserMessage) or message.note:
            continue
        shown: list[FilePart] = []
        gone: list[str] = []
        for one in (file for file in message.files if file.kind in takes):
            if fresh > 0 and most_files > 0 and one.size_bytes <= most_bytes:
                most_files, most_bytes = most_files - 1, most_bytes - one.size_bytes
                shown.append(one)
            else:
                gone.append(one.instead)
        if message.files:
            text = "\n".join((message.content, *gone))
            made[place] = replace(message, content=text, files=tuple(shown))
        fresh -= 1
    return tuple(made)


def files_of(messages: Sequence[Message]) -> tuple[FilePart, ...]:
    """Return all files of the messages."""
    return tuple(chain.from_iterable(map(_FILES, _those(messages, UserMessage))))


def _those(messages: Sequence[Message], kind: type[Message]) -> Iterator[Message]:
    # No Python loop: a turn calls this about six times over all that was said.
    return compress(messages, map(is_, map(type, messages), repeat(kind)))


def _with_notes(messages: tuple[Message, ...], notes: str) -> tuple[Message, ...]:
    for place in range(len(messages) - 1, -1, -1):
        match messages[place]:
            case UserMessage(content=said, note="") as message:
                noted = replace(message, content=f"{notes}\n\n{said}")
                return (*messages[:place], noted, *messages[place + 1 :])
            case _:
                continue
    return messages


def _trimmed(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and not message.tool_calls:
        return replace(message, reasoning="", reasoning_details=())
    return message
