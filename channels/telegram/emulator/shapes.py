"""Builds the Bot API's JSON objects."""

from channels.telegram.emulator.chats import Chat, Message, Person, Version
from channels.telegram.emulator.wire import Json


def user(person: Person) -> Json:
    """Return a `User`."""
    shape: dict[str, object] = {
        "id": person.id,
        "is_bot": person.is_bot,
        "first_name": person.first_name,
    }
    if person.username:
        shape["username"] = person.username
    if not person.is_bot:
        shape["language_code"] = person.language
    return shape


def chat(chat: Chat) -> Json:
    """Return a `Chat`."""
    shape: dict[str, object] = {"id": chat.id, "type": chat.kind}
    if chat.person is not None:
        shape["first_name"] = chat.person.first_name
        if chat.person.username:
            shape["username"] = chat.person.username
    else:
        shape["title"] = chat.title
    if chat.is_forum:
        shape["is_forum"] = True
    return shape


def message(source: Message, *, with_reply: bool = True) -> Json:
    """Return a `Message`; the message that it replies to has no reply of its own, as in Telegram."""
    shape: dict[str, object] = {
        "message_id": source.id,
        "from": user(source.sender),
        "chat": chat(source.chat),
        "date": source.date,
    }
    if source.edited is not None:
        shape["edit_date"] = source.edited
    if source.thread:
        shape["message_thread_id"] = source.thread
        shape["is_topic_message"] = True
    if source.reply_to is not None and with_reply:
        shape["reply_to_message"] = message(source.reply_to, with_reply=False)
    content = _content(source.versions[-1], is_caption=bool(source.media))
    return {**shape, **source.media, **source.extra, **content}


def _content(version: Version, *, is_caption: bool) -> Json:
    """Return the fields for text and markup; Telegram only includes inline keyboards."""
    shape: dict[str, object] = {}
    formatted = version.formatted
    if version.rich is not None:
        shape["rich_message"] = version.rich
    elif formatted.text:
        shape["caption" if is_caption else "text"] = formatted.text
        if formatted.entities:
            name = "caption_entities" if is_caption else "entities"
            shape[name] = [entity.to_json() for entity in formatted.entities]
    if version.markup is not None and "inline_keyboard" in version.markup:
        shape["reply_markup"] = version.markup
    return shape


def inaccessible(message: Message) -> Json:
    """Return an `InaccessibleMessage`, which is all that a bot gets of a deleted message."""
    return {"chat": chat(message.chat), "message_id": message.id, "date": 0}


def member(person: Person, status: str) -> Json:
    """Return a `ChatMember`."""
    shape: dict[str, object] = {"user": user(person), "status": status}
    if status == "kicked":
        shape["until_date"] = 0
    if status == "administrator":
        rights = (
            "can_be_edited is_anonymous can_manage_chat can_delete_messages can_manage_video_chats"
            " can_restrict_members can_promote_members can_change_info can_invite_users"
            " can_post_stories can_edit_stories can_delete_stories"
        )
        shape |= dict.fromkeys(rights.split(), False)
    return shape
