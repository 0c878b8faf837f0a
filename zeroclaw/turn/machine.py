"""The turn's state machine: `step` returns the next state and its effects, and performs nothing.

              begin                                      begin_tool
                │                                             │
                ▼            calls in the answer              ▼        an ask
    ┌──────► Thinking ──► Streaming ─────────────────────► Executing ─────────► Confirming
    │           │ ▲           │  │ cut, once                   │ ▲                │  │
    │  too large│ └───────────┼──┘                             │ └────all ended───┘  │
    │           ▼             │ no calls                       │                     │
    ├────── Compacting        ▼                                │                     │
    │           ▲           Done ◄── abort, limit,             │        all denied   │
    │           │                    error, anywhere           │                     │
    │           └──── heavy ─────────── batch appended ────────┴─────────────────────┘
    └──────────────────────────────────────────┘

The stages of S0 map to states: RECEIVE_INPUT makes the arguments of `begin`; Thinking is
COMPOSE_REQUEST and SEND_REQUEST, Streaming is STREAM_RESPONSE, Confirming and Executing are
TOOL_CALL, Done is RENDER; Compacting prepares the next COMPOSE_REQUEST.

Rules. No call runs while the model still writes (K5), nor before every approval of the batch has
its answer. The text of one turn is one draft (K4). A batch leaves its state only when its results
are in the history. Late events (a call that ended, an approval that was decided, an older request,
a turn that is done) are legal and change nothing. The turn loop records each event before stepping
with it, so the journal contains exactly what the machine saw.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar, assert_never

from zeroclaw.card_words import by_whom
from zeroclaw.delivery.split import BREAK, BREAK_CHAR, closed
from zeroclaw.envelope import ActionId
from zeroclaw.gate.wording import result_for_people
from zeroclaw.limits.prices import ALL_PERCENT, WARN_PERCENT, dollars, rounds, tokens
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, Usage
from zeroclaw.text import catalogue
from zeroclaw.text.escape import is_visible
from zeroclaw.text.language import Language, Localized, LocalizedMessage, Sentence
from zeroclaw.turn import batch as slots
from zeroclaw.turn import entries, signals
from zeroclaw.turn.batch import Batch
from zeroclaw.turn.states import (
    Asking,
    Calling,
    Compacting,
    CompactionCause,
    Confirming,
    Done,
    DoneReason,
    Executing,
    Progress,
    Running,
    State,
    Streaming,
    Thinking,
    TurnLimits,
)
from zeroclaw.value import replace

Step = tuple[State, tuple[signals.Effect, ...]]
_Running = TypeVar("_Running", bound=Running)


def begin(limits: TurnLimits, *, language: Language = "en", context_heavy: bool = False) -> Step:
    """Begin a turn whose user message is in the history.

    Args:
        limits: The limits of the turn.
        language: The language of texts for its person.
        context_heavy: Compact first, if possible (K11).
    """
    progress = Progress(limits=limits, language=language)
    return _compact(progress, "heavy") if context_heavy else _ask(progress)


def begin_tool(call: ToolCall, limits: TurnLimits, *, language: Language = "en") -> Step:
    """Begin a turn without model calls: a person's own tool call, through the same gate.

    The history has the user message and an assistant message with this one call. The result is
    the answer.
    """
    return _gate(Progress(limits=limits, language=language, direct=True), (call,))


def begin_compaction(limits: TurnLimits, *, language: Language = "en") -> Step:
    """Begin a turn without an answer of the model: a person requested a summary."""
    progress = Progress(limits=limits, language=language, direct=True)
    return _compact(progress, "asked")


def step(state: State, event: signals.Event) -> Step:
    """Return the state after the event, and the effects to perform, in order.

    Raises:
        ValueError: A `Gated` has more or fewer verdicts than the batch has calls.
    """
    if isinstance(state, Done):
        return state, ()
    match event:
        case signals.AbortRequested():
            mark = "interrupted" if event.cause == "interrupt" else "stopped"
            note = abort_note(event, state.progress.language)
            return finish(add_usage(state, event.usage), "user_abort", note, mark)
        case signals.BudgetReached():
            return finish(state, "budget_exceeded", event.text, "stopped")
        case signals.TurnFailed():
            return finish(state, "error", event.text)
        case _:
            return _within_limits(*_step_running(state, event))


def add_usage(state: _Running, usage: Usage) -> _Running:
    """Return the state with this usage added."""
    if usage == NO_USAGE:
        return state
    progress = replace(state.progress, usage=state.progress.usage + usage)
    return replace(state, progress=progress)


def resume(state: State, *, rerun: frozenset[ActionId] = frozenset()) -> Step:
    """Return the state in which a stored turn continues after a restart, and its effects.

    The gate decides again only on a batch without verdicts; answers of approvers remain valid.

    Args:
        state: As stored or folded.
        rerun: Calls that may run again although they may have run: idempotent ones. All others
            that had started end as unknown (P3).
    """
    match state:
        case Thinking() | Streaming():
            return _ask(state.progress, state.shown)
        case Compacting():
            return state, (signals.Compact(cause=state.cause),)
        case Confirming() if slots.pending(state.batch):
            emptied = _emptied(state.progress.text.removesuffix(BREAK))
            return state, (*emptied, signals.AwaitAnswers())
        case Confirming() | Executing():
            return _resumed(state, rerun)
        case Done():
            return state, ()
        case _:
            assert_never(state)


def _step_running(state: Running, event: signals.Event) -> Step:
    match state:
        case Thinking() | Streaming():
            return _asking(state, event)
        case Compacting():
            return _compacting(state, event)
        case Confirming() | Executing():
            return _calling(state, event)
        case _:
            assert_never(state)


# --- asking the model ----------------------------------------------------------------------------


def _ask(progress: Progress, shown: str = "") -> Step:
    counted = replace(progress, requests=progress.requests + 1)
    return Thinking(progress=counted, shown=shown), (signals.SendRequest(request=counted.requests),)


def _asking(state: Thinking | Streaming, event: signals.Event) -> Step:
    if not isinstance(event, signals.RequestEvent) or event.request != state.progress.requests:
        return state, ()
    match event:
        case signals.RequestFailed():
            return finish(add_usage(state, event.usage), "error", event.text, detail=event.detail)
        case signals.ContextOverflowed() if state.progress.overflowed:
            return finish(state, "error", catalogue.TOO_LONG.to(state.progress.language))
        case signals.ContextOverflowed():
            return _compact(replace(state.progress, overflowed=True), "overflow", state.shown)
        case signals.RequestSent():  # sent again if the answer does not contain the text on screen
            is_again = isinstance(state, Streaming) and state.has_begun
            return Streaming(progress=state.progress, shown="" if is_again else state.shown), ()
        case _ if isinstance(state, Streaming):
            return _streaming(state, event)
        case _:
            return state, ()


def _streaming(
    state: Streaming, event: signals.TextArrived | signals.ResponseReceived | signals.StreamCut
) -> Step:
    progress = state.progress
    match event:
        case signals.TextArrived():
            shown = state.shown + event.text if state.has_begun else event.text
            draft = signals.ShowText(text=join_texts(progress.text, shown), is_last=event.is_last)
            return Streaming(progress=progress, shown=shown, has_begun=True), (draft,)
        case signals.StreamCut() if progress.retried:
            note = catalogue.ANSWER_CUT_TWICE.to(progress.language)
            return finish(add_usage(state, event.usage), "error", note)
        case signals.StreamCut():
            return _ask(replace(add_usage(state, event.usage).progress, retried=True), state.shown)
        case signals.ResponseReceived():
            return _on_response(progress, event)
        case _:
            assert_never(event)


def _on_response(progress: Progress, event: signals.ResponseReceived) -> Step:
    message = event.message
    shown = message.content if event.shown is None else event.shown
    after = replace(
        progress,
        usage=progress.usage + event.usage,
        text=join_texts(progress.text, shown),
        retried=False,
        overflowed=False,
    )
    if message.tool_calls:
        return _gate(after, message.tool_calls)
    done = Done(
        reason="model_stop",
        usage=after.usage,
        text=after.text,
        note=incomplete_note(message, after.language),
        message=message,
    )
    return done, ()


def _compact(progress: Progress, cause: CompactionCause, shown: str = "") -> Step:
    return Compacting(progress=progress, cause=cause, shown=shown), (signals.Compact(cause=cause),)


def _compacting(state: Compacting, event: signals.Event) -> Step:
    if not isinstance(event, entries.Compacted | signals.CompactionFailed):
        return state, ()
    progress = add_usage(state, event.usage).progress
    if state.cause != "asked":
        # After a failure the next request is cut, so the conversation continues (K13).
        return _ask(progress, state.shown)
    is_done = isinstance(event, entries.Compacted)
    text = catalogue.COMPACTED_NOW.to(progress.language) if is_done else event.text
    return answered_by_runtime(text, progress.usage)


# --- calling tools -------------------------------------------------------------------------------


def _gate(progress: Progress, calls: tuple[ToolCall, ...]) -> Step:
    batch = slots.allocate(calls)
    return Executing(progress=progress, batch=batch), (signals.GateBatch(calls=calls),)


def _emptied(text: str) -> tuple[signals.ShowText, ...]:
    """Return what takes away an answer that was cut off above a request; nothing if text stands there."""
    is_blank = not text or text.endswith(BREAK)
    return (signals.ShowText(text=text, is_last=True),) if is_blank else ()


def _calling(state: Calling, event: signals.Event) -> Step:
    match event:
        case entries.BatchAppended():
            return _on_batch_appended(state, event)
        case entries.AnswerTaken(approval=approval, result=result) if isinstance(state, Confirming):
            batch = slots.answered(state.batch, approval, result)
            return (state, ()) if batch == state.batch else _continue_batch(state, batch)
        case entries.Gated() if isinstance(state, Executing) and not slots.is_gated(state.batch):
            batch = slots.gated(state.batch, event.verdicts)
            if slots.pending(batch):
                # A person would not notice text that is added above the request.
                text = state.progress.text
                below = replace(state.progress, text=text + BREAK)
                waiting = Confirming(progress=below, batch=batch)
                return waiting, (*_emptied(text), signals.AwaitAnswers())
            return _continue_batch(state, batch)
        case entries.CallStarted() if isinstance(state, Executing):
            return _on_call_started(state, event.action)
        case entries.CallFinished() if isinstance(state, Executing):
            return _on_call_finished(state, event)
        case _:
            return state, ()


def _on_call_started(state: Executing, action: ActionId) -> Step:
    batch = slots.cleared(state.batch, action)
    if batch == state.batch:
        return state, ()
    return replace(state, batch=batch), (signals.RunCall(action=action),)


def _on_call_finished(state: Executing, event: entries.CallFinished) -> Step:
    batch = slots.ended(state.batch, event.action, event.result, event.outcome)
    if batch == state.batch:
        return state, ()
    progress = replace(state.progress, usage=state.progress.usage + event.usage)
    return _continue_batch(replace(state, progress=progress), batch)


def _continue_batch(state: Calling, batch: Batch) -> Step:
    """Start the calls that may start now; append the batch once it is complete."""
    batch, actions = slots.launched(batch)
    if slots.is_complete(batch):
        results = signals.AppendBatch(results=slots.results(batch))
        return replace(state, batch=batch), (results,)
    if actions:
        busy = Executing(progress=state.progress, batch=batch)
        return busy, (signals.CheckCalls(actions=actions),)
    return replace(state, batch=batch), ()


def _on_batch_appended(state: Calling, event: entries.BatchAppended) -> Step:
    if not slots.is_complete(state.batch):
        return state, ()
    warned = state.progress.warned or limit_warning(state.progress) is not None
    progress = replace(state.progress, rounds=state.progress.rounds + 1, warned=warned)
    max_rounds = progress.limits.max_rounds
    if progress.direct:
        results = slots.results(state.batch)
        text = "\n".join(result_for_people(result, progress.language) for result in results)
        return Done(reason="model_stop", usage=progress.usage, text=join_texts("", text)), ()
    if event.loop:
        tools = ", ".join(f"`{tool}`" for tool in event.loop)
        note = catalogue.LOOP_DETECTED.to(progress.language, tools=tools)
        return finish(Thinking(progress=progress), "loop_detected", note)
    if progress.rounds >= max_rounds:
        note = catalogue.MAX_ROUNDS.to(progress.language, rounds=max_rounds)
        return finish(Thinking(progress=progress), "max_turns", note)
    progress = replace(progress, text=closed(progress.text))
    return _compact(progress, "heavy") if event.context_heavy else _ask(progress)


def _resumed(state: Calling, rerun: frozenset[ActionId]) -> Step:
    if not slots.is_gated(state.batch):
        return state, (signals.GateBatch(calls=tuple(slot.call for slot in state.batch.slots)),)
    batch, unknown = slots.revived(state.batch, rerun)
    continued, effects = _continue_batch(state, batch)
    return continued, (*(signals.RecordUnknown(action=action) for action in unknown), *effects)


# --- ending --------------------------------------------------------------------------------------


def _within_limits(state: State, effects: Iterable[signals.Effect]) -> Step:
    """Return the step, or the end of a turn that has reached its limits; after every step (S4-20)."""
    if isinstance(state, Done) or (reached := _reached_limit(state.progress)) is None:
        return state, tuple(effects)
    return finish(state, "budget_exceeded", reached.to(state.progress.language), "stopped")


def _reached_limit(progress: Progress) -> LocalizedMessage | None:
    """Return the note of a turn that has used up its tokens or its money, else None."""
    for used, limit, render in _amounts(progress):
        if used >= limit:
            return catalogue.MAX_USED.about(used=render(used), limit=render(limit))
    return None


def limit_warning(progress: Progress) -> LocalizedMessage | None:
    """Return a warning, once, if a turn is close to one of its limits as its batch is appended.

    It is close at 80 %, or if one more round of average cost would end it.
    """
    after = replace(progress, rounds=progress.rounds + 1)
    if progress.warned:
        return None
    for used, limit, render in ((after.rounds, after.limits.max_rounds, rounds), *_amounts(after)):
        if used >= limit:
            continue
        percent = used * ALL_PERCENT // limit
        is_last = render is not rounds and used * (after.rounds + 1) >= limit * after.rounds
        if percent >= WARN_PERCENT or is_last:
            return catalogue.TURN_IS_NEAR.about(percent=percent, limit=render(limit))
    return None


def _amounts(progress: Progress) -> Iterator[tuple[int, int, Callable[[int], Localized]]]:
    """Yield for each cap on usage the amount used, the maximum, and the formatter of amounts."""
    limits, usage = progress.limits, progress.usage
    if limits.max_tokens is not None:
        yield usage.total_tokens, limits.max_tokens, tokens
    if limits.max_micros is not None:
        micros = 0 if limits.price is None else limits.price.micros(usage)
        yield micros, limits.max_micros, dollars


Mark = Literal["", "stopped", "interrupted"]


def join_texts(earlier: str, text: str) -> str:
    """Return two answers of one turn as one text, a blank line or a `BREAK` between them.

    A text of which a person sees nothing does not count: platforms refuse it as a message.
    """
    text = text.replace(BREAK_CHAR, "")
    if not is_visible(text):
        return earlier
    gap = "\n\n" if earlier and not earlier.endswith(BREAK) else ""
    return f"{earlier}{gap}{text}"


def answered_by_runtime(text: str, usage: Usage = NO_USAGE) -> tuple[Done, tuple[()]]:
    """Return a turn that is over: the runtime answers, without asking a model."""
    message = AssistantMessage(content=text, mark="runtime")
    return Done(reason="model_stop", usage=usage, text=text, message=message), ()


def finish(
    state: Running, reason: DoneReason, note: str, mark: Mark = "", *, detail: str = ""
) -> tuple[Done, tuple[()]]:
    """End a turn before its answer is complete; shown text stays, every call gets a result.

    There are no effects: the loop stops whatever still runs for a turn that is done.
    """
    usage, text = state.progress.usage, state.progress.text
    done = Done(reason=reason, usage=usage, text=text, note=note, detail=detail)
    if not isinstance(state, Asking):
        results, fills = slots.closed(state.batch)
        done = replace(done, results=results, fills=fills)
    elif state.shown:
        message = AssistantMessage(content=state.shown, mark=mark, is_error=reason == "error")
        done = replace(done, text=join_texts(text, state.shown), message=message)
    return done, ()


_STOPPED: dict[Literal["stop", "new", "forget", "halt", "revoked"], Sentence] = {
    "stop": catalogue.STOPPED,
    "new": catalogue.STOPPED_FOR_NEW,
    "forget": catalogue.STOPPED_TO_FORGET,
    "halt": catalogue.STOPPED_BY_HALT,
    "revoked": catalogue.STOPPED_AS_REVOKED,
}


def abort_note(event: signals.AbortRequested, language: Language) -> str:
    """Return the note that says who ended the turn, and how."""
    if event.cause != "interrupt":
        by = catalogue.BY.about(who=by_whom(event.by)) if event.by else ""
        return _STOPPED[event.cause].to(language, by=by)
    if event.by:
        return catalogue.INTERRUPTED_BY.to(language, who=event.by)
    return catalogue.INTERRUPTED.to(language)


def incomplete_note(message: AssistantMessage, language: Language) -> str:
    """Return the note on an answer that the model ended incomplete; empty if it is complete."""
    match message.finish_reason:
        case "length":
            return catalogue.CUT_AT_THE_LIMIT.to(language)
        case "content_filter":
            return catalogue.CUT_BY_A_FILTER.to(language)
        case _:
            return "" if message.content else catalogue.NO_TEXT.to(language)
