"""How a turn ends before or with its whole answer, and what its person is told."""

from typing import Literal, assert_never

from zeroclaw.envelope import ActionId
from zeroclaw.message import AssistantMessage
from zeroclaw.turn import batch as slots
from zeroclaw.turn.signals import AbortRequested, CancelCalls, Effect, Finish
from zeroclaw.turn.states import Asking, Done, DoneReason, Running

Mark = Literal["", "stopped", "interrupted"]

PERHAPS_DONE = "earlier tool calls may already have completed successfully"


def joined(said: str, text: str) -> str:
    """Return two answers of one turn as one text, a blank line between them."""
    return f"{said}\n\n{text}" if said and text else said or text


def finish(
    state: Running, reason: DoneReason, note: str, mark: Mark = ""
) -> tuple[Done, tuple[Effect, ...]]:
    """End a turn before its answer is whole; what was shown stays, every call gets a result."""
    usage, said = state.progress.usage, state.progress.said
    if isinstance(state, Asking):
        message = None
        if state.shown:
            message = AssistantMessage(content=state.shown, mark=mark, is_error=reason == "error")
        text = joined(said, state.shown)
        return finished(Done(reason=reason, usage=usage, text=text, note=note, message=message))
    results, fills = slots.closed(state.batch)
    ended = Done(reason=reason, usage=usage, text=said, note=note, results=results, fills=fills)
    return finished(ended, slots.active(state.batch))


def finished(done: Done, running: tuple[ActionId, ...] = ()) -> tuple[Done, tuple[Effect, ...]]:
    """Return the end and its effects: calls that still run are cancelled first."""
    cancel = (CancelCalls(actions=running),) if running else ()
    return done, (*cancel, Finish(done=done))


def abort_note(event: AbortRequested) -> str:
    """Say who ended the turn, and how."""
    by = f" by {event.by}" if event.by else ""
    match event.cause:
        case "stop":
            return f"stopped{by}"
        case "new":
            return f"stopped: a new conversation was begun{by}"
        case "halt":
            return f"stopped: everything was halted{by}"
        case "revoked":
            return f"stopped: you may no longer talk to me{by}"
        case "interrupt":
            return f"interrupted by a newer message{f' of {event.by}' if event.by else ''}"
        case _:
            assert_never(event.cause)


def whole_note(message: AssistantMessage) -> str:
    """Say what is missing from an answer that the model ended itself; empty for nothing."""
    match message.finish_reason:
        case "length":
            return "the answer was cut off at the model's output limit"
        case "content_filter":
            return "the model's content filter cut the answer off"
        case _:
            return "" if message.content else "the model finished without a text"
