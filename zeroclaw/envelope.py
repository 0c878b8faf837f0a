"""The values that travel between a platform and the runtime.

Inbound, an `Envelope` carries one `Body`. Outbound, an `Outgoing` is sent and a `MessageRef` comes
back. Nothing here depends on a platform, and none of it is sent to a model.
"""

import re
import unicodedata
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NewType

from zeroclaw.text.escape import in_a_mark, is_hidden, shortened
from zeroclaw.text.language import Language
from zeroclaw.value import Hidden, Value

ConversationId = NewType("ConversationId", str)
TurnId = NewType("TurnId", str)
ActionId = NewType("ActionId", str)
ApprovalId = NewType("ApprovalId", str)
ItemId = NewType("ItemId", str)

_OFF_THE_RECORD = "-otr"
"""Suffix of an off-the-record conversation's id: the id alone tells, and sorts like any other."""


def off_the_record(ulid: str) -> ConversationId:
    """Return the id of a conversation whose messages may never reach a disk (K23)."""
    return ConversationId(ulid + _OFF_THE_RECORD)


def is_off_the_record(conversation: str) -> bool:
    """Whether a conversation's messages may never reach a disk."""
    return conversation.endswith(_OFF_THE_RECORD)


class Address(Value):
    """One chat (or thread) of one account on one channel.

    Attributes:
        channel: The channel's name in the configuration, `[channels.<name>]`.
        account: The platform's id of the bot account; one channel serves one account.
        chat: The platform's id of the chat.
        thread: The platform's id of a topic or thread, None for the chat itself.
        direct: Exactly one person reads this chat.
    """

    channel: str
    account: str
    chat: str
    thread: str | None = None
    direct: bool = False

    @lru_cache(maxsize=1024)  # noqa: B019  bounded; a turn calls this some fourteen times
    def key(self) -> str:
        """Return a string that identifies the chat or thread; `direct` is not part of it."""
        parts = (self.channel, self.account, self.chat, self.thread or "")
        return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)

    def in_words(self) -> str:
        """Return the address in a form for people: `telegram/4711`."""
        return "/".join(filter(None, (self.channel, self.chat, self.thread)))


class Reader(Value):
    """A chat where a person is reached, and the language they read.

    Attributes:
        address: The chat.
        language: The language of the bot's own sentences there.
    """

    address: Address
    language: Language = "en"


class MessageRef(Value):
    """A message that exists on a platform.

    Attributes:
        address: The chat it is in.
        message: The platform's id of the message.
    """

    address: Address
    message: str


class Sender(Value):
    """The author of an event as the platform claims; only admission turns it into a `Principal`.

    Attributes:
        id: The platform's stable id, never a name that its owner can change.
        verified: The platform vouches for the id.
        display: The name people see; shown, never used in a decision.
    """

    id: str
    verified: bool
    display: str = ""


CHOSEN_CHARS = 60
"""Longest self-chosen name that is shown in full."""
_MARKS = frozenset('`*_[]<>|\\"')


def chosen_name(name: str) -> str:
    """Return a self-chosen name made safe to show: one line, no markup, no invisible characters."""
    composed = unicodedata.normalize("NFC", name)
    plain = "".join(" " if sign in _MARKS or is_hidden(sign) else sign for sign in composed)
    return shortened(" ".join(plain.split()), CHOSEN_CHARS)


def labelled(configured: str, chosen: str) -> str:
    """Return a configured name, followed by the self-chosen one in quotes if it differs."""
    quoted = chosen_name(chosen)
    if quoted.lower() == configured.lower():
        return quoted
    is_id = quoted.lower() in ("", configured.partition(":")[2].lower())
    return configured if is_id else f'{configured} ("{quoted}")'


class Principal(Value):
    """The person who acts, as determined by admission.

    Attributes:
        id: `person:<name>` for people in the configuration, else `<channel>:<sender id>`.
        roles: Without the `role:` prefix, for example `operator`.
        channel: The channel this person wrote on.
        sender: The platform's id of the person on that channel.
        display: The name people see.
        language: The language of the bot's own sentences to this person; not part of the identity.
    """

    id: str
    roles: frozenset[str]
    channel: str
    sender: str
    display: str = ""
    language: Language = "en"

    @property
    def identity(self) -> str:
        """The identity on the platform, `<channel>:<sender id>`, whatever the configuration is."""
        return f"{self.channel}:{self.sender}"

    @property
    def label(self) -> str:
        """The name that the bot's own lines use for this person.

        The operator's name for them, or their id, comes first. A self-chosen name may claim
        anything, so it follows in quotes.
        """
        return labelled(self.id.removeprefix("person:"), self.display)


class Attachment(Value):
    """A file that came with a message, recorded by reference.

    Attributes:
        reference: What the channel's `fetch` needs to get the bytes.
        name: The sender's file name; untrusted.
        media_type: As claimed by the platform; untrusted.
        size_bytes: None if the platform does not say.
        quoted: It came with the quoted message. Only ingress sets this, no channel.
    """

    reference: str
    name: str
    media_type: str
    size_bytes: int | None = None
    quoted: bool = False


class Said(Value):
    """A message for the model, with the texts and files of others that it quotes.

    Attributes:
        text: The full text, including quoted and forwarded parts.
        own: The part that the sender wrote themselves; None for all of it.
        quoted: The files of the quoted message; used if this one has none itself.
    """

    text: str
    own: str | None = None
    quoted: tuple[Attachment, ...] = ()

    @property
    def wrote(self) -> str:
        """The part that the sender wrote themselves."""
        return self.text if self.own is None else self.own


class Command(Value):
    """A message that is a slash and a command name, with optional text after it.

    Attributes:
        name: Without the slash, lower case.
        rest: The text after the name, without the space around it.
    """

    name: str
    rest: str = ""


def command_of(text: str) -> Command | None:
    """Parse a text as a command; return None for any other text. The rest stays as typed."""
    found = _COMMAND.fullmatch(text.strip())
    return None if found is None else Command(name=found[1].lower(), rest=found[2] or "")


_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:\s+(.*))?", re.DOTALL)
Choice = Literal["once", "for_a_time", "deny", "deny_with_reason"]


class Pressed(Value):
    """An answer to an approval request.

    Attributes:
        approval: The opaque id that the card's button carried.
        choice: The choice.
        reason: The denial's reason, empty for none.
        card: The card that was pressed; it joins the approval's refs.
    """

    approval: ApprovalId
    choice: Choice
    reason: str = ""
    card: MessageRef | None = None


class Edited(Value):
    """A message that its author edited.

    Attributes:
        message: The platform's id of the message.
        said: The whole new message; its files stay.
    """

    message: str
    said: Said


class Deleted(Value):
    """A message that its author deleted; `message` is the platform's id of it."""

    message: str


class Moved(Value):
    """The chat has a new address; the conversation follows."""

    to: Address


class Membership(Value):
    """The bot joined or left the chat; `present` is the state now."""

    present: bool


Body = Said | Command | Pressed | Edited | Deleted | Moved | Membership


class Position(Value):
    """How far a platform has been read; committed with the admission.

    Attributes:
        scope: A sequence that is read in order, for example one chat or one mailbox.
        cursor: The platform's own cursor within the scope.
    """

    scope: str
    cursor: str


class Continues(Value):
    """The sender's client probably split the message: more of it follows in another event.

    Attributes:
        within_s: How many seconds to wait for the rest; the turn starts no sooner.
        group: The platform's id for messages that belong together, such as an album. Empty for a
            split text, which continues in the sender's next message.
        room: UTF-16 units left below the platform's limit. A client that splits before the limit
            splits between words or lines, and the white space there is lost.
        lead: A prefix that every part repeats, such as a quotation; kept only once.
    """

    within_s: float
    group: str = ""
    room: int = 0
    lead: str = ""


class Envelope(Value):
    """One platform event, decoded.

    Attributes:
        address: The chat of the event.
        sender: Its author, as the platform claims.
        dedup: Keys of this event, unique per account; any hit makes it a duplicate.
        body: The content, by type.
        message: The platform's id of the message, so that an edit can find it; empty for none.
        position: How far reading has come with this event; None if no position is kept.
        attachments: The sender's own; recorded, not fetched.
        sent_at: The platform's time of the event, None if it gives none.
        continues: Set if more of this message probably follows, and the turn should wait for it.
        alone: Never the rest of a split text, for example a forwarded message.
        overheard: Not addressed to the bot; used only as a part of a message that is.
        verbatim: The literal text of a command, in case it is the rest of a text that was split
            before a slash; empty for all others.
    """

    address: Address
    sender: Sender
    dedup: tuple[str, ...]
    body: Body
    message: str = ""
    position: Position | None = None
    attachments: tuple[Attachment, ...] = ()
    sent_at: datetime | None = None
    continues: Continues | None = None
    alone: bool = False
    overheard: bool = False
    verbatim: str = ""

    @property
    def account(self) -> str:
        """The bot's account that received it, as `<channel>/<account>`."""
        return f"{self.address.channel}/{self.address.account}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of this event, unique among all accounts."""
        return tuple(f"{self.account}/{key}" for key in self.dedup)

    @property
    def identity(self) -> str:
        """The sender, as `<channel>:<sender id>`."""
        return f"{self.address.channel}:{self.sender.id}"


class Rendered(Value):
    """A text in a platform's own syntax.

    Attributes:
        body: With markup.
        plain: The same without markup, for a platform that rejects the markup.
    """

    body: str
    plain: str


_MAX_TOOL_CHARS = 40  # leaves room for the outcome on Discord's button, which takes 80


class CheckedReceipt(Value):
    """A receipt that an answer quotes, verified, with the facts that it proves (P7).

    It is not part of the text. A channel shows it in a form that no text can imitate.

    Attributes:
        token: The token as issued.
        tool: The tool that was called.
        summary: The tool's own line about the call, redacted; empty if no longer stored.
        outcome: How the call ended.
        at: When it ended.
        earlier: Signed by an earlier process, and on record.
    """

    token: str
    tool: str
    summary: str
    outcome: str
    at: datetime
    earlier: bool = False

    def line(self) -> str:
        """Return the line that people read; it is the same for all readers and can be compared."""
        kind = "receipt of an earlier run" if self.earlier else "receipt"
        when = f"{self.at.astimezone(UTC):{'%Y-%m-%d %H:%M' if self.earlier else '%H:%M'}} UTC"
        # Both hold text from the model: it invents tool names, and summaries quote its arguments.
        tool = shortened(in_a_mark(self.tool), _MAX_TOOL_CHARS)
        summary = in_a_mark(self.summary)
        parts = (f"{kind}: {tool}", self.outcome, when, summary)
        return " · ".join(filter(None, parts))


class Outgoing(Value):
    """A message to send.

    Attributes:
        rendered: The output of the channel's `render`.
        key: The same for every attempt to deliver this message; channels with `idempotent_send`
            pass it to the platform.
        draft: Edits with more text will follow; false for the final text.
        plain: Send the plain form; set after a platform rejected the markup.
        reply_to: The message this answers, for platforms that can show that.
        receipts: The receipts of the answer, shown with the message and never as part of its text.
    """

    rendered: Rendered
    key: str
    draft: bool = False
    plain: bool = False
    reply_to: str | None = None
    receipts: tuple[CheckedReceipt, ...] = ()


class OutgoingFile(Value):
    """A file to send.

    Attributes:
        name: The name people see: one file name of at most 100 characters, no path.
        media_type: The claimed type; nothing has checked the content.
        content: The whole file, at most `max_file_bytes` of the capabilities.
        key: As `Outgoing.key`.
        caption: Plain text shown with it, at most 700 characters; empty for none.
        reply_to: As `Outgoing.reply_to`.
    """

    name: str
    media_type: str
    content: Hidden[bytes]
    key: str
    caption: str = ""
    reply_to: str | None = None


class Accepted(Value):
    """The event is stored; the adapter may confirm it to the platform."""


class Duplicate(Value):
    """The event was stored before; the adapter may confirm it to the platform again."""


class Ignored(Value):
    """The event has no effect; it is neither stored nor answered."""


class Answered(Value):
    """The event is stored, or had no effect. `text` may be shown to its sender alone, or get lost.

    Attributes:
        reply_wanted: The text asks for a reason; the press counts once it comes again with one.
    """

    text: str
    reply_wanted: bool = False


Admission = Accepted | Duplicate | Ignored | Answered
