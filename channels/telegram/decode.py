"""Turns the Bot API's updates into envelopes; never raises, whatever the JSON contains.

Fields are those of Bot API 10.1 (core.telegram.org/bots/api, read 2026-11). Dedup keys never use the
update's id: after a week without updates "identifier of the next update will be chosen randomly", so an
id may be used twice.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from channels._remote.cards import parse_button_data
from channels._remote.fields import Json, as_object, flag, from_unix, inner, integer, objects, text
from channels._remote.incoming import after_mention, is_timely, text_hash
from channels.telegram import cards
from channels.telegram.contents import (
    attachments,
    continues,
    covered_text,
    entities,
    lead,
    may_be_rest,
    may_quote_others,
    name_of,
    other_content,
    quoted_files,
    stands_alone,
    text_of,
)
from zeroclaw import (
    Address,
    Body,
    Command,
    Edited,
    Envelope,
    Membership,
    MessageRef,
    Moved,
    Position,
    Pressed,
    Said,
    Sender,
    Value,
    replace,
)

Groups = Literal["off", "mentioned", "all"]

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:@([A-Za-z0-9_]+))?(?:\s+(.*))?", re.DOTALL)
_MENTION = re.compile(r"@(\w+)(?=[\s,:])")
SHARED = "shared"
"""The scope of the message id counter that many chats share."""
# Length of the longest ids of users and basic groups, with the sign; those of supergroups have one digit
# more. The id of a basic group can begin with -100 too (core.telegram.org/api/bots/ids, read 2026-11).
_SHARED_CHARS = 13
_CHATS = frozenset({"private", "group", "supergroup"})
_PRESENT = frozenset({"creator", "administrator", "member"})


class Bot(Value):
    """The receiving account and its settings.

    Attributes:
        channel: The name in the configuration.
        id: The account's id, which is the first part of its token.
        username: The bot's user name without the @.
        groups: As in the settings.
    """

    channel: str
    id: int
    username: str
    groups: Groups = "mentioned"


class Decoded(Value):
    """An update for ingress.

    Attributes:
        envelope: The update's envelope.
        query: The id of the callback query that must be answered, empty for none.
        as_new: See `try_admit`.
    """

    envelope: Envelope
    query: str = ""
    as_new: Envelope | None = None


class Skipped(Value):
    """An update that is of no use to the bot; the intake logs and confirms it.

    Attributes:
        reason: A few words, for the log.
        query: As in `Decoded`.
    """

    reason: str
    query: str = ""


def update_id(update: object) -> int | None:
    """Return an update's id, None for none."""
    return integer(as_object(update), "update_id")


def chat_of(update: object) -> str:
    """Return the chat of an update, empty for none; updates of one chat are taken in order."""
    for kind in ALLOWED_UPDATES:
        if event := inner(update, kind):
            chat = inner(event, "chat") or inner(event, "message", "chat")
            return str(integer(chat, "id") or "")
    return ""


def new_message(update: object) -> tuple[str, int] | None:
    """Return the chat and id of an update's new message, None for none."""
    message = inner(update, "message")
    chat, message_id = integer(inner(message, "chat"), "id"), integer(message, "message_id")
    return None if chat is None or message_id is None else (str(chat), message_id)


def is_long(update: object) -> bool:
    """Whether an update may take long to decode: a rich message can have 32,768 styled pieces."""
    message = inner(update, "message") or inner(update, "edited_message")
    return "rich_message" in message or "rich_message" in inner(message, "reply_to_message")


def counter(chat: str) -> str:
    """Return the name of a chat's message id counter; see `lookup.py`."""
    return chat if len(chat) > _SHARED_CHARS else ""


def position(chat: str, number: int) -> Position:
    """Return the position to store with a person's message."""
    return Position(scope=counter(chat) or SHARED, cursor=str(number))


def decode(update: object, bot: Bot) -> Decoded | Skipped:
    """Decode an update."""
    for kind, read in _KINDS.items():
        if event := inner(update, kind):
            return read(event, bot)
    return Skipped(reason="another kind of update")


# --- messages ------------------------------------------------------------------------------------


def _message(message: Json, bot: Bot) -> Decoded | Skipped:
    address, sender = _address_of(message, bot), _sender(message)
    message_id = integer(message, "message_id")
    if address is None or message_id is None:
        return Skipped(reason="no chat to answer in")
    key = f"message/{address.chat}/{message_id}"
    new_id = integer(message, "migrate_to_chat_id")
    old_id = integer(message, "migrate_from_chat_id")
    if new_id is not None or old_id is not None:
        # Each of the two groups reports it, and updates of two chats come in any order.
        new = address if new_id is None else replace(address, chat=str(new_id))
        old = address if old_id is None else replace(address, chat=str(old_id))
        # Accept it without a sender too: another bot or Telegram itself may have migrated the group.
        migrator = sender or Sender(id=old.chat, verified=True)
        return _decoded(message, old, migrator, f"moved/{old.chat}", Moved(to=new))
    if sender is None:
        return Skipped(reason="not sent by a person")
    files = attachments(message)
    content = text_of(message) or other_content(message)
    if not content.strip() and not files:
        return Skipped(reason="neither text nor files")
    if (denial := _denial(message, bot, address)) is not None:
        return _decoded(message, address, sender, key, denial)
    command = None if files or stands_alone(message) else _command(content, bot)
    if command is not None and command[1] not in {"", bot.username.lower()}:
        return Skipped(reason="a command for another bot")
    reason = "" if address.direct else _skip_reason(message, bot, is_command=command is not None)
    if reason and (bot.groups == "off" or not may_be_rest(message)):
        return Skipped(reason=reason)
    body = command[0] if command else _body(message, content, bot)
    envelope = Envelope(
        address=address,
        sender=sender,
        dedup=(key,),
        body=body,
        message=str(message_id),
        attachments=files,
        sent_at=_at(message),
        continues=continues(message, bot.id),
        alone=stands_alone(message),
        overheard=bool(reason),
        position=position(address.chat, message_id),
        verbatim=_with_notes(message, content, bot) if command else "",
    )
    return Decoded(envelope=envelope)


def _edited(message: Json, bot: Bot) -> Decoded | Skipped:
    """Decode an edit of any message's text; ingress knows which messages it took."""
    address, sender = _address_of(message, bot), _sender(message)
    message_id, content = integer(message, "message_id"), text_of(message)
    if address is None or message_id is None or sender is None:
        return Skipped(reason="an edit not made by a person")
    if not content.strip() or (not address.direct and bot.groups == "off"):
        return Skipped(reason="an edit without text, or in a group")
    key = f"edit/{address.chat}/{message_id}/{integer(message, 'edit_date')}/{text_hash(content)}"
    body = Edited(message=str(message_id), said=_body(message, content, bot))
    as_new = None if address.direct else _as_new(message, bot)
    return replace(_decoded(message, address, sender, key, body), as_new=as_new)


def _as_new(message: Json, bot: Bot) -> Envelope | None:
    """Return an edited message as a new one if it mentions the bot."""
    sent_at, edited_at = (from_unix(integer(message, key)) for key in ("date", "edit_date"))
    if not _is_mentioned(message, bot) or not is_timely(sent_at, edited_at):
        return None
    new = _message(message, bot)
    # Newer messages may have been read, so its position is none.
    return replace(new.envelope, position=None) if isinstance(new, Decoded) else None


def _decoded(event: Json, address: Address, sender: Sender, key: str, body: Body) -> Decoded:
    envelope = Envelope(address=address, sender=sender, dedup=(key,), body=body, sent_at=_at(event))
    return Decoded(envelope=envelope)


def _body(message: Json, content: str, bot: Bot) -> Said:
    """Return a message's text; if the sender did not write it, none of it is their own words."""
    full, own = _with_notes(message, content, bot), _without_mention(content, bot)
    if stands_alone(message) or (may_quote_others(message) and content == other_content(message)):
        own = ""
    return Said(text=full, own=None if own == full else own, quoted=quoted_files(message))


def _with_notes(message: Json, content: str, bot: Bot) -> str:
    """Return a text after the notes about its origin and the message that it replies to."""
    notes, words = lead(message, bot.id), _without_mention(content, bot)
    return f"{notes}{words}" if words else notes.rstrip()


def _without_mention(content: str, bot: Bot) -> str:
    """Return a text without a leading mention of the bot, unless that is all of it."""
    words = content.lstrip()
    mention = _MENTION.match(words)
    if mention is None or mention[1].lower() != bot.username.lower():
        return content
    return after_mention(words[mention.end() :]) or content


def _command(content: str, bot: Bot) -> tuple[Command, str] | None:
    """Decode a command; also return the lower-case name of the bot that it addresses, empty for none."""
    match = _COMMAND.fullmatch(_without_mention(content, bot).strip())
    if match is None:
        return None
    name = match[1].lower()
    # Telegram's Start button sends `/start`; the person who presses it needs an introduction.
    command = Command(name="help") if name == "start" else Command(name=name, rest=match[3] or "")
    return command, (match[2] or "").lower()


def _skip_reason(message: Json, bot: Bot, *, is_command: bool) -> str:
    """Return why a message in a group is not for the bot, empty if it is."""
    if bot.groups == "off":
        return "in a group"
    if bot.groups == "all" or is_command or _is_reply(message, bot) or _is_mentioned(message, bot):
        return ""
    return "in a group, not to the bot"


def _is_reply(message: Json, bot: Bot) -> bool:
    original = inner(message, "reply_to_message")
    # Every message in a topic counts as a reply to the one that opened the topic.
    is_topic = bool(inner(original, "forum_topic_created"))
    return integer(inner(original, "from"), "id") == bot.id and not is_topic


def _is_mentioned(message: Json, bot: Bot) -> bool:
    name = f"@{bot.username}".lower()
    for entity in entities(message):
        kind = text(entity, "type")
        if kind == "mention" and covered_text(message, entity).lower() == name:
            return True
        if kind == "text_mention" and integer(inner(entity, "user"), "id") == bot.id:
            return True
    return False


def _denial(message: Json, bot: Bot, address: Address) -> Pressed | None:
    """Return the denial if a message is a reply to our question for its reason, None if not."""
    question, reason = inner(message, "reply_to_message"), text(message, "text").strip()
    if integer(inner(question, "from"), "id") != bot.id or not reason:
        return None
    for entity in objects(question, "entities"):
        link = cards.read_question(bot.username, text(entity, "url"))
        if link is not None:
            approval, card = link
            ref = MessageRef(address=address, message=card)
            return Pressed(approval=approval, choice="deny", reason=reason, card=ref)
    return None


# --- presses and membership ----------------------------------------------------------------------


def _pressed(query: Json, bot: Bot) -> Decoded | Skipped:
    name = text(query, "id")
    message = inner(query, "message")
    address, sender = _address_of(message, bot), _sender(query)
    card, choice_data = integer(message, "message_id"), parse_button_data(text(query, "data"))
    if not name or address is None or sender is None or card is None or choice_data is None:
        return Skipped(reason="not one of our buttons", query=name)
    approval, choice = choice_data
    ref = MessageRef(address=address, message=str(card))
    body = Pressed(approval=approval, choice=choice, card=ref)
    return replace(_decoded(query, address, sender, f"press/{name}", body), query=name)


def _membership(change: Json, bot: Bot) -> Decoded | Skipped:
    address, sender = _address_of(change, bot), _sender(change)
    if address is None or sender is None:
        return Skipped(reason="a membership change by no person")
    now = inner(change, "new_chat_member")
    present = text(now, "status") in _PRESENT or flag(now, "is_member")
    key = f"member/{address.chat}/{integer(change, 'date')}/{present}"
    return _decoded(change, address, sender, key, Membership(present=present))


# --- where, who, when ----------------------------------------------------------------------------


def _address_of(event: Json, bot: Bot) -> Address | None:
    chat = inner(event, "chat")
    chat_id = integer(chat, "id")
    # The direct messages of a channel are one chat for all who write there.
    is_shared = flag(chat, "is_direct_messages")
    if chat_id is None or is_shared or text(chat, "type") not in _CHATS:
        return None
    # Replies in a group without topics have a thread id too, but it can't be sent to.
    topic = integer(event, "message_thread_id") if flag(event, "is_topic_message") else None
    return Address(
        channel=bot.channel,
        account=str(bot.id),
        chat=str(chat_id),
        thread=None if topic is None else str(topic),
        direct=text(chat, "type") == "private",
    )


def _sender(event: Json) -> Sender | None:
    """Return the sender, which is a chat if the person writes in its name; None for bots.

    Also None for automatic forwards from a linked channel, which are not meant for the bot.
    """
    chat = inner(event, "sender_chat")
    user = chat or inner(event, "from")
    sender_id = integer(user, "id")
    if sender_id is None or flag(user, "is_bot") or flag(event, "is_automatic_forward"):
        return None
    return Sender(id=str(sender_id), verified=True, display=name_of(user))


def _at(event: Json) -> datetime | None:
    return from_unix(integer(event, "edit_date") or integer(event, "date"))


_KINDS: Mapping[str, Callable[[Json, Bot], Decoded | Skipped]] = {
    "message": _message,
    "edited_message": _edited,
    "callback_query": _pressed,
    "my_chat_member": _membership,
}
ALLOWED_UPDATES = tuple(_KINDS)
"""Always passed explicitly, since Telegram remembers a token's last choice."""
