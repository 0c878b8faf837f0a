"""Events of a turn (past tense) and effects that it requests (imperative).

An event that the journal stores is an entry, see `entries.Recorded`; the others are here. Each
effect names the events that answer it. It gets exactly one answer, failure included, unless it says
"No answer".
"""

from zeroclaw.conversation.inbox import Cause
from zeroclaw.envelope import ActionId
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, ToolMessage, Usage
from zeroclaw.turn.entries import Recorded
from zeroclaw.turn.states import CompactionCause
from zeroclaw.value import Value

# --- events --------------------------------------------------------------------------------------


class RequestSent(Value):
    """The request was composed and is on its way, or its answer begins anew; its outcome follows."""

    request: int


class TextArrived(Value):
    """More of the answer, redacted and screened, may be shown.

    Attributes:
        is_last: The answer ended with this text, so `ResponseReceived` follows at once.
    """

    request: int
    text: str
    is_last: bool = False


class ResponseReceived(Value):
    """The stream was read to its end.

    Attributes:
        shown: Its text as people saw it, receipts marked; None if that equals the content.
    """

    request: int
    message: AssistantMessage
    usage: Usage
    shown: str | None = None


class StreamCut(Value):
    """The stream broke before its end; none of its calls has run.

    Attributes:
        usage: Its cost all the same; without the input if the endpoint did not report it.
    """

    request: int
    usage: Usage = NO_USAGE


class RequestFailed(Value):
    """The model can't be asked, and a retry would not help.

    Attributes:
        text: One sentence for the person.
        detail: The failure for operators, if the text tells the person less; else empty.
        usage: As in `StreamCut`, if an answer had begun.
    """

    request: int
    text: str
    detail: str = ""
    usage: Usage = NO_USAGE


class ContextOverflowed(Value):
    """The request is larger than the model's window.

    Attributes:
        window: The window in tokens, if the endpoint named it.
    """

    request: int
    window: int | None = None


class CompactionFailed(Value):
    """Nothing was replaced and nothing is lost (K13).

    Attributes:
        text: The reason, in one sentence for a person who requested the summary.
        usage: The cost of its requests all the same.
    """

    text: str
    usage: Usage = NO_USAGE


class AbortRequested(Value):
    """A person ended the turn, or the runtime did on someone's behalf.

    Attributes:
        by: The person who ended it, by name; or empty.
        usage: The cost of the interrupted requests.
    """

    cause: Cause
    by: str = ""
    usage: Usage = NO_USAGE


class BudgetReached(Value):
    """The usage budget of a conversation, a person or a day is used up, by this turn and others.

    Attributes:
        text: Which budget, and when it is available again, in one sentence for the person.
    """

    text: str


class TurnFailed(Value):
    """The runtime gives up on the turn: a fault of its own, or too many restarts.

    Attributes:
        text: The reason, in one sentence for the person.
    """

    text: str


RequestEvent = (
    RequestSent | TextArrived | ResponseReceived | StreamCut | RequestFailed | ContextOverflowed
)
"""Events about one request to the model; those of an older request number are ignored."""

Event = RequestEvent | Recorded | CompactionFailed | AbortRequested | BudgetReached | TurnFailed


# --- effects -------------------------------------------------------------------------------------


class SendRequest(Value):
    """Compose a request from the history and stream the answer.

    Report `RequestSent` when it leaves and `TextArrived` as text arrives; answered by
    `ResponseReceived`, `StreamCut`, `RequestFailed` or `ContextOverflowed`.

    Attributes:
        request: Its number in the turn; every event about it has the same number.
    """

    request: int


class ShowText(Value):
    """Show this draft, which is the whole text of the turn so far. No answer.

    Attributes:
        is_last: The model has finished the text.
    """

    text: str
    is_last: bool = False


class GateBatch(Value):
    """Gate these calls together, serially in this order; answered by `Gated`."""

    calls: tuple[ToolCall, ...]


class AwaitAnswers(Value):
    """Wait until every approval of the batch has ended; answered by one `AnswerTaken` for each."""


class CheckCalls(Value):
    """Check these calls one last time, concurrently: guards, resources, policy, snapshot.

    Each is answered by `CallStarted`, or by `CallFinished` if it may not run after all.
    """

    actions: tuple[ActionId, ...]


class RunCall(Value):
    """Run a cleared call; answered by `CallFinished`."""

    action: ActionId


class RecordUnknown(Value):
    """A restart lost the outcome of this call; answered by a `CallFinished` of `unknown`."""

    action: ActionId


class AppendBatch(Value):
    """Append the results to the history in this order; answered by `BatchAppended`."""

    results: tuple[ToolMessage, ...]


class Compact(Value):
    """Replace older turns by a summary; answered by `Compacted` or `CompactionFailed`."""

    cause: CompactionCause


Effect = (
    SendRequest
    | ShowText
    | GateBatch
    | AwaitAnswers
    | CheckCalls
    | RunCall
    | RecordUnknown
    | AppendBatch
    | Compact
)
