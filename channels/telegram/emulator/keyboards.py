"""Validates `reply_markup` as Telegram does."""

from channels.telegram.emulator.refusals import Refused, bad_request
from channels.telegram.emulator.wire import Json, Parameters, is_array, is_object, text_of

LONGEST_DATA_BYTES = 64
"""Bot API, InlineKeyboardButton: callback data is "1-64 bytes" (read 2026-11)."""
MAX_BUTTONS = 100
"""The server's limit for one keyboard; not documented in the Bot API."""
_ACTIONS = (
    "url",
    "callback_data",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
)


def read_markup(parameters: Parameters) -> Json | None:
    """Read `reply_markup`; None for none, and for an inline keyboard without buttons.

    Raises:
        Refused: Telegram would not accept it.
    """
    try:
        markup = parameters.json_object("reply_markup")
    except ValueError as error:
        raise bad_request("can't parse reply keyboard markup JSON object") from error
    if markup is None:
        return None
    if "inline_keyboard" in markup:
        return _inline(markup["inline_keyboard"])
    if "keyboard" in markup or "remove_keyboard" in markup or "force_reply" in markup:
        return markup
    if not markup:
        return None
    raise bad_request("object expected as reply markup")


def _inline(rows: object) -> Json | None:
    if not is_array(rows) or not all(is_array(row) for row in rows):
        raise bad_request('field "inline_keyboard" must be of type Array of Arrays')
    cells = [[_button(cell) for cell in row] for row in rows if is_array(row) and row]
    if sum(len(row) for row in cells) > MAX_BUTTONS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    return {"inline_keyboard": cells} if cells else None


def _button(cell: object) -> Json:
    if not is_object(cell):
        raise _unreadable("expected an Object")
    if not text_of(cell, "text"):
        raise _unreadable('field "text" must be of type String')
    actions = [name for name in _ACTIONS if name in cell]
    if not actions:
        raise _unreadable("text buttons are unallowed in the inline keyboard")
    size = len(text_of(cell, "callback_data").encode())
    if "callback_data" in cell and not 1 <= size <= LONGEST_DATA_BYTES:
        raise bad_request("BUTTON_DATA_INVALID")
    if "url" in cell and "." not in text_of(cell, "url") and "://" not in text_of(cell, "url"):
        raise bad_request(
            f"inline keyboard button URL '{text_of(cell, 'url')}' is invalid: Wrong HTTP URL"
        )
    return cell


def _unreadable(reason: str) -> Refused:
    return bad_request(f"can't parse inline keyboard button: {reason}")
