"""Calling tools: between an answer with calls and the next request, also after a restart."""

import pytest

from tests.unit.turn.parts import (
    AT,
    LIMITS,
    USED,
    action,
    allowed,
    answer,
    approval,
    asked,
    call,
    calls,
    denied,
    gated,
    gating,
    result,
    run,
    stored,
    streaming,
)
from zeroclaw.delivery.split import BREAK
from zeroclaw.gate.verdict import Allowed, Asked, Denied, Verdict
from zeroclaw.message import ToolMessage, Usage
from zeroclaw.turn import batch, entries, signals
from zeroclaw.turn import batch as slots
from zeroclaw.turn.batch import MAY_HAVE_RUN, Batch, Slot
from zeroclaw.turn.machine import Step, begin, begin_tool, resume, step
from zeroclaw.turn.signals import (
    AppendBatch,
    AwaitAnswers,
    CheckCalls,
    Compact,
    Effect,
    Event,
    GateBatch,
    RecordUnknown,
    RunCall,
    SendRequest,
    ShowText,
)
from zeroclaw.turn.states import (
    Calling,
    Compacting,
    Confirming,
    Done,
    Executing,
    State,
    Streaming,
    Thinking,
    TurnLimits,
)
from zeroclaw.value import replace


def granted(name: str) -> Event:
    return entries.AnswerTaken(at=AT, how="approved", approval=approval(name))


def refused(name: str) -> Event:
    return entries.AnswerTaken(
        at=AT, how="denied", approval=approval(name), result=result(f"{name}: refused")
    )


def cleared(name: str) -> Event:
    return entries.CallStarted(at=AT, action=action(name))


def ended(name: str, text: str = "", usage: Usage | None = None) -> Event:
    return entries.CallFinished(
        at=AT,
        action=action(name),
        result=result(text or f"{name}: done"),
        outcome="ok",
        usage=usage or Usage(),
    )


def check(*names: str) -> CheckCalls:
    return CheckCalls(actions=tuple(action(name) for name in names))


def appended(stepped: Step) -> list[str]:
    """The texts of the batch that a step asks to append."""
    effects = stepped[1]
    return [
        message.content
        for effect in effects
        if isinstance(effect, AppendBatch)
        for message in effect.results
    ]


# --- the gate's word -----------------------------------------------------------------------------


def test_allowed_calls_start_together() -> None:
    """Approved calls run side by side by default (S1-20)."""
    state, effects = gated(allowed("a"), allowed("b"))
    assert isinstance(state, Executing)
    assert effects == (check("a", "b"),)


def test_a_call_runs_after_its_last_check() -> None:
    """Nothing starts unless the machine says so, and then it knows (S0-28)."""
    stepped = run(gated(allowed("a")), cleared("a"))
    assert stepped[1] == (RunCall(action=action("a")),)


def test_a_sequential_batch_runs_one_call_after_the_other() -> None:
    """One sequential call makes the whole batch serial, in request order (S1-22)."""
    first = gated(allowed("a"), allowed("b", sequential=True), allowed("c"))
    assert first[1] == (check("a"),)
    assert run(first, cleared("a"))[1] == (RunCall(action=action("a")),)
    assert run(first, cleared("a"), ended("a"))[1] == (check("b"),)
    assert run(first, cleared("a"), ended("a"), ended("b"))[1] == (check("c"),)


def test_a_denied_sequential_call_does_not_slow_the_others() -> None:
    """Only calls that may run count for the order (S1-22)."""
    no = Denied(action=action("b"), result=result("no"))
    assert gated(allowed("a"), no, allowed("c"))[1] == (check("a", "c"),)
    by_a_person = replace(asked("b"), sequential=True)
    asking = gated(allowed("a"), by_a_person, allowed("c"))
    assert run(asking, refused("b"))[1] == (check("a", "c"),)


ASKED = entries.Gated(at=AT, verdicts=(asked("a"),))
EMPTIED = signals.ShowText(text="", is_last=True)


def test_a_call_that_needs_a_person_waits() -> None:
    """An ask goes to confirming, and the machine rests there (S4-06, S4-07, S4-16)."""
    state, effects = gated(asked("a"))
    assert isinstance(state, Confirming)
    assert slots.pending(state.batch) == (approval("a"),)
    assert effects == (EMPTIED, AwaitAnswers())


@pytest.mark.parametrize(("said", "above"), [("let me ask", f"let me ask{BREAK}"), ("", BREAK)])
def test_a_card_ends_the_message_above_it(said: str, above: str) -> None:
    """People would not notice a text that is added above the request that they answered (K4).

    Nor one that replaces an answer that was cut off: the draft ends with what this answer says.
    """
    state, effects = step(gating(1, said), ASKED)
    assert isinstance(state, Confirming)
    assert state.progress.text == above
    assert effects == (*(() if said else (EMPTIED,)), AwaitAnswers())


def test_nothing_of_a_batch_runs_until_every_ask_has_ended() -> None:
    """The allowed call waits for the answers about the others (S1-19, S0-34)."""
    waiting = gated(allowed("a"), asked("b"), asked("c"))
    assert isinstance(waiting[0], Confirming)
    assert slots.pending(waiting[0].batch) == (approval("b"), approval("c"))
    assert waiting[1][-1] == AwaitAnswers()
    once = run(waiting, granted("c"))
    assert isinstance(once[0], Confirming)
    assert once[1] == ()
    assert run(once, granted("b"))[1] == (check("a", "b", "c"),)


def test_an_approved_call_runs() -> None:
    """Confirming goes to executing (S4-07)."""
    state, effects = run(gated(asked("a")), granted("a"))
    assert isinstance(state, Executing)
    assert effects == (check("a"),)


def test_a_denial_fills_its_own_slot_only() -> None:
    """The rest of the batch goes on (K2, S1-21)."""
    stepped = run(gated(asked("a"), allowed("b")), refused("a"))
    assert stepped[1] == (check("b"),)
    assert appended(run(stepped, cleared("b"), ended("b"))) == ["a: refused", "b: done"]


def test_a_batch_denied_by_people_goes_straight_back_to_thinking() -> None:
    """Confirming, then thinking; never executing (K2, S4-07)."""
    stepped = run(gated(asked("a"), asked("b")), refused("a"), refused("b"))
    assert isinstance(stepped[0], Confirming)
    assert appended(stepped) == ["a: refused", "b: refused"]
    assert isinstance(run(stepped, entries.BatchAppended(at=AT))[0], Thinking)


def test_a_batch_denied_by_the_gate_is_answered_at_once() -> None:
    """Every call has its result though nothing ran (S0-27, S1-12)."""
    malformed = Denied(action=None, result=result("not JSON"), outcome="failed")
    stepped = gated(malformed, denied("b"))
    assert appended(stepped) == ["not JSON", "b: no"]


def test_the_gate_speaks_once_about_all_calls() -> None:
    """Too few verdicts are a fault of the caller."""
    with pytest.raises(ValueError, match="zip"):
        step(gating(2), entries.Gated(at=AT, verdicts=(allowed("a"),)))


# --- the results ---------------------------------------------------------------------------------


def test_results_are_appended_in_request_order() -> None:
    """Whatever order they finish in, and though all ids are the same (S1-17, S1-18, S1-23)."""
    batch_of_three = gated(allowed("a"), denied("b"), allowed("c"))
    stepped = run(batch_of_three, cleared("c"), cleared("a"), ended("c"), ended("a"))
    assert appended(stepped) == ["a: done", "b: no", "c: done"]


def test_a_failed_call_does_not_break_the_batch() -> None:
    """It becomes an error result like any other (S1-21)."""
    broke = entries.CallFinished(
        at=AT, action=action("a"), result=result("it broke"), outcome="failed", usage=Usage()
    )
    stepped = run(gated(allowed("a"), allowed("b")), cleared("a"), broke, ended("b"))
    assert appended(stepped) == ["it broke", "b: done"]


def test_a_call_that_fails_its_last_check_never_runs() -> None:
    """A guard's word counts after the approval (S0-32)."""
    stopped = entries.CallFinished(
        at=AT, action=action("a"), result=result("guarded"), outcome="denied"
    )
    assert appended(run(gated(allowed("a")), stopped)) == ["guarded"]


def test_whole_batches_lead_back_to_the_model() -> None:
    """The results are in the history before the next request (S0-35, S0-37, S0-42, S1-02, S3-20)."""
    whole = run(gated(allowed("a")), ended("a"))
    state, effects = run(whole, entries.BatchAppended(at=AT))
    assert isinstance(state, Thinking)
    assert effects == (SendRequest(request=2),)
    assert state.progress.rounds == 1


def test_code_that_an_answer_leaves_open_ends_before_the_next_answer() -> None:
    """Else what the model says after its tool would be shown as code."""
    gated_call = entries.Gated(at=AT, verdicts=(allowed("a"),))
    ran = run(step(gating(1, "```py\na"), gated_call), ended("a"), entries.BatchAppended(at=AT))
    told = run(ran, signals.RequestSent(request=2), signals.TextArrived(text="b", request=2))
    assert told[1] == (signals.ShowText(text="```py\na\n```\n\nb"),)


def test_a_heavy_history_is_compacted_after_a_batch() -> None:
    """Executing goes to compacting (S4-06)."""
    state, effects = run(gated(denied("a")), entries.BatchAppended(at=AT, context_heavy=True))
    assert isinstance(state, Compacting)
    assert effects == (Compact(cause="heavy"),)


def test_many_calls_of_one_answer_are_one_round() -> None:
    """Rounds are counted, not calls (S0-44)."""
    state = run(gated(denied("a"), denied("b"), denied("c")), entries.BatchAppended(at=AT))[0]
    assert isinstance(state, Thinking)
    assert state.progress.rounds == 1


def test_the_bound_refuses_the_next_model_call() -> None:
    """N batches run, N model calls are made, call N+1 is refused with a sentence (K1, S0-43)."""
    limits = TurnLimits(max_rounds=2)
    once = run(gated(denied("a"), limits=limits), entries.BatchAppended(at=AT))
    assert once[1] == (SendRequest(request=2),)
    sent = signals.RequestSent(request=2)
    more = answer("Once more.", call(), request=2)
    no = entries.Gated(at=AT, verdicts=(denied("b"),))
    state, effects = run(once, sent, more, no, entries.BatchAppended(at=AT))
    assert isinstance(state, Done)
    assert effects == ()
    assert (state.reason, state.text, state.results) == ("max_turns", "Once more.", ())
    assert state.note == (
        "stopped after 2 rounds of tool calls, the limit of one turn; "
        "earlier tool calls may already have completed successfully"
    )


# --- calls that use tokens -----------------------------------------------------------------------


def test_the_tokens_of_a_call_are_the_turns() -> None:
    """They count like the model's own (S4-19)."""
    cleared_once = run(gated(asked("a")), granted("a"), cleared("a"))
    whole = run(cleared_once, ended("a", "the child says hello", usage=USED))
    assert appended(whole) == ["the child says hello"]
    state = run(whole, entries.BatchAppended(at=AT))[0]
    assert isinstance(state, Thinking)
    assert state.progress.usage == USED + USED


def test_a_call_that_uses_up_the_budget_ends_the_turn() -> None:
    """The budget is checked between all steps, and the call's result is kept (S4-20)."""
    gated_batch = gated(allowed("a"), denied("b"), limits=TurnLimits(max_tokens=20))
    state, effects = run(gated_batch, cleared("a"), ended("a", usage=USED))
    assert isinstance(state, Done)
    assert effects == ()
    assert state.reason == "budget_exceeded"
    assert [message.content for message in state.results] == ["a: done", "b: no"]


# --- a person's own call -------------------------------------------------------------------------


def test_a_persons_own_call_goes_through_the_same_gate() -> None:
    """A turn without model calls is gated, run and appended like any batch."""
    shell = call("shell", arguments='{"command": "ls"}')
    state, effects = begin_tool(shell, LIMITS)
    assert isinstance(state, Executing)
    assert effects == (GateBatch(calls=(shell,)),)
    gate = entries.Gated(at=AT, verdicts=(asked("a"),))
    stepped = run((state, ()), gate, granted("a"), cleared("a"), ended("a", "total 0"))
    assert appended(stepped) == ["total 0"]


def test_the_result_of_a_persons_own_call_is_the_answer() -> None:
    """It ends as a model's answer would, with the result as its text."""
    gate = entries.Gated(at=AT, verdicts=(allowed("a"),))
    stepped = run(
        begin_tool(call(), LIMITS), gate, ended("a", "total 0"), entries.BatchAppended(at=AT)
    )
    whole = Done(reason="model_stop", usage=Usage(), text="total 0")
    assert stepped == (whole, ())


# --- what comes late -----------------------------------------------------------------------------

BUSY = gated(allowed("a"), allowed("b"))[0]
RUNNING = run((BUSY, ()), cleared("a"))[0]
ASKING = gated(asked("a"), asked("b"))[0]
ANSWERED = run((ASKING, ()), granted("a"))[0]
LATE: list[tuple[State, Event]] = [
    (gating(1), entries.BatchAppended(at=AT)),
    (BUSY, entries.BatchAppended(at=AT)),
    (BUSY, entries.Gated(at=AT, verdicts=(denied("a"), denied("b")))),
    (BUSY, granted("a")),
    (BUSY, cleared("unknown")),
    (BUSY, ended("unknown")),
    (RUNNING, cleared("a")),
    (run((RUNNING, ()), ended("a"))[0], ended("a", "again")),
    (ASKING, cleared("a")),
    (ASKING, ended("a")),
    (ASKING, granted("unknown")),
    (ANSWERED, granted("a")),
    (ANSWERED, refused("a")),
    (run((ASKING, ()), refused("a"), refused("b"))[0], refused("b")),
    (gated(denied("a"))[0], entries.Gated(at=AT, verdicts=(denied("a"),))),
]


@pytest.mark.parametrize(("state", "event"), LATE)
def test_late_news_of_a_call_changes_nothing(state: State, event: Event) -> None:
    """Calls are known by their own ids, and each step of one happens once (K9)."""
    assert step(state, event) == (state, ())


def test_the_newest_answer_does_not_count_the_first_does() -> None:
    """An approval is answered once."""
    state = run((ASKING, ()), refused("a"), granted("a"), refused("b"))[0]
    assert isinstance(state, Calling)
    assert batch.is_complete(state.batch)


@pytest.mark.parametrize("verdict", [allowed("a"), asked("a"), denied("a")])
def test_every_verdict_leads_out_of_the_gate(verdict: Allowed | Asked | Denied) -> None:
    """A gated batch is never left without a next step (S0-27)."""
    assert gated(verdict)[1] != ()


# --- the slots of a batch: one for each call, filled in place -------------------------------------


def slots_of(*verdicts: Verdict) -> Batch:
    return slots.gated(slots.allocate(calls(len(verdicts))), verdicts)


def statuses(batch: Batch) -> list[str]:
    return [slot.status for slot in batch.slots]


def test_every_call_has_a_slot_before_anything_is_decided() -> None:
    """Slots are allocated up front, in request order (S1-17)."""
    made = (call("a", "x"), call("b", "x"))
    assert slots.allocate(made) == Batch(slots=(Slot(call=made[0]), Slot(call=made[1])))


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(allowed("a"), "allowed"), (asked("a"), "asked"), (denied("a"), "ended")],
)
def test_a_verdict_moves_its_slot(verdict: Verdict, status: str) -> None:
    """Denied slots are filled at once, the others wait (S1-17)."""
    assert statuses(slots_of(verdict)) == [status]


def test_an_asked_slot_knows_its_approval() -> None:
    """Approvals are found by their own id (K9)."""
    slot = slots_of(asked("a")).slots[0]
    verdict = asked("a")
    assert (slot.action, slot.approval) == (verdict.action, verdict.approval)


def test_a_batch_is_gated_once() -> None:
    """The second word of the gate is not heard (S1-19)."""
    once = slots_of(allowed("a"))
    assert slots.gated(once, (denied("a"),)) == once


def test_people_see_only_calls_that_began_to_run() -> None:
    """A name and how it stands; what was denied, asked or only checked did not run."""
    batch, _ = slots.launched(slots_of(allowed("a"), allowed("b"), allowed("c"), denied("d")))
    assert slots.progress(batch) == ()
    for name in ("a", "b", "c"):
        batch = slots.cleared(batch, action(name))
    batch = slots.ended(batch, action("b"), result("fine"), "ok")
    batch = slots.ended(batch, action("c"), result("no"), "failed")
    states = {"a": "running", "b": "ok", "c": "failed"}
    assert [
        (progress.key, progress.tool, progress.state) for progress in slots.progress(batch)
    ] == [(key, f"tool_{at}", state) for at, (key, state) in enumerate(states.items())]


def test_a_result_takes_the_id_and_name_of_its_call() -> None:
    """Whoever made it, it echoes its own call (S1-15)."""
    batch = slots.gated(slots.allocate((call("shell", "call_7"),)), (denied("a"),))
    assert slots.results(batch) == (result("a: no", "call_7", "shell"),)


def test_results_with_one_id_land_at_their_own_calls() -> None:
    """Two calls named alike, ended in the other order (S1-18, K9)."""
    batch, _ = slots.launched(slots_of(allowed("a"), allowed("b")))
    later = slots.ended(batch, action("b"), result("second"), "ok")
    assert [slot.result and slot.result.content for slot in later.slots] == [None, "second"]
    ended_both = slots.ended(later, action("a"), result("first"), "ok")
    assert [message.content for message in slots.results(ended_both)] == ["first", "second"]
    assert slots.is_complete(ended_both)


def test_nothing_starts_while_a_question_is_open() -> None:
    """The allowed call is not even checked (S1-19)."""
    batch = slots_of(allowed("a"), asked("b"))
    assert slots.launched(batch) == (batch, ())
    assert slots.pending(batch) == (approval("b"),)


def test_a_started_batch_does_not_start_again() -> None:
    """Nothing is left to launch."""
    batch, actions = slots.launched(slots_of(allowed("a"), allowed("b")))
    assert actions == (action("a"), action("b"))
    assert slots.launched(batch) == (batch, ())


def test_a_restart_forgets_checks_and_keeps_what_ran() -> None:
    """Checked calls are checked again; running ones stay unless they may be rerun."""
    batch, _ = slots.launched(slots_of(allowed("a"), allowed("b"), allowed("c")))
    ran = slots.cleared(slots.cleared(batch, action("a")), action("b"))
    left, unknown = slots.revived(ran, frozenset({action("b")}))
    assert statuses(left) == ["running", "allowed", "allowed"]
    assert unknown == (action("a"),)
    assert [slot.started for slot in left.slots] == [True, True, False]


# --- what a turn does again after a restart -------------------------------------------------------

GRANTED = entries.AnswerTaken(at=AT, how="approved", approval=approval("a"))
REFUSED = entries.AnswerTaken(at=AT, how="denied", approval=approval("a"), result=result("no"))
A_STARTED = entries.CallStarted(at=AT, action=action("a"))
A_ENDED = entries.CallFinished(at=AT, action=action("a"), result=result("done"), outcome="ok")
DONE = Done(reason="model_stop", usage=USED, text="whole")


def asked_again(said: str) -> State:
    """A turn that waits for a second answer, to a request without a text of its own."""
    ran = run(step(gating(1, said), ASKED), GRANTED, A_STARTED, A_ENDED)
    again = run(ran, entries.BatchAppended(at=AT), signals.RequestSent(request=2))
    received = replace(answer("", *calls(1)), request=2)
    second = replace(asked("b"), approval=approval("b"))
    return run(again, received, entries.Gated(at=AT, verdicts=(second,)))[0]


@pytest.mark.parametrize(
    ("state", "effects"),
    [
        (begin(LIMITS)[0], (SendRequest(request=2),)),
        (streaming(), (SendRequest(request=2),)),
        (begin(LIMITS, context_heavy=True)[0], (Compact(cause="heavy"),)),
        (gating(2), (GateBatch(calls=calls(2)),)),
        (gated(asked("a"), asked("b"))[0], (EMPTIED, AwaitAnswers())),
        (run(gated(asked("a"), asked("b")), GRANTED)[0], (EMPTIED, AwaitAnswers())),
        (step(gating(1, "may I?"), ASKED)[0], (AwaitAnswers(),)),
        (asked_again("may I?"), (ShowText(text=f"may I?{BREAK}", is_last=True), AwaitAnswers())),
        (gated(denied("a"))[0], (AppendBatch(results=(result("a: no", name="tool_0"),)),)),
        (
            run(gated(asked("a")), REFUSED)[0],
            (AppendBatch(results=(result("no", name="tool_0"),)),),
        ),
        (gated(allowed("a"), allowed("b"))[0], (CheckCalls(actions=(action("a"), action("b"))),)),
        (run(gated(allowed("a")), A_STARTED)[0], (RecordUnknown(action=action("a")),)),
        (DONE, ()),
    ],
)
def test_a_restart_repeats_the_due_effects(state: State, effects: tuple[Effect, ...]) -> None:
    """Requests, compactions and unanswered questions are repeated; a gated batch is not gated.

    A cut answer that still stands above its question is taken away (K4).
    """
    assert resume(stored(state))[1] == effects


def test_a_turn_killed_while_streaming_thinks_again() -> None:
    """Its text stays on the screen until the new answer begins."""
    shown = replace(streaming(), shown="half", has_begun=True)
    assert isinstance(shown, Streaming)
    state, _ = resume(shown)
    assert isinstance(state, Thinking)
    assert state.shown == "half"


def test_a_call_that_may_not_run_twice_ends_as_unknown() -> None:
    """The other calls go on; the model reads that the end is unknown (P3)."""
    state, effects = resume(run(gated(allowed("a"), allowed("b")), A_STARTED)[0])
    assert effects == (RecordUnknown(action=action("a")), CheckCalls(actions=(action("b"),)))
    unknown = entries.CallFinished(
        at=AT, action=action("a"), result=result(MAY_HAVE_RUN), outcome="unknown"
    )
    b_ended = replace(A_ENDED, action=action("b"))
    whole = run((state, ()), unknown, b_ended)[1]
    contents = [message.content for effect in whole for message in _results(effect)]
    assert contents == [MAY_HAVE_RUN, "done"]


def test_an_idempotent_call_runs_again() -> None:
    """It is checked again first (P3)."""
    state = run(gated(allowed("a")), A_STARTED)[0]
    again, effects = resume(state, rerun=frozenset({action("a")}))
    assert effects == (CheckCalls(actions=(action("a"),)),)
    assert step(again, A_STARTED)[1] == (RunCall(action=action("a")),)


def test_a_call_that_ran_before_the_restart_may_have_run() -> None:
    """Even when it was about to be run again as the turn was stopped (K24)."""
    state = run(gated(allowed("a")), A_STARTED)[0]
    again = resume(state, rerun=frozenset({action("a")}))
    ended = run(again, signals.AbortRequested(cause="stop"))[0]
    assert isinstance(ended, Done)
    assert ended.results[0].content == MAY_HAVE_RUN


def test_a_sequential_batch_stays_sequential() -> None:
    """The next call waits until the unknown one is recorded (S1-22)."""
    running = run(gated(allowed("a", sequential=True), allowed("b")), A_STARTED)[0]
    state, effects = resume(running)
    assert effects == (RecordUnknown(action=action("a")),)
    assert run((state, ()), A_ENDED)[1] == (CheckCalls(actions=(action("b"),)),)


def test_a_finished_call_is_appended() -> None:
    """Its result was there before the restart."""
    state, effects = resume(run(gated(allowed("a")), A_STARTED, A_ENDED)[0])
    assert effects == (AppendBatch(results=(result("done", name="tool_0"),)),)
    assert isinstance(run((state, ()), entries.BatchAppended(at=AT))[0], Thinking)


def test_a_batch_gated_after_the_restart_goes_on() -> None:
    """The gate decides anew only if its decision is not on record."""
    again = resume(gating(1))
    gate = entries.Gated(at=AT, verdicts=(allowed("a"),))
    assert run(again, gate)[1] == (CheckCalls(actions=(action("a"),)),)


def _results(effect: Effect) -> tuple[ToolMessage, ...]:
    return effect.results if isinstance(effect, AppendBatch) else ()
