"""How a turn ends before or with its whole answer, and what its person is told."""

from typing import Literal, assert_never

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import ActionId
from zeroclaw.message import AssistantMessage
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.turn import batch as slots
from zeroclaw.turn.signals import AbortRequested, CancelCalls, Effect, Finish
from zeroclaw.turn.states import NO_USAGE, Asking, Done, DoneReason, Running

Mark = Literal["", "stopped", "interrupted"]


def joined(said: str, text: str) -> str:
    """Return two answers of one turn as one text, a blank line between them."""
    return f"{said}\n\n{text}" if said and text else said or text


def said(text: str) -> tuple[Done, tuple[Effect, ...]]:
    """Begin a turn that is over: the runtime answers itself, and no model is asked."""
    message = AssistantMessage(content=text, mark="runtime")
    return finished(Done(reason="model_stop", usage=NO_USAGE, text=text, message=message))


def finish(
    state: Running, reason: DoneReason, note: str, mark: Mark = "", *, why: str = ""
) -> tuple[Done, tuple[Effect, ...]]:
    """End a turn before its answer is whole; what was shown stays, every call gets a result."""
    usage, before = state.progress.usage, state.progress.said
    if isinstance(state, Asking):
        message = None
        if state.shown:
            message = AssistantMessage(content=state.shown, mark=mark, is_error=reason == "error")
        text = joined(before, state.shown)
        return finished(
            Done(reason=reason, usage=usage, text=text, note=note, why=why, message=message)
        )
    results, fills = slots.closed(state.batch)
    ended = Done(
        reason=reason, usage=usage, text=before, note=note, why=why, results=results, fills=fills
    )
    return finished(ended, slots.active(state.batch))


def finished(done: Done, running: tuple[ActionId, ...] = ()) -> tuple[Done, tuple[Effect, ...]]:
    """Return the end and its effects: calls that still run are cancelled first."""
    cancel = (CancelCalls(actions=running),) if running else ()
    return done, (*cancel, Finish(done=done))


def abort_note(event: AbortRequested, language: Language) -> str:
    """Say who ended the turn, and how."""
    by = catalogue.BY.about(who=by_whom(event.by)) if event.by else ""
    match event.cause:
        case "stop":
            return catalogue.STOPPED.to(language, by=by)
        case "new":
            return catalogue.STOPPED_FOR_NEW.to(language, by=by)
        case "halt":
            return catalogue.STOPPED_BY_HALT.to(language, by=by)
        case "revoked":
            return catalogue.STOPPED_AS_REVOKED.to(language, by=by)
        case "interrupt" if event.by:
            return catalogue.INTERRUPTED_BY.to(language, who=event.by)
        case "interrupt":
            return catalogue.INTERRUPTED.to(language)
        case _:
            assert_never(event.cause)


def whole_note(message: AssistantMessage, language: Language) -> str:
    """Say what is missing from an answer that the model ended itself; empty for nothing."""
    match message.finish_reason:
        case "length":
            return catalogue.CUT_AT_THE_LIMIT.to(language)
        case "content_filter":
            return catalogue.CUT_BY_A_FILTER.to(language)
        case _:
            return "" if message.content else catalogue.NO_TEXT.to(language)
