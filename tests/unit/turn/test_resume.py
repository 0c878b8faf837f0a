"""What a turn does again after a restart."""

import pytest

from tests.unit.turn.parts import (
    AT,
    LIMITS,
    USED,
    action,
    allowed,
    approval,
    asked,
    calls,
    denied,
    gated,
    gating,
    result,
    run,
    stored,
    streaming,
)
from zeroclaw.message import ToolMessage
from zeroclaw.turn import entries, signals
from zeroclaw.turn.batch import MAY_HAVE_RUN
from zeroclaw.turn.machine import Step, begin, resume, step
from zeroclaw.turn.signals import (
    AppendBatch,
    AwaitAnswers,
    CheckCalls,
    Compact,
    Effect,
    Finish,
    GateBatch,
    RecordUnknown,
    RunCall,
    SendRequest,
)
from zeroclaw.turn.states import Dispatching, Done, Executing, State, Streaming, Thinking
from zeroclaw.value import replace

GRANTED = entries.AnswerTaken(at=AT, how="approved", approval=approval("a"))
REFUSED = entries.AnswerTaken(at=AT, how="denied", approval=approval("a"), result=result("no"))
A_STARTED = entries.CallStarted(at=AT, action=action("a"))
A_ENDED = entries.CallFinished(at=AT, action=action("a"), result=result("done"), outcome="ok")
DONE = Done(reason="model_stop", usage=USED, text="whole")


@pytest.mark.parametrize(
    ("state", "effects"),
    [
        (begin(LIMITS)[0], (SendRequest(request=2),)),
        (streaming(), (SendRequest(request=2),)),
        (begin(LIMITS, context_heavy=True)[0], (Compact(cause="heavy"),)),
        (gating(2), (GateBatch(calls=calls(2)),)),
        (
            gated(asked("a"), asked("b"))[0],
            (AwaitAnswers(approvals=(approval("a"), approval("b"))),),
        ),
        (
            run(gated(asked("a"), asked("b")), GRANTED)[0],
            (AwaitAnswers(approvals=(approval("b"),)),),
        ),
        (gated(denied("a"))[0], (AppendBatch(results=(result("a: no", name="tool_0"),)),)),
        (
            run(gated(asked("a")), REFUSED)[0],
            (AppendBatch(results=(result("no", name="tool_0"),)),),
        ),
        (gated(allowed("a"), allowed("b"))[0], (CheckCalls(actions=(action("a"), action("b"))),)),
        (run(gated(allowed("a")), A_STARTED)[0], (RecordUnknown(action=action("a")),)),
        (DONE, (Finish(done=DONE),)),
    ],
)
def test_a_restart_does_again_what_was_due(state: State, effects: tuple[Effect, ...]) -> None:
    """Requests, compactions and unanswered questions are repeated; a gated batch is not gated."""
    assert resume(stored(state))[1] == effects


def test_a_turn_killed_while_streaming_thinks_again() -> None:
    """Its text stays on the screen until the new answer begins."""
    shown = replace(streaming(), shown="half", fresh=True)
    assert isinstance(shown, Streaming)
    state, _ = resume(shown)
    assert isinstance(state, Thinking)
    assert state.shown == "half"


def test_a_call_that_may_not_run_twice_ends_as_unknown() -> None:
    """The other calls go on; what nobody knows is told to the model (P3)."""
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
    one = run(gated(allowed("a", sequential=True), allowed("b")), A_STARTED)[0]
    state, effects = resume(one)
    assert effects == (RecordUnknown(action=action("a")),)
    assert run((state, ()), A_ENDED)[1] == (CheckCalls(actions=(action("b"),)),)


def dispatched() -> Step:
    return run(gated(allowed("a", delegated=True)), A_STARTED)


def test_a_sub_agent_that_was_cut_short_is_unknown() -> None:
    """A restart leaves dispatching by executing, where calls are recorded."""
    assert isinstance(dispatched()[0], Dispatching)
    state, effects = resume(dispatched()[0])
    assert isinstance(state, Executing)
    assert effects == (RecordUnknown(action=action("a")),)


def test_a_finished_sub_agent_is_appended() -> None:
    """Its result was there before the restart."""
    state, effects = resume(run(dispatched(), A_ENDED)[0])
    assert effects == (AppendBatch(results=(result("done", name="tool_0"),)),)
    assert isinstance(run((state, ()), entries.BatchAppended(at=AT))[0], Thinking)


def test_a_batch_gated_after_the_restart_goes_on() -> None:
    """The gate is asked anew only before it has spoken."""
    again = resume(gating(1))
    gate = entries.Gated(at=AT, verdicts=(allowed("a"),))
    assert run(again, gate)[1] == (CheckCalls(actions=(action("a"),)),)


def _results(effect: Effect) -> tuple[ToolMessage, ...]:
    return effect.results if isinstance(effect, AppendBatch) else ()
