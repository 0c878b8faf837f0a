"""Values that the tests of the turn are built from."""

from datetime import UTC, datetime
from typing import cast

from zeroclaw import codec
from zeroclaw.envelope import ActionId, ApprovalId, ItemId, Principal, TurnId
from zeroclaw.gate.verdict import Allowed, Asked, Denied
from zeroclaw.message import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from zeroclaw.turn import entries
from zeroclaw.turn.entries import TurnOpened
from zeroclaw.turn.machine import Step, begin, step
from zeroclaw.turn.signals import Event, RequestSent, ResponseReceived
from zeroclaw.turn.states import State, TurnLimits

AT = datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=UTC)
DEADLINE = datetime(2026, 11, 21, 12, 5, tzinfo=UTC)
LIMITS = TurnLimits(max_rounds=3)
USED = Usage(input_tokens=10, output_tokens=2)
USER = UserMessage(content="What's the weather in NYC and London?")
SAM = Principal(
    id="person:sam", roles=frozenset({"operator", "admin"}), channel="web", sender="1", display="S"
)


def call(name: str = "get_weather", call_id: str = "call_0", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def calls(count: int) -> tuple[ToolCall, ...]:
    """Calls that all carry the same id, as some models write them."""
    return tuple(call(f"tool_{position}") for position in range(count))


def action(name: str) -> ActionId:
    return ActionId(name)


def approval(name: str) -> ApprovalId:
    return ApprovalId(f"ask-{name}")


def result(text: str, call_id: str = "call_0", name: str = "") -> ToolMessage:
    return ToolMessage(content=text, tool_call_id=call_id, tool_name=name)


def allowed(name: str, *, sequential: bool = False) -> Allowed:
    return Allowed(action=action(name), sequential=sequential)


def asked(name: str) -> Asked:
    return Asked(action=action(name), approval=approval(name), deadline_at=DEADLINE)


def denied(name: str, receipt: str = "") -> Denied:
    return Denied(action=action(name), result=result(f"{name}: no"), receipt=receipt)


def opened(kind: str = "chat", limits: TurnLimits = LIMITS, turn: str = "turn-1") -> TurnOpened:
    tool = call("shell", arguments='{"command": "ls"}') if kind == "tool" else None
    return TurnOpened(
        turn=TurnId(turn),
        item=ItemId("item-1"),
        principal=SAM,
        correlation="correlation-1",
        user=USER,
        limits=limits,
        at=AT,
        kind="tool" if kind == "tool" else "retry" if kind == "retry" else "chat",
        call=tool,
    )


def answer(text: str = "", *made: ToolCall, request: int = 1) -> ResponseReceived:
    message = AssistantMessage(content=text, tool_calls=made)
    return ResponseReceived(request=request, message=message, usage=USED)


def run(stepped: Step, *events: Event) -> Step:
    """Step through the events; the effects are those of the last one."""
    for event in events:
        stepped = step(stepped[0], event)
    return stepped


def streaming(limits: TurnLimits = LIMITS) -> State:
    return run(begin(limits), RequestSent(request=1))[0]


def gating(count: int, text: str = "", limits: TurnLimits = LIMITS) -> State:
    """A turn whose model has just made so many calls."""
    return run((streaming(limits), ()), answer(text, *calls(count)))[0]


def gated(*verdicts: Allowed | Asked | Denied, limits: TurnLimits = LIMITS) -> Step:
    """The step that the gate's verdicts make."""
    return step(gating(len(verdicts), limits=limits), entries.Gated(at=AT, verdicts=verdicts))


def stored(state: State) -> State:
    """A state as it comes back once it was written down, which it can be between any two steps."""
    return cast("State", codec.decode(cast("type[object]", State), codec.encode(state)))
