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
from channels._remote.fields import Json, array, as_object, flag, from_unix, inner, integer, text
from channels._remote.incoming import is_timely, version
from channels.telegram import cards
from channels.telegram.contents import (
    attachments,
    continues,
    is_of_others,
    marked,
    marks,
    may_be_rest,
    name_of,
    quoted_files,
    stands_alone,
    thing,
    with_context,
    words,
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
        anew: See `admitted`.
    """

    envelope: Envelope
    query: str = ""
    anew: Envelope | None = None


class Skipped(Value):
    """An update that is of no use to the bot; it is logged and confirmed.

    Attributes:
        reason: The reason in a few words, for the log.
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


def newest_message(update: object) -> tuple[str, int] | None:
    """Return the chat and id of an update's new message, None for none."""
    message = inner(update, "message")
    chat, number = integer(inner(message, "chat"), "id"), integer(message, "message_id")
    return None if chat is None or number is None else (str(chat), number)


def counter(chat: str) -> str:
    """Return the name of a chat's message id counter; see `lookup.py`."""
    return chat if len(chat) > _SHARED_CHARS else ""


def position(chat: str, number: int) -> Position:
    """Return the position to store with a person's message."""
    return Position(scope=counter(chat) or SHARED, cursor=str(number))


def decoded(update: object, me: Bot) -> Decoded | Skipped:
    """Decode an update."""
    for kind, read in _KINDS.items():
        if event := inner(update, kind):
            return read(event, me)
    return Skipped(reason="another kind of update")


# --- messages ------------------------------------------------------------------------------------


def _message(message: Json, me: Bot) -> Decoded | Skipped:
    address, sender = _place(message, me), _sender(message)
    number = integer(message, "message_id")
    if address is None or number is None:
        return Skipped(reason="without a place")
    key = f"message/{address.chat}/{number}"
    to, was = integer(message, "migrate_to_chat_id"), integer(message, "migrate_from_chat_id")
    if to is not None or was is not None:
        # Each of the two groups tells it, and updates of two chats come in any order.
        new = address if to is None else replace(address, chat=str(to))
        old = address if was is None else replace(address, chat=str(was))
        # Accept it without a sender too: another bot or Telegram itself may have migrated the group.
        by = sender or Sender(id=old.chat, verified=True)
        return _taken(message, old, by, f"moved/{old.chat}", Moved(to=new))
    if sender is None:
        return Skipped(reason="of a bot or of nobody")
    files = attachments(message)
    said = words(message) or thing(message)
    if not said.strip() and not files:
        return Skipped(reason="without words or files")
    if (reason := _reason(message, me, address)) is not None:
        return _taken(message, address, sender, key, reason)
    command = None if files or stands_alone(message) else _command(said, me)
    if command is not None and command[1] not in {"", me.username.lower()}:
        return Skipped(reason="a command for another bot")
    why = "" if address.direct else _unasked(message, me, is_command=command is not None)
    if why and (me.groups == "off" or not may_be_rest(message)):
        return Skipped(reason=why)
    body = command[0] if command else _said(message, said, me)
    envelope = Envelope(
        address=address,
        sender=sender,
        dedup=(key,),
        body=body,
        message=str(number),
        attachments=files,
        sent_at=_at(message),
        continues=continues(message, me.id),
        alone=stands_alone(message),
        overheard=bool(why),
        position=position(address.chat, number),
        verbatim=_composed(message, said, me) if command else "",
    )
    return Decoded(envelope=envelope)


def _edited(message: Json, me: Bot) -> Decoded | Skipped:
    """Decode an edit of any message's text; ingress knows which messages it took."""
    address, sender = _place(message, me), _sender(message)
    number, said = integer(message, "message_id"), words(message)
    if address is None or number is None or sender is None:
        return Skipped(reason="an edit of a bot or of nobody")
    if not said.strip() or (not address.direct and me.groups == "off"):
        return Skipped(reason="an edit without words")
    key = f"edit/{address.chat}/{number}/{integer(message, 'edit_date')}/{version(said)}"
    body = Edited(message=str(number), said=_said(message, said, me))
    anew = None if address.direct else _anew(message, me)
    return replace(_taken(message, address, sender, key, body), anew=anew)


def _anew(message: Json, me: Bot) -> Envelope | None:
    """Return an edited message as a new one if it mentions the bot."""
    written, edited = (from_unix(integer(message, key)) for key in ("date", "edit_date"))
    if not _is_mentioned(message, me) or not is_timely(written, edited):
        return None
    found = _message(message, me)
    # Newer messages may have been read, so its position is none.
    return replace(found.envelope, position=None) if isinstance(found, Decoded) else None


def _taken(event: Json, address: Address, sender: Sender, key: str, body: Body) -> Decoded:
    envelope = Envelope(address=address, sender=sender, dedup=(key,), body=body, sent_at=_at(event))
    return Decoded(envelope=envelope)


def _said(message: Json, said: str, me: Bot) -> Said:
    """Return a message's text; if the sender did not write it, none of it is their own words."""
    whole, own = _composed(message, said, me), _without_call(said, me)
    if stands_alone(message) or (is_of_others(message) and said == thing(message)):
        own = ""
    return Said(text=whole, own=None if own == whole else own, quoted=quoted_files(message))


def _composed(message: Json, said: str, me: Bot) -> str:
    return with_context(message, _without_call(said, me), me.id)


def _without_call(said: str, me: Bot) -> str:
    """Return a text without a leading mention of the bot, unless that is all of it."""
    name, space, rest = said.lstrip().partition(" ")
    is_call = name.rstrip(",:").lower() == f"@{me.username}".lower()
    return rest.lstrip() if is_call and space and rest.strip() else said


def _command(said: str, me: Bot) -> tuple[Command, str] | None:
    """Decode a command; also return the lower-case name of the bot that it addresses, empty for none."""
    found = _COMMAND.fullmatch(_without_call(said, me).strip())
    if found is None:
        return None
    name = found[1].lower()
    # Telegram's Start button sends `/start`; the person who presses it needs an introduction.
    command = Command(name="help") if name == "start" else Command(name=name, rest=found[3] or "")
    return command, (found[2] or "").lower()


def _unasked(message: Json, me: Bot, *, is_command: bool) -> str:
    """Return why a message in a group is not for the bot, empty if it is."""
    if me.groups == "off":
        return "in a group"
    if me.groups == "all" or is_command or _is_reply_to(message, me) or _is_mentioned(message, me):
        return ""
    return "in a group, to somebody else"


def _is_reply_to(message: Json, me: Bot) -> bool:
    answered = inner(message, "reply_to_message")
    # Every message in a topic counts as a reply to the one that opened the topic.
    is_topic = bool(inner(answered, "forum_topic_created"))
    return integer(inner(answered, "from"), "id") == me.id and not is_topic


def _is_mentioned(message: Json, me: Bot) -> bool:
    name = f"@{me.username}".lower()
    return any(
        (text(mark, "type") == "mention" and marked(message, mark).lower() == name)
        or (text(mark, "type") == "text_mention" and integer(inner(mark, "user"), "id") == me.id)
        for mark in marks(message)
    )


def _reason(message: Json, me: Bot, address: Address) -> Pressed | None:
    """Return the denial if a message is a reply to our question for its reason, None if not."""
    asked, reason = inner(message, "reply_to_message"), text(message, "text").strip()
    if integer(inner(asked, "from"), "id") != me.id or not reason:
        return None
    for mark in array(asked, "entities"):
        question = cards.read_question(me.username, text(as_object(mark), "url"))
        if question is not None:
            approval, card = question
            ref = MessageRef(address=address, message=card)
            return Pressed(approval=approval, choice="deny", reason=reason, card=ref)
    return None


# --- presses and membership ----------------------------------------------------------------------


def _pressed(query: Json, me: Bot) -> Decoded | Skipped:
    name = text(query, "id")
    message = inner(query, "message")
    address, sender = _place(message, me), _sender(query)
    card, carried = integer(message, "message_id"), parse_button_data(text(query, "data"))
    if not name or address is None or sender is None or card is None or carried is None:
        return Skipped(reason="a button that is not ours", query=name)
    approval, choice = carried
    ref = MessageRef(address=address, message=str(card))
    body = Pressed(approval=approval, choice=choice, card=ref)
    return replace(_taken(query, address, sender, f"press/{name}", body), query=name)


def _membership(change: Json, me: Bot) -> Decoded | Skipped:
    address, sender = _place(change, me), _sender(change)
    if address is None or sender is None:
        return Skipped(reason="a membership of nobody")
    now = inner(change, "new_chat_member")
    present = text(now, "status") in _PRESENT or flag(now, "is_member")
    key = f"member/{address.chat}/{integer(change, 'date')}/{present}"
    return _taken(change, address, sender, key, Membership(present=present))


# --- where, who, when ----------------------------------------------------------------------------


def _place(event: Json, me: Bot) -> Address | None:
    chat = inner(event, "chat")
    number = integer(chat, "id")
    # The direct messages of a channel are one chat for all who write there.
    is_shared = flag(chat, "is_direct_messages")
    if number is None or is_shared or text(chat, "type") not in _CHATS:
        return None
    # Replies in a group without topics have a thread id too, but it can't be sent to.
    topic = integer(event, "message_thread_id") if flag(event, "is_topic_message") else None
    return Address(
        channel=me.channel,
        account=str(me.id),
        chat=str(number),
        thread=None if topic is None else str(topic),
        direct=text(chat, "type") == "private",
    )


def _sender(event: Json) -> Sender | None:
    """Return the sender, which is a chat if the person writes in its name; None for bots.

    Also None for automatic forwards from a linked channel, which are not meant for the bot.
    """
    chat = inner(event, "sender_chat")
    user = chat or inner(event, "from")
    number = integer(user, "id")
    if number is None or flag(user, "is_bot") or flag(event, "is_automatic_forward"):
        return None
    return Sender(id=str(number), verified=True, display=name_of(user))


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
