"""What travels between a platform and the runtime.

Inward an `Envelope` with one `Body`; outward an `Outgoing`, answered by a `MessageRef`. Nothing
here knows a platform; nothing here is ever sent to a model.
"""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Literal, NewType

from zeroclaw.text.escape import in_a_mark, is_hidden
from zeroclaw.text.language import Language
from zeroclaw.value import Hidden, Value

ConversationId = NewType("ConversationId", str)
TurnId = NewType("TurnId", str)
ActionId = NewType("ActionId", str)
ApprovalId = NewType("ApprovalId", str)
ItemId = NewType("ItemId", str)

_OFF_THE_RECORD = "-otr"
"""How ids of such conversations end: whoever holds one knows it, and they sort as all others."""


def off_the_record(ulid: str) -> ConversationId:
    """Return the id of a conversation of which nothing that is said may reach a disk (K23)."""
    return ConversationId(ulid + _OFF_THE_RECORD)


def is_off_the_record(conversation: str) -> bool:
    """Tell whether nothing that is said in a conversation may reach a disk."""
    return conversation.endswith(_OFF_THE_RECORD)


class Address(Value):
    """Where: one chat (and thread) of one account on one channel.

    Attributes:
        channel: The name in the configuration, `[channels.<name>]`.
        account: The platform's id of the bot account; one channel may serve one account.
        chat: The platform's id of the chat.
        thread: The platform's id of a topic or thread, None for the chat itself.
        direct: Exactly one person reads this chat.
    """

    channel: str
    account: str
    chat: str
    thread: str | None = None
    direct: bool = False

    def key(self) -> str:
        """Return one string that is equal exactly when the place is; `direct` doesn't count."""
        parts = (self.channel, self.account, self.chat, self.thread or "")
        plain = "/".join(parts)
        if "%" not in plain and plain.count("/") == len(parts) - 1:
            return plain  # as nearly always; a turn asks some fourteen times
        return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)

    def in_words(self) -> str:
        """Return the place for people: `telegram/4711`."""
        return "/".join(filter(None, (self.channel, self.chat, self.thread)))


class Reader(Value):
    """A person's chat, and the language that they read.

    Attributes:
        address: Where they are reached.
        language: What the bot's own sentences are said in there.
    """

    address: Address
    language: Language = "en"


class MessageRef(Value):
    """One message that exists on a platform.

    Attributes:
        address: Where it stands.
        message: The platform's own id of it.
    """

    address: Address
    message: str


class Sender(Value):
    """Who wrote, as the platform claims it; only admission turns this into a `Principal`.

    Attributes:
        id: The platform's stable id, never a name that its owner can change.
        verified: The platform vouches for the id.
        display: The name people see; shown, never used to decide.
    """

    id: str
    verified: bool
    display: str = ""


CHOSEN_CHARS = 60
"""Of a name that a person chose for themselves, where it is shown."""
_MARKS = frozenset('`*_[]<>|\\"')


def chosen_name(name: str) -> str:
    """Return a name that a person chose so that it shows nothing but a name, on one line."""
    composed = unicodedata.normalize("NFC", name)
    plain = "".join(" " if sign in _MARKS or is_hidden(sign) else sign for sign in composed)
    line = " ".join(plain.split())
    return line if len(line) <= CHOSEN_CHARS else f"{line[: CHOSEN_CHARS - 1]}…"


def labelled(given: str, chosen: str) -> str:
    """Return a name that was given, and in quotes the one that its bearer chose, if it differs."""
    quoted = chosen_name(chosen)
    if quoted.lower() == given.lower():
        return quoted
    is_id = quoted.lower() in ("", given.partition(":")[2].lower())
    return given if is_id else f'{given} ("{quoted}")'


class Principal(Value):
    """Who acts, as admission found it.

    Attributes:
        id: `person:<name>` for people of the configuration, else `<channel>:<sender id>`.
        roles: Without the `role:` prefix, for example `operator`.
        channel: The channel this principal came by.
        sender: The platform's id there.
        display: The name people see.
        language: What the bot's own sentences are said in; no part of who it is.
    """

    id: str
    roles: frozenset[str]
    channel: str
    sender: str
    display: str = ""
    language: Language = "en"

    @property
    def identity(self) -> str:
        """Who it is on the platform, `<channel>:<sender id>`, whatever the configuration says."""
        return f"{self.channel}:{self.sender}"

    @property
    def label(self) -> str:
        """How people read who this is, in a line of the bot's own.

        What the operator called them, or their id, comes first. A name that they chose may claim
        anything, so it follows in quotes.
        """
        return labelled(self.id.removeprefix("person:"), self.display)


class Attachment(Value):
    """A file that came with a message, recorded by reference.

    Attributes:
        reference: What the channel's `fetch` needs to get the bytes.
        name: The sender's file name; untrusted.
        media_type: As claimed by the platform; untrusted.
        size_bytes: None when the platform does not say.
    """

    reference: str
    name: str
    media_type: str
    size_bytes: int | None = None


class Said(Value):
    """A message for the model.

    Attributes:
        text: All of it, what it quotes or passes on included.
        own: The words in it that its sender wrote; None for all of them.
    """

    text: str
    own: str | None = None


class Command(Value):
    """A message that begins with a slash and a known word.

    Attributes:
        name: Without the slash, lower case.
        rest: What follows, stripped.
    """

    name: str
    rest: str = ""


def command_of(said: str) -> Command | None:
    """Return the command that a text is, None for any other; what follows its name stays as typed."""
    found = _COMMAND.fullmatch(said.strip())
    return None if found is None else Command(name=found[1].lower(), rest=found[2] or "")


_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:\s+(.*))?", re.DOTALL)
Choice = Literal["once", "for_a_time", "deny", "deny_with_reason"]


class Pressed(Value):
    """An answer to an approval.

    Attributes:
        approval: The opaque id that the card's button carried.
        choice: What was chosen.
        reason: The denial's reason, empty when none was given.
        card: The card that was pressed; it joins the approval's refs.
    """

    approval: ApprovalId
    choice: Choice
    reason: str = ""
    card: MessageRef | None = None


class Edited(Value):
    """A message that its writer changed.

    Attributes:
        message: The platform's id of the message.
        text: The whole new text.
        own: As in `Said`.
    """

    message: str
    text: str
    own: str | None = None


class Deleted(Value):
    """A message that its writer withdrew; `message` is the platform's id of it."""

    message: str


class Moved(Value):
    """The chat now has another address; the conversation follows."""

    to: Address


class Membership(Value):
    """Whether the bot is in the chat."""

    present: bool


Body = Said | Command | Pressed | Edited | Deleted | Moved | Membership


class Position(Value):
    """How far a platform has been read; committed with the admission.

    Attributes:
        scope: What is read in order, for example one chat or one mailbox.
        cursor: The platform's own cursor within the scope.
    """

    scope: str
    cursor: str


class Continues(Value):
    """A message very likely goes on in the next one, because its client cut it, or sent an album.

    Attributes:
        within_s: How long the rest may take to come, in seconds; its turn waits as long.
        group: The platform's own name for what belongs together; empty for a text that was cut,
            which goes on in what the same person says next.
        room: UTF-16 units that the message still had room for: where a client has cut before that,
            it cut between words or lines, and what was blank there is lost.
        lead: What stands before the words in each of them, such as a quotation; read once.
    """

    within_s: float
    group: str = ""
    room: int = 0
    lead: str = ""


class Envelope(Value):
    """One platform event, decoded.

    Attributes:
        address: Where it happened.
        sender: Who did it, as claimed.
        dedup: Keys of this event, unique per account; any hit means that it is a duplicate.
        body: What happened.
        message: The platform's id of the message, so that an edit can find it; empty for none.
        position: How far reading has come with this event, None where none is kept.
        attachments: Recorded, not fetched.
        sent_at: When the platform says it happened, None when it does not say.
        continues: What it is about very likely goes on in another event; None for all others, which
            wait for nothing.
        alone: It is never the rest of a text that was cut before it, for example forwarded words.
        overheard: It was not said to the bot, and is taken only as the rest of what was.
        verbatim: A command as it was written, for it may be the rest of a text that happened to be
            cut before a slash; empty for all others.
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


class Rendered(Value):
    """A text in a platform's own syntax.

    Attributes:
        body: With markup.
        plain: The same without markup, for a platform that refuses the markup.
    """

    body: str
    plain: str


_MOST_TOOL_CHARS = 40  # so that the outcome stands on Discord's button, which has room for 80


class CheckedReceipt(Value):
    """A receipt that an answer carries, looked up and verified: what it proves (P7).

    It is no part of the text. A channel shows it in a form that no text can have, so that there is
    nothing to imitate.

    Attributes:
        token: As it was issued.
        tool: What was called.
        summary: The tool's own line about the call, redacted; empty where that is gone.
        outcome: How the call ended.
        at: When.
        earlier: Signed by a process before this one, and on record.
    """

    token: str
    tool: str
    summary: str
    outcome: str
    at: datetime
    earlier: bool = False

    def line(self) -> str:
        """Return what a person reads; the same for all readers, so that it can be compared."""
        kind = "receipt of an earlier run" if self.earlier else "receipt"
        when = f"{self.at.astimezone(UTC):{'%Y-%m-%d %H:%M' if self.earlier else '%H:%M'}} UTC"
        # A model makes up names of tools, and writes what a tool says of its call.
        tool, summary = in_a_mark(self.tool), in_a_mark(self.summary)
        if len(tool) > _MOST_TOOL_CHARS:
            tool = f"{tool[: _MOST_TOOL_CHARS - 1]}…"
        said = (f"{kind}: {tool}", self.outcome, when, summary)
        return " · ".join(filter(None, said))


class Outgoing(Value):
    """One message on its way out.

    Attributes:
        rendered: What the channel's `render` made of it.
        key: The same for every attempt to deliver this message; channels with
            `idempotent_send` hand it to the platform.
        draft: More will follow by edits; false for the final text.
        plain: Send the plain form; set after a platform refused the markup.
        reply_to: The message this answers, where the platform can show that.
        receipts: What the answer proves, shown with the message and never as its text.
    """

    rendered: Rendered
    key: str
    draft: bool = False
    plain: bool = False
    reply_to: str | None = None
    receipts: tuple[CheckedReceipt, ...] = ()


class OutgoingFile(Value):
    """One file on its way out.

    Attributes:
        name: As people see it: one name of at most 100 characters, no path.
        media_type: What it says of itself; nothing has looked into it.
        content: All of it, at most as much as the capabilities say.
        key: As `Outgoing.key`.
        caption: Plain text that stands with it, at most 700 characters; empty for none.
        reply_to: As `Outgoing.reply_to`.
    """

    name: str
    media_type: str
    content: Hidden[bytes]
    key: str
    caption: str = ""
    reply_to: str | None = None


class Accepted(Value):
    """The event is stored; the platform may be told that it was received."""


class Duplicate(Value):
    """The event was stored before; the platform may be told the same again."""


class Ignored(Value):
    """The event concerns no room; nothing is stored and nothing is answered."""


class Answered(Value):
    """The event is stored, or decides nothing; `text` may be shown to its sender alone, or be lost.

    Attributes:
        reply_wanted: The text asks for a reason; the press counts when it comes again with one.
    """

    text: str
    reply_wanted: bool = False


Admission = Accepted | Duplicate | Ignored | Answered
