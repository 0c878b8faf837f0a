"""The fold of a conversation's journal."""

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.journals import fold
from tests.fakes.memory_store import MemoryStore
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
from zeroclaw.context.offers import Loaded
from zeroclaw.envelope import ConversationId, ItemId
from zeroclaw.errors import StoreUnusable
from zeroclaw.message import AssistantMessage, Message, ToolMessage, UserMessage
from zeroclaw.store import DurablePoint, LogEntry, LogKind
from zeroclaw.turn import entries
from zeroclaw.turn.batch import DID_NOT_RUN, MAY_HAVE_RUN, Fill
from zeroclaw.turn.entries import Entry, decode, encode
from zeroclaw.turn.journal import History, IssuedReceipt, extend, fold_end
from zeroclaw.turn.machine import begin, begin_tool, resume
from zeroclaw.turn.session import READ_AT_ONCE, Leases, Transition, open_session, read_history
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
    message = AssistantMessage(tool_calls=(tool.call,), mark="runtime")
    assert fold([tool]).messages == (USER, message)


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
    """An unrecorded end is reached again (K1)."""
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
    assert [
        (issued_receipts.token, issued_receipts.outcome) for issued_receipts in history.receipts
    ] == [("zc-a", "ok"), ("zc-b", "cancelled")]


def test_a_turn_stopped_while_streaming_keeps_the_shown_text() -> None:
    """As an assistant message that says so."""
    message = AssistantMessage(content="It is", mark="stopped")
    history = fold([OPENED, replace(STOPPED, message=message)])
    assert history.messages == (USER, message)


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
    assert open_turn.pending_notes == (UserMessage(content="edited: hi", note="edit"),)
    history = fold([OPENED, RECEIVED, noted, *WHOLE[2:]])
    assert history.messages[-1] == UserMessage(content="edited: hi", note="edit")
    assert history.pending_notes == ()


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
    pinned_too_far = replace(compacted, pinned=99)
    assert fold([*WHOLE[:-1], pinned_too_far]).messages == ()
    whole = replace(compacted, kept=len(before), pinned=1)
    assert fold([*WHOLE[:-1], whole]).messages == before


def test_a_summary_that_was_asked_for_ends_its_turn() -> None:
    """Killed before its end is written, it asks no model (S4-16)."""
    opened_by_command = replace(OPENED, kind="compact", user=UserMessage(content="/compact"))
    compacted = entries.Compacted(summary="weather", kept=1, at=AT, usage=USED)
    assert isinstance(state_after(opened_by_command), Compacting)
    ended = state_after(opened_by_command, compacted)
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
        IssuedReceipt(
            token="zc-1", tool="get_weather", outcome="denied", at=AT, action=action("a")
        ),
        IssuedReceipt(
            token="zc-2", tool="get_weather", outcome="denied", at=AT, action=action("b")
        ),
    )
    runs = fold(WHOLE).receipts
    assert [(issued_receipts.token, issued_receipts.outcome) for issued_receipts in runs] == [
        ("zc-a", "ok")
    ]


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


# --- long journals, read from their end -----------------------------------------------------------

HERE = ConversationId("here")
TOKEN = "zc-receipt-1767268800-" + "A" * 40


def turn(number: int, *rounds: int, summed: int = 0, ends: str = "model_stop") -> list[Entry]:
    """A turn of so many rounds; after `summed` of them all but the newest messages are summed up."""
    first_step = replace(
        opened(turn=f"turn-{number}"), user=UserMessage(content=f"question {number}")
    )
    found: list[Entry] = [first_step]
    for at in rounds:
        if summed and at == summed:
            kept, pinned = (2, 2 * at + 1) if at > 1 else (1, 0)
            made = f"summary {number}"
            found.append(entries.Compacted(summary=made, kept=kept, pinned=pinned, at=AT))
        run_ = action(f"{number}-{at}")
        token = f"{TOKEN}{number % 10}{at:02}"
        message = result(f"seen\n[receipt: {token}]", name="look")
        found += [
            entries.AssistantReceived(
                message=AssistantMessage(tool_calls=(call(f"look_{number}"),)), usage=USED, at=AT
            ),
            entries.Gated(verdicts=(allowed(f"{number}-{at}"),), at=AT),
            entries.CallStarted(action=run_, at=AT),
            entries.CallFinished(action=run_, result=message, outcome="ok", at=AT, receipt=token),
            entries.BatchAppended(at=AT),
        ]
    last = AssistantMessage(content=f"answer {number}")
    reason = "model_stop" if ends == "model_stop" else "error"
    found.append(entries.TurnFinished(reason=reason, usage=USED, at=AT, message=last))
    return found


def written_down(journal: Sequence[Entry]) -> list[Entry]:
    """The same journal as a turn writes it: its summaries say what was loaded by then."""
    history, found = History(), list[Entry]()
    for entry in journal:
        loaded = history.loaded
        if isinstance(entry, entries.Compacted):
            found.append(replace(entry, tools=loaded.tools, skills=loaded.skills))
        else:
            found.append(entry)
        history = extend(history, found[-1])
    return found


def _is_result(message: Message) -> bool:
    return isinstance(message, ToolMessage)


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """Turns of all sorts; some begin with a summary of what came before, some have one within."""
    found: list[Entry] = []
    for number in range(draw(st.integers(1, 9))):
        rounds = draw(st.integers(0, 4))
        summed = draw(st.integers(0, rounds))
        ends = draw(st.sampled_from(["model_stop", "error"]))
        made = turn(number, *range(1, rounds + 1), summed=summed, ends=ends)
        if draw(st.booleans()):
            messages = fold([*found, made[0]]).messages
            # No result is ever cut from its call, see `context.assembly.tails`.
            whole = [n for n in range(1, len(messages) + 1) if not _is_result(messages[-n])]
            kept = draw(st.sampled_from(whole))
            made.insert(1, entries.Compacted(summary=f"older {number}", kept=kept, at=AT))
        if draw(st.booleans()):
            made.insert(-1, entries.Noted(text="edited", why="edit", at=AT))
        found += made
    return written_down(found)


@given(journals(), st.data())
def test_the_end_of_a_journal_comes_to_the_whole_or_says_that_it_is_too_short(
    journal: list[Entry], data: st.DataObject
) -> None:
    """Wherever it is cut; only receipts and turns that a summary stands for are not in it."""
    end = journal[data.draw(st.integers(0, len(journal) - 1)) :]
    assert fold(journal) == reduce(extend, journal, History())
    assert fold_end(end) in (None, fold(journal))


def test_the_end_is_enough_where_a_summary_and_what_it_left_are_in_it() -> None:
    """All before it may be anything."""
    first, second, third = turn(1, 1), turn(2, 1), turn(3)
    third.insert(1, entries.Compacted(summary="they met", kept=2, at=AT))
    whole = written_down([*first, *second, *third])
    third = whole[len(first) + len(second) :]
    assert fold_end([]) is None
    assert fold_end(first) is None, "no summary"
    assert fold_end(third) is None, "one message of the two came before"
    assert fold_end(third[1:]) is None, "no turn begins before the summary"
    found = fold_end([*second, *third])
    assert found == fold(whole)
    assert found is not None
    assert found.receipts == ()
    assert found.loaded.tools == ("look_1", "look_2")


def test_what_was_loaded_outlives_the_entries_that_a_summary_stands_for() -> None:
    """Its own entry says what that was, for nothing before it is read (K12)."""
    summed = entries.Compacted(summary="s", kept=1, at=AT, tools=("look",), skills=("cook",))
    assert fold([opened(), summed]).loaded == Loaded(tools=("look",), skills=("cook",))


def test_what_a_summary_stands_for_is_not_tried_again() -> None:
    """While its message is there it can be."""
    failed, later = turn(1, ends="error"), turn(2)
    again = replace(failed[0], user=UserMessage(content="question 1"))
    assert fold([*failed, *later]).retry == again
    for kept, retry in ((3, again), (1, None)):
        summed = entries.Compacted(summary="they met", kept=kept, at=AT)
        assert fold([*failed, later[0], summed, *later[1:]]).retry == retry


class CountingStore(MemoryStore):
    """Counts the entries of journals that are read."""

    read_entries = 0

    async def read(
        self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        found = await super().read(log, stream, after=after, limit=limit)
        self.read_entries += len(found) if log is LogKind.JOURNAL else 0
        return found

    async def last(self, log: LogKind, stream: str) -> LogEntry | None:
        before = self.read_entries
        found = await super().last(log, stream)
        self.read_entries = before  # a real store looks at one
        return found


async def written(journal: Sequence[Entry]) -> CountingStore:
    store = CountingStore()
    session = await open_session(store, Leases(store), HERE)
    housekeeping = DurablePoint.HOUSEKEEPING
    await session.commit(Transition(point=housekeeping, journal=tuple(journal)))
    store.read_entries = 0
    return store


def many(count: int, *, summed: bool) -> list[Entry]:
    """So many short turns; the newest but one begins with a summary of all but its message."""
    found: list[Entry] = []
    for number in range(count):
        made = turn(number)
        if summed and number == count - 2:
            made.insert(1, entries.Compacted(summary="they met", kept=1, at=AT))
        found += made
    return found


async def test_a_long_journal_is_read_from_its_end() -> None:
    """However long it is; a restart waits for no more."""
    journal = many(2_000, summed=True)
    store = await written(journal)
    session = await open_session(store, Leases(store), HERE)
    assert session.history == fold(journal)
    assert [message.content for message in session.history.messages] == [
        "question 1998",
        "answer 1998",
        "question 1999",
        "answer 1999",
    ]
    assert store.read_entries <= READ_AT_ONCE[0] + 1
    assert (await read_history(store, HERE)) == fold(journal)


async def test_a_journal_without_a_summary_is_read_whole() -> None:
    journal = many(200, summed=False)
    store = await written(journal)
    assert (await open_session(store, Leases(store), HERE)).history == fold(journal)


# --- the stored form of the entries ---------------------------------------------------------------

# Everything that must come back as it was: escapes, blanks, a lone surrogate, other scripts.
ARGUMENTS = '{"a" :1,\t"b": "\\ud83d\\u0000é𝄞"}\n'
DETAILS = ('{"type":"reasoning.encrypted","data":"A+/="}', '{ "signature" : "x" }')
MESSAGE = AssistantMessage(
    content="grüße 𝄞 \ud83d",
    tool_calls=(call(arguments=ARGUMENTS), call("b", "")),
    reasoning="because",
    reasoning_details=DETAILS,
    finish_reason="tool_calls",
)
FILL = Fill(position=1, action=None, outcome="cancelled", result=result("no"), receipt="zc")
EVERY_KIND: list[Entry] = [
    opened(),
    opened("tool"),
    opened("retry"),
    entries.AssistantReceived(message=MESSAGE, usage=USED, at=AT, shown="shown"),
    entries.Gated(verdicts=(allowed("a", sequential=True), asked("b"), denied("c", "zc")), at=AT),
    entries.AnswerTaken(approval=approval("a"), how="approved", at=AT, by="Sam"),
    entries.AnswerTaken(approval=approval("a"), how="expired", at=AT, result=result("late")),
    entries.CallStarted(action=action("a"), at=AT),
    entries.CallFinished(
        action=action("a"), result=result("ok"), outcome="ok", at=AT, receipt="zc", usage=USED
    ),
    entries.BatchAppended(at=AT, context_heavy=True),
    entries.Steered(user=USER, item=ItemId("item-2"), at=AT),
    entries.Compacted(summary="before", kept=2, at=AT, usage=USED),
    entries.TurnResumed(at=AT + timedelta(microseconds=1)),
    entries.RequestLost(at=AT, usage=USED),
    entries.TurnFinished(
        reason="user_abort", usage=USED, at=AT, message=MESSAGE, fills=(FILL,), note="stopped"
    ),
    entries.Noted(text="edited: hello", why="edit", at=AT),
]


@pytest.mark.parametrize("entry", EVERY_KIND)
def test_an_entry_comes_back_as_it_was(entry: Entry) -> None:
    """Arguments and reasoning blocks byte for byte, times to the microsecond (S1-10, S1-28)."""
    body = encode(entry)
    assert decode(body) == entry
    assert encode(decode(body)) == body


def test_an_entry_is_one_line() -> None:
    """A journal can be read by lines."""
    assert b"\n" not in encode(EVERY_KIND[3])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\xff", "a journal entry is damaged: "),
        (b"{", "a journal entry is damaged: "),
        (b"[]", "a journal entry is damaged: "),
        (b'{"version":1,"entry":7}', "a journal entry is damaged: "),
        (b'{"version":2,"entry":{"is":"Noted"}}', "version `2`"),
        (b'{"version":1,"entry":{"is":"Sung"}}', "'Sung' - at `$.is`; restore the data directory"),
        (b'{"version":1,"entry":{"is":"Noted","text":"x"}}', "missing required field"),
        (b'{"version":1,"entry":{"is":"TurnResumed","at":"noon"}}', "a journal entry is damaged: "),
    ],
)
def test_an_unreadable_entry_says_what_is_wrong(body: bytes, text: str) -> None:
    """One line that says what to do; nothing is guessed (P10)."""
    with pytest.raises(StoreUnusable) as refused:
        decode(body)
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
