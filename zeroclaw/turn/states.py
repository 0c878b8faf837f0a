"""The seven states of a turn (S4-03), and what they share."""

from typing import Literal, assert_never

from zeroclaw.envelope import ActionId
from zeroclaw.events import StageName
from zeroclaw.limits.prices import Price
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolMessage, Usage
from zeroclaw.text.language import Language
from zeroclaw.turn.batch import Batch, Fill
from zeroclaw.value import Value

DoneReason = Literal[
    "model_stop", "max_turns", "user_abort", "error", "budget_exceeded", "loop_detected"
]


CompactionCause = Literal["heavy", "overflow", "asked"]


class Limits(Value):
    """What one turn may use; fixed when it begins.

    Attributes:
        max_rounds: Batches of tool calls; with N of them run, model call N+1 is refused (K1).
        max_tokens: Input and output of the whole turn, sub-agents included; None for no cap.
        max_micros: What its tokens may cost, in millionths of a US dollar; None for no cap.
        price: Of its tokens; None where it is not known, and nothing is capped.
        max_repeats: Rounds that tell the model nothing new until the turn ends (K22), see `loop_detection`; 0
            for never.
        warn_repeats: Until the model is told; 0 for never.
    """

    max_rounds: int = 50
    max_tokens: int | None = None
    max_micros: int | None = None
    price: Price | None = None
    max_repeats: int = 0
    warn_repeats: int = 0


class Progress(Value):
    """What every state but the last carries.

    Attributes:
        limits: What the turn may use.
        rounds: Batches run and appended.
        requests: Requests sent to the model, repeats included; the number of the newest.
        usage: Tokens reported so far.
        said: The text of the turn's earlier answers, as shown; the draft goes on below it (K4).
        reasked: The answer being waited for was cut once and asked for again (K5).
        forced: The answer being waited for overflowed once and the history was compacted.
        direct: A person called a tool; there are no model calls in this turn.
        warned: Its person was told that it nears one of its limits.
        language: What its person reads about it.
    """

    limits: Limits
    rounds: int = 0
    requests: int = 0
    usage: Usage = NO_USAGE
    said: str = ""
    reasked: bool = False
    forced: bool = False
    direct: bool = False
    warned: bool = False
    language: Language = "en"

    @property
    def asks_again(self) -> bool:
        """The model is asked once more when the batch under way is appended."""
        return not self.direct and self.rounds + 1 < self.limits.max_rounds


class Thinking(Value):
    """The next request is being composed and sent: COMPOSE_REQUEST and SEND_REQUEST.

    Attributes:
        shown: Text of a cut answer that is still on the screen.
    """

    progress: Progress
    shown: str = ""


class Streaming(Value):
    """The model answers: STREAM_RESPONSE.

    Attributes:
        shown: What of this answer is on the screen; of the cut one before it until the first
            text comes.
        fresh: `shown` is this answer's.
    """

    progress: Progress
    shown: str = ""
    fresh: bool = False


class Confirming(Value):
    """A person decides about some calls of a batch, and nothing of it runs: TOOL_CALL."""

    progress: Progress
    batch: Batch


class Executing(Value):
    """A batch is gated, run and appended: TOOL_CALL."""

    progress: Progress
    batch: Batch


class Dispatching(Value):
    """A sub-agent does one call of a batch: TOOL_CALL.

    Attributes:
        action: The call.
    """

    progress: Progress
    batch: Batch
    action: ActionId


class Compacting(Value):
    """Older turns are being replaced by a summary, before the next COMPOSE_REQUEST.

    Attributes:
        cause: `heavy` is before a request that may be too large, `overflow` after one that was,
            `asked` where a person wished for it and no request follows.
        shown: As in `Thinking`.
    """

    progress: Progress
    cause: CompactionCause
    shown: str = ""


class Done(Value):
    """The turn is over, and is to be recorded and rendered: RENDER.

    Attributes:
        reason: One of S4-17.
        usage: Everything that was reported.
        text: All the text of the turn, for the person; may be empty.
        note: A sentence for the person when the answer is not whole, empty when it is.
        why: Why it failed, for operators, where the note tells its person less; else empty.
        message: What joins the history as the assistant's last word, None for nothing.
        results: Of the batch that the end cut short, one for each call; empty for none.
        fills: Those of them that the end itself filled in.
    """

    reason: DoneReason
    usage: Usage
    text: str = ""
    note: str = ""
    why: str = ""
    message: AssistantMessage | None = None
    results: tuple[ToolMessage, ...] = ()
    fills: tuple[Fill, ...] = ()


Asking = Thinking | Streaming | Compacting
Calling = Confirming | Executing | Dispatching
Running = Asking | Calling
State = Running | Done


def stages(state: State) -> tuple[StageName, ...]:
    """Return the stages of S0 that lie inside a state, in order.

    `receive_input` lies before the first state: what it makes is what a turn begins with.
    """
    match state:
        case Thinking():
            return ("compose_request", "send_request")
        case Streaming():
            return ("stream_response",)
        case Confirming() | Executing() | Dispatching():
            return ("tool_call",)
        case Compacting():
            return ("compose_request",)
        case Done():
            return ("render",)
        case _:
            assert_never(state)
