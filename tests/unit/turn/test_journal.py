"""What a conversation's journal comes to."""

from itertools import accumulate

import pytest

from tests.fakes.journals import fold
from tests.unit.turn.parts import (
    AT,
    LIMITS,
    USED,
    USER,
    action,
    allowed,
    approval,
    asked,
    call,
    denied,
    gated,
    gating,
    opened,
    result,
    stored,
    streaming,
)
from zeroclaw.envelope import ItemId
from zeroclaw.message import AssistantMessage, Message, ToolMessage, UserMessage
from zeroclaw.turn import entries
from zeroclaw.turn.batch import DID_NOT_RUN, MAY_HAVE_RUN, Fill
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.journal import History, Issued, extend
from zeroclaw.turn.machine import begin, begin_tool, resume
from zeroclaw.turn.signals import GateBatch
from zeroclaw.turn.states import Compacting, Confirming, Done, Executing, State, Thinking
from zeroclaw.value import replace

CITIES = AssistantMessage(
    tool_calls=(
        call("get_weather", "call_a", '{"city":"NYC"}'),
        call("get_weather", "call_b", '{"city":"London"}'),
    )
)
SUNNY = ToolMessage(content="72°F and sunny", tool_call_id="call_a", tool_name="get_weather")
RAINY = ToolMessage(content="55°F and rainy", tool_call_id="call_b", tool_name="get_weather")
ANSWER = AssistantMessage(content="NYC is 72°F and sunny; London is 55°F and rainy.")
OPENED = opened()
RECEIVED = entries.AssistantReceived(message=CITIES, usage=USED, at=AT)
GATED = entries.Gated(verdicts=(allowed("a"), allowed("b")), at=AT)
A_STARTED = entries.CallStarted(action=action("a"), at=AT)
A_FINISHED = entries.CallFinished(
    action=action("a"), result=SUNNY, outcome="ok", at=AT, receipt="zc-a"
)
B_STARTED = entries.CallStarted(action=action("b"), at=AT)
B_FINISHED = entries.CallFinished(action=action("b"), result=RAINY, outcome="ok", at=AT)
APPENDED = entries.BatchAppended(at=AT)
FINISHED = entries.TurnFinished(reason="model_stop", usage=USED, at=AT, message=ANSWER)
STOPPED = entries.TurnFinished(reason="user_abort", usage=USED, at=AT)
WHOLE: list[Entry] = [
    OPENED,
    RECEIVED,
    GATED,
    B_STARTED,
    A_STARTED,
    B_FINISHED,
    A_FINISHED,
    APPENDED,
    FINISHED,
]


def state_after(*written: Entry) -> State:
    turn = fold(written).turn
    assert turn is not None
    return turn.state


def contents(messages: tuple[Message, ...]) -> list[str]:
    return [message.content for message in messages]


def test_a_turn_folds_into_the_messages_it_made() -> None:
    """User, calls, results in request order, answer (S0-09, S0-35, S0-38, S1-01, S1-02, S1-23)."""
    history = fold(WHOLE)
    assert history.messages == (USER, CITIES, SUNNY, RAINY, ANSWER)
    assert history.turn is None


def test_the_next_turn_remembers_the_one_before() -> None:
    """Several turns are one array; nothing about that is special (S1-05)."""
    again = replace(OPENED, user=UserMessage(content="And Paris?"))
    history = fold([*WHOLE, again])
    assert history.messages == (USER, CITIES, SUNNY, RAINY, ANSWER, again.user)


def test_one_entry_more_is_the_same_as_reading_all_again() -> None:
    """A long conversation isn't folded anew for each step."""
    steps = list(accumulate(WHOLE, extend, initial=History()))
    assert steps == [fold(WHOLE[:count]) for count in range(len(WHOLE) + 1)]


@pytest.mark.parametrize("count", range(2, len(WHOLE)))
def test_a_broken_record_answers_every_call(count: int) -> None:
    """A turn that another was opened upon is closed, with a result for each call (K15)."""
    messages = fold([*WHOLE[:count], OPENED]).messages
    made = [type(message) for message in messages]
    assert made == [UserMessage, AssistantMessage, ToolMessage, ToolMessage, UserMessage]
    assert [m.tool_call_id for m in messages if isinstance(m, ToolMessage)] == ["call_a", "call_b"]


def test_a_broken_record_says_what_may_have_run() -> None:
    """Started and unfinished is unknown; not started did not run (K15, K24)."""
    messages = fold([OPENED, RECEIVED, GATED, A_STARTED, OPENED]).messages
    assert contents(messages)[2:4] == [MAY_HAVE_RUN, DID_NOT_RUN]


# --- the open turn -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ([OPENED], begin(LIMITS)[0]),
        ([replace(OPENED, context_heavy=True)], begin(LIMITS, context_heavy=True)[0]),
        ([opened("tool")], begin_tool(call("shell", arguments='{"command": "ls"}'), LIMITS)[0]),
    ],
)
def test_an_opened_turn_stands_at_its_beginning(written: list[Entry], state: State) -> None:
    """The machine's own first state, with the limits it began with."""
    assert state_after(*written) == state


def test_a_persons_own_call_is_written_by_the_runtime() -> None:
    """The history holds an assistant message that the model did not write."""
    tool = opened("tool")
    assert tool.call is not None
    said = AssistantMessage(tool_calls=(tool.call,), mark="runtime")
    assert fold([tool]).messages == (USER, said)


def test_an_ungated_batch_is_found_ungated() -> None:
    """Its answer is in the history, and its calls go to the gate."""
    state = state_after(OPENED, RECEIVED)
    assert isinstance(state, Executing)
    assert resume(state)[1] == (GateBatch(calls=CITIES.tool_calls),)
    assert fold([OPENED, RECEIVED]).messages == (USER, CITIES)


def test_an_answer_that_was_given_stands() -> None:
    """The turn waits for the other approval only."""
    gate = entries.Gated(verdicts=(asked("a"), asked("b")), at=AT)
    yes = entries.AnswerTaken(approval=approval("a"), how="approved", at=AT)
    state = state_after(OPENED, RECEIVED, gate, yes)
    assert isinstance(state, Confirming)
    assert [slot.status for slot in state.batch.slots] == ["allowed", "asked"]


def test_a_refusal_that_was_given_stands() -> None:
    """Its slot is filled with what the model will read."""
    gate = entries.Gated(verdicts=(asked("a"), allowed("b")), at=AT)
    no = entries.AnswerTaken(approval=approval("a"), how="denied", at=AT, result=result("no"))
    state = state_after(OPENED, RECEIVED, gate, no)
    assert isinstance(state, Executing)
    assert [slot.status for slot in state.batch.slots] == ["ended", "checking"]


def test_an_appended_batch_is_thinking_again() -> None:
    """The rounds are counted as they were (K1)."""
    state = state_after(*WHOLE[:-1])
    assert isinstance(state, Thinking)
    assert (state.progress.rounds, state.progress.usage) == (1, USED)


def test_a_turn_at_its_bound_is_found_done() -> None:
    """What was not recorded is finished again (K1)."""
    last = replace(OPENED, limits=replace(LIMITS, max_rounds=1))
    state = state_after(last, *WHOLE[1:-1])
    assert isinstance(state, Done)
    assert state.reason == "max_turns"


def test_an_answer_without_calls_waits_for_its_end() -> None:
    """It joins the history once, with the end of the turn."""
    received = entries.AssistantReceived(message=ANSWER, usage=USED, at=AT)
    assert isinstance(state_after(OPENED, received), Done)
    assert fold([OPENED, received, FINISHED]).messages == (USER, ANSWER)


def test_restarts_without_progress_are_counted() -> None:
    """Any other entry starts the count anew; the fourth restart gives up."""
    resumed = entries.TurnResumed(at=AT)
    turn = fold([OPENED, resumed, RECEIVED, resumed, resumed]).turn
    assert turn is not None
    assert turn.resumed == 2


@pytest.mark.parametrize("entry", [RECEIVED, GATED, A_FINISHED, APPENDED, FINISHED])
def test_entries_without_a_turn_change_nothing(entry: Entry) -> None:
    """A late answer or a stray entry breaks no conversation."""
    assert fold([entry]) == History()


@pytest.mark.parametrize("stray", [RECEIVED, APPENDED, B_STARTED])
def test_entries_that_do_not_fit_change_nothing(stray: Entry) -> None:
    """A second answer inside a batch, an early append, an early start."""
    written: list[Entry] = [OPENED, RECEIVED]
    assert fold([*written, stray]) == fold(written)


# --- what else joins the messages ----------------------------------------------------------------


def test_a_gate_without_a_batch_is_not_heard() -> None:
    """A verdict needs a call."""
    assert fold([OPENED, GATED]) == fold([OPENED])


def test_a_stopped_turn_answers_its_calls_and_keeps_its_text() -> None:
    """Fills stand in request order, with their receipts, before what had been shown (K24)."""
    fills = (
        Fill(
            position=1,
            action=action("b"),
            outcome="cancelled",
            result=ToolMessage(content="with receipt", tool_call_id="call_b", tool_name="b"),
            receipt="zc-b",
        ),
    )
    stopped = replace(STOPPED, fills=fills)
    history = fold([OPENED, RECEIVED, GATED, A_STARTED, A_FINISHED, stopped])
    assert contents(history.messages)[2:] == ["72°F and sunny", "with receipt"]
    assert [(issued.token, issued.outcome) for issued in history.receipts] == [
        ("zc-a", "ok"),
        ("zc-b", "cancelled"),
    ]


def test_a_turn_stopped_while_streaming_keeps_what_was_shown() -> None:
    """As an assistant message that says so."""
    said = AssistantMessage(content="It is", mark="stopped")
    history = fold([OPENED, replace(STOPPED, message=said)])
    assert history.messages == (USER, said)


def test_a_turn_that_the_budget_ended_inside_a_batch_is_whole() -> None:
    """The machine's own results stand where the record brings none (K15)."""
    poor = replace(OPENED, limits=replace(LIMITS, max_tokens=1))
    over = replace(STOPPED, reason="budget_exceeded")
    history = fold([poor, RECEIVED, over])
    assert contents(history.messages)[2:] == [DID_NOT_RUN, DID_NOT_RUN]


def test_a_steering_message_stands_behind_the_batch() -> None:
    """It never comes between a call and its result."""
    steered = entries.Steered(user=UserMessage(content="In C."), item=ItemId("item-2"), at=AT)
    history = fold([*WHOLE[:-1], steered, FINISHED])
    assert contents(history.messages)[-2:] == ["In C.", ANSWER.content]


def test_a_note_waits_for_the_end_of_the_turn() -> None:
    """It never comes between a call and its result, nor before the answer."""
    noted = entries.Noted(text="edited: hi", why="edit", at=AT)
    open_turn = fold([OPENED, RECEIVED, noted])
    assert open_turn.messages == (USER, CITIES)
    assert open_turn.waiting == (UserMessage(content="edited: hi", note="edit"),)
    history = fold([OPENED, RECEIVED, noted, *WHOLE[2:]])
    assert history.messages[-1] == UserMessage(content="edited: hi", note="edit")
    assert history.waiting == ()


def test_a_note_between_turns_joins_at_once() -> None:
    """Nothing is open that it could disturb."""
    noted = entries.Noted(text="edited: hi", why="edit", at=AT)
    assert fold([noted]).messages == (UserMessage(content="edited: hi", note="edit"),)


@pytest.mark.parametrize(
    ("kept", "left"),
    [(0, []), (1, [SUNNY, RAINY]), (2, [SUNNY, RAINY]), (3, [SUNNY, RAINY]), (9, [SUNNY, RAINY])],
)
def test_a_summary_never_separates_a_result_from_its_call(kept: int, left: list[Message]) -> None:
    """The cut moves back to the call; nothing kept is orphaned (K12)."""
    compacted = entries.Compacted(summary="weather", kept=kept, at=AT)
    history = fold([*WHOLE[:-1], compacted])
    results = [message for message in history.messages if isinstance(message, ToolMessage)]
    assert (history.summary, results) == ("weather", left)
    assert not isinstance(next(iter(history.messages), None), ToolMessage)


def test_a_summary_within_a_turn_leaves_its_own_message_in_front() -> None:
    """The message that the turn answers, then the newest rounds (K12)."""
    compacted = entries.Compacted(
        summary="weather", kept=0, pinned=len(fold(WHOLE[:-1]).messages), at=AT
    )
    before, after = fold(WHOLE[:-1]).messages, fold([*WHOLE[:-1], compacted]).messages
    assert after == before[:1]
    # Retention may have taken it; and one that is kept anyway does not come twice.
    gone = replace(compacted, pinned=99)
    assert fold([*WHOLE[:-1], gone]).messages == ()
    whole = replace(compacted, kept=len(before), pinned=1)
    assert fold([*WHOLE[:-1], whole]).messages == before


def test_a_summary_that_was_asked_for_ends_its_turn() -> None:
    """Killed before its end is written, it asks no model (S4-16)."""
    asked = replace(OPENED, kind="compact", user=UserMessage(content="/compact"))
    compacted = entries.Compacted(summary="weather", kept=1, at=AT, usage=USED)
    assert isinstance(state_after(asked), Compacting)
    ended = state_after(asked, compacted)
    assert isinstance(ended, Done)
    assert ended.usage == USED


def test_a_summary_leads_back_to_thinking() -> None:
    """Whether it was made because the history was heavy or too large."""
    compacted = entries.Compacted(summary="weather", kept=1, at=AT, usage=USED)
    state = state_after(OPENED, compacted)
    assert isinstance(state, Thinking)
    assert state.progress.usage == USED
    assert isinstance(state_after(replace(OPENED, context_heavy=True), compacted), Thinking)


# --- facts for others ----------------------------------------------------------------------------


def test_the_newest_failed_or_stopped_turn_can_be_retried() -> None:
    """Until a retry has succeeded."""
    again = opened("retry", turn="turn-2")
    assert fold(WHOLE).retry is None
    assert fold([OPENED, STOPPED]).retry == OPENED
    assert fold([OPENED, STOPPED, *WHOLE]).retry == OPENED
    assert fold([OPENED, STOPPED, again, FINISHED]).retry is None
    assert fold([OPENED, STOPPED, again, STOPPED]).retry == again


def test_every_receipt_is_known_by_its_call() -> None:
    """Denied by the gate, refused by a person, run, or cut short (S2-15)."""
    gate = entries.Gated(verdicts=(denied("a", "zc-1"), asked("b")), at=AT)
    no = entries.AnswerTaken(
        approval=approval("b"), how="denied", at=AT, result=result("no"), receipt="zc-2"
    )
    denials = fold([OPENED, RECEIVED, gate, no]).receipts
    assert denials == (
        Issued(token="zc-1", tool="get_weather", outcome="denied", at=AT, action=action("a")),
        Issued(token="zc-2", tool="get_weather", outcome="denied", at=AT, action=action("b")),
    )
    runs = fold(WHOLE).receipts
    assert [(issued.token, issued.outcome) for issued in runs] == [("zc-a", "ok")]


# --- stored states -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        begin(LIMITS)[0],
        begin(LIMITS, context_heavy=True)[0],
        streaming(),
        gating(2),
        gated(asked("a"), denied("b"))[0],
        gated(allowed("a"))[0],
        Done(reason="model_stop", usage=USED, text="whole", message=ANSWER),
    ],
)
def test_a_state_can_be_stored_between_any_two_steps(state: State) -> None:
    """It comes back equal, and asks for the same (S4-16)."""
    found = stored(state)
    assert found == state
    assert resume(found) == resume(state)
