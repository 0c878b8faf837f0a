"""The state of the chats: people, chats, topics, and messages with all their earlier texts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from channels.telegram.emulator.entities import Formatted
from channels.telegram.emulator.wire import Json, is_array, is_object, text_of
from zeroclaw import Value

ChatKind = Literal["private", "group", "supergroup"]
Status = Literal["member", "administrator", "left", "kicked", "restricted"]
"""The status of the bot or a person in a group; in a private chat `kicked` means blocked."""
DRAFT_LIFETIME_S = 30.0
"""A native draft is "a temporary 30-second preview" (Bot API, sendRichMessageDraft, read 2026-11)."""


class Instant(Value):
    """One instant, on both clocks.

    Attributes:
        wall: The wall time, for dates.
        at: The monotonic time in seconds, for limits and ages.
    """

    wall: datetime
    at: float

    @property
    def date(self) -> int:
        """The wall time in the Bot API's form: Unix time in whole seconds."""
        return int(self.wall.timestamp())


@dataclass(eq=False, kw_only=True)
class Person:
    """An account of a person, or the bot's.

    Attributes:
        started: They pressed Start; before that a bot can't write to them.
        deactivated: The account was deleted.
    """

    id: int
    first_name: str
    username: str = ""
    language: str = "en"
    is_bot: bool = False
    started: bool = False
    deactivated: bool = False

    def __repr__(self) -> str:
        return self.first_name


class Version(Value):
    """One version of a message.

    Attributes:
        markup: The inline keyboard or other markup under it, None for none.
        rich: The Bot API's `RichMessage`, with `formatted` as its plain text; None for others.
        at: The monotonic time when it was sent or edited.
    """

    formatted: Formatted
    markup: Json | None = None
    rich: Json | None = None
    at: float = 0.0


class Button(Value):
    """A button under a message.

    Attributes:
        data: The data that a press sends, empty for a link.
    """

    text: str
    data: str = ""
    url: str = ""


@dataclass(eq=False, kw_only=True)
class Message:
    """One message with all its versions.

    Attributes:
        sender: The bot or a person.
        thread: The topic it is in, 0 for none.
        versions: All versions, the newest last; a service message has one, which is empty.
        media: `photo`, `document` and so on, in the Bot API's form.
        extra: Other fields of the Bot API that never change: `forward_origin`, `quote`, …
        reply_to: The message that it replies to.
        edited: Unix time of the last edit, None for never.
    """

    id: int
    chat: "Chat"
    sender: Person
    date: int
    thread: int = 0
    versions: list[Version] = field(default_factory=list[Version])
    media: Json = field(default_factory=dict[str, object])
    extra: Json = field(default_factory=dict[str, object])
    reply_to: "Message | None" = None
    edited: int | None = None
    deleted: bool = False

    @property
    def text(self) -> str:
        """The current text, or the caption of a picture or a file."""
        return self.versions[-1].formatted.text

    @property
    def texts(self) -> list[str]:
        """All texts that it ever had, oldest first."""
        return [version.formatted.text for version in self.versions]

    @property
    def markup(self) -> Json | None:
        """The current markup under it."""
        return self.versions[-1].markup

    @property
    def buttons(self) -> list[Button]:
        """The current inline buttons under it, row by row."""
        return buttons_of(self.markup)

    @property
    def is_from_bot(self) -> bool:
        """Whether the bot sent it."""
        return self.sender.is_bot

    @property
    def asks_for_reply(self) -> bool:
        """Whether it makes an app open a reply to it, in a group perhaps only that of its targets.

        These are people who are mentioned, and the sender of the message that it replies to (Bot API,
        ForceReply; github.com/TelegramBots/Telegram.Bot/issues/251, read 2026-11).
        """
        markup = self.markup or {}
        kinds = {entity.type for entity in self.versions[-1].formatted.entities}
        is_to_person = self.reply_to is not None and not self.reply_to.is_from_bot
        has_targets = is_to_person or not kinds.isdisjoint(("mention", "text_mention"))
        is_selective = self.chat.is_group and markup.get("selective") is True
        return markup.get("force_reply") is True and (has_targets or not is_selective)

    def __repr__(self) -> str:
        signs = "†" if self.deleted else ""
        buttons = f" {[button.text for button in self.buttons]}" if self.buttons else ""
        media = f" {[*self.media]}" if self.media else ""
        text = f"{self.text[:300]!r} {len(self.versions)}v"
        return f"{self.id}{signs} {self.sender!r}: {text}{media}{buttons}"


def buttons_of(markup: Json | None) -> list[Button]:
    """Return the inline buttons of a markup, row by row."""
    rows = (markup or {}).get("inline_keyboard")
    cells = [
        cell
        for row in (rows if is_array(rows) else [])
        for cell in (row if is_array(row) else [])
        if is_object(cell)
    ]
    return [
        Button(
            text=text_of(cell, "text"),
            data=text_of(cell, "callback_data"),
            url=text_of(cell, "url"),
        )
        for cell in cells
    ]


class Draft(Value):
    """A native draft that a person sees while it grows.

    Attributes:
        texts: All texts it had, the newest last.
        until: The monotonic time at which it vanishes by itself.
        rich: The current `RichMessage`, None for a text.
    """

    id: int
    texts: tuple[str, ...]
    until: float
    rich: Json | None = None


@dataclass(eq=False, kw_only=True)
class Topic:
    """A topic of a forum."""

    id: int
    name: str
    closed: bool = False


@dataclass(eq=False, kw_only=True)
class Chat:
    """One chat, as the people in it see it.

    Attributes:
        person: The person of a private chat, None for a group.
        bot: The bot's status in it.
        members: The people's status in it.
        topics: The topics of a forum, by id.
        upgraded_to: The supergroup that replaced it, 0 for none.
        messages: All messages in order, including deleted ones.
        actions: The bot's chat actions, such as `typing`, in order.
        acting_until: The monotonic time until which the last action is shown.
        drafts: Open native drafts by topic.
        drafted: Ended native drafts.
    """

    id: int
    kind: ChatKind
    title: str
    person: Person | None = None
    is_forum: bool = False
    bot: Status = "member"
    members: dict[int, Status] = field(default_factory=dict[int, Status])
    topics: dict[int, Topic] = field(default_factory=dict[int, Topic])
    upgraded_to: int = 0
    messages: list[Message] = field(default_factory=list[Message])
    by_id: dict[int, Message] = field(default_factory=dict[int, Message])
    actions: list[str] = field(default_factory=list[str])
    acting_until: float = 0.0
    drafts: dict[int, Draft] = field(default_factory=dict[int, Draft])
    drafted: list[Draft] = field(default_factory=list[Draft])
    last_id: int = 0

    @property
    def is_group(self) -> bool:
        """Whether several people may be in it."""
        return self.kind != "private"

    @property
    def from_bot(self) -> list[Message]:
        """The bot's current messages."""
        return [message for message in self.messages if message.is_from_bot and not message.deleted]

    @property
    def texts(self) -> list[str]:
        """The texts of the bot's current messages."""
        return [message.text for message in self.from_bot]

    @property
    def ever(self) -> str:
        """Everything that the bot ever showed here, drafts included; to check what must not show."""
        texts = [text for message in self.messages if message.is_from_bot for text in message.texts]
        drafts = [*self.drafted, *self.drafts.values()]
        return "\n".join([*texts, *(text for draft in drafts for text in draft.texts)])

    def draft(self, at: float, thread: int = 0) -> str | None:
        """Return the native draft that is visible at a time, None for none."""
        draft = self.drafts.get(thread)
        return draft.texts[-1] if draft is not None and at < draft.until else None

    def end_draft(self, thread: int) -> None:
        """End a draft, because a message has replaced it."""
        draft = self.drafts.pop(thread, None)
        if draft is not None:
            self.drafted.append(draft)

    def __repr__(self) -> str:
        return f"{self.kind} {self.id} {self.title!r}"
