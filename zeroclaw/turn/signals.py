"""What happens to a turn (events, past tense) and what it asks for (effects, imperative).

An event that the journal keeps is its entry, see `entries.Recorded`; the others are here.
Each effect names the events that answer it. Exactly one of them comes for each question, failure
included; the effects that say "no answer" ask nothing.
"""

from typing import Literal

from zeroclaw.envelope import ActionId, ApprovalId
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, ToolMessage, Usage
from zeroclaw.turn.entries import Recorded
from zeroclaw.turn.states import CompactionCause, Done
from zeroclaw.value import Value

AbortCause = Literal["stop", "new", "halt", "revoked", "interrupt"]
"""Why a turn is ended from outside. A shutdown is none of them: it takes no step at all, and the
turn is resumed from its journal."""


# --- events --------------------------------------------------------------------------------------


class RequestSent(Value):
    """The request is composed and on its way; its outcome follows."""

    request: int


class TextArrived(Value):
    """More of the answer may be shown: redacted and screened.

    Attributes:
        is_last: The answer's end came with it, so `ResponseReceived` follows at once.
    """

    request: int
    text: str
    is_last: bool = False


class ResponseReceived(Value):
    """The stream was read to its end.

    Attributes:
        shown: Its text as people saw it, receipts marked; None when that is the content.
    """

    request: int
    message: AssistantMessage
    usage: Usage
    shown: str | None = None


class StreamCut(Value):
    """The stream broke before its end; nothing of it has run.

    Attributes:
        usage: What it took all the same; without the input where the endpoint did not say.
    """

    request: int
    usage: Usage = NO_USAGE


class RequestFailed(Value):
    """The model can't be asked, for good.

    Attributes:
        text: One sentence for the person.
        why: The same for operators, where they are told more; else empty.
        usage: As of `StreamCut`, where an answer had begun.
    """

    request: int
    text: str
    why: str = ""
    usage: Usage = NO_USAGE


class ContextOverflowed(Value):
    """The request is larger than the model's window.

    Attributes:
        window: In tokens, where the endpoint named it.
    """

    request: int
    window: int | None = None


class CompactionFailed(Value):
    """Nothing was replaced, nothing is lost (K13).

    Attributes:
        text: Why, in one sentence for a person who asked for it.
        usage: What its requests took all the same.
    """

    text: str
    usage: Usage = NO_USAGE


class AbortRequested(Value):
    """A person ended the turn, or the runtime did for one.

    Attributes:
        by: Who, for people.
        usage: What the requests took that were under way.
    """

    cause: AbortCause
    by: str = ""
    usage: Usage = NO_USAGE


class BudgetReached(Value):
    """What a conversation, a person or a day may use is used up, by this turn and others.

    Attributes:
        text: What, and when it goes on, in one sentence for the person.
    """

    text: str


class TurnFailed(Value):
    """The runtime gives the turn up: a fault of its own, or too many restarts.

    Attributes:
        text: Why, in one sentence for the person.
    """

    text: str


RequestEvent = (
    RequestSent | TextArrived | ResponseReceived | StreamCut | RequestFailed | ContextOverflowed
)
"""About one request to the model; news of an older one is ignored by its number."""

Event = RequestEvent | Recorded | CompactionFailed | AbortRequested | BudgetReached | TurnFailed


# --- effects -------------------------------------------------------------------------------------


class SendRequest(Value):
    """Compose a request from the history and stream the answer.

    Tell `RequestSent` when it leaves and `TextArrived` as text comes; answered by
    `ResponseReceived`, `StreamCut`, `RequestFailed` or `ContextOverflowed`.

    Attributes:
        request: Its number in the turn; every event about it carries it.
    """

    request: int


class ShowText(Value):
    """Show this as the draft; it is the whole text of the turn so far. No answer.

    Attributes:
        is_last: The model has said all of it.
    """

    text: str
    is_last: bool = False


class GateBatch(Value):
    """Gate these calls together, serially in this order; answered by `Gated`."""

    calls: tuple[ToolCall, ...]


class AwaitAnswers(Value):
    """Ask; answered for each approval by `AnswerTaken`."""

    approvals: tuple[ApprovalId, ...]


class CheckCalls(Value):
    """Check these calls a last time, side by side: guards, resources, policy, snapshot.

    Answered for each by `CallStarted`, or by `CallFinished` when it may not run after all.
    """

    actions: tuple[ActionId, ...]


class RunCall(Value):
    """Run a cleared call; answered by `CallFinished`."""

    action: ActionId


class Dispatch(Value):
    """Let a sub-agent do a cleared call; answered by `CallFinished` with its usage."""

    action: ActionId


class RecordUnknown(Value):
    """A restart hid the outcome of this call: answered by `CallFinished` as `unknown`."""

    action: ActionId


class CancelCalls(Value):
    """Stop these calls. No answer; what they still report is ignored."""

    actions: tuple[ActionId, ...]


class AppendBatch(Value):
    """Append the results to the history in this order; answered by `BatchAppended`."""

    results: tuple[ToolMessage, ...]


class Compact(Value):
    """Replace older turns by a summary; answered by `Compacted` or `CompactionFailed`."""

    cause: CompactionCause


class Finish(Value):
    """Stop all that still runs for the turn, then record and render its end. No answer."""

    done: Done


Effect = (
    SendRequest
    | ShowText
    | GateBatch
    | AwaitAnswers
    | CheckCalls
    | RunCall
    | Dispatch
    | RecordUnknown
    | CancelCalls
    | AppendBatch
    | Compact
    | Finish
)
