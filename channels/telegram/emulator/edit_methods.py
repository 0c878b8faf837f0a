"""The methods that edit or delete messages."""

from channels.telegram.emulator import message_fields, shapes
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import Chat, Instant, Message, Version
from channels.telegram.emulator.files import FOLDERS, media
from channels.telegram.emulator.keyboards import read_markup
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.rich import read_rich
from channels.telegram.emulator.wire import Json, Parameters, is_object, text_of

DELETED_WITHIN_S = 48 * 3600
"""Bot API, deleteMessage: "sent less than 48 hours ago" (read 2026-11)."""
MAX_DELETED_AT_ONCE = 100


def edit_message_text(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `editMessageText`, with `text` or with `rich_message`, which older servers ignore."""
    rich: Json | None = None
    if parameters.has("rich_message") and "sendrichmessage" not in account.missing:
        content = read_rich(parameters)
        formatted, rich = content.formatted, content.shape
    else:
        formatted = message_fields.text(parameters)
    message = _editable(account, parameters)
    if message.media:
        raise bad_request("there is no text in the message to edit")
    version = Version(formatted=formatted, markup=read_markup(parameters), rich=rich, at=now.at)
    return _change(account, message, version, now)


def edit_message_caption(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `editMessageCaption`."""
    formatted = message_fields.caption(parameters)
    message = _editable(account, parameters)
    if not message.media:
        raise bad_request("there is no caption in the message to edit")
    version = Version(formatted=formatted, markup=read_markup(parameters), at=now.at)
    return _change(account, message, version, now)


def edit_message_reply_markup(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `editMessageReplyMarkup`."""
    message = _editable(account, parameters)
    last = message.versions[-1]
    version = Version(
        formatted=last.formatted, markup=read_markup(parameters), rich=last.rich, at=now.at
    )
    return _change(account, message, version, now)


def edit_message_media(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `editMessageMedia`, which replaces the file of a message."""
    try:
        input_media = parameters.json_object("media")
    except ValueError as error:
        raise bad_request("can't parse InputMedia JSON object") from error
    if not is_object(input_media) or text_of(input_media, "type") not in FOLDERS:
        raise bad_request("can't parse InputMedia: type must be one of the media types")
    message = _editable(account, parameters)
    inner = Parameters(values=input_media, files=parameters.files)
    version = Version(
        formatted=message_fields.caption(inner), markup=read_markup(parameters), at=now.at
    )
    file = account.files.resolve(inner, "media", text_of(input_media, "type"))
    account.spend(message.chat, "edit", now)
    message.media = media(file)
    message.versions.append(version)
    message.edited = now.date
    return shapes.message(message)


def _editable(account: Account, parameters: Parameters) -> Message:
    """Return the message that a call wants to edit.

    Raises:
        Refused: It does not exist, is not the bot's, or has a keyboard that is not inline.
    """
    chat = account.open_chat(parameters)
    message = chat.by_id.get(parameters.number("message_id"))
    if message is None or message.deleted:
        raise bad_request("message to edit not found")
    first = message.versions[0]
    has_other_keyboard = first.markup is not None and "inline_keyboard" not in first.markup
    if not message.is_from_bot or has_other_keyboard or "forward_origin" in message.extra:
        raise bad_request("message can't be edited")
    return message


def _change(account: Account, message: Message, version: Version, now: Instant) -> object:
    account.spend(message.chat, "edit", now)
    last = message.versions[-1]
    if (last.formatted, last.markup, last.rich) == (
        version.formatted,
        version.markup,
        version.rich,
    ):
        raise bad_request(
            "message is not modified: specified new message content and reply markup are exactly"
            " the same as a current content and reply markup of the message"
        )
    message.versions.append(version)
    message.edited = now.date
    return shapes.message(message)


def delete_message(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `deleteMessage`."""
    chat = account.open_chat(parameters)
    message = chat.by_id.get(parameters.number("message_id"))
    if message is None or message.deleted:
        raise bad_request("message to delete not found")
    if now.date - message.date > DELETED_WITHIN_S:
        raise bad_request("message can't be deleted for everyone")
    if not _may_be_deleted(chat, message):
        raise bad_request("message can't be deleted")
    message.deleted = True
    return True


def delete_messages(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `deleteMessages`; skips messages that can't be deleted."""
    chat = account.open_chat(parameters)
    try:
        ids = parameters.json_array("message_ids") or []
    except ValueError as error:
        raise bad_request("can't parse message identifiers JSON object") from error
    if not 1 <= len(ids) <= MAX_DELETED_AT_ONCE:
        raise bad_request("message identifiers are not specified, or are too many")
    for id_ in ids:
        message = chat.by_id.get(id_) if isinstance(id_, int) else None
        if message is None or now.date - message.date > DELETED_WITHIN_S:
            continue
        message.deleted = message.deleted or _may_be_deleted(chat, message)
    return True


def _may_be_deleted(chat: Chat, message: Message) -> bool:
    """Whether the bot may delete a message: its own; in private chats and as administrator all."""
    return message.is_from_bot or not chat.is_group or chat.bot == "administrator"
