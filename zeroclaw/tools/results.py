"""The tool that reads more of a result that was cut: `read_result`.

A result that was cut names the id of its whole text, and so does the line that replaces an old
result. Only results of the same conversation can be read; an id of another one looks as if it
didn't exist. The call's only resource is `results:<conversation>`.
"""

from collections.abc import Awaitable, Callable, Iterator

from pydantic import Field

from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.host.executors import FairShare
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.tool import Tool, ToolContext, ToolOutput
from zeroclaw.tools import ModelTool, ToolArguments, counted, quoted, read_spec
from zeroclaw.value import Value

NAME = "read_result"
"""Name of the tool; the runtime mentions it where it cuts a result."""

BLOCK_CHARS = 16_384
"""Characters searched in one go, for which the event loop waits a quarter of a millisecond."""
_TIMEOUT_S = 30.0
_CONTEXT_CHARS = 400  # shown on each side of a match, however long its line is
_HEAD_CHARS = 300  # reserved in an answer for all but the piece itself


class WholeResult(Value):
    """A stored result.

    Attributes:
        text: The whole text; None if it is gone.
        trusted: The text was known to be free of untrusted text when it was stored.
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
    description = "Read on in an earlier result of this conversation that was cut or left out."
    spec = read_spec(NAME, description, ReadArguments, _TIMEOUT_S)

    def apply_settings(arguments: ReadArguments) -> ReadArguments:
        max_chars = answer_chars() - _HEAD_CHARS
        if arguments.limit > max_chars:
            # The runtime would cut it again.
            raise ToolArgumentsInvalid((f"limit: must be at most {max_chars}",))
        return arguments.model_copy(update={"limit": arguments.limit or max_chars})

    share = FairShare("earlier results", at_once=2)  # a whole one may take 50 MB
    searches = FairShare("searches of results", at_once=2)

    async def handler(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        async with share.slot(context.conversation):
            result = await find(context.conversation, arguments.id)
            if result is None or (text := result.text) is None:
                fault = _missing(arguments.id, is_known=result is not None)
                return ToolOutput(text=fault, is_error=True)
            offset = arguments.offset
            if offset and offset >= len(text):
                fault = f"offset: {offset} is past the end of {counted(len(text), 'character')}"
                return ToolOutput(text=fault, is_error=True)
            show = matches if arguments.word else piece
            shown = await searches.run(context.conversation, lambda: show(text, arguments))
            return ToolOutput(text=shown, untrusted=not result.trusted)

    return (
        ModelTool(
            spec=spec,
            model=ReadArguments,
            summary=_line,
            find_resources=lambda _, context: (f"results:{context.conversation}",),
            handler=handler,
            apply_settings=apply_settings,
        ),
    )


def _line(arguments: ReadArguments) -> Localized:
    if arguments.word:
        word = quoted(arguments.word)
        return catalogue.WOULD_SEARCH_RESULT.about(word=word, id=quoted(arguments.id))
    return catalogue.WOULD_READ_RESULT.about(id=quoted(arguments.id))


def piece(text: str, arguments: ReadArguments) -> str:
    """Return a piece of the text, with the offset of the next one."""
    end = min(arguments.offset + arguments.limit, len(text))
    hint = f"; read on with offset {end}" if end < len(text) else "; this is the end"
    head = f"characters {arguments.offset} to {end} of {len(text)}{hint}"
    return f"{head}:\n{text[arguments.offset : end]}"


def matches(text: str, arguments: ReadArguments) -> str:
    """Return each match of the word with its offset and the lines around it, ignoring case."""
    excerpts: list[str] = []
    remaining = arguments.limit
    for start, end, at in _places(text, arguments):
        line = f"[offset {at}]\n{text[start:end]}"
        remaining -= len(line) + 1
        # Always show the first match, cut if necessary, so that every call makes progress.
        if excerpts and remaining < 0:
            excerpts.append(f"[there is more; go on with offset {at}]")
            break
        excerpts.append(line[: arguments.limit])
    if not excerpts:
        suffix = f" from offset {arguments.offset} on" if arguments.offset else ""
        return f"{quoted(arguments.word)} is not in the {counted(len(text), 'character')}{suffix}"
    return "\n".join(excerpts)


def _places(text: str, arguments: ReadArguments) -> Iterator[tuple[int, int, int]]:
    """Yield start and end of the excerpt around each match, and the offset of the match.

    Excerpts don't overlap. `str.find` takes time linear in the text, where `re` would try every place
    with the whole word.
    """
    word, at, done = _any_case(arguments.word), arguments.offset, arguments.offset
    while at < len(text):
        found = _any_case(text[at : at + BLOCK_CHARS]).find(word)
        if found < 0:
            at += BLOCK_CHARS - len(word) + 1  # the word may begin in this block
            continue
        at += found
        end = at + len(word)
        before = text[max(at - _CONTEXT_CHARS, 0) : at].split("\n")[-arguments.lines - 1 :]
        after = text[end : end + _CONTEXT_CHARS].split("\n")[: arguments.lines + 1]
        end += len("\n".join(after))
        yield max(at - len("\n".join(before)), done), end, at
        at = done = end


def _any_case(text: str) -> str:
    """Return a text of the same length for comparisons that ignore letter case."""
    return text.replace("İ", "I").lower().replace("\u03c2", "\u03c3")  # a sigma that ends a word


def _missing(name: str, *, is_known: bool) -> str:
    if is_known:
        return f"the whole text of {quoted(name)} is no longer stored: make the call again"
    return f"no result of this conversation is stored as {quoted(name)}; a cut result names its id"
