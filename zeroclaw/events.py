"""What the runtime tells its subscribers; projection only (S0-52).

Removing every subscriber changes no answer, and a slow or broken one delays no turn (P9): events
are published without waiting, and a subscriber's own queue is its own affair.
"""

from collections.abc import Callable
from typing import Literal

from zeroclaw.envelope import ActionId, ConversationId, TurnId
from zeroclaw.foreign import Raised, call_now
from zeroclaw.message import Usage
from zeroclaw.value import Value

StageName = Literal[
    "receive_input", "compose_request", "send_request", "stream_response", "tool_call", "render"
]


class TurnStarted(Value):
    """A turn began; exactly one for each turn (S0-11).

    Attributes:
        correlation: The id that the whole turn carries (S0-08).
    """

    conversation: ConversationId
    turn: TurnId
    correlation: str


class StageEntered(Value):
    """A stage of the turn began (S0-01)."""

    turn: TurnId
    correlation: str
    stage: StageName


class TextStreamed(Value):
    """Redacted text arrived from the model (S0-22).

    Attributes:
        text: What was added.
    """

    turn: TurnId
    correlation: str
    text: str


class ToolDecided(Value):
    """The gate decided about a call."""

    turn: TurnId
    correlation: str
    action: ActionId
    tool: str
    verdict: Literal["allow", "ask", "deny"]


class ToolStarted(Value):
    """A call began to run."""

    turn: TurnId
    correlation: str
    action: ActionId
    tool: str


class ToolEnded(Value):
    """A call has its result."""

    turn: TurnId
    correlation: str
    action: ActionId
    tool: str
    outcome: Literal["ok", "failed", "denied", "cancelled", "unknown"]


class TurnEnded(Value):
    """A turn is over; exactly one for each turn, whatever the reason (S0-40, S4-19)."""

    conversation: ConversationId
    turn: TurnId
    correlation: str
    reason: str
    usage: Usage
    text: str


class ContextLeftOut(Value):
    """A request goes without what a Context Provider was to add.

    Attributes:
        name: Of the provider, or of its text.
        why: In one line; no word of the text.
    """

    turn: TurnId
    correlation: str
    name: str
    why: str


Event = (
    TurnStarted
    | StageEntered
    | ContextLeftOut
    | TextStreamed
    | ToolDecided
    | ToolStarted
    | ToolEnded
    | TurnEnded
)
Publish = Callable[[Event], None]
"""Tell all subscribers; never waits, never raises."""


class Bus:
    """Hands each event to every subscriber, in the order that they subscribed."""

    def __init__(self, failed: Callable[[Raised], None]) -> None:
        """Begin without subscribers; `failed` is told what one raised."""
        self._subscribers: tuple[Publish, ...] = ()
        self._failed = failed

    def subscribe(self, subscriber: Publish) -> Callable[[], None]:
        """Hand over every event from now on; the answer ends it."""
        self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(one for one in self._subscribers if one is not subscriber)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Tell all subscribers; what one of them raises stops no other."""
        for subscriber in self._subscribers:
            told = call_now(lambda one=subscriber: one(event))
            if isinstance(told, Raised):
                self._failed(told)
