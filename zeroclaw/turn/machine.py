"""The turn's state machine: `step` returns what follows from an event, and does nothing itself.

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
from typing import Literal, Never, NoReturn, TypeVar, assert_never

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import ActionId
from zeroclaw.gate.wording import result_for_people
from zeroclaw.limits.prices import ALL_PERCENT, WARN_PERCENT, dollars, rounds, tokens
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, Usage
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language, Localized, LocalizedMessage
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
        limits: What the turn may use.
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
    """Return the state after the event, and what to do about it, in order.

    Raises:
        ValueError: A `Gated` has more or fewer verdicts than the batch has calls.
    """
    if isinstance(state, Done):
        return state, ()
    match event:
        case signals.AbortRequested():
            mark = "interrupted" if event.cause == "interrupt" else "stopped"
            note = abort_note(event, state.progress.language)
            return finish(paid(state, event.usage), "user_abort", note, mark)
        case signals.BudgetReached():
            return finish(state, "budget_exceeded", event.text, "stopped")
        case signals.TurnFailed():
            return finish(state, "error", event.text)
        case _:
            return _affordable(*_moved(state, event))


def paid(state: _Running, usage: Usage) -> _Running:
    """Return the state with this usage added."""
    if usage == NO_USAGE:
        return state
    progress = replace(state.progress, usage=state.progress.usage + usage)
    return replace(state, progress=progress)


def unhandled(state: Never) -> NoReturn:
    """Refuse a state without a handler, both in type checks and at run time (S4-13).

    Raises:
        AssertionError: Always.
    """
    message = f"unhandled state: {type(state).__name__}"
    raise AssertionError(message)


def resume(state: State, *, rerun: frozenset[ActionId] = frozenset()) -> Step:
    """Return the state in which a stored turn continues after a restart, and its effects.

    Only a batch that was not gated is gated again; answers that were given remain valid.

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
        case Confirming() if approvals := slots.pending(state.batch):
            return state, (signals.AwaitAnswers(approvals=approvals),)
        case Confirming() | Executing():
            return _resumed(state, rerun)
        case Done():
            return state, ()
        case _:
            unhandled(state)


def _moved(state: Running, event: signals.Event) -> Step:
    match state:
        case Thinking() | Streaming():
            return _asking(state, event)
        case Compacting():
            return _compacting(state, event)
        case Confirming() | Executing():
            return _calling(state, event)
        case _:
            unhandled(state)


# --- asking the model ----------------------------------------------------------------------------


def _ask(progress: Progress, shown: str = "") -> Step:
    asked = replace(progress, requests=progress.requests + 1)
    return Thinking(progress=asked, shown=shown), (signals.SendRequest(request=asked.requests),)


def _asking(state: Thinking | Streaming, event: signals.Event) -> Step:
    if not isinstance(event, signals.RequestEvent) or event.request != state.progress.requests:
        return state, ()
    match event:
        case signals.RequestFailed():
            return finish(paid(state, event.usage), "error", event.text, why=event.why)
        case signals.ContextOverflowed():
            return _overflowed(state)
        case signals.RequestSent():  # once more if text that was shown is no part of the answer
            is_no_answer = isinstance(state, Streaming) and state.fresh
            return Streaming(progress=state.progress, shown="" if is_no_answer else state.shown), ()
        case signals.TextArrived() | signals.ResponseReceived() | signals.StreamCut() if isinstance(
            state, Streaming
        ):
            return _streaming(state, event)
        case _:
            return state, ()


def _streaming(
    state: Streaming, event: signals.TextArrived | signals.ResponseReceived | signals.StreamCut
) -> Step:
    progress = state.progress
    match event:
        case signals.TextArrived():
            shown = state.shown + event.text if state.fresh else event.text
            whole = signals.ShowText(text=join_texts(progress.said, shown), is_last=event.is_last)
            return Streaming(progress=progress, shown=shown, fresh=True), (whole,)
        case signals.StreamCut() if progress.reasked:
            note = catalogue.BROKE_OFF_TWICE.to(progress.language)
            return finish(paid(state, event.usage), "error", note)
        case signals.StreamCut():
            return _ask(replace(paid(state, event.usage).progress, reasked=True), state.shown)
        case signals.ResponseReceived():
            return _answered(progress, event)
        case _:
            assert_never(event)


def _answered(progress: Progress, event: signals.ResponseReceived) -> Step:
    message = event.message
    shown = message.content if event.shown is None else event.shown
    after = replace(
        progress,
        usage=progress.usage + event.usage,
        said=join_texts(progress.said, shown),
        reasked=False,
        forced=False,
    )
    if message.tool_calls:
        return _gate(after, message.tool_calls)
    done = Done(
        reason="model_stop",
        usage=after.usage,
        text=after.said,
        note=whole_note(message, after.language),
        message=message,
    )
    return done, ()


def _overflowed(state: Thinking | Streaming) -> Step:
    if state.progress.forced:
        return finish(state, "error", catalogue.TOO_LONG.to(state.progress.language))
    return _compact(replace(state.progress, forced=True), "overflow", state.shown)


def _compact(progress: Progress, cause: CompactionCause, shown: str = "") -> Step:
    return Compacting(progress=progress, cause=cause, shown=shown), (signals.Compact(cause=cause),)


def _compacting(state: Compacting, event: signals.Event) -> Step:
    match event:
        case entries.Compacted():
            progress = paid(state, event.usage).progress
            if state.cause == "asked":
                return answered_by_runtime(
                    catalogue.COMPACTED_NOW.to(progress.language), progress.usage
                )
            return _ask(progress, state.shown)
        case signals.CompactionFailed(text=why, usage=usage):
            progress = paid(state, usage).progress
            if state.cause == "asked":
                return answered_by_runtime(why, progress.usage)
            # The next request is cut instead, so the conversation continues (K13).
            return _ask(progress, state.shown)
        case _:
            return state, ()


# --- calling tools -------------------------------------------------------------------------------


def _gate(progress: Progress, calls: tuple[ToolCall, ...]) -> Step:
    batch = slots.allocate(calls)
    return Executing(progress=progress, batch=batch), (signals.GateBatch(calls=calls),)


def _calling(state: Calling, event: signals.Event) -> Step:
    match event:
        case entries.BatchAppended():
            return _appended(state, event)
        case entries.AnswerTaken(approval=approval, result=result) if isinstance(state, Confirming):
            return _continue_batch(state, slots.answered(state.batch, approval, result))
        case entries.Gated() if isinstance(state, Executing):
            batch = slots.gated(state.batch, event.verdicts)
            if approvals := slots.pending(batch):
                asked = Confirming(progress=state.progress, batch=batch)
                return asked, (signals.AwaitAnswers(approvals=approvals),)
            return _continue_batch(state, batch)
        case entries.CallStarted() if isinstance(state, Executing):
            return _started(state, event.action)
        case entries.CallFinished() if isinstance(state, Executing):
            return _call_ended(state, event)
        case _:
            return state, ()


def _started(state: Executing, action: ActionId) -> Step:
    batch = slots.cleared(state.batch, action)
    if batch == state.batch:
        return state, ()
    return replace(state, batch=batch), (signals.RunCall(action=action),)


def _call_ended(state: Executing, event: entries.CallFinished) -> Step:
    batch = slots.ended(state.batch, event.action, event.result, event.outcome)
    if batch == state.batch:
        return state, ()
    progress = replace(state.progress, usage=state.progress.usage + event.usage)
    if _spent(progress) is not None:
        # The turn ends with this step, so it starts nothing more.
        return replace(state, progress=progress, batch=batch), ()
    return _continue_batch(replace(state, progress=progress), batch)


def _continue_batch(state: Calling, batch: Batch) -> Step:
    """Start the calls that may start now; append the batch once it is complete."""
    if batch == state.batch:
        return state, ()
    batch, actions = slots.launched(batch)
    if slots.is_complete(batch):
        results = signals.AppendBatch(results=slots.results(batch))
        return replace(state, batch=batch), (results,)
    if actions:
        busy = Executing(progress=state.progress, batch=batch)
        return busy, (signals.CheckCalls(actions=actions),)
    return replace(state, batch=batch), ()


def _appended(state: Calling, event: entries.BatchAppended) -> Step:
    if not slots.is_complete(state.batch):
        return state, ()
    warned = state.progress.warned or limit_warning(state.progress) is not None
    progress = replace(state.progress, rounds=state.progress.rounds + 1, warned=warned)
    bound = progress.limits.max_rounds
    if progress.direct:
        told = slots.results(state.batch)
        text = "\n".join(result_for_people(one, progress.language) for one in told)
        return Done(reason="model_stop", usage=progress.usage, text=text), ()
    if event.loop:
        tools = ", ".join(f"`{tool}`" for tool in event.loop)
        note = catalogue.WENT_IN_CIRCLES.to(progress.language, tools=tools)
        return finish(Thinking(progress=progress), "loop_detected", note)
    if progress.rounds >= bound:
        note = catalogue.MOST_ROUNDS.to(progress.language, rounds=bound)
        return finish(Thinking(progress=progress), "max_turns", note)
    return _compact(progress, "heavy") if event.context_heavy else _ask(progress)


def _resumed(state: Calling, rerun: frozenset[ActionId]) -> Step:
    if not slots.is_gated(state.batch):
        return state, (signals.GateBatch(calls=tuple(slot.call for slot in state.batch.slots)),)
    if slots.is_complete(state.batch):
        results = signals.AppendBatch(results=slots.results(state.batch))
        return state, (results,)
    batch, unknown = slots.revived(state.batch, rerun)
    batch, actions = slots.launched(batch)
    effects: list[signals.Effect] = [signals.RecordUnknown(action=action) for action in unknown]
    if actions:
        effects.append(signals.CheckCalls(actions=actions))
    return Executing(progress=state.progress, batch=batch), tuple(effects)


# --- ending --------------------------------------------------------------------------------------


def _affordable(state: State, effects: Iterable[signals.Effect]) -> Step:
    """End the turn instead if it has reached its limits; checked after every step (S4-20)."""
    if isinstance(state, Done) or (spent := _spent(state.progress)) is None:
        return state, tuple(effects)
    return finish(state, "budget_exceeded", spent.to(state.progress.language), "stopped")


def _spent(progress: Progress) -> LocalizedMessage | None:
    """Return a sentence if the turn has used up its tokens or its money, else None."""
    for used, most, words in _shares(progress):
        if used >= most:
            return catalogue.MOST_USED.about(used=words(used), limit=words(most))
    return None


def limit_warning(progress: Progress) -> LocalizedMessage | None:
    """Return a sentence, once, if a turn is close to one of its limits as its batch is appended.

    It is close at 80 %, or if one more round of average cost would end it. Returns None otherwise.
    """
    after = replace(progress, rounds=progress.rounds + 1)
    if progress.warned:
        return None
    for used, most, words in ((after.rounds, after.limits.max_rounds, rounds), *_shares(after)):
        if used >= most:
            continue
        percent = used * ALL_PERCENT // most
        is_last = words is not rounds and used * (after.rounds + 1) >= most * after.rounds
        if percent >= WARN_PERCENT or is_last:
            return catalogue.TURN_IS_NEAR.about(percent=percent, limit=words(most))
    return None


def _shares(progress: Progress) -> Iterator[tuple[int, int, Callable[[int], Localized]]]:
    """Yield for each cap on usage the amount used, the maximum, and how to word an amount."""
    limits, usage = progress.limits, progress.usage
    if limits.max_tokens is not None:
        yield usage.total_tokens, limits.max_tokens, tokens
    if limits.max_micros is not None:
        micros = 0 if limits.price is None else limits.price.micros(usage)
        yield micros, limits.max_micros, dollars


Mark = Literal["", "stopped", "interrupted"]


def join_texts(said: str, text: str) -> str:
    """Return two answers of one turn as one text, a blank line between them."""
    return f"{said}\n\n{text}" if said and text else said or text


def answered_by_runtime(text: str, usage: Usage = NO_USAGE) -> tuple[Done, tuple[()]]:
    """Return a turn that is over: the runtime answers, without asking a model."""
    message = AssistantMessage(content=text, mark="runtime")
    return Done(reason="model_stop", usage=usage, text=text, message=message), ()


def finish(
    state: Running, reason: DoneReason, note: str, mark: Mark = "", *, why: str = ""
) -> tuple[Done, tuple[()]]:
    """End a turn before its answer is complete; shown text stays, every call gets a result.

    There are no effects: the loop stops whatever still runs for a turn that is done.
    """
    usage, said = state.progress.usage, state.progress.said
    done = Done(reason=reason, usage=usage, text=said, note=note, why=why)
    if not isinstance(state, Asking):
        results, fills = slots.closed(state.batch)
        done = replace(done, results=results, fills=fills)
    elif state.shown:
        message = AssistantMessage(content=state.shown, mark=mark, is_error=reason == "error")
        done = replace(done, text=join_texts(said, state.shown), message=message)
    return done, ()


def abort_note(event: signals.AbortRequested, language: Language) -> str:
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
    """Say what is missing from an answer that the model ended itself; empty if nothing is."""
    match message.finish_reason:
        case "length":
            return catalogue.CUT_AT_THE_LIMIT.to(language)
        case "content_filter":
            return catalogue.CUT_BY_A_FILTER.to(language)
        case _:
            return "" if message.content else catalogue.NO_TEXT.to(language)
