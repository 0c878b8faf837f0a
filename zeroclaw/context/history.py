"""The stored conversation, made ready for the model: one rule in one place (S1-29)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, compress, repeat
from operator import attrgetter, is_

from zeroclaw.message import AssistantMessage, FileKind, FilePart, Message, UserMessage
from zeroclaw.value import replace

_FILES, _REASONING = attrgetter("files"), attrgetter("reasoning", "reasoning_details")
FILES_STAY = 4
"""Messages of people in which files are shown, the newest; S3-08 does so with results."""


def prepare_request_messages(
    messages: Iterable[Message], *, notes: str = ""
) -> tuple[Message, ...]:
    """Return the messages of a request; the stored ones stay as they are.

    Reasoning goes along with answers that made tool calls, on every later request and block for
    block (thinking models refuse the request without it), and stays home with all others (S1-25,
    S1-26, S1-28). Everything else passes as it is; which fields are local is known to the provider that
    writes the wire.

    Args:
        messages: A system message first, then the stored ones.
        notes: That go along with the newest words of a person, empty for none. They stand there
            and nowhere before, so that what is sent again begins as it did (S2-05, K25).
    """
    prepared = tuple(messages)
    if {*map(_REASONING, _those(prepared, AssistantMessage))} - {("", ())}:
        prepared = tuple(map(_trimmed, prepared))
    return _with_notes(prepared, notes) if notes else prepared


def with_files(
    messages: Sequence[Message], *, takes: Collection[FileKind], most_files: int, most_bytes: int
) -> tuple[Message, ...]:
    """Return messages with no other files than those that a request shows.

    Those are the newest messages' own, as many as there may be; a line stands for those that were
    shown before, so that requests stay small. Of what the model does not take it reads the name.
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
    """Return the files that go along with messages."""
    return tuple(chain.from_iterable(map(_FILES, _those(messages, UserMessage))))


def _those(messages: Sequence[Message], kind: type[Message]) -> Iterator[Message]:
    # Without a step of Python for each: a turn asks this some six times of all that was said.
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
