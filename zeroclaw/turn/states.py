"""The states of a turn (S4-03), and the values they share."""

from collections.abc import Mapping
from typing import Literal

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


class TurnLimits(Value, stored_as="Limits"):
    """The limits of one turn; fixed when it begins.

    Attributes:
        max_rounds: Batches of tool calls; after N batches, model call N+1 is refused (K1).
        max_tokens: Input and output tokens of the whole turn, sub-agents included; None for no cap.
        max_micros: Cost of its tokens, in millionths of a US dollar; None for no cap.
        price: The price of its tokens; None if unknown, and then cost is not capped.
        max_repeats: Repeated rounds after which the turn ends (K22), see `loop_detection`; 0 for
            never.
        warn_repeats: Repeated rounds after which the model is warned; 0 for never.
    """

    max_rounds: int = 50
    max_tokens: int | None = None
    max_micros: int | None = None
    price: Price | None = None
    max_repeats: int = 0
    warn_repeats: int = 0


class Progress(Value):
    """The data that every state except `Done` has.

    Attributes:
        limits: The limits of the turn.
        rounds: Batches that were run and appended.
        requests: Requests sent to the model, retries included; the number of the newest.
        usage: Tokens reported so far.
        text: The text of the turn's earlier answers, as shown; the draft continues below it (K4).
        retried: The current answer was cut off once and requested again (K5).
        overflowed: The current request overflowed once and the history was compacted.
        direct: A person called a tool; this turn makes no model calls.
        warned: The person got a note that the turn is close to one of its limits.
        language: The language of texts for the person.
    """

    limits: TurnLimits
    rounds: int = 0
    requests: int = 0
    usage: Usage = NO_USAGE
    text: str = ""
    retried: bool = False
    overflowed: bool = False
    direct: bool = False
    warned: bool = False
    language: Language = "en"

    @property
    def asks_again(self) -> bool:
        """Whether the model is asked again after the current batch is appended."""
        return not self.direct and self.rounds + 1 < self.limits.max_rounds


class Thinking(Value):
    """The next request is being composed and sent: COMPOSE_REQUEST and SEND_REQUEST.

    Attributes:
        shown: Text of an answer that was cut off and is still on the screen.
    """

    progress: Progress
    shown: str = ""


class Streaming(Value):
    """The model is answering: STREAM_RESPONSE.

    Attributes:
        shown: The part of this answer that is on the screen; until the first text arrives, the
            answer that was cut off before it.
        has_begun: `shown` belongs to this answer.
    """

    progress: Progress
    shown: str = ""
    has_begun: bool = False


class Confirming(Value):
    """A person decides about some calls of a batch; no call of it runs meanwhile: TOOL_CALL."""

    progress: Progress
    batch: Batch


class Executing(Value):
    """A batch is being gated, run and appended: TOOL_CALL."""

    progress: Progress
    batch: Batch


class Compacting(Value):
    """Older turns are being replaced by a summary, before the next COMPOSE_REQUEST.

    Attributes:
        cause: `heavy` is before a request that may be too large, `overflow` after one that was,
            `asked` when a person requested it and no model request follows.
        shown: As in `Thinking`.
    """

    progress: Progress
    cause: CompactionCause
    shown: str = ""


class Done(Value):
    """The turn is over; the runner has yet to record and render it: RENDER.

    Attributes:
        reason: One of S4-17.
        usage: All tokens that were reported.
        text: All the text of the turn, for the person; may be empty.
        note: A sentence for the person if the answer is incomplete, else empty.
        detail: The failure for operators, if the note tells the person less; else empty.
        message: The assistant's last message, for the history; None if there is none.
        results: Results of the batch that the end cut short, one for each call, or empty.
        fills: Those of them that the end itself filled in.
    """

    reason: DoneReason
    usage: Usage
    text: str = ""
    note: str = ""
    detail: str = ""
    message: AssistantMessage | None = None
    results: tuple[ToolMessage, ...] = ()
    fills: tuple[Fill, ...] = ()


Asking = Thinking | Streaming | Compacting
Calling = Confirming | Executing
Running = Asking | Calling
State = Running | Done

STAGES: Mapping[type[State], tuple[StageName, ...]] = {
    Thinking: ("compose_request", "send_request"),
    Streaming: ("stream_response",),
    Confirming: ("tool_call",),
    Executing: ("tool_call",),
    Compacting: ("compose_request",),
    Done: ("render",),
}
"""The stages of S0 that each state covers, in order. `receive_input` comes before the first state: it
makes the turn's message."""
