"""How a turn ends from outside, and what stays of it."""

import pytest

from tests.unit.turn.parts import (
    AT,
    LIMITS,
    USED,
    action,
    allowed,
    asked,
    calls,
    denied,
    gated,
    gating,
    result,
    run,
    streaming,
)
from zeroclaw.message import AssistantMessage, Usage
from zeroclaw.turn import entries
from zeroclaw.turn.batch import DID_NOT_RUN, MAY_HAVE_RUN
from zeroclaw.turn.machine import begin, join_texts, step
from zeroclaw.turn.signals import AbortCause, AbortRequested, CancelCalls, Event, Finish, TurnFailed
from zeroclaw.turn.states import Done, DoneReason, Progress, State, Streaming

STOP = AbortRequested(cause="stop", by="Sam")
STREAMED = Streaming(progress=Progress(limits=LIMITS, requests=1), shown="It is", fresh=True)
EVERY_STATE = [
    begin(LIMITS)[0],
    begin(LIMITS, context_heavy=True)[0],
    streaming(),
    gating(2),
    gated(allowed("a"))[0],
    gated(asked("a"))[0],
    run(gated(allowed("a", delegated=True)), entries.CallStarted(at=AT, action=action("a")))[0],
]


def done(state: State) -> Done:
    assert isinstance(state, Done)
    return state


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
    """The abort is looked at between every two steps, and the end is told (S4-02, S4-17, S4-19, S4-20)."""
    after, effects = step(state, event)
    assert done(after).reason == reason
    assert effects[-1] == Finish(done=done(after))


@pytest.mark.parametrize(
    ("cause", "by", "note"),
    [
        ("stop", "Sam", "stopped by Sam"),
        ("stop", "", "stopped"),
        ("new", "Sam", "stopped: a new conversation was begun by Sam"),
        ("halt", "Ada", "stopped: everything was halted by Ada"),
        ("revoked", "Ada", "stopped: you may no longer talk to me by Ada"),
        ("interrupt", "Sam", "interrupted by a newer message of Sam"),
        ("interrupt", "", "interrupted by a newer message"),
    ],
)
def test_the_person_is_told_who_ended_a_turn(cause: AbortCause, by: str, note: str) -> None:
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
def test_what_was_shown_stays_in_the_history(event: Event, message: AssistantMessage) -> None:
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
    assert effects == (Finish(done=done(state)),)


def test_calls_that_wait_for_a_person_did_not_run() -> None:
    """Approved but not started is not run (K24)."""
    state = run(gated(asked("a"), allowed("b"), denied("c")), STOP)[0]
    assert texts(state) == [DID_NOT_RUN, DID_NOT_RUN, "c: no"]
    assert [fill.outcome for fill in done(state).fills] == ["cancelled", "cancelled"]


def test_a_call_that_started_may_have_run() -> None:
    """What runs is cancelled, and each call says what is known of it (K24, P3)."""
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
    assert effects[0] == CancelCalls(actions=(action("a"), action("c")))


def test_usage_of_an_ended_turn_is_all_that_was_reported() -> None:
    """Whatever the reason, the end carries the tokens (S4-19)."""
    assert done(step(gating(1), STOP)[0]).usage == USED
    assert done(step(streaming(), STOP)[0]).usage == Usage()


def test_results_of_an_ended_turn_echo_their_calls() -> None:
    """A filled slot pairs by id and by order, like any other (S1-15)."""
    state = done(step(gating(2), STOP)[0])
    pairs = [(message.tool_call_id, message.tool_name) for message in state.results]
    assert pairs == [(made.id, made.name) for made in calls(2)]


@pytest.mark.parametrize(
    ("said", "text", "whole"), [("a", "b", "a\n\nb"), ("a", "", "a"), ("", "b", "b"), ("", "", "")]
)
def test_answers_of_one_turn_are_paragraphs(said: str, text: str, whole: str) -> None:
    """No blank lines where nothing was said."""
    assert join_texts(said, text) == whole
