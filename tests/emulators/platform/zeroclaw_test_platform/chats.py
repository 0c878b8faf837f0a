"""What stands in the platform's chats, with its whole history."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from zeroclaw import ApprovalId, Card, Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A text that a message had.

    Attributes:
        draft: It was said that more would follow.
        plain: It was sent as the plain form.
        at: Seconds on the clock of the test's event loop.
    """

    text: str
    draft: bool
    plain: bool
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of the bot's."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(eq=False, kw_only=True)
class Message:
    """One message, of the bot or of a person.

    Attributes:
        author: The person's id, empty for the bot.
        versions: Every text it ever had, the newest last.
        draft: What the newest send or edit said, equal texts included.
        key: What the bot sent it with.
        card: What it asks, for cards.
        endings: How the card's calls ended, as far as it shows.
        buttons: Approvals that can be pressed now.
        file: What the bot sent, for files; the text is its caption.
        receipts: What stands below its text, and is no text.
    """

    id: str
    chat: str
    thread: str = ""
    author: str = ""
    versions: list[Version] = field(default_factory=list[Version])
    draft: bool = False
    deleted: bool = False
    key: str = ""
    reply_to: str = ""
    card: Card | None = None
    file: File | None = None
    endings: tuple[Ending, ...] = ()
    buttons: frozenset[ApprovalId] = frozenset()
    receipts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What it says now."""
        return self.versions[-1].text

    @property
    def texts(self) -> list[str]:
        """All that it ever said, oldest first."""
        return [version.text for version in self.versions]

    @property
    def asked(self) -> Card:
        """The card; the message must be one."""
        assert self.card is not None
        return self.card

    @property
    def hows(self) -> list[str]:
        """How the card's calls ended, in order of the calls, empty for those still open."""
        ended = {ending.approval: ending.how for ending in self.endings}
        return [ended.get(call.approval, "") for call in self.asked.calls]

    def __repr__(self) -> str:
        signs = f"{'~' if self.draft else ''}{'†' if self.deleted else ''}"
        return f"{self.id}{signs} {self.author or 'BOT'}: {self.text[:300]!r} {len(self.versions)}v"


@dataclass(eq=False, kw_only=True)
class Chat:
    """One chat, as the people in it see it.

    Attributes:
        messages: Every message, in order, deleted ones too.
        typings: How often the bot was shown to be at work.
    """

    id: str
    direct: bool
    messages: list[Message] = field(default_factory=list[Message])
    typings: int = 0

    @property
    def from_bot(self) -> list[Message]:
        """The bot's messages that stand, cards too."""
        return [one for one in self.messages if not one.author and not one.deleted]

    @property
    def replies(self) -> list[Message]:
        """The bot's messages that stand and are neither cards nor files."""
        return [one for one in self.from_bot if one.card is None and one.file is None]

    @property
    def files(self) -> list[Message]:
        """The bot's files that stand."""
        return [one for one in self.from_bot if one.file is not None]

    @property
    def texts(self) -> list[str]:
        """What the bot's standing messages say, cards not counted."""
        return [one.text for one in self.replies]

    @property
    def answers(self) -> list[str]:
        """Those of `texts` that are finished."""
        return [one.text for one in self.replies if not one.draft]

    @property
    def receipts(self) -> list[str]:
        """What stands below its texts."""
        return [line for one in self.replies for line in one.receipts]

    @property
    def cards(self) -> list[Message]:
        """The cards, in order, deleted ones too."""
        return [one for one in self.messages if one.card is not None]

    @property
    def open_cards(self) -> list[Message]:
        """Cards of which some call has no ending yet."""
        return [one for one in self.cards if "" in one.hows]

    @property
    def ever(self) -> str:
        """All that the bot ever showed here, in one text; for what must never be seen."""
        bot: Sequence[Message] = [one for one in self.messages if not one.author]
        return "\n".join(text for one in bot for text in one.texts)
