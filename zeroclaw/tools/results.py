"""The tool that reads more of a result that was cut: `read_result`.

A result that was cut names the id of its whole text, and so does the line that replaces an old
result. Only results of the same conversation can be read; an id of another one looks as if it
didn't exist. The call's only resource is `results:<conversation>`.
"""

import re
from collections.abc import Awaitable, Callable, Iterator

from pydantic import Field

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.tool import Tool, ToolContext, ToolOutput
from zeroclaw.tools import ModelTool, ToolArguments, counted, quoted, read_spec
from zeroclaw.value import Value

NAME = "read_result"
"""Name of the tool; the runtime mentions it where it cuts a result."""

_TIMEOUT_S = 30.0
_AROUND_CHARS = 400  # shown on each side of a match, however long its line is
_HEAD_CHARS = 300  # reserved in an answer for all but the piece itself


class WholeResult(Value):
    """A result as it was kept.

    Attributes:
        text: The whole text; None if it is gone.
        trusted: The text was known to be free of untrusted text when it was kept.
    """

    text: str | None
    trusted: bool


Find = Callable[[ConversationId, str], Awaitable[WholeResult | None]]
"""Returns a result of a conversation by its name, None if it has none of this name."""


class ReadArguments(ToolArguments):
    """Arguments of `read_result`."""

    id: str = Field(min_length=1, max_length=200, description="As the result names it.")
    offset: int = Field(default=0, ge=0, le=1_000_000_000, description="In characters.")
    limit: int = Field(default=0, ge=0, le=1_000_000_000, description="0 for the most.")
    word: str = Field(default="", max_length=200, description="Show the places that hold it.")
    lines: int = Field(default=2, ge=0, le=50, description="Around each place.")


def tools(find: Find, answer_chars: Callable[[], int] = lambda: 20_000) -> tuple[Tool, ...]:
    """Return the tool; `answer_chars` returns the current cap, beyond which the runtime cuts."""
    said = "Read on in an earlier result of this conversation that was cut or left out."
    spec = read_spec(NAME, said, ReadArguments, _TIMEOUT_S)

    def apply_settings(asked: ReadArguments) -> ReadArguments:
        most = answer_chars() - _HEAD_CHARS
        if asked.limit > most:
            # The runtime would cut it again.
            raise ToolArgumentsInvalid((f"limit: must be at most {most}",))
        return asked.model_copy(update={"limit": asked.limit or most})

    async def handler(asked: ReadArguments, context: ToolContext) -> ToolOutput:
        whole = await find(context.conversation, asked.id)
        if whole is None or (text := whole.text) is None:
            told = _missing(asked.id, known=whole is not None)
            return ToolOutput(text=told, is_error=True)
        if asked.offset and asked.offset >= len(text):
            told = f"offset: {asked.offset} is past the end of {counted(len(text), 'character')}"
            return ToolOutput(text=told, is_error=True)
        return ToolOutput(
            text=found(text, asked) if asked.word else piece(text, asked),
            untrusted=not whole.trusted,
        )

    return (
        ModelTool(
            spec=spec,
            model=ReadArguments,
            summary=_line,
            find_resources=_resources,
            handler=handler,
            apply_settings=apply_settings,
        ),
    )


def _line(asked: ReadArguments) -> Localized:
    if asked.word:
        word = quoted(asked.word)
        return catalogue.WOULD_SEARCH_RESULT.about(word=word, id=quoted(asked.id))
    return catalogue.WOULD_READ_RESULT.about(id=quoted(asked.id))


async def _resources(asked: ReadArguments, context: ToolContext) -> tuple[str, ...]:
    del asked
    return (f"results:{context.conversation}",)


def piece(text: str, asked: ReadArguments) -> str:
    """Return a piece of the text, and how to read on."""
    end = min(asked.offset + asked.limit, len(text))
    more = f"; read on with offset {end}" if end < len(text) else "; this is the end"
    head = f"characters {asked.offset} to {end} of {len(text)}{more}"
    return f"{head}:\n{text[asked.offset : end]}"


def found(text: str, asked: ReadArguments) -> str:
    """Return each match of the word with its offset and the lines around it, ignoring case."""
    shown: list[str] = []
    left = asked.limit
    for start, end, at in _places(text, asked):
        line = f"[offset {at}]\n{text[start:end]}"
        left -= len(line) + 1
        # Always show the first match, cut if necessary, so that every call makes progress.
        if shown and left < 0:
            shown.append(f"[there is more; go on with offset {at}]")
            break
        shown.append(line[: asked.limit])
    if not shown:
        since = f" from offset {asked.offset} on" if asked.offset else ""
        return f"{quoted(asked.word)} is not in the {counted(len(text), 'character')}{since}"
    return "\n".join(shown)


def _places(text: str, asked: ReadArguments) -> Iterator[tuple[int, int, int]]:
    """Yield start and end of the excerpt around each match, and the offset of the match.

    Excerpts don't overlap.
    """
    shown_to = asked.offset
    for match in re.finditer(re.escape(asked.word), text[asked.offset :], re.IGNORECASE):
        at = asked.offset + match.start()
        if at < shown_to:
            continue
        end = asked.offset + match.end()
        before = text[max(at - _AROUND_CHARS, 0) : at].split("\n")[-asked.lines - 1 :]
        after = text[end : end + _AROUND_CHARS].split("\n")[: asked.lines + 1]
        end += len("\n".join(after))
        yield max(at - len("\n".join(before)), shown_to), end, at
        shown_to = end


def _missing(name: str, *, known: bool) -> str:
    if known:
        return f"the whole text of {quoted(name)} is no longer kept: make the call again"
    return f"no result of this conversation is kept as {quoted(name)}; a cut result names its id"
