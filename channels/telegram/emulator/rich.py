"""Reads rich messages (Bot API 10.1): their source is kept, and only their length is checked.

Facts from the Bot API's pages on sendRichMessage and InputRichMessage, read 2026-11. The markup itself
is not parsed here: what a rich message looks like is left to Telegram's clients.
"""

from channels.telegram.emulator.entities import Formatted, settled
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.wire import Parameters, text_of

LONGEST_RICH = 32_768


def read_rich(parameters: Parameters) -> Formatted:
    """Read `rich_message`: its Markdown or its HTML, as it was written.

    Raises:
        Refused: It is empty or too long, or is both, or none.
    """
    try:
        rich = parameters.json_object("rich_message") or {}
    except ValueError as error:
        raise bad_request("can't parse InputRichMessage JSON object") from error
    sources = [name for name in ("markdown", "html") if text_of(rich, name)]
    if len(sources) != 1:
        raise bad_request("rich message must have exactly one of html and markdown")
    formatted = settled(text_of(rich, sources[0]), ())
    if not formatted.text:
        raise bad_request("rich message is empty")
    if formatted.length > LONGEST_RICH:
        raise bad_request("rich message is too long")
    return formatted
