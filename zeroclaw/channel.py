"""The contract of a channel: adapter, capabilities, approval cards."""

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
from zeroclaw.menu import NO_MENU, Menu
from zeroclaw.mount import Mount
from zeroclaw.text.language import Language, Localized
from zeroclaw.value import Hidden, Value


class Budget(Value):
    """A token bucket that a platform enforces.

    Attributes:
        per_s: Calls a second in the long run; 0 means no limit.
        burst: Calls at once.
    """

    per_s: float = 0.0
    burst: int = 1


class Capabilities(Value):
    """What a channel can do, as data; each is proven by the contract suite.

    Attributes:
        max_length: In the units of the channel's own `measure`.
        can_edit: `edit` works; false means one flush at the end.
        can_delete: `delete` works.
        min_edit_interval_s: Seconds between two edits of one message; 0 for none.
        chat_budget: Sends and edits in one chat.
        group_budget: Those in one chat that several people read; None: as `chat_budget`.
        account_budget: Sends and edits of the whole account.
        edit_budget: Of these the edits, where the platform counts them so and in no chat's budget.
        has_buttons: Cards carry buttons; else calls are numbered.
        has_threads: Addresses may have a thread.
        multi_message: A long reply may stream as a sequence of messages.
        native_draft: `preview` shows text in direct chats that is not sent; it vanishes when a
            message of the bot comes, or after a while.
        idempotent_send: A repeated send with the same key shows one message.
        has_typing: `typing` shows something.
        names_tools: It shows which tools are at work, below a text as well.
        can_lookup: `mark` and `lookup` find a message whose answer was lost.
        may_repeat: What may have arrived, and can't be looked for, is sent again and marked; else
            it is given up, and the operator is told.
        max_file_bytes: The largest file that `send_file` takes; 0 where it takes none.
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

    A model, a tool or a stranger wrote most of it: show it through `escape_invisible`, so that what is
    approved is what was read (P5).

    Attributes:
        approval: The opaque id that a button carries; unguessable.
        number: For text channels, `/approve <number>`; counts per approver chat, never reused.
        tool: The tool's name.
        summary: The tool's own line about this call.
        arguments: The whole call as JSON, in which what can't be seen is escaped; shown whole.
        why: Why it needs approval, in a sentence.
        scope: What "for a time" would let run, as a line; empty where it is not offered.
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
    """A question to an approver: the asks of one batch.

    Attributes:
        key: The same for every attempt to show this card.
        asked_by: Who set the turn off, for people.
        calls: In request order, at least one.
        deadline_at: When silence becomes a denial.
        choices: What may be answered, in the order of buttons.
        language: What is read where it is shown; `CardWords` has its fixed words.
    """

    key: str
    asked_by: str
    calls: tuple[CardCall, ...]
    deadline_at: datetime
    choices: tuple[Choice, ...] = ("once", "for_a_time", "deny")
    language: Language = "en"


class Ending(Value):
    """How one call's question ended.

    Attributes:
        approval: Which.
        how: `approved`, `denied`, `expired`, or `stopped` (its turn ended first).
        by: Who, for people; empty when no person did.
        at: When.
        reason: The denial's reason, empty for none.
    """

    approval: ApprovalId
    how: Literal["approved", "denied", "expired", "stopped"]
    by: str
    at: datetime
    reason: str = ""


class Outcome(Value):
    """A card and what has ended of it; complete when every call has an ending."""

    card: Card
    endings: tuple[Ending, ...]


class ToolProgress(Value):
    """How one call of the turn stands, as people may read it; its arguments stay out.

    Attributes:
        key: The call's, the same as long as it is told of; opaque.
        tool: The tool's name, looked at as all that people read.
        state: `failed` is all that did not end well, and what was cut short.
    """

    key: str
    tool: str
    state: Literal["running", "ok", "failed"]


Admit = Callable[[Envelope], Awaitable[Admission]]

Postable = Outgoing | OutgoingFile | Card
"""What may be posted, and so looked up where its answer was lost."""


class LookupResult(Value):
    """What one lookup has shown.

    Attributes:
        ref: Where it stands, None where it was not seen.
        since: The mark from which to look on. Where there is nothing more to look at, it serves for
            what is sent from now on as well: what was not given yet is looked at again.
        is_over: There is nothing more to look at now.
    """

    ref: MessageRef | None = None
    since: str = ""
    is_over: bool = True


class Channel(Protocol):
    """One bot account on one platform.

    Every call that goes out raises what it must: `RateLimited`, `ChannelUnavailable` (nothing
    arrived, try again), `ChannelRejected` (do not), `DeliveryUnknown` (it may have arrived),
    `ChannelUnauthorized`, `NotSupported` (the capabilities said so). Nothing is ever silently
    ignored. Calls come concurrently.
    """

    @property
    def name(self) -> str:
        """The name in the configuration."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this account can do; constant once `receive` has begun."""
        ...

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Run until cancelled; hand over every event, in platform order, at least once.

        Calls `ready` once, when events can arrive. An event is confirmed to the platform only
        after its `admit` returned; when `admit` raises it is not confirmed.

        Raises:
            ChannelUnavailable: The supervisor starts it again, with back-off.
            ChannelUnauthorized: The operator must act; it is not started again by itself.
        """
        ...

    def render(self, markdown: str) -> Rendered:
        """Turn Markdown into the platform's syntax; pure, never fails."""
        ...

    def measure(self, rendered: Rendered) -> int:
        """Return the length as the platform counts it, to hold against `max_length`; pure."""
        ...

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message."""
        ...

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Post a file with its caption, as one message."""
        ...

    def mark(self, to: Address) -> str:
        """Return where the newest message of a chat is known to stand, for `lookup`; never waits.

        Opaque and short, and good for other processes of this account as well; empty where
        nothing is known.
        """
        ...

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Make one call to find a message that may stand in a chat, or the next such call.

        One that is found shows the content. Nothing else in the chat is changed, provided that
        all the account's other messages there that are newer than the mark are named.

        Args:
            to: The chat that it was sent to.
            content: As it was sent.
            since: The mark from before it was sent, or what the last lookup returned.
            apart: The platform's ids of messages that are known to be others.
            before: The platform's id of a message that was sent later, where there is one: what
                has not been seen up to there does not stand. Without it the platform may have
                put the message further on than can be told.

        Raises:
            DeliveryUnknown: It can't be told; looking it up again is no use.
            ChannelUnavailable: The lookup itself has failed; it may be made again.
        """
        ...

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text by the whole of `outgoing`; equal text is no error.

        Of a file it is what stands with it, in plain text.
        """
        ...

    async def delete(self, ref: MessageRef) -> None:
        """Remove a message; one that is gone already is no error."""
        ...

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post an approval card."""
        ...

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show how a card ended, on the card or in a message after it; idempotent."""
        ...

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:
        """Show that the bot is at work; `NotSupported` also where a chat has no place for it.

        Args:
            to: Where.
            doing: The calls of the newest batch that began to run, all of them each time, where
                the capabilities say `names_tools`; others show the same without it.
        """
        ...

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        """Show a text in a direct chat without sending it; the same again is no error.

        It takes the place of what was previewed there, and counts as the same text that grows
        while the key stays the same. Beside what a capability lacks, `NotSupported` says here
        that the platform knows no previews after all, and it is not asked again.
        """
        ...

    def direct_address(self, sender: str) -> Address | None:
        """Return the direct chat with this sender, None when the platform needs them first."""
        ...

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Get an attachment's bytes, however often it is asked.

        Reads no further than `max_bytes`, whatever size was claimed: what is larger, what is gone
        and what is not this channel's raises `ChannelRejected`.
        """
        ...

    async def aclose(self) -> None:
        """Free what is held; safe twice."""
        ...


TranscriptKind = Literal["person", "bot", "note", "card"]


class SentFile(Value):
    """A file of the bot's, as it stands in a chat; `ChannelContext.sent_file` has its bytes."""

    name: str
    size_bytes: int


class TranscriptItem(Value):
    """One thing that stands in a chat.

    Attributes:
        kind: Who wrote it, or what it is.
        text: Redacted Markdown, as it was rendered from.
        at: When.
        cursor: Sorts as the chat reads; ask for what comes after it. Empty for what is not stored.
        key: The message's key, as in `Outgoing.key` or `Card.key`; empty for people's own.
        ref: The platform's id where one is known, else empty.
        plain: The text is no Markdown, but to be shown letter by letter.
        draft: More will follow.
        outcome: The card and its endings, for cards.
        files: What people called the files that came with their message; untrusted.
        sent: The file that the message is, with `text` for its caption; None for others.
        receipts: As in `Outgoing`.
        by: Who wrote it, for people; empty for the bot, and where all of a chat is the reader's own.
    """

    kind: TranscriptKind
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


class ChannelLog(Protocol):
    """Where an adapter writes facts: an event in the past tense and its fields, no bodies."""

    def __call__(self, event: str, /, **fields: object) -> None:
        """Record one fact."""
        ...


class Refusals(Counter[str]):
    """Counts what strangers are refused, by the reason; of a flood the first, second, fourth are logged."""

    def __init__(self, log: ChannelLog, event: str, *, level: str = "info") -> None:
        """Log each as `event`."""
        super().__init__()
        self._log, self._event, self._level = log, event, level

    def note(self, why: str) -> None:
        """Count one."""
        self[why] += 1
        count = self[why]
        if count & (count - 1) == 0:  # a power of two, so that a flood fills no log
            self._log(self._event, why=why, count=count, level=self._level)


async def no_file(_address: Address, _key: str) -> OutgoingFile | None:
    """Return no file, where none is kept."""
    return None


async def on_record(_address: Address) -> bool:
    """Tell that a chat is on record, where none can be off it."""
    return False


async def tell_nobody(_says: Localized) -> None:
    """Tell it to nobody, where there are no operators."""


S = TypeVar("S")


class ChannelContext(Value):
    """All that an adapter is handed.

    Attributes:
        name: The name in the configuration.
        settings: An instance of the manifest's model, validated; `settings_as` narrows it.
        secrets: What the `SecretReference`s of the settings stand for, by field name, for those in
            a model within the model `<field>.<field>`; those that are not set are missing. Not
            part of the representation.
        clock: The only source of time.
        mount: The daemon's local doors.
        log: Facts without bodies.
        positions: Cursor by scope, as committed with the last admissions; grows with each one, for
            the adapter that is made after this one.
        account: Whose positions they are, empty where there are none, or of several. By it an
            adapter can name chats before the platform has told it who it is: what a restart cut off
            has something to tell at once.
        transcript: What stands in a chat, in order, after a cursor (empty: from the newest
            200), the open draft and open cards included.
        directory: For files that must outlive a restart; this channel's own, readable by nobody
            else. None where there is no such place.
        sent_file: A file that was sent to a chat, by its key; None for what was not sent there, or
            is no longer kept.
        is_off_the_record: Whether what is said in a chat may reach no disk just now; what comes with
            it an adapter keeps in memory then.
        menu: The commands, for platforms that list them; those of the start.
        tell: Tells every operator, in their language, of what a person should look at; it is on
            record when this returns. Asked again it tells again.
    """

    name: str
    settings: object
    secrets: Hidden[Mapping[str, str]]
    clock: Clock
    mount: Mount
    log: ChannelLog
    positions: Mapping[str, str]
    account: str = ""
    transcript: Callable[[Address, str], Awaitable[tuple[TranscriptItem, ...]]]
    directory: Path | None = None
    sent_file: Callable[[Address, str], Awaitable[OutgoingFile | None]] = no_file
    is_off_the_record: Callable[[Address], Awaitable[bool]] = on_record
    menu: Menu = NO_MENU
    tell: Callable[[Localized], Awaitable[None]] = tell_nobody

    def settings_as(self, model: type[S]) -> S:
        """Return the settings, which must be of this model."""
        if not isinstance(self.settings, model):
            message = f"the settings of `{self.name}` must be `{model.__name__}`"
            raise TypeError(message)
        return self.settings
