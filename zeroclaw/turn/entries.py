"""What the journal of a conversation holds: one entry for each thing that must not be lost.

Most entries are events of the turn, with what people and audits need besides; `journal.fold` makes
history and machine state of them again. Classes and fields are a stored form: renaming one
needs a new version and a reader of the old.
"""

from datetime import datetime
from typing import Literal, cast

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from zeroclaw import codec
from zeroclaw.envelope import ActionId, ApprovalId, ItemId, Principal, TurnId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate.taint import Source
from zeroclaw.gate.verdict import Verdict
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from zeroclaw.turn.batch import Fill, Outcome
from zeroclaw.turn.states import DoneReason, Limits
from zeroclaw.value import Value

VERSION = 1


class TurnOpened(Value):
    """A turn began; its user message joins the history.

    Attributes:
        item: The inbox item that it answers.
        correlation: The id that the whole turn carries (S0-08).
        kind: `tool` for a person's own call, without the model; `compact` for a summary that they
            asked for; `unheard` for a message without
            words that no transcriber here can listen to, which the model is not asked about.
        call: Of kind `tool`; it joins the history as an assistant message of the runtime.
        context_heavy: The turn began with a compaction.
        late_s: For how long its message had waited, 0 when that was not long.
        unheard: Something came with its message that no transcriber here can listen to.
        own: What its person wrote themselves, each message of it.
        untrusted: Where untrusted text in its first request came from, the history's included;
            None where an older release wrote the entry, which did not know.
        notes: The numbers of the notes that its requests hold, unless they are forgotten since.
    """

    turn: TurnId
    item: ItemId
    principal: Principal
    correlation: str
    user: UserMessage
    limits: Limits
    at: datetime
    kind: Literal["chat", "tool", "retry", "unheard", "compact"] = "chat"
    call: ToolCall | None = None
    context_heavy: bool = False
    late_s: float = 0.0
    unheard: bool = False
    own: tuple[str, ...] = ()
    untrusted: tuple[Source, ...] | None = None
    notes: tuple[int, ...] = ()


class AssistantReceived(Value):
    """The model asked for tools; an answer without calls is part of `TurnFinished`.

    Attributes:
        shown: The text as people saw it, None when that is the content.
    """

    message: AssistantMessage
    usage: Usage
    at: datetime
    shown: str | None = None


class Gated(Value):
    """The gate spoke about the open batch, one verdict for each call in request order."""

    verdicts: tuple[Verdict, ...]
    at: datetime


class AnswerTaken(Value):
    """An approval ended.

    Attributes:
        by: Who answered, for people; empty for the deadline.
        result: What the model reads instead of a result; None when it was approved.
        receipt: The token at the end of the result, empty for none.
    """

    approval: ApprovalId
    how: Literal["approved", "denied", "expired", "unreachable"]
    at: datetime
    by: str = ""
    result: ToolMessage | None = None
    receipt: str = ""


class CallStarted(Value):
    """A call is about to run; without this entry it has not."""

    action: ActionId
    at: datetime


class CallFinished(Value):
    """A call has its result.

    Attributes:
        receipt: The token at the end of the result, empty for none.
        usage: Of a sub-agent.
        untrusted: Where untrusted text in the result came from.
    """

    action: ActionId
    result: ToolMessage
    outcome: Outcome
    at: datetime
    receipt: str = ""
    usage: Usage = NO_USAGE
    untrusted: tuple[Source, ...] = ()


class BatchAppended(Value):
    """The results of the open batch joined the history, in request order.

    Attributes:
        word: What the runtime tells the model behind them, empty for nothing.
        loop: The tools whose calls went in circles, which ends the turn; empty for none.
    """

    at: datetime
    context_heavy: bool = False
    word: str = ""
    loop: tuple[str, ...] = ()


class Steered(Value):
    """The running turn took another message of its person, after a complete batch.

    Attributes:
        own: As in `TurnOpened`; of an edit empty.
        untrusted: Where untrusted text in it came from.
    """

    user: UserMessage
    item: ItemId
    at: datetime
    own: tuple[str, ...] = ()
    untrusted: tuple[Source, ...] = ()


class Compacted(Value):
    """A summary stands for older messages; they stay in the journal.

    Attributes:
        summary: Of everything but the kept messages, earlier summaries included.
        kept: How many of the newest messages stay as they are.
        usage: What making it took.
        pinned: Where the message of the open turn stands that stays before them, counted from the
            end; 0 where it is one of them.
        tools: What the conversation had loaded by then, see `offers.Loaded`; so that nothing before
            this entry has to be read.
        skills: Likewise.
    """

    summary: str
    kept: int
    at: datetime
    usage: Usage = NO_USAGE
    pinned: int = 0
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


class RequestLost(Value):
    """Requests to the model came to nothing, and were paid for.

    Attributes:
        usage: What they took.
    """

    usage: Usage
    at: datetime


class TurnResumed(Value):
    """A restart took the open turn up again."""

    at: datetime


class TurnFinished(Value):
    """The turn is over.

    Attributes:
        message: The assistant's last word, None for nothing.
        fills: Results of calls that the end cut short.
        usage: Of the whole turn.
        note: What the person was told besides, empty for nothing.
    """

    reason: DoneReason
    usage: Usage
    at: datetime
    message: AssistantMessage | None = None
    fills: tuple[Fill, ...] = ()
    note: str = ""


class Noted(Value):
    """Something the model should know later, such as a late edit.

    Attributes:
        text: What the model reads.
        why: Why the runtime wrote it; never empty.
        untrusted: Where untrusted text in it came from.
    """

    text: str
    why: str
    at: datetime
    untrusted: tuple[Source, ...] = ()


Recorded = Gated | AnswerTaken | CallStarted | CallFinished | BatchAppended | Compacted
"""Entries that are events of the machine: it steps with what is written, now and when it is read."""

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


class _Versioned(Struct):
    """An entry as it is written, not yet read."""

    version: int
    entry: Raw


_READER = Decoder(_Versioned)


def encode(entry: Entry) -> bytes:
    """Return one line of JSON with its version; texts come back character for character."""
    return b'{"version":%d,"entry":%b}' % (VERSION, codec.encode(entry))


def decode(body: bytes) -> Entry:
    """Read an entry back.

    Raises:
        StoreUnusable: It is damaged, or a newer zeroclaw wrote it.
    """
    try:
        stored = _READER.decode(body)
        if stored.version == VERSION:
            # codec.decode returns one of the union's members or raises.
            return cast("Entry", codec.decode(cast("type[object]", Entry), bytes(stored.entry)))
    except (MsgspecError, StoreUnusable) as error:
        message = (
            f"a journal entry is damaged: {error}; restore the data directory from a backup, or "
            "start the newer zeroclaw that wrote it"
        )
        raise StoreUnusable(message) from error
    message = (
        f"a journal entry is of version `{stored.version}`, which this zeroclaw does not know "
        f"(its own is {VERSION}); start the newer one that wrote it"
    )
    raise StoreUnusable(message)
