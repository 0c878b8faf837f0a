"""The chats of the platform: their messages, with every text that each ever had."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from zeroclaw import ApprovalId, Card, Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A text that a message had.

    Attributes:
        draft: The sender announced that more would follow.
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
        versions: Every text that it ever had, the newest last.
        draft: The flag of the newest send or edit, equal texts included.
        key: The key of the bot's call.
        card: The approval request that it shows, for cards.
        endings: The endings of the card's calls that it shows.
        buttons: Approvals that can be pressed now.
        file: The file, for one of the bot's; the text is its caption.
        receipts: The receipts below its text, which are not part of it.
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
        """The current text."""
        return self.versions[-1].text

    @property
    def texts(self) -> list[str]:
        """Every text that it had, oldest first."""
        return [version.text for version in self.versions]

    @property
    def request(self) -> Card:
        """The approval request; the message must be a card."""
        assert self.card is not None
        return self.card

    @property
    def outcomes(self) -> list[str]:
        """The outcome of each call of the card, in order; empty for those still open."""
        outcomes = {ending.approval: ending.how for ending in self.endings}
        return [outcomes.get(call.approval, "") for call in self.request.calls]

    def __repr__(self) -> str:
        marks = f"{'~' if self.draft else ''}{'†' if self.deleted else ''}"
        return f"{self.id}{marks} {self.author or 'BOT'}: {self.text[:300]!r} {len(self.versions)}v"


@dataclass(eq=False, kw_only=True)
class Chat:
    """One chat, as the people in it see it.

    Attributes:
        messages: Every message, in order, deleted ones too.
        typings: The number of typing calls of the bot.
    """

    id: str
    direct: bool
    messages: list[Message] = field(default_factory=list[Message])
    typings: int = 0

    @property
    def from_bot(self) -> list[Message]:
        """The bot's messages that are not deleted, cards too."""
        return [message for message in self.messages if not message.author and not message.deleted]

    @property
    def replies(self) -> list[Message]:
        """The bot's messages that are not deleted and are neither cards nor files."""
        return [
            message for message in self.from_bot if message.card is None and message.file is None
        ]

    @property
    def files(self) -> list[Message]:
        """The bot's files that are not deleted."""
        return [message for message in self.from_bot if message.file is not None]

    @property
    def texts(self) -> list[str]:
        """The texts of `replies`."""
        return [message.text for message in self.replies]

    @property
    def answers(self) -> list[str]:
        """The texts that are finished."""
        return [message.text for message in self.replies if not message.draft]

    @property
    def receipts(self) -> list[str]:
        """The receipts below its texts."""
        return [line for message in self.replies for line in message.receipts]

    @property
    def cards(self) -> list[Message]:
        """The cards, in order, deleted ones too."""
        return [message for message in self.messages if message.card is not None]

    @property
    def open_cards(self) -> list[Message]:
        """Cards with a call that has no ending yet."""
        return [message for message in self.cards if "" in message.outcomes]

    @property
    def ever(self) -> str:
        """Every text that the bot ever showed in the chat, joined."""
        bot: Sequence[Message] = [message for message in self.messages if not message.author]
        return "\n".join(text for message in bot for text in message.texts)
