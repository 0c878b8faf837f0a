"""The contract of a channel: adapter, capabilities, approval cards, menu of commands, manifest."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from zeroclaw.clock import Clock
from zeroclaw.envelope import (
    Address,
    Admission,
    ApprovalId,
    Attachment,
    CheckedReceipt,
    Choice,
    Envelope,
    MessageRef,
    Outgoing,
    OutgoingFile,
    Rendered,
)
from zeroclaw.mount import Mount
from zeroclaw.text.language import Language, Localized
from zeroclaw.value import Hidden, Value, field


class Budget(Value):
    """A rate limit that a platform enforces, as a token bucket.

    Attributes:
        per_s: Sustained calls per second; 0 means no limit.
        burst: Calls allowed at once.
    """

    per_s: float = 0.0
    burst: int = 1


class Capabilities(Value):
    """The capabilities of a channel, as data; the contract suite proves each one.

    Attributes:
        max_length: The longest message, in the units of the channel's own `measure`.
        can_edit: `edit` works. Without it a reply is sent once, when it is complete.
        can_delete: `delete` works.
        min_edit_interval_s: Seconds between two edits of one message; 0 for none.
        chat_budget: Limit on sends and edits in one chat.
        group_budget: The same for a chat that several people read; None to use `chat_budget`.
        account_budget: Limit on sends and edits of the whole account.
        edit_budget: Limit on the account's edits, for a platform that counts edits per account and
            not per chat.
        has_buttons: Cards carry buttons. Without them, calls are numbered and answered by number.
        has_threads: Addresses may have a thread.
        multi_message: A reply may be a sequence of messages while it is written: a long one, or one
            that goes on below a card.
        native_draft: `preview` shows unsent text in a direct chat. The text vanishes when the bot
            sends a message, or after a while.
        idempotent_send: Repeating a send with the same key to the same address still shows one
            message.
        has_typing: `typing` shows something.
        names_tools: `typing` shows which tools are running, even while text is visible.
        can_lookup: `mark` and `lookup` can find a message whose send was never confirmed.
        may_repeat: A send with an unknown outcome that can't be looked up is repeated, marked as a
            possible repeat. Otherwise it is given up, and operators get a notice.
        max_file_bytes: The largest file that `send_file` takes; 0 if it takes none.
    """

    max_length: int
    can_edit: bool
    can_delete: bool
    min_edit_interval_s: float = 0.0
    chat_budget: Budget = Budget()
    group_budget: Budget | None = None
    account_budget: Budget = Budget()
    edit_budget: Budget = Budget()
    has_buttons: bool = False
    has_threads: bool = False
    multi_message: bool = True
    native_draft: bool = False
    idempotent_send: bool = False
    has_typing: bool = False
    names_tools: bool = False
    can_lookup: bool = False
    may_repeat: bool = True
    max_file_bytes: int = 0


class CardCall(Value):
    """One call on a card.

    Most of it was written by a model, a tool or a stranger. Show it through `escape_invisible`, so
    that what people approve is what they read (P5).

    Attributes:
        approval: The opaque, unguessable id that a button carries: at most 43 ASCII characters, so
            that a button of every platform can.
        number: For `/approve <number>` on channels without buttons; counts per chat, never reused.
        tool: The tool's name.
        summary: The tool's own line about this call.
        arguments: The whole call as JSON with invisible characters escaped; never shortened.
        why: The reason why it needs approval, in a sentence.
        scope: One line on what "for a time" would let run; empty if that choice is not offered.
        hash8: The first 8 hex digits of the action's hash.
    """

    approval: ApprovalId
    number: int
    tool: str
    summary: str
    arguments: str
    why: str
    hash8: str
    scope: str = ""


class Card(Value):
    """An approval request as an approver sees it: the calls of one batch that need a decision.

    Attributes:
        key: The same for every attempt to show this card, in each approver's chat.
        asked_by: The name of the person whose turn made the calls.
        calls: In request order, at least one.
        deadline_at: When an unanswered request is denied.
        choices: The possible answers, in button order.
        language: The language of the card's reader; `CardWords` has the fixed words.
    """

    key: str
    asked_by: str
    calls: tuple[CardCall, ...]
    deadline_at: datetime
    choices: tuple[Choice, ...] = ("once", "for_a_time", "deny")
    language: Language = "en"


class Ending(Value):
    """How the approval request of one call ended.

    Attributes:
        approval: The approval's id.
        how: `approved`, `denied`, `expired`, or `stopped` (its turn ended first).
        by: The name of the person who ended it; empty if no person did.
        at: When it ended.
        reason: The denial's reason, empty for none.
    """

    approval: ApprovalId
    how: Literal["approved", "denied", "expired", "stopped"]
    by: str
    at: datetime
    reason: str = ""


class Outcome(Value):
    """A card and the endings so far; complete when every call has one."""

    card: Card
    endings: tuple[Ending, ...]


class ToolProgress(Value):
    """The state of one tool call of the turn, for people; leaves out the arguments.

    Attributes:
        key: Identifies the call across updates; opaque.
        tool: The tool's name, screened like all text that people read.
        state: `failed` covers every bad ending, interrupted calls included.
    """

    key: str
    tool: str
    state: Literal["running", "ok", "failed"]


Admit = Callable[[Envelope], Awaitable[Admission]]

Postable = Outgoing | OutgoingFile | Card
"""The values that can be posted, and looked up when their send was never confirmed."""


class LookupResult(Value):
    """The result of one lookup call.

    Attributes:
        ref: The message, None if it was not found.
        since: The mark to continue from. After the last lookup it is also a valid mark for later
            sends: ids assigned since then are looked up again.
        is_over: Whether there is nothing more to look through for now.
    """

    ref: MessageRef | None = None
    since: str = ""
    is_over: bool = True


class Channel(Protocol):
    """One bot account on one platform.

    Every outgoing call reports failure by raising: `RateLimited`, `ChannelUnavailable` (nothing
    arrived, try again), `ChannelRejected` (do not), `DeliveryUnknown` (it may have arrived),
    `ChannelUnauthorized`, `NotSupported` (the capabilities rule it out). No call is ever silently
    ignored. Calls may be concurrent.
    """

    @property
    def name(self) -> str:
        """The channel's name in the configuration."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this account can do; constant once `receive` has begun."""
        ...

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Run until cancelled; pass every event to `admit`, in platform order, at least once.

        Call `ready` once, when events can arrive. Confirm an event to the platform only after its
        `admit` returned; if `admit` raises, do not confirm it.

        Raises:
            ChannelUnavailable: The supervisor restarts the channel, with back-off.
            ChannelUnauthorized: The operator must act; the channel is not restarted on its own.
        """
        ...

    def render(self, markdown: str) -> Rendered:
        """Turn Markdown into the platform's syntax; pure, never fails."""
        ...

    def measure(self, rendered: Rendered) -> int:
        """Return the length as the platform counts it, to compare with `max_length`; pure."""
        ...

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message."""
        ...

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Post a file with its caption, as one message."""
        ...

    def mark(self, to: Address) -> str:
        """Return a position at the chat's newest known message, for `lookup`; never waits.

        The mark is opaque and short, and other processes of this account can use it too. It is
        empty if no message is known.
        """
        ...

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Make one call, the first or the next, to find a message that may have been sent.

        A message that is found shows the content in the end. Nothing else in the chat changes,
        provided that `apart` names all of the account's other messages newer than the mark.

        Args:
            to: The chat that it was sent to.
            content: The content that was sent.
            since: The mark from before the send, or `since` of the last lookup result.
            apart: The platform's ids of messages that are known to be others.
            before: The platform's id of a message sent later, if there is one. If the lookup gets
                that far without a hit, the message does not exist. Without it, the platform may
                have put the message further on than a lookup can see.

        Raises:
            ChannelRejected: The platform refuses to show or to change it; another lookup is of no use.
            DeliveryUnknown: The platform can't tell; the same.
            ChannelUnavailable: The lookup call itself failed; it may be repeated.
        """
        ...

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text by the whole of `outgoing`; equal text is no error.

        For a file, replace its caption, in plain text.
        """
        ...

    async def delete(self, ref: MessageRef) -> None:
        """Delete a message; one that no longer exists is no error."""
        ...

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post an approval card."""
        ...

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show how a card ended, on the card or in a message after it; idempotent."""
        ...

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:
        """Show that the bot is working; raise `NotSupported` also if this chat can't show it.

        Args:
            to: The chat.
            doing: All calls of the newest batch that have begun to run, on every update. Used by
                channels with `names_tools`; others ignore it.
        """
        ...

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        """Show unsent text in a direct chat; repeating the same text is no error.

        The text replaces the chat's previous preview. Previews with the same key are one growing
        text. `NotSupported` may also mean that the platform turned out to have no previews; the
        caller then stops using them.
        """
        ...

    def direct_address(self, sender: str) -> Address | None:
        """Return the direct chat with a sender, None if they must write to the bot first."""
        ...

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Return an attachment's bytes; may be called repeatedly.

        Never reads more than `max_bytes`, whatever size was claimed. Raises `ChannelRejected` if
        the attachment is larger, no longer exists, or is not this channel's.
        """
        ...

    async def aclose(self) -> None:
        """Release all resources; safe to call twice."""
        ...


# --- the menu of commands ------------------------------------------------------------------------


class MenuEntry(Value):
    """One command.

    Attributes:
        name: Without the slash: lower-case letters, digits and underscores.
        does: Its description, by language; one short line without markup.
    """

    name: str
    does: Mapping[Language, str]


class Menu(Value):
    """The commands that work in private chats.

    Attributes:
        everyone: The commands for everyone, in order; empty to list none.
        operators: The commands for operators, in order.
        operator_senders: The platform's ids of this channel's operators.
        ask: Describes a command that asks the bot a question, for platforms whose commands are not
            messages.
        typed: Describes the text that is typed after a command.
    """

    everyone: tuple[MenuEntry, ...] = ()
    operators: tuple[MenuEntry, ...] = ()
    operator_senders: tuple[str, ...] = ()
    ask: Mapping[Language, str] = field(default_factory=dict[Language, str])
    typed: Mapping[Language, str] = field(default_factory=dict[Language, str])


# --- the context of an adapter, and the manifest of its package -------------------------------------


class SentFile(Value):
    """A file that the bot sent to a chat; `ChannelContext.sent_file` returns its bytes."""

    name: str
    size_bytes: int


class TranscriptItem(Value):
    """One item of a chat's transcript.

    Attributes:
        kind: The author (`person`, `bot`), or the type (`note`, `card`).
        text: The redacted Markdown that the message was rendered from.
        at: When it was written.
        cursor: Sorts in reading order; pass it to `transcript` to get the items after this one.
            Empty for items that are not stored.
        key: The message's key, as in `Outgoing.key` or `Card.key`; empty for people's own.
        ref: The platform's id of the message, empty if unknown.
        plain: The text is not Markdown; show it literally.
        draft: The text is still growing.
        outcome: The card and its endings, for cards.
        files: The names that people gave the files they attached; untrusted.
        sent: The file that this message is, with `text` as its caption; None for other messages.
        receipts: As in `Outgoing`.
        by: The author's name for people; empty for the bot, and in a chat where every message is
            the reader's own.
    """

    kind: Literal["person", "bot", "note", "card"]
    text: str
    at: datetime
    cursor: str = ""
    key: str = ""
    ref: str = ""
    plain: bool = False
    draft: bool = False
    outcome: Outcome | None = None
    files: tuple[str, ...] = ()
    sent: SentFile | None = None
    receipts: tuple[CheckedReceipt, ...] = ()
    by: str = ""


class Log(Protocol):
    """A room's log: an event name in the past tense and fields, no message bodies."""

    def __call__(self, event: str, /, **fields: object) -> None:
        """Record one fact."""
        ...


class Refusals(Counter[str]):
    """Counts refusals of strangers by reason; logs the 1st, 2nd, 4th, 8th … of each."""

    def __init__(self, log: Log, event: str, *, level: str = "info") -> None:
        """Start with no counts; log each refusal as `event`."""
        super().__init__()
        self._log, self._event, self._level = log, event, level

    def note(self, why: str) -> None:
        """Count one refusal."""
        self[why] += 1
        count = self[why]
        if count & (count - 1) == 0:  # powers of two only, so that a flood can't fill the log
            self._log(self._event, reason=why, count=count, level=self._level)


S = TypeVar("S")


class ChannelContext(Value):
    """The argument of an adapter: its settings and the services of the daemon.

    Attributes:
        name: The channel's name in the configuration.
        settings: A validated instance of the manifest's settings model; `settings_as` narrows it.
        secrets: The resolved `SecretReference`s of the settings by field name, `<field>.<field>`
            for nested models; unset ones are missing. Not part of the `repr`.
        clock: The only source of time.
        mount: Mounts routes and streams on the daemon's listeners.
        log: Logs events without message bodies.
        positions: Cursor by scope, as committed with the last admissions. Grows with each
            admission, for the adapter that is made after this one.
        account: The account that the positions belong to; empty if there are none or if they belong
            to several. With it, an adapter can name chats before the platform has said which
            account this is, so that answers cut off by a restart can be sent at once.
        transcript: Returns a chat's items in order after a cursor (empty: the newest 200),
            including the open draft and open cards.
        directory: This channel's private directory, for files that must outlive a restart.
        sent_file: Returns a file that was sent to a chat, by its key; None if it was not sent there
            or is no longer stored.
        is_off_the_record: Whether a chat is off the record now. If so, the adapter keeps the
            contents of its messages in memory and off the disk.
        menu: The commands, for platforms that list them; fixed at start.
        tell: Sends every operator a notice, in their language, about a problem that needs a person.
            The notice is stored by the time this returns; each call sends another one.
        admits: Whether ingress would admit a sender now, by the platform's verified id; for an
            adapter that has to make calls before an event is complete.
    """

    name: str
    settings: object
    secrets: Hidden[Mapping[str, str]]
    clock: Clock
    mount: Mount
    log: Log
    positions: Mapping[str, str]
    account: str
    transcript: Callable[[Address, str], Awaitable[tuple[TranscriptItem, ...]]]
    directory: Path
    sent_file: Callable[[Address, str], Awaitable[OutgoingFile | None]]
    is_off_the_record: Callable[[Address], Awaitable[bool]]
    menu: Menu
    tell: Callable[[Localized], Awaitable[None]]
    admits: Callable[[str], bool]

    def settings_as(self, model: type[S]) -> S:
        """Return the settings, which must be an instance of `model`."""
        if not isinstance(self.settings, model):
            message = f"the settings of `{self.name}` must be `{model.__name__}`"
            raise TypeError(message)
        return self.settings


class ChannelManifest(Value):
    """The manifest that an entry point of `zeroclaw.channels` names; importing it imports no SDK.

    Attributes:
        kind: The channel's `kind` in the configuration.
        adapter: `module:callable`; called with a `ChannelContext`, returns a `Channel`. The module is
            imported in a thread before that, so the import may be slow.
        needs: Modules that the extra named like the kind installs. If one is missing, the channel
            is not created, the platform is not contacted, and the channel's status line names the
            packages to install.
        settings: `module:Model`, the pydantic model of `[channels.<name>]` without the common keys.
        local_operator: Every sender on this channel is the operator (login link, own uid).
        check: `module:coroutine function`, empty for none. Asks the platform whether the settings
            and secrets are right, without receiving or sending messages. Takes the settings and
            the value of `ChannelContext.secrets`, returns one line about the account, and raises
            the same errors as the adapter.
        may_pair: Sender ids can't be forged, so an unknown sender may be answered with a pairing
            code. False rejects `pairing = "code"`.
        sender: A regular expression that matches a whole sender id; empty to accept any. A
            configured id that doesn't match is a fault: no sender can have it.
        asks: Text settings with a default that `init` asks for all the same, because most people
            have to set them.
        public: `module:function`, empty for never. Called with the settings; tells whether the
            platform calls this channel on the public listener.
    """

    kind: str
    adapter: str
    settings: str
    needs: tuple[str, ...] = ()
    local_operator: bool = False
    check: str = ""
    may_pair: bool = True
    sender: str = ""
    asks: tuple[str, ...] = ()
    public: str = ""

    def spelled(self, sender: str) -> str:
        """Return an id in its platform's letter case; empty if no sender can have it."""
        ids = (sender, sender.lower(), sender.upper())
        return next((id_ for id_ in ids if not self.sender or re.fullmatch(self.sender, id_)), "")
