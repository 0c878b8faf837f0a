"""Reads the parts of a message that a bot sends: text, entities, topic, and reply."""

from collections.abc import Callable, Mapping

from channels.telegram.emulator import html_markup, markdown_v2
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import Chat, Message
from channels.telegram.emulator.entities import Entity, Formatted, read_text, utf16
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.wire import Json, Parameters, number_of, text_of

# Bot API, sendMessage and sendPhoto: "characters after entities parsing" (read 2026-11).
LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
_PARSERS: Mapping[str, Callable[[str], tuple[str, tuple[Entity, ...]]]] = {
    "markdownv2": markdown_v2.parse,
    "html": html_markup.parse,
}


def text(
    parameters: Parameters,
    name: str = "text",
    *,
    key: str = "entities",
    max_units: int = LONGEST_TEXT,
    may_be_empty: bool = False,
) -> Formatted:
    """Read a text of a call.

    Args:
        parameters: The call's parameters.
        name: The parameter with the text.
        key: The parameter with the entities.
        max_units: Limit in UTF-16 code units, after the markup is parsed.
        may_be_empty: An empty text is allowed.

    Raises:
        Refused: It is empty or too long, or its markup is invalid.
    """
    mode = parameters.text("parse_mode").lower()
    if mode and mode not in _PARSERS:
        raise bad_request("unsupported parse_mode")
    try:
        entities = parameters.json_array(key)
    except ValueError as error:
        raise bad_request(f"can't parse {key} JSON object") from error
    formatted = read_text(parameters.text(name), entities=entities, parse=_PARSERS.get(mode))
    if not formatted.text and not may_be_empty:
        raise bad_request("message text is empty" if name == "text" else f"{name} is empty")
    if formatted.length > max_units:
        reason = "message caption is too long" if name == "caption" else "message is too long"
        raise bad_request(reason)
    return formatted


def caption(parameters: Parameters) -> Formatted:
    """Read the caption of a file.

    Raises:
        Refused: It is too long, or its markup is invalid.
    """
    return text(
        parameters, "caption", key="caption_entities", max_units=LONGEST_CAPTION, may_be_empty=True
    )


def thread(chat: Chat, parameters: Parameters) -> int:
    """Read the topic for a message, 0 for none.

    Raises:
        Refused: The topic does not exist or is closed.
    """
    topic_id = parameters.number("message_thread_id")
    if not topic_id:
        return 0
    topic = chat.topics.get(topic_id)
    if topic is None:
        is_reply_thread = chat.kind == "supergroup" and not chat.is_forum and topic_id in chat.by_id
        if not is_reply_thread:
            raise bad_request("message thread not found")
    elif topic.closed and chat.bot != "administrator":
        raise bad_request("TOPIC_CLOSED")
    return topic_id


def answered(
    account: Account, chat: Chat, parameters: Parameters
) -> tuple[Message | None, dict[str, object]]:
    """Read the message that is replied to, and the fields about the quote.

    Raises:
        Refused: That message does not exist, or the quote is not in it.
    """
    try:
        reply: Json = parameters.json_object("reply_parameters") or {}
    except ValueError as error:
        raise bad_request("can't parse reply parameters JSON object") from error
    id_ = number_of(reply, "message_id") or parameters.number("reply_to_message_id")
    if not id_:
        return None, {}
    source = account.chats.get(number_of(reply, "chat_id"), chat)
    message = source.by_id.get(id_)
    if message is None or message.deleted:
        lenient = reply.get("allow_sending_without_reply") is True
        if lenient or parameters.flag("allow_sending_without_reply"):
            return None, {}
        raise bad_request("message to be replied not found")
    quote = text_of(reply, "quote")
    if not quote:
        return message, {}
    if quote not in message.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    position = utf16(message.text[: message.text.index(quote)])
    return message, {"quote": {"text": quote, "position": position, "is_manual": True}}


def options(parameters: Parameters) -> dict[str, object]:
    """Read the other options that a message keeps.

    Raises:
        Refused: They can't be parsed.
    """
    try:
        preview = parameters.json_object("link_preview_options")
    except ValueError as error:
        raise bad_request("can't parse link preview options JSON object") from error
    fields: dict[str, object] = {}
    if preview is not None:
        fields["link_preview_options"] = preview
    elif parameters.flag("disable_web_page_preview"):
        fields["link_preview_options"] = {"is_disabled": True}
    if parameters.flag("protect_content"):
        fields["has_protected_content"] = True
    return fields
