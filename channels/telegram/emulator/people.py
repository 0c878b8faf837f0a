"""People's actions, and the updates that the bot gets about them."""

from collections.abc import Iterable
from itertools import accumulate

from channels.telegram.emulator import shapes
from channels.telegram.emulator.account import Account, Press
from channels.telegram.emulator.chats import Chat, Instant, Message, Person, Status, Version
from channels.telegram.emulator.entities import Entity, Formatted, normalized, utf16, with_detected
from channels.telegram.emulator.send_methods import origin
from channels.telegram.emulator.updates import Update
from channels.telegram.emulator.wire import Json
from zeroclaw import Value

LONGEST_TEXT = 4096
LOOK_BACK_CHARS = 300
"""Characters before the end of a full message in which the Android app looks for a place to split."""
_ENDS = ("\n\n", "\n", ". ", " ")


class UserAction(Value):
    """A person's action.

    Attributes:
        message: The message that was sent, edited or pressed; None for actions without one.
        update: The update for the bot; its id is 0 if the bot gets none.
    """

    update: Update
    message: Message | None = None

    @property
    def sent(self) -> Message:
        """The message; raises `LookupError` if there is none."""
        if self.message is None:
            reason = f"no message came of `{self.update.kind}`"
            raise LookupError(reason)
        return self.message


def formatted(text: str, entities: Iterable[Entity] = ()) -> Formatted:
    """Return a text as an app sends it, with mentions, commands and URLs detected."""
    return with_detected(normalized(text, tuple(entities)))


def pieces(text: str) -> list[str]:
    """Split a long text as the Android app does when it is pasted.

    It splits where a message is full, or shortly before: at the end of a paragraph, else of a line, a
    sentence or a word. Blanks at the ends of the pieces are dropped.
    """
    pieces: list[str] = []
    while utf16(text) > LONGEST_TEXT:
        end = _end_of_piece(text)
        pieces.append(text[:end].strip())
        text = text[end:].strip()
    return [*pieces, text]


def _end_of_piece(text: str) -> int:
    full = _fitting(text)
    for ending in _ENDS:
        end = text.rfind(ending, full - LOOK_BACK_CHARS, full)
        if end > 0:
            return end + len(ending.rstrip())  # keep a full stop
    return full


def _fitting(text: str) -> int:
    """Return the number of characters of a text that fit one message."""
    units = accumulate(utf16(character) for character in text)
    return next(count for count, so_far in enumerate(units) if so_far > LONGEST_TEXT)


def say(
    account: Account,
    person: Person,
    formatted: Formatted,
    now: Instant,
    *,
    chat: Chat,
    thread: int = 0,
    reply_to: Message | None = None,
    media: Json | None = None,
    extra: Json | None = None,
) -> UserAction:
    """Send a message to a chat; the first one in a private chat opens it.

    Args:
        account: The bot's account, which gets the update.
        person: The sender.
        formatted: The text, or the caption.
        now: The time.
        chat: The chat.
        thread: The topic.
        reply_to: The message that it replies to.
        media: A file, in the Bot API's form.
        extra: Other fields of the message.
    """
    if chat.person is person:
        person.started = True
        if chat.bot == "kicked":
            chat.bot = "member"
    else:
        chat.members.setdefault(person.id, "member")
    message = account.add(
        chat,
        person,
        Version(formatted=formatted, at=now.at),
        now,
        thread=thread,
        media=media,
        extra=extra,
        reply_to=reply_to,
    )
    return _act(account, "message", message, now)


def edit(account: Account, message: Message, formatted: Formatted, now: Instant) -> UserAction:
    """Edit a message."""
    message.versions.append(Version(formatted=formatted, at=now.at))
    message.edited = now.date
    return _act(account, "edited_message", message, now)


def press(
    account: Account, person: Person, message: Message, data: str, now: Instant
) -> UserAction:
    """Press a button, even one that is no longer there, since apps may lag behind."""
    number = len(account.presses) + 1
    press = Press(id=f"press-{number}", person=person, message=message, data=data, at=now.at)
    account.presses[press.id] = press
    shape = shapes.inaccessible(message) if message.deleted else shapes.message(message)
    body = {
        "id": press.id,
        "from": shapes.user(person),
        "message": shape,
        "chat_instance": str(message.chat.id),
        "data": data,
    }
    return UserAction(update=account.updates.add("callback_query", body, now.at), message=message)


def forward(
    account: Account, person: Person, source: Message, now: Instant, *, chat: Chat
) -> UserAction:
    """Forward a message to a chat with the bot."""
    formatted = source.versions[-1].formatted
    extra = {"forward_origin": origin(source)}
    return say(account, person, formatted, now, chat=chat, media=source.media, extra=extra)


def set_status(
    account: Account, person: Person, chat: Chat, status: Status, now: Instant
) -> UserAction:
    """Change the bot's status in a chat: block or unblock it, add or remove it, promote it."""
    previous = chat.bot
    chat.bot = status
    body = {
        "chat": shapes.chat(chat),
        "from": shapes.user(person),
        "date": now.date,
        "old_chat_member": shapes.member(account.bot, previous),
        "new_chat_member": shapes.member(account.bot, status),
    }
    return UserAction(update=account.updates.add("my_chat_member", body, now.at))


def service(account: Account, person: Person, chat: Chat, extra: Json, now: Instant) -> UserAction:
    """Add a service message, such as one about a new member."""
    empty = Version(formatted=Formatted(), at=now.at)
    message = account.add(chat, person, empty, now, extra=extra)
    return _act(account, "message", message, now)


def migrate(
    account: Account, person: Person, chat: Chat, now: Instant
) -> tuple[UserAction, UserAction]:
    """Upgrade a group to a supergroup: new id, new message ids, and a service message in both."""
    new = account.add_group(chat.title, is_super=True)
    new.members, new.bot = chat.members, chat.bot
    left = service(account, person, chat, {"migrate_to_chat_id": new.id}, now)
    joined = service(account, person, new, {"migrate_from_chat_id": chat.id}, now)
    chat.upgraded_to = new.id
    return left, joined


def _act(account: Account, kind: str, message: Message, now: Instant) -> UserAction:
    if not _is_visible(account, message):
        dropped = Update(id=0, kind=kind, body={}, at=now.at)
        return UserAction(update=dropped, message=message)
    update = account.updates.add(kind, shapes.message(message), now.at)
    return UserAction(update=update, message=message)


def _is_visible(account: Account, message: Message) -> bool:
    """Whether the bot gets a message in privacy mode (Bots FAQ, "What messages will my bot get?").

    It gets commands, replies to it, messages that mention it, and service messages. It gets nothing
    from chats that it is not in.
    """
    chat = message.chat
    if chat.is_group and chat.bot in ("left", "kicked"):
        return False
    hears_all = not chat.is_group or not account.privacy or chat.bot == "administrator"
    is_service = not message.text and not message.media
    if hears_all or is_service:
        return True
    if message.reply_to is not None and message.reply_to.is_from_bot:
        return True
    name = f"@{account.bot.username}".lower()
    return message.text.startswith("/") or name in message.text.lower()
