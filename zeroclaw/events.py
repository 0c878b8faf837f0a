"""The events that the runtime publishes to subscribers; a projection only (S0-52).

Removing all subscribers changes no answer, and a slow or broken one delays no turn (P9): `publish`
never waits, and each subscriber manages its own queue.
"""

from collections.abc import Callable
from typing import Literal

from zeroclaw.envelope import ActionId, ConversationId, TurnId
from zeroclaw.foreign import Raised, call_now
from zeroclaw.message import ToolOutcome, Usage
from zeroclaw.value import Value

StageName = Literal[
    "receive_input", "compose_request", "send_request", "stream_response", "tool_call", "render"
]


class TurnStarted(Value):
    """A turn began; exactly one for each turn (S0-11)."""


class StageEntered(Value):
    """A stage of the turn began (S0-01)."""

    stage: StageName


class TextStreamed(Value):
    """Redacted text arrived from the model (S0-22).

    Attributes:
        text: The added text.
    """

    text: str


class ToolDecided(Value):
    """The gate decided on a call."""

    action: ActionId
    tool: str
    verdict: Literal["allow", "ask", "deny"]


class ToolStarted(Value):
    """A call began to run."""

    action: ActionId
    tool: str


class ToolEnded(Value):
    """A call has a result."""

    action: ActionId
    tool: str
    outcome: ToolOutcome


class TurnEnded(Value):
    """A turn ended; exactly one for each turn, whatever the reason (S0-40, S4-19)."""

    reason: str
    usage: Usage
    text: str


class ContextLeftOut(Value):
    """A request is sent without the text of a context provider.

    Attributes:
        name: The provider's name, or the text's.
        why: One line; never quotes the text.
    """

    name: str
    why: str


Happening = (
    TurnStarted
    | StageEntered
    | ContextLeftOut
    | TextStreamed
    | ToolDecided
    | ToolStarted
    | ToolEnded
    | TurnEnded
)


class Event(Value):
    """Something that happened to a turn.

    Attributes:
        correlation: The id shared by everything in the turn (S0-08).
    """

    conversation: ConversationId
    turn: TurnId
    correlation: str
    what: Happening


Publish = Callable[[Event], None]
"""Tell all subscribers; never waits, never raises."""


class Bus:
    """Delivers each event to every subscriber, in the order that they subscribed."""

    def __init__(self, failed: Callable[[Raised], None]) -> None:
        """Start without subscribers; `failed` is called with whatever a subscriber raises."""
        self._subscribers: tuple[Publish, ...] = ()
        self._failed = failed

    def subscribe(self, subscriber: Publish) -> None:
        """Deliver every event from now on."""
        self._subscribers = (*self._subscribers, subscriber)

    def publish(self, event: Event) -> None:
        """Call every subscriber; one that raises does not stop the others."""
        for subscriber in self._subscribers:
            result = call_now(lambda subscriber=subscriber: subscriber(event))
            if isinstance(result, Raised):
                self._failed(result)
