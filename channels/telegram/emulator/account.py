"""Everything that one bot account sees: its people, chats, files, updates and presses."""

from dataclasses import dataclass, field

from channels.telegram.emulator.buckets import Buckets
from channels.telegram.emulator.chats import Chat, Instant, Message, Person, Version
from channels.telegram.emulator.files import Files
from channels.telegram.emulator.refusals import bad_request, forbidden, too_many
from channels.telegram.emulator.updates import Updates
from channels.telegram.emulator.wire import Json, Parameters, whole
from zeroclaw import Value

FIRST_SUPERGROUP = -1_001_000_000_000
FIRST_GROUP = -4_000_000
FIRST_PERSON = 1_000_001


class Toast(Value):
    """The answer to a press."""

    text: str = ""
    alert: bool = False
    url: str = ""


@dataclass(eq=False, kw_only=True)
class Press:
    """A person's press of a button.

    Attributes:
        toast: The bot's answer, None while there is none.
    """

    id: str
    person: Person
    message: Message
    data: str
    at: float
    toast: Toast | None = None


class Webhook(Value):
    """Where updates are posted instead of being fetched."""

    url: str
    secret: str = ""
    connections: int = 40


@dataclass(eq=False, kw_only=True)
class Account:
    """One bot account.

    Attributes:
        bot: The bot.
        privacy: In groups the bot gets only messages meant for it, unless it is an administrator.
        missing: Methods that this server does not have, in lower case.
        last_id: The newest message id of all private chats and basic groups, which share one
            counter; a supergroup has its own.
        webhook: None while updates are fetched.
        webhook_error: Time and reason of the last failed delivery.
        commands: The bot's menus by scope and language.
        profile: The bot's name and descriptions, by parameter.
    """

    bot: Person
    token: str
    buckets: Buckets
    updates: Updates
    privacy: bool = False
    missing: set[str] = field(default_factory=set[str])
    last_id: int = 0
    webhook: Webhook | None = None
    webhook_error: tuple[int, str] | None = None
    people: dict[int, Person] = field(default_factory=dict[int, Person])
    chats: dict[int, Chat] = field(default_factory=dict[int, Chat])
    files: Files = field(default_factory=Files)
    presses: dict[str, Press] = field(default_factory=dict[str, Press])
    commands: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    profile: dict[str, str] = field(default_factory=dict[str, str])
    albums: int = 0

    # --- people and chats ----------------------------------------------------------------------

    def add_person(self, name: str, *, username: str = "", id_: int = 0) -> Person:
        """Add a person, with a private chat that is not opened yet."""
        id_ = id_ or FIRST_PERSON + len(self.people)
        person = Person(id=id_, first_name=name, username=username)
        self.people[id_] = person
        self.chats[id_] = Chat(id=id_, kind="private", title=name, person=person)
        return person

    def add_group(self, title: str, *, is_super: bool, is_forum: bool = False) -> Chat:
        """Open a group with the bot in it."""
        first = FIRST_SUPERGROUP if is_super else FIRST_GROUP
        id_ = first - len(self.chats)
        kind = "supergroup" if is_super else "group"
        self.chats[id_] = Chat(id=id_, kind=kind, title=title, is_forum=is_forum)
        return self.chats[id_]

    def find_chat(self, parameters: Parameters, name: str = "chat_id") -> Chat:
        """Return the chat that a call names.

        Raises:
            Refused: The bot knows no such chat.
        """
        if not parameters.has(name):
            raise bad_request(f"{name} is empty")
        chat = self.chats.get(whole(parameters.text(name)))
        if chat is None:
            raise bad_request("chat not found")
        return chat

    def open_chat(self, parameters: Parameters, name: str = "chat_id") -> Chat:
        """Return the chat that a call names, if the bot may write to it.

        Raises:
            Refused: It may not.
        """
        chat = self.find_chat(parameters, name)
        if chat.upgraded_to:
            reason = "group chat was upgraded to a supergroup chat"
            raise bad_request(reason, migrate_to_chat_id=chat.upgraded_to)
        if chat.person is not None:
            self._check_person(chat.person, chat)
        elif chat.bot == "kicked":
            raise forbidden(f"bot was kicked from the {chat.kind} chat")
        elif chat.bot == "left":
            raise forbidden(f"bot is not a member of the {chat.kind} chat")
        elif chat.bot == "restricted":
            raise bad_request("not enough rights to send text messages to the chat")
        return chat

    def _check_person(self, person: Person, chat: Chat) -> None:
        if person.deactivated:
            raise forbidden("user is deactivated")
        if chat.bot == "kicked":
            raise forbidden("bot was blocked by the user")
        if not person.started:
            raise forbidden("bot can't initiate conversation with a user")

    # --- messages --------------------------------------------------------------------------------

    def next_id(self, chat: Chat) -> int:
        """Return the id of the next message of a chat."""
        if chat.kind == "supergroup":
            chat.last_id += 1
            return chat.last_id
        self.last_id += 1
        return self.last_id

    def add(
        self,
        chat: Chat,
        sender: Person,
        version: Version,
        now: Instant,
        *,
        thread: int = 0,
        media: Json | None = None,
        extra: Json | None = None,
        reply_to: Message | None = None,
    ) -> Message:
        """Add a message to a chat; one from the bot replaces its native draft."""
        message = Message(
            id=self.next_id(chat),
            chat=chat,
            sender=sender,
            date=now.date,
            thread=thread,
            versions=[version],
            media=media or {},
            extra=extra or {},
            reply_to=reply_to,
        )
        chat.messages.append(message)
        chat.by_id[message.id] = message
        if message.is_from_bot:
            chat.end_draft(thread)
            chat.acting_until = now.at
        return message

    # --- limits ----------------------------------------------------------------------------------

    def spend(self, chat: Chat, kind: str, now: Instant, count: int = 1) -> None:
        """Count a call against the limits.

        Args:
            chat: The chat.
            kind: `send`, `edit` or `draft`.
            now: The time of the call.
            count: The number of messages that it counts as.

        Raises:
            Refused: It is one too many.
        """
        wait_s = self.buckets.take(kind, chat.id, now.at, is_group=chat.is_group, count=count)
        if wait_s:
            raise too_many(wait_s)
