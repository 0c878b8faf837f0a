"""The methods that send messages."""

from channels.telegram.emulator import message_fields, shapes
from channels.telegram.emulator.account import Account
from channels.telegram.emulator.chats import Chat, Instant, Message, Version
from channels.telegram.emulator.entities import Formatted
from channels.telegram.emulator.files import FOLDERS, media
from channels.telegram.emulator.keyboards import read_markup
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.wire import Json, Parameters, is_object, text_of

MAX_IN_ALBUM = 10
ACTING_S = 5.0
"""Bot API, sendChatAction: "The status is set for 5 seconds or less" (read 2026-11)."""
ACTIONS = (
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
)


def send_message(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `sendMessage`."""
    chat = account.open_chat(parameters)
    formatted = message_fields.text(parameters)
    return shapes.message(post(account, chat, parameters, now, formatted))


def send_file(kind: str, account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `sendDocument`, `sendPhoto` and the like; the file's parameter is named like its kind."""
    chat = account.open_chat(parameters)
    formatted = message_fields.caption(parameters)
    file = account.files.resolve(parameters, kind, kind)
    return shapes.message(post(account, chat, parameters, now, formatted, media_fields=media(file)))


def post(
    account: Account,
    chat: Chat,
    parameters: Parameters,
    now: Instant,
    formatted: Formatted,
    *,
    media_fields: Json | None = None,
    extra: Json | None = None,
    rich: Json | None = None,
) -> Message:
    """Add a message of the bot's to a chat.

    Raises:
        Refused: Its topic, markup or reply is invalid, or it is one message too many.
    """
    thread = message_fields.thread(chat, parameters)
    markup = read_markup(parameters)
    reply_to, quote = message_fields.answered(account, chat, parameters)
    if not thread and reply_to is not None and reply_to.chat is chat:
        # A reply needs no topic to go where its message is (tdlib/telegram-bot-api#447, read 2026-11).
        thread = reply_to.thread
    options = message_fields.options(parameters)
    account.spend(chat, "send", now)
    return account.add(
        chat,
        account.bot,
        Version(formatted=formatted, markup=markup, rich=rich, at=now.at),
        now,
        thread=thread,
        media=media_fields,
        extra={**options, **quote, **(extra or {})},
        reply_to=reply_to,
    )


def send_media_group(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `sendMediaGroup`: an album, which counts as one message per file."""
    chat = account.open_chat(parameters)
    try:
        items = parameters.json_array("media") or []
    except ValueError as error:
        raise bad_request("can't parse media JSON object") from error
    if not 1 <= len(items) <= MAX_IN_ALBUM:
        raise bad_request("wrong number of media in the album specified")
    pieces = [_piece(account, parameters, item) for item in items]
    thread = message_fields.thread(chat, parameters)
    reply_to, quote = message_fields.answered(account, chat, parameters)
    account.spend(chat, "send", now, len(pieces))
    account.albums += 1
    extra = {"media_group_id": f"album-{account.albums}", **quote}
    return [
        shapes.message(
            account.add(
                chat,
                account.bot,
                Version(formatted=formatted, at=now.at),
                now,
                thread=thread,
                media=media_fields,
                extra=extra,
                reply_to=reply_to,
            )
        )
        for formatted, media_fields in pieces
    ]


def _piece(account: Account, parameters: Parameters, item: object) -> tuple[Formatted, Json]:
    if not is_object(item) or text_of(item, "type") not in FOLDERS:
        raise bad_request("can't parse InputMedia: type must be one of the media types")
    kind = text_of(item, "type")
    inner = Parameters(values=item, files=parameters.files)
    return message_fields.caption(inner), media(account.files.resolve(inner, "media", kind))


def forward_message(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `forwardMessage`."""
    chat = account.open_chat(parameters)
    source = _source(account, parameters, "forward")
    thread = message_fields.thread(chat, parameters)
    account.spend(chat, "send", now)
    extra = {**source.extra, "forward_origin": origin(source)}
    last = source.versions[-1]
    version = Version(formatted=last.formatted, rich=last.rich, at=now.at)
    message = account.add(
        chat, account.bot, version, now, thread=thread, media=source.media, extra=extra
    )
    return shapes.message(message)


def copy_message(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `copyMessage`: like a forward, but without the origin."""
    chat = account.open_chat(parameters)
    source = _source(account, parameters, "copy")
    formatted = source.versions[-1].formatted
    if source.media and parameters.has("caption"):
        formatted = message_fields.caption(parameters)
    message = post(account, chat, parameters, now, formatted, media_fields=source.media)
    return {"message_id": message.id}


def origin(source: Message) -> Json:
    """Return the `MessageOrigin` of a forwarded message."""
    return {"type": "user", "date": source.date, "sender_user": shapes.user(source.sender)}


def _source(account: Account, parameters: Parameters, purpose: str) -> Message:
    chat = account.find_chat(parameters, "from_chat_id")
    source = chat.by_id.get(parameters.number("message_id"))
    if source is None or source.deleted:
        raise bad_request(f"message to {purpose} not found")
    return source


def send_chat_action(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `sendChatAction`; people see it for 5 seconds, or until the bot sends a message."""
    chat = account.open_chat(parameters)
    action = parameters.text("action")
    if action not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    message_fields.thread(chat, parameters)
    chat.actions.append(action)
    chat.acting_until = now.at + ACTING_S
    return True
