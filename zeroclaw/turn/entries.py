"""The entries of a conversation's journal: one for each fact that must not be lost.

Most entries are events of the turn, with more fields for people and audits; `journal.fold` rebuilds
the history and the machine's state from them. Classes and fields are a stored form: renaming one
needs a new version and a reader of the old one.
"""

from datetime import datetime
from typing import Literal, cast

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from zeroclaw import codec
from zeroclaw.envelope import ActionId, ApprovalId, ItemId, Principal, TurnId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate.taint import Source
from zeroclaw.gate.verdict import Verdict
from zeroclaw.message import (
    NO_USAGE,
    AssistantMessage,
    ToolCall,
    ToolMessage,
    ToolOutcome,
    Usage,
    UserMessage,
)
from zeroclaw.turn.batch import Fill
from zeroclaw.turn.states import DoneReason, TurnLimits
from zeroclaw.value import Value

VERSION = 1


class TurnOpened(Value):
    """A turn began; its user message joins the history.

    Attributes:
        item: The inbox item that it answers.
        correlation: The id that the whole turn carries (S0-08).
        kind: `tool` for a person's own call, without the model; `compact` for a summary that a
            person requested; `unheard` for a message without words whose audio no transcriber here
            can handle, so the model is not asked.
        call: The call of kind `tool`; joins the history as the runtime's assistant message.
        context_heavy: The turn began with a compaction.
        late_s: How long its message had waited; 0 if that was not long.
        unheard: Its message came with audio that no transcriber here can handle.
        own: The texts that the person wrote themselves, one for each message.
        untrusted: The sources of untrusted text in its first request, history included; None if an
            older release wrote the entry without recording them.
        notes: The numbers of the notes in its requests, unless forgotten since.
        wrote: The writer of the message that a retry repeats, as `Principal.id`; empty if that is
            the requester.
    """

    turn: TurnId
    item: ItemId
    principal: Principal
    correlation: str
    user: UserMessage
    limits: TurnLimits
    at: datetime
    kind: Literal["chat", "tool", "retry", "unheard", "compact"] = "chat"
    call: ToolCall | None = None
    context_heavy: bool = False
    late_s: float = 0.0
    unheard: bool = False
    own: tuple[str, ...] = ()
    untrusted: tuple[Source, ...] | None = None
    notes: tuple[int, ...] = ()
    wrote: str = ""


class AssistantReceived(Value):
    """The model asked for tools; an answer without calls is part of `TurnFinished`.

    Attributes:
        shown: The text as people saw it; None if it equals the content.
        untrusted: The sources of untrusted text that only requests of this turn contained.
    """

    message: AssistantMessage
    usage: Usage
    at: datetime
    shown: str | None = None
    untrusted: tuple[Source, ...] = ()


class Gated(Value):
    """The gate decided on the open batch, one verdict for each call in request order."""

    verdicts: tuple[Verdict, ...]
    at: datetime


class AnswerTaken(Value):
    """An approval ended.

    Attributes:
        by: Who answered, as shown to people; empty for the deadline.
        result: The refusal that the model reads instead of a result; None if the call was approved.
        receipt: The token at the end of the result, or empty.
    """

    approval: ApprovalId
    how: Literal["approved", "denied", "expired", "unreachable"]
    at: datetime
    by: str = ""
    result: ToolMessage | None = None
    receipt: str = ""


class CallStarted(Value):
    """A call is about to run; without this entry it has not run."""

    action: ActionId
    at: datetime


class CallFinished(Value):
    """A call has its result.

    Attributes:
        receipt: The token at the end of the result, or empty.
        usage: The usage of a sub-agent.
        untrusted: The sources of untrusted text in the result.
    """

    action: ActionId
    result: ToolMessage
    outcome: ToolOutcome
    at: datetime
    receipt: str = ""
    usage: Usage = NO_USAGE
    untrusted: tuple[Source, ...] = ()


class BatchAppended(Value):
    """The results of the open batch joined the history, in request order.

    Attributes:
        word: The runtime's warning to the model after them, or empty.
        loop: The tools whose calls repeat in a loop, which ends the turn; or empty.
    """

    at: datetime
    context_heavy: bool = False
    word: str = ""
    loop: tuple[str, ...] = ()


class Steered(Value):
    """The running turn took in another message of its person, after a complete batch.

    Attributes:
        own: As in `TurnOpened`; empty for an edit.
        untrusted: The sources of untrusted text in it.
    """

    user: UserMessage
    item: ItemId
    at: datetime
    own: tuple[str, ...] = ()
    untrusted: tuple[Source, ...] = ()


class Compacted(Value):
    """A summary replaces older messages in the history; they stay in the journal.

    Attributes:
        summary: Covers everything except the kept messages, earlier summaries included.
        kept: How many of the newest messages stay as they are.
        usage: The cost of the summary.
        pinned: The position, counted from the end, of the open turn's message that stays before
            them; 0 if it is one of them.
        tools: The tools that the conversation had loaded by then, see `offers.Loaded`; so nothing
            before this entry has to be read.
        skills: The loaded skills, likewise.
    """

    summary: str
    kept: int
    at: datetime
    usage: Usage = NO_USAGE
    pinned: int = 0
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


class RequestLost(Value):
    """Requests to the model yielded no answer, and were paid for.

    Attributes:
        usage: Their cost.
    """

    usage: Usage
    at: datetime


class TurnResumed(Value):
    """A restart resumed the open turn."""

    at: datetime


class TurnFinished(Value):
    """The turn is over.

    Attributes:
        message: The assistant's last message, None for none.
        fills: Results of calls that the end cut short.
        usage: The usage of the whole turn.
        note: The sentence that the person read below the answer, or empty.
        untrusted: As in `AssistantReceived`.
    """

    reason: DoneReason
    usage: Usage
    at: datetime
    message: AssistantMessage | None = None
    fills: tuple[Fill, ...] = ()
    note: str = ""
    untrusted: tuple[Source, ...] = ()


class Noted(Value):
    """A note for the model's later requests, such as a late edit.

    Attributes:
        text: The text for the model.
        why: The reason why the runtime wrote it; never empty.
        untrusted: The sources of untrusted text in it.
        by: The editor, as `Principal.id`; empty for the runtime, and in earlier releases.
    """

    text: str
    why: str
    at: datetime
    untrusted: tuple[Source, ...] = ()
    by: str = ""


Recorded = Gated | AnswerTaken | CallStarted | CallFinished | BatchAppended | Compacted
"""Entries that are also events of the machine: it steps with them when written and when read."""

Entry = (
    TurnOpened
    | AssistantReceived
    | Recorded
    | RequestLost
    | Steered
    | TurnResumed
    | TurnFinished
    | Noted
)


def writers_of(entry: Entry) -> tuple[str, ...]:
    """Return the ids of the principals who began a turn, wrote its message or edited one, if known."""
    if isinstance(entry, TurnOpened):
        return entry.principal.id, entry.wrote
    return (entry.by,) if isinstance(entry, Noted) else ()


class _Versioned(Struct):
    """The envelope of a stored entry, whose entry is not decoded yet."""

    version: int
    entry: Raw


_READER = Decoder(_Versioned)


def encode(entry: Entry) -> bytes:
    """Return one line of JSON with its version; texts survive character for character."""
    return b'{"version":%d,"entry":%b}' % (VERSION, codec.encode(entry))


def decode(body: bytes) -> Entry:
    """Read an entry back.

    Raises:
        RecordUnreadable: It is damaged, or a newer zeroclaw wrote it.
    """
    try:
        stored = _READER.decode(body)
        if stored.version == VERSION:
            # codec.decode returns one of the union's members or raises.
            return cast("Entry", codec.decode(cast("type[object]", Entry), bytes(stored.entry)))
    except (MsgspecError, RecordUnreadable) as error:
        message = (
            f"a journal entry is damaged: {error}; restore the data directory from a backup, or "
            "start the newer zeroclaw that wrote it"
        )
        raise RecordUnreadable(message) from error
    message = (
        f"a journal entry is of version `{stored.version}`, which this zeroclaw does not know "
        f"(its own is {VERSION}); start the newer one that wrote it"
    )
    raise RecordUnreadable(message)
