"""The turn's machine: what a turn does until an answer is whole, and how it ends from outside."""

from typing import cast, get_args

import pytest

from tests.unit.turn.parts import (
    AT,
    LIMITS,
    USED,
    action,
    allowed,
    answer,
    asked,
    call,
    calls,
    denied,
    gated,
    gating,
    result,
    run,
    streaming,
)
from zeroclaw.conversation.inbox import Cause
from zeroclaw.delivery.split import BREAK, BREAK_CHAR
from zeroclaw.envelope import ActionId, ApprovalId
from zeroclaw.message import AssistantMessage, FinishReason, Usage
from zeroclaw.turn import entries, signals
from zeroclaw.turn.batch import DID_NOT_RUN, MAY_HAVE_RUN, Batch, allocate
from zeroclaw.turn.machine import begin, begin_compaction, join_texts, resume, step
from zeroclaw.turn.signals import (
    AbortRequested,
    Compact,
    Event,
    GateBatch,
    SendRequest,
    ShowText,
    TurnFailed,
)
from zeroclaw.turn.states import (
    STAGES,
    Calling,
    Compacting,
    Confirming,
    Done,
    DoneReason,
    Executing,
    Progress,
    State,
    Streaming,
    Thinking,
    TurnLimits,
)

FIRST = Progress(limits=LIMITS, requests=1)
SENT = signals.RequestSent(request=1)
OVERFLOW = signals.ContextOverflowed(request=1)


def done(state: State) -> Done:
    assert isinstance(state, Done)
    return state


def test_a_turn_begins_by_asking_the_model() -> None:
    """A turn starts in thinking, and thinking starts a request (S0-20, S4-04, S4-11)."""
    assert begin(LIMITS) == (Thinking(progress=FIRST), (SendRequest(request=1),))


def test_a_turn_with_a_heavy_history_compacts_first() -> None:
    """The history is made smaller before the first request when it is too heavy."""
    compacting = Compacting(progress=Progress(limits=LIMITS), cause="heavy")
    assert begin(LIMITS, context_heavy=True) == (compacting, (Compact(cause="heavy"),))


def test_a_request_that_left_is_read_as_a_stream() -> None:
    """Thinking goes to streaming (S4-04)."""
    assert run(begin(LIMITS), SENT) == (Streaming(progress=FIRST), ())


def test_text_is_shown_as_it_arrives() -> None:
    """Each piece of text is shown, as the whole text so far (S0-22, S4-05)."""
    a = signals.TextArrived(request=1, text="Hel")
    b = signals.TextArrived(request=1, text="lo")
    shown = Streaming(progress=FIRST, shown="Hello", has_begun=True)
    assert run((streaming(), ()), a, b) == (shown, (ShowText(text="Hello"),))


def test_the_last_text_is_marked_as_such() -> None:
    """So that the final does not wait for a draft of the same text (P6)."""
    event = signals.TextArrived(request=1, text="Hello", is_last=True)
    assert step(streaming(), event)[1] == (ShowText(text="Hello", is_last=True),)


def test_the_second_answer_of_a_turn_continues_the_first() -> None:
    """Text before and after a tool call is one draft (K4)."""
    state = Streaming(progress=Progress(limits=LIMITS, requests=2, text="Looking."))
    event = signals.TextArrived(request=2, text="Sunny.")
    assert step(state, event)[1] == (ShowText(text="Looking.\n\nSunny."),)


def test_an_answer_without_calls_ends_the_turn() -> None:
    """Text only goes from streaming to done, with reason and usage (S0-24, S4-05, S4-10, S4-17)."""
    event = answer("It is sunny.")
    whole = Done(reason="model_stop", usage=USED, text="It is sunny.", message=event.message)
    assert step(streaming(), event) == (whole, ())


def test_an_answer_with_calls_goes_to_the_gate() -> None:
    """Calls leave the stream whole and all together (S0-23, S0-24, S1-19, S4-05)."""
    event = answer("Let me look.", call("a"), call("b"))
    progress = Progress(limits=LIMITS, requests=1, usage=USED, text="Let me look.")
    made = event.message.tool_calls
    executing = Executing(progress=progress, batch=allocate(made))
    assert step(streaming(), event) == (executing, (GateBatch(calls=made),))


def test_nothing_is_gated_while_the_model_still_writes() -> None:
    """No text, however long, makes a call run (K5)."""
    event = signals.TextArrived(request=1, text='{"tool": "shell"}')
    assert step(streaming(), event)[1] == (ShowText(text='{"tool": "shell"}'),)


def test_an_answer_is_shown_as_people_saw_it() -> None:
    """The person keeps the marked text, the history what the model said."""
    message = AssistantMessage(content="zc-receipt-1-made-up")
    event = signals.ResponseReceived(
        request=1, message=message, usage=USED, shown="[not a receipt]"
    )
    ended = done(step(streaming(), event)[0])
    assert (ended.text, ended.message) == ("[not a receipt]", message)


@pytest.mark.parametrize(
    ("reason", "text", "note"),
    [
        ("stop", "whole", ""),
        ("stop", "", "the model finished without a text"),
        ("length", "half", "the answer was cut off at the model's output limit"),
        ("content_filter", "half", "the model's content filter cut the answer off"),
    ],
)
def test_an_answer_that_is_not_whole_says_so(reason: FinishReason, text: str, note: str) -> None:
    """The local finish reason reaches the person as a note (S1-14)."""
    message = AssistantMessage(content=text, finish_reason=reason)
    event = signals.ResponseReceived(request=1, message=message, usage=USED)
    assert done(step(streaming(), event)[0]).note == note


# --- what goes wrong -----------------------------------------------------------------------------


def test_a_cut_stream_is_asked_for_once_more() -> None:
    """Nothing has run yet, so asking again is safe; its text stays until new text comes (K5)."""
    shown = Streaming(progress=FIRST, shown="half", has_begun=True)
    again = Progress(limits=LIMITS, requests=2, retried=True)
    assert step(shown, signals.StreamCut(request=1)) == (
        Thinking(progress=again, shown="half"),
        (SendRequest(request=2),),
    )


def test_the_text_of_a_new_attempt_replaces_the_cut_one() -> None:
    """A person never sees half an answer followed by a whole one."""
    again = Progress(limits=LIMITS, requests=2, retried=True)
    state = run((Thinking(progress=again, shown="half"), ()), signals.RequestSent(request=2))[0]
    stepped = step(state, signals.TextArrived(request=2, text="new"))
    assert stepped == (
        Streaming(progress=again, shown="new", has_begun=True),
        (ShowText(text="new"),),
    )


def test_an_answer_that_begins_anew_replaces_its_shown_text() -> None:
    """A thought that a closing tag reveals is no answer, for every end of the turn (P6)."""
    shown = Streaming(progress=FIRST, shown="Okay, a lobster.", has_begun=True)
    anew = Streaming(progress=FIRST)
    assert step(shown, SENT) == (anew, ())
    stepped = step(anew, signals.TextArrived(request=1, text="An animal."))
    assert stepped[1] == (ShowText(text="An animal."),)


def test_a_stream_cut_twice_ends_the_turn() -> None:
    """The shown text stays, marked as failed; the note says what to do (S1-14)."""
    again = Progress(limits=LIMITS, requests=2, retried=True)
    state = Streaming(progress=again, shown="half", has_begun=True)
    ended = done(step(state, signals.StreamCut(request=2))[0])
    assert ended == Done(
        reason="error",
        usage=Usage(),
        text="half",
        note="the model's answer broke off or was empty twice; send `/retry` to ask again",
        message=AssistantMessage(content="half", is_error=True),
    )


def test_each_answer_may_be_cut_once() -> None:
    """A whole answer makes the next one's first cut the first again (K5)."""
    progress = Progress(limits=LIMITS, requests=2, retried=True, overflowed=True)
    state = step(Streaming(progress=progress), answer("", call(), request=2))[0]
    assert isinstance(state, Executing)
    assert (state.progress.retried, state.progress.overflowed) == (False, False)


@pytest.mark.parametrize("state", [begin(LIMITS)[0], streaming()])
def test_a_request_that_can_not_be_made_ends_the_turn(state: State) -> None:
    """The person reads why (S4-17)."""
    event = signals.RequestFailed(request=1, text="the model's key was refused")
    ended = done(step(state, event)[0])
    assert (ended.reason, ended.note) == ("error", "the model's key was refused")


@pytest.mark.parametrize("state", [begin(LIMITS)[0], streaming()])
def test_a_request_that_is_too_large_compacts_once(state: State) -> None:
    """An overflow forces one compaction and another try."""
    forced = Progress(limits=LIMITS, requests=1, overflowed=True)
    compacting = Compacting(progress=forced, cause="overflow")
    assert step(state, OVERFLOW) == (compacting, (Compact(cause="overflow"),))


def test_a_request_that_is_still_too_large_ends_the_turn() -> None:
    """Compaction is forced once for one answer (K11)."""
    forced = Progress(limits=LIMITS, requests=1, overflowed=True)
    ended = done(step(Thinking(progress=forced), OVERFLOW)[0])
    note = "this is more than the model can read at once; send less of it, or in parts"
    assert (ended.reason, ended.note) == ("error", note)


def test_a_compaction_leads_back_to_thinking() -> None:
    """The request has a smaller history, and making it is paid for."""
    state = begin(LIMITS, context_heavy=True)[0]
    paid = Progress(limits=LIMITS, requests=1, usage=USED)
    expected = Thinking(progress=paid), (SendRequest(request=1),)
    assert step(state, entries.Compacted(at=AT, summary="", kept=0, usage=USED)) == expected


def test_without_a_summary_the_model_is_asked_all_the_same() -> None:
    """The request is cut to fit; the history keeps everything (K13)."""
    state = begin(LIMITS, context_heavy=True)[0]
    failed = signals.CompactionFailed(text="no summary")
    assert step(state, failed) == (Thinking(progress=FIRST), (SendRequest(request=1),))


def test_after_an_overflow_too_a_turn_goes_on_without_a_summary() -> None:
    """Its next request is smaller; text of the refused one stays on the screen."""
    state = step(Thinking(progress=FIRST, shown="half"), OVERFLOW)[0]
    progress = Progress(limits=LIMITS, requests=2, overflowed=True)
    expected = Thinking(progress=progress, shown="half"), (SendRequest(request=2),)
    assert step(state, signals.CompactionFailed(text="no summary")) == expected


def test_a_summary_that_a_person_asked_for_is_the_whole_turn() -> None:
    """No model answers; its tokens are counted, and a failure is shown."""
    state, effects = begin_compaction(LIMITS)
    assert effects == (Compact(cause="asked"),)
    made = done(step(state, entries.Compacted(at=AT, summary="s", kept=1, usage=USED))[0])
    assert (made.reason, made.usage) == ("model_stop", USED)
    assert made.text.startswith("The older part of this conversation is summarised now.")
    assert made.message == AssistantMessage(content=made.text, mark="runtime")
    failed = done(step(state, signals.CompactionFailed(text="Nothing to do."))[0])
    assert (failed.reason, failed.text) == ("model_stop", "Nothing to do.")


# --- what comes late -----------------------------------------------------------------------------

OLD = Progress(limits=LIMITS, requests=2)
STRANGE: list[tuple[State, Event]] = [
    (Thinking(progress=FIRST), signals.TextArrived(request=1, text="before the request left")),
    (Thinking(progress=FIRST), entries.BatchAppended(at=AT)),
    (Thinking(progress=OLD), signals.RequestFailed(request=1, text="old")),
    (Streaming(progress=OLD), signals.TextArrived(request=1, text="old")),
    (Streaming(progress=OLD), answer("old")),
    (Streaming(progress=OLD), signals.StreamCut(request=1)),
    (Streaming(progress=FIRST), entries.CallStarted(at=AT, action=ActionId("x"))),
    (Compacting(progress=FIRST, cause="heavy"), answer("late")),
    (Done(reason="model_stop", usage=USED), answer("late")),
    (Done(reason="model_stop", usage=USED), signals.AbortRequested(cause="stop")),
    (
        Done(reason="user_abort", usage=USED),
        entries.CallFinished(at=AT, action=ActionId("x"), result=result("late"), outcome="ok"),
    ),
    (
        Done(reason="user_abort", usage=USED),
        entries.AnswerTaken(at=AT, how="approved", approval=ApprovalId("x")),
    ),
]


@pytest.mark.parametrize(("state", "event"), STRANGE)
def test_what_comes_late_changes_nothing(state: State, event: Event) -> None:
    """Events about what is over are legal and ignored; done is terminal (S4-10)."""
    assert step(state, event) == (state, ())


def test_an_unknown_state_is_refused() -> None:
    """The type check refuses it where it is written; at run time it raises (S4-13)."""
    unknown = cast("State", allocate(calls(1)))
    with pytest.raises(AssertionError, match="unreachable"):
        step(unknown, entries.BatchAppended(at=AT))
    with pytest.raises(AssertionError, match="unreachable"):
        resume(unknown)


def test_an_event_that_the_budget_can_not_pay_ends_the_turn() -> None:
    """Tokens are counted after every step; the pending calls do not run (S4-17, S4-20)."""
    limits = TurnLimits(max_tokens=12)
    stepped = step(streaming(limits), answer("Let me look.", call()))
    ended = done(stepped[0])
    assert stepped[1] == ()
    assert (ended.reason, ended.text, len(ended.fills)) == ("budget_exceeded", "Let me look.", 1)
    assert ended.note == (
        "stopped at 12 tokens, the limit of one turn is 12 tokens; "
        "earlier tool calls may already have completed successfully"
    )


def test_a_whole_answer_is_never_over_the_budget() -> None:
    """A whole answer that is paid for goes to the person."""
    ended = done(step(streaming(TurnLimits(max_tokens=1)), answer("done"))[0])
    assert (ended.reason, ended.text) == ("model_stop", "done")


# --- ends from outside, and what stays of the turn ------------------------------------------------

STOP = AbortRequested(cause="stop", by="Sam")
STREAMED = Streaming(progress=Progress(limits=LIMITS, requests=1), shown="It is", has_begun=True)
EVERY_STATE = [
    begin(LIMITS)[0],
    begin(LIMITS, context_heavy=True)[0],
    streaming(),
    gating(2),
    gated(allowed("a"))[0],
    gated(asked("a"))[0],
    run(gated(allowed("a")), entries.CallStarted(at=AT, action=action("a")))[0],
]


def texts(state: State) -> list[str]:
    return [message.content for message in done(state).results]


@pytest.mark.parametrize("state", EVERY_STATE)
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (STOP, "user_abort"),
        (TurnFailed(text="restarted three times without getting further"), "error"),
    ],
)
def test_a_turn_can_be_ended_in_every_state(state: State, event: Event, reason: DoneReason) -> None:
    """The abort is checked between all steps, and the end is shown (S4-02, S4-17, S4-19, S4-20)."""
    after, effects = step(state, event)
    assert done(after).reason == reason
    assert effects == ()


@pytest.mark.parametrize(
    ("cause", "by", "note"),
    [
        ("stop", "Sam", "stopped by Sam"),
        ("stop", "", "stopped"),
        ("new", "Sam", "stopped: a new conversation was begun by Sam"),
        ("forget", "Sam", "stopped: what was said here is being removed by Sam"),
        ("halt", "Ada", "stopped: everything was halted by Ada"),
        ("revoked", "Ada", "stopped by Ada: you may no longer talk to me"),
        ("interrupt", "Sam", "interrupted by a newer message of Sam"),
        ("interrupt", "", "interrupted by a newer message"),
    ],
)
def test_the_person_reads_who_ended_a_turn(cause: Cause, by: str, note: str) -> None:
    """Each cause has its own sentence (P10)."""
    assert done(step(streaming(), AbortRequested(cause=cause, by=by))[0]).note == note


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (STOP, AssistantMessage(content="It is", mark="stopped")),
        (AbortRequested(cause="interrupt"), AssistantMessage(content="It is", mark="interrupted")),
        (TurnFailed(text="fault"), AssistantMessage(content="It is", is_error=True)),
    ],
)
def test_shown_text_stays_in_the_history(event: Event, message: AssistantMessage) -> None:
    """Shown text becomes an assistant message that says how it ended (S1-14)."""
    ended = done(step(STREAMED, event)[0])
    assert (ended.text, ended.message) == ("It is", message)


def test_nothing_shown_leaves_no_message() -> None:
    """An empty answer is not made up."""
    assert done(step(streaming(), STOP)[0]).message is None


def test_a_stop_keeps_the_text_of_earlier_answers() -> None:
    """The person keeps the whole draft, the history each answer in its own message (K4)."""
    state = gating(1, text="Let me look.")
    ended = done(step(state, STOP)[0])
    assert (ended.text, ended.message) == ("Let me look.", None)


def test_calls_that_were_never_gated_did_not_run() -> None:
    """A stop at the gate answers every call (K24)."""
    state, effects = step(gating(2), STOP)
    assert texts(state) == [DID_NOT_RUN, DID_NOT_RUN]
    assert effects == ()


def test_calls_that_wait_for_a_person_did_not_run() -> None:
    """Approved but not started is not run (K24)."""
    state = run(gated(asked("a"), allowed("b"), denied("c")), STOP)[0]
    assert texts(state) == [DID_NOT_RUN, DID_NOT_RUN, "c: no"]
    assert [fill.outcome for fill in done(state).fills] == ["cancelled", "cancelled"]


def test_a_call_that_started_may_have_run() -> None:
    """The result of each call says what is known of it (K24, P3)."""
    state, effects = run(
        gated(allowed("a"), allowed("b"), allowed("c")),
        entries.CallStarted(at=AT, action=action("a")),
        entries.CallStarted(at=AT, action=action("b")),
        entries.CallFinished(at=AT, action=action("b"), result=result("done"), outcome="ok"),
        STOP,
    )
    assert texts(state) == [MAY_HAVE_RUN, "done", DID_NOT_RUN]
    fills = done(state).fills
    assert [(fill.position, fill.outcome, fill.action) for fill in fills] == [
        (0, "unknown", "a"),
        (2, "cancelled", "c"),
    ]
    assert effects == ()


def test_usage_of_an_ended_turn_is_all_that_was_reported() -> None:
    """Whatever the reason, the end carries the tokens (S4-19)."""
    assert done(step(gating(1), STOP)[0]).usage == USED
    assert done(step(streaming(), STOP)[0]).usage == Usage()


def test_results_of_an_ended_turn_echo_their_calls() -> None:
    """A filled slot pairs by id and by order, like any other (S1-15)."""
    state = done(step(gating(2), STOP)[0])
    pairs = [(message.tool_call_id, message.tool_name) for message in state.results]
    assert pairs == [(call_.id, call_.name) for call_ in calls(2)]


@pytest.mark.parametrize(
    ("earlier", "text", "whole"),
    [
        ("a", "b", "a\n\nb"),
        ("a", "", "a"),
        ("", "b", "b"),
        ("", "", ""),
        (f"a{BREAK}", "b", f"a{BREAK}b"),
        (f"a{BREAK}", "", f"a{BREAK}"),
        (f"a{BREAK}", "\u200b\n", f"a{BREAK}"),
        ("a", f"b{BREAK}{BREAK_CHAR}\nc", "a\n\nb\n\n\nc"),
    ],
)
def test_answers_of_one_turn_are_paragraphs(earlier: str, text: str, whole: str) -> None:
    """No blank lines for texts that show nothing; only the machine begins a message."""
    assert join_texts(earlier, text) == whole


# --- which states there are, and where the stages of a message lie in them ------------------------

PROGRESS = Progress(limits=LIMITS)
BATCH = Batch(slots=())


def test_there_are_six_states_and_no_others() -> None:
    """A turn is always in one of six states (S4-01, S4-03)."""
    six = {Thinking, Streaming, Confirming, Executing, Compacting, Done}
    assert set(get_args(State)) == STAGES.keys() == six


@pytest.mark.parametrize(
    ("state", "inside"),
    [
        (Thinking(progress=PROGRESS), ("compose_request", "send_request")),
        (Streaming(progress=PROGRESS), ("stream_response",)),
        (Confirming(progress=PROGRESS, batch=BATCH), ("tool_call",)),
        (Executing(progress=PROGRESS, batch=BATCH), ("tool_call",)),
        (Compacting(progress=PROGRESS, cause="heavy"), ("compose_request",)),
        (Done(reason="model_stop", usage=Usage()), ("render",)),
    ],
)
def test_each_stage_lies_in_a_state(state: State, inside: tuple[str, ...]) -> None:
    """The six stages keep their order inside the states (S0-01)."""
    assert STAGES[type(state)] == inside


@pytest.mark.parametrize("kind", get_args(Calling))
def test_a_state_carries_its_own_data_only(kind: type[State]) -> None:
    """Outside a batch no state holds calls; inside one it holds nothing of the stream (S4-14, S4-15)."""
    assert "batch" in kind.__struct_fields__
    assert "shown" not in kind.__struct_fields__
    assert "batch" not in Thinking.__struct_fields__
    assert "batch" not in Streaming.__struct_fields__
    assert "progress" not in Done.__struct_fields__
