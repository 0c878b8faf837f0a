"""Turns with one planted fault each, and the promise that each of them breaks."""

from itertools import count

from tests.unit.turn import parts
from tests.unit.turn.watch import Turn
from zeroclaw.envelope import ActionId
from zeroclaw.gate.verdict import Denied
from zeroclaw.message import ToolCall, Usage
from zeroclaw.turn import entries, journal, machine, signals
from zeroclaw.turn.batch import DID_NOT_RUN, Batch, Slot
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.machine import Step, finish
from zeroclaw.turn.signals import Effect, Event
from zeroclaw.turn.states import Calling, Done, Executing, Progress, State, Streaming, TurnLimits
from zeroclaw.value import replace


def _with_effects(stepped: Step, *, instead: dict[type[Effect], tuple[Effect, ...]]) -> Step:
    state, effects = stepped
    changed = tuple(new for effect in effects for new in instead.get(type(effect), (effect,)))
    return state, changed


def _slots(state: State) -> tuple[Slot, ...]:
    return state.batch.slots if isinstance(state, Calling) else ()


def denial_drops_the_call(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    results = tuple(
        slot.result for slot in _slots(after) if slot.outcome != "denied" and slot.result
    )
    return _with_effects(
        (after, effects), instead={signals.AppendBatch: (signals.AppendBatch(results=results),)}
    )


def results_come_backwards(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    back = tuple(slot.result for slot in reversed(_slots(after)) if slot.result)
    return _with_effects(
        (after, effects), instead={signals.AppendBatch: (signals.AppendBatch(results=back),)}
    )


def results_pair_by_the_models_id(state: State, event: Event) -> Step:
    """Fill the first open slot whose call has the same id as the call that ended (K9)."""
    if isinstance(event, entries.CallFinished):
        own = next((s.call.id for s in _slots(state) if s.action == event.action), "")
        for slot in _slots(state):
            busy = slot.status in {"checking", "running"}
            if slot.call.id == own and busy and slot.action is not None:
                return machine.step(state, replace(event, action=slot.action))
    return machine.step(state, event)


def allowed_calls_start_before_the_answers(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    if isinstance(event, entries.Gated):
        early = tuple(s.action for s in _slots(after) if s.status == "allowed" and s.action)
        effects = (*effects, *([signals.CheckCalls(actions=early)] if early else []))
    return after, effects


def a_refusal_counts_as_an_approval(state: State, event: Event) -> Step:
    if isinstance(event, entries.AnswerTaken):
        event = replace(event, result=None)
    return machine.step(state, event)


def a_late_approval_revives_a_call(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    if not isinstance(event, entries.AnswerTaken) or event.result is not None:
        return after, effects
    if isinstance(after, Executing):
        slots = tuple(
            replace(slot, status="allowed", result=None, outcome=None)
            if slot.approval == event.approval and slot.status == "ended"
            else slot
            for slot in after.batch.slots
        )
        after = replace(after, batch=Batch(slots=slots))
    return after, effects


def an_old_stream_still_writes(state: State, event: Event) -> Step:
    if isinstance(event, signals.TextArrived) and isinstance(state, Streaming):
        event = replace(event, request=state.progress.requests)
    return machine.step(state, event)


def a_sub_agents_tokens_are_free(state: State, event: Event) -> Step:
    if isinstance(event, entries.CallFinished):
        event = replace(event, usage=Usage())
    return machine.step(state, event)


def done_can_be_left(state: State, event: Event) -> Step:
    if isinstance(state, Done) and isinstance(event, entries.BatchAppended):
        return machine.begin(TurnLimits())
    return machine.step(state, event)


def an_abort_leaves_calls_unanswered(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    if isinstance(event, signals.AbortRequested) and isinstance(after, Done):
        return replace(after, results=(), fills=()), effects
    return after, effects


def an_abort_denies_what_may_have_run(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    if not isinstance(after, Done) or isinstance(state, Done):
        return after, effects
    fills = tuple(
        replace(fill, result=replace(fill.result, content=DID_NOT_RUN)) for fill in after.fills
    )
    by_position = {fill.position: fill.result for fill in fills}
    results = tuple(by_position.get(at, result) for at, result in enumerate(after.results))
    return replace(after, fills=fills, results=results), effects


def a_stop_loses_what_was_shown(state: State, event: Event) -> Step:
    if isinstance(event, signals.AbortRequested) and isinstance(state, Streaming):
        state = replace(state, shown="")
    return machine.step(state, event)


def an_abort_waits_for_the_model(state: State, event: Event) -> Step:
    if isinstance(event, signals.AbortRequested) and isinstance(state, Streaming):
        return state, ()
    return machine.step(state, event)


def rounds_are_not_counted(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    if isinstance(event, entries.BatchAppended) and not isinstance(after, Done):
        return replace(after, progress=replace(after.progress, rounds=0)), effects
    return after, effects


def a_budget_of_nothing(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    if isinstance(after, Streaming) and isinstance(event, signals.RequestSent):
        return finish(after, "budget_exceeded", "too much", "stopped")
    return after, effects


def a_budget_without_end(state: State, event: Event) -> Step:
    if isinstance(state, Done):
        return machine.step(state, event)
    limits = replace(state.progress.limits, max_tokens=None)
    boundless: Progress = replace(state.progress, limits=limits)
    return machine.step(replace(state, progress=boundless), event)


def a_batch_is_not_awaited(state: State, event: Event) -> Step:
    after, effects = machine.step(state, event)
    if isinstance(after, Executing) and isinstance(event, entries.CallFinished):
        return after, (*effects, signals.SendRequest(request=99))
    return after, effects


def a_sequential_batch_runs_at_once(state: State, event: Event) -> Step:
    if isinstance(event, entries.Gated):
        event = entries.Gated(
            at=parts.AT,
            verdicts=tuple(
                verdict if isinstance(verdict, Denied) else replace(verdict, sequential=False)
                for verdict in event.verdicts
            ),
        )
    return machine.step(state, event)


def a_restart_runs_everything_again(state: State, rerun: frozenset[ActionId]) -> Step:
    every = frozenset(slot.action for slot in _slots(state) if slot.action)
    return machine.resume(state, rerun=every | rerun)


def a_restart_gates_again(state: State, rerun: frozenset[ActionId]) -> Step:
    if isinstance(state, Executing):
        return state, (signals.GateBatch(calls=tuple(s.call for s in state.batch.slots)),)
    return machine.resume(state, rerun=rerun)


def storing_forgets_what_started(state: State) -> State:
    found = parts.stored(state)
    if not isinstance(found, Calling):
        return found
    slots = tuple(replace(slot, started=False) for slot in found.batch.slots)
    return replace(found, batch=Batch(slots=slots))


def the_journal_forgets_answers(history: journal.History, entry: Entry) -> journal.History:
    return history if isinstance(entry, entries.AnswerTaken) else journal.extend(history, entry)


def the_journal_forgets_fills(history: journal.History, entry: Entry) -> journal.History:
    if isinstance(entry, entries.TurnFinished) and history.turn is not None:
        idle = machine.begin(parts.LIMITS)[0]
        history = replace(history, turn=replace(history.turn, state=idle))
        entry = replace(entry, fills=())
    return journal.extend(history, entry)


def the_journal_ends_turns_early(history: journal.History, entry: Entry) -> journal.History:
    after = journal.extend(history, entry)
    return replace(after, turn=None) if isinstance(entry, entries.Gated) else after


def the_journal_depends_on_when_it_is_read(
    history: journal.History, entry: Entry
) -> journal.History:
    return replace(journal.extend(history, entry), summary=f"read {next(READINGS)}")


READINGS = count()


def a_persons_call_starts_ungated(call: ToolCall, limits: TurnLimits) -> Step:
    state, effects = machine.begin_tool(call, limits)
    return state, (*effects, signals.RunCall(action=ActionId("action-0")))


def one_round_too_many(limits: TurnLimits) -> Step:
    return machine.begin(replace(limits, max_rounds=limits.max_rounds + 1))


FAULTS: dict[str, tuple[Turn, str]] = {
    "a denial drops the call": (Turn(step=denial_drops_the_call), "one result for each call"),
    "results come backwards": (
        Turn(step=results_come_backwards),
        "a result stands at its own call",
    ),
    "results pair by the model's id": (
        Turn(step=results_pair_by_the_models_id),
        "a result stands at its own call",
    ),
    "allowed calls start before the answers": (
        Turn(step=allowed_calls_start_before_the_answers),
        "nothing runs before every ask ended",
    ),
    "a refusal counts as an approval": (
        Turn(step=a_refusal_counts_as_an_approval),
        "nothing runs that is not approved",
    ),
    "a late approval revives a call": (
        Turn(step=a_late_approval_revives_a_call),
        "late news changes nothing",
    ),
    "an old stream still writes": (
        Turn(step=an_old_stream_still_writes),
        "late news changes nothing",
    ),
    "a sub-agent's tokens are free": (
        Turn(step=a_sub_agents_tokens_are_free),
        "usage is the sum of what was reported",
    ),
    "done can be left": (Turn(step=done_can_be_left), "late news changes nothing"),
    "an abort leaves calls unanswered": (
        Turn(step=an_abort_leaves_calls_unanswered),
        "one result for each call",
    ),
    "an abort denies what may have run": (
        Turn(step=an_abort_denies_what_may_have_run),
        "a result stands at its own call",
    ),
    "a stop loses what was shown": (Turn(step=a_stop_loses_what_was_shown), "shown text stays"),
    "an abort waits for the model": (
        Turn(step=an_abort_waits_for_the_model),
        "an abort ends the turn",
    ),
    "rounds are not counted": (Turn(step=rounds_are_not_counted), "rounds stay in bounds"),
    "one round too many": (Turn(begin=one_round_too_many), "rounds stay in bounds"),
    "a budget of nothing": (Turn(step=a_budget_of_nothing), "the budget is kept"),
    "a budget without end": (Turn(step=a_budget_without_end), "the budget is kept"),
    "a batch is not awaited": (
        Turn(step=a_batch_is_not_awaited),
        "a batch is whole before the next request",
    ),
    "a sequential batch runs at once": (
        Turn(step=a_sequential_batch_runs_at_once),
        "a sequential batch runs one by one",
    ),
    "a person's call starts ungated": (
        Turn(begin_tool=a_persons_call_starts_ungated),
        "nothing runs that is not approved",
    ),
    "a restart runs everything again": (
        Turn(resume=a_restart_runs_everything_again),
        "nothing runs twice unless idempotent",
    ),
    "a restart gates again": (
        Turn(resume=a_restart_gates_again),
        "a gated batch is never gated again",
    ),
    "storing forgets what started": (
        Turn(reload=storing_forgets_what_started),
        "a state survives being stored",
    ),
    "the journal forgets answers": (
        Turn(extend=the_journal_forgets_answers),
        "the journal resumes to the same",
    ),
    "the journal forgets fills": (
        Turn(extend=the_journal_forgets_fills),
        "every call has one result, adjacent and in order",
    ),
    "the journal ends turns early": (
        Turn(extend=the_journal_ends_turns_early),
        "the journal resumes to the same",
    ),
    "the journal depends on when it is read": (
        Turn(extend=the_journal_depends_on_when_it_is_read),
        "folding again changes nothing",
    ),
}
"""What is wrong with a turn, the turn, and the promise that shows it."""
