"""What stands in the chats: people, chats, topics, messages with every text they ever had."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from channels.telegram.emulator.entities import Formatted
from channels.telegram.emulator.wire import Json, is_array, is_object, text_of
from zeroclaw import Value

ChatKind = Literal["private", "group", "supergroup"]
Standing = Literal["member", "administrator", "left", "kicked", "restricted"]
"""How the bot, or a person, stands to a group; in a private chat `kicked` is `blocked`."""
DRAFT_KEPT_S = 30.0
"""A native draft is "a temporary 30-second preview" (Bot API, sendRichMessageDraft, read 2026-11)."""


class Moment(Value):
    """One instant, on both clocks.

    Attributes:
        wall: For dates.
        at: Seconds that never go back, for limits and ages.
    """

    wall: datetime
    at: float

    @property
    def date(self) -> int:
        """The wall time as the Bot API writes it: whole seconds since 1970."""
        return int(self.wall.timestamp())


@dataclass(eq=False, kw_only=True)
class Person:
    """Somebody with an account, the bot included.

    Attributes:
        started: They pressed Start, without which a bot can't write to them.
        deactivated: The account is gone.
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
    """A text that a message had.

    Attributes:
        markup: The inline keyboard or other markup under it, None for none.
        rich: The Bot API's `RichMessage` where it is one, whose words the text is; else None.
        at: Seconds of the moment it was sent or edited.
    """

    formatted: Formatted
    markup: Json | None = None
    rich: Json | None = None
    at: float = 0.0


class Button(Value):
    """A button under a message.

    Attributes:
        data: What pressing it sends, empty for a link.
    """

    text: str
    data: str = ""
    url: str = ""


@dataclass(eq=False, kw_only=True)
class Message:
    """One message, as it stands and as it was.

    Attributes:
        sender: Who wrote it, the bot or a person.
        thread: The topic it is in, 0 for none.
        versions: Every text it ever had, the newest last; a service message has one, empty.
        media: `photo`, `document` and so on, as the Bot API writes them.
        more: Other fields of the Bot API that never change: `forward_origin`, `quote`, …
        reply_to: What it answers.
        edited: When it was last edited, None for never.
    """

    id: int
    chat: "Chat"
    sender: Person
    date: int
    thread: int = 0
    versions: list[Version] = field(default_factory=list[Version])
    media: Json = field(default_factory=dict[str, object])
    more: Json = field(default_factory=dict[str, object])
    reply_to: "Message | None" = None
    edited: int | None = None
    deleted: bool = False

    @property
    def text(self) -> str:
        """What it says now; of a picture or a file the caption."""
        return self.versions[-1].formatted.text

    @property
    def texts(self) -> list[str]:
        """All that it ever said, oldest first."""
        return [version.formatted.text for version in self.versions]

    @property
    def markup(self) -> Json | None:
        """What stands under it now."""
        return self.versions[-1].markup

    @property
    def buttons(self) -> list[Button]:
        """The inline buttons that stand under it now, row by row."""
        return buttons_of(self.markup)

    @property
    def is_from_bot(self) -> bool:
        """Whether the bot wrote it."""
        return self.sender.is_bot

    @property
    def asks_for_reply(self) -> bool:
        """Whether clients open a reply to it."""
        return self.markup is not None and self.markup.get("force_reply") is True

    def __repr__(self) -> str:
        signs = "†" if self.deleted else ""
        buttons = f" {[one.text for one in self.buttons]}" if self.buttons else ""
        media = f" {[*self.media]}" if self.media else ""
        said = f"{self.text[:300]!r} {len(self.versions)}v"
        return f"{self.id}{signs} {self.sender!r}: {said}{media}{buttons}"


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
    """A native draft that a person sees while it is written.

    Attributes:
        texts: Every text it had, the newest last.
        until: Seconds when it vanishes by itself.
        rich: What it shows as a `RichMessage`, None for a text.
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
        person: Whose private chat it is.
        bot: How the bot stands to it.
        members: How people stand to it.
        topics: By id, of a forum.
        upgraded_to: The supergroup that it became, 0 for none.
        messages: Every message, in order, deleted ones too.
        actions: What the bot was shown to do, such as `typing`, in order.
        acting_until: Seconds until the last of them is no longer shown.
        drafts: Native drafts by topic, the running ones; `drafted` keeps what is over.
    """

    id: int
    kind: ChatKind
    title: str
    person: Person | None = None
    is_forum: bool = False
    bot: Standing = "member"
    members: dict[int, Standing] = field(default_factory=dict[int, Standing])
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
        """The bot's messages that stand."""
        return [one for one in self.messages if one.is_from_bot and not one.deleted]

    @property
    def texts(self) -> list[str]:
        """What the bot's standing messages say."""
        return [one.text for one in self.from_bot]

    @property
    def ever(self) -> str:
        """All that the bot ever showed here, drafts too, in one text; for what may not be seen."""
        said = [text for one in self.messages if one.is_from_bot for text in one.texts]
        drafts = [*self.drafted, *self.drafts.values()]
        return "\n".join([*said, *(text for one in drafts for text in one.texts)])

    def draft(self, at: float, thread: int = 0) -> str | None:
        """Return the native draft that is seen now, None for none."""
        found = self.drafts.get(thread)
        return found.texts[-1] if found is not None and at < found.until else None

    def end_draft(self, thread: int) -> None:
        """A message came, which takes the place of a draft."""
        ended = self.drafts.pop(thread, None)
        if ended is not None:
            self.drafted.append(ended)

    def __repr__(self) -> str:
        return f"{self.kind} {self.id} {self.title!r}"
