"""Reads rich messages (Bot API 10.1): parses HTML, but keeps Markdown as its source.

Sources: the Bot API's pages on sendRichMessage and InputRichMessage, read 2026-11. `blocks`, which 10.2
(2026-07-14) accepts as well, are not supported.
"""

from channels.telegram.emulator.entities import Formatted, normalized
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.rich_blocks import blocks, plain
from channels.telegram.emulator.rich_html import MAX_CHARACTERS, parse
from channels.telegram.emulator.wire import Json, Parameters, text_of
from zeroclaw import Value


class Rich(Value):
    """The content of a rich message.

    Attributes:
        formatted: Its plain text.
        shape: The Bot API's `RichMessage`.
    """

    formatted: Formatted
    shape: Json


def read_rich(parameters: Parameters) -> Rich:
    """Read `rich_message`.

    Raises:
        Refused: It is empty or too large, does not have exactly one source, or its HTML is invalid.
    """
    try:
        rich = parameters.json_object("rich_message") or {}
    except ValueError as error:
        raise bad_request("can't parse InputRichMessage JSON object") from error
    sources = [name for name in ("markdown", "html") if text_of(rich, name)]
    if len(sources) != 1:
        raise bad_request("rich message must have exactly one of html and markdown")
    source = text_of(rich, sources[0])
    # Only Telegram knows how it parses Markdown, so here it becomes one paragraph.
    found = [{"type": "paragraph", "text": source}] if sources == ["markdown"] else _blocks(source)
    formatted = normalized(plain(found), ())
    if not formatted.text:
        raise bad_request("rich message must be non-empty")
    if len(formatted.text) > MAX_CHARACTERS:
        raise bad_request("rich message is too long")
    return Rich(formatted=formatted, shape={"blocks": found})


def _blocks(source: str) -> list[Json]:
    return blocks(parse(source).children)
