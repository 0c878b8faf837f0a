"""A question about one exact call gets one answer, from a person who may give it, in time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.fakes.mutant import mutant
from zeroclaw.channel import Card, CardCall, Ending, Outcome
from zeroclaw.envelope import (
    ActionId,
    Address,
    ApprovalId,
    Choice,
    ConversationId,
    MessageRef,
    Principal,
    TurnId,
)
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import approval as room
from zeroclaw.gate.approval import (
    APPROVALS,
    AnswerResult,
    Approval,
    Numbered,
    answer,
    approver_names,
    card_of,
    ending_of,
    expire,
    number_of,
    of_another_process,
    outcome_of,
    stop,
    to_put,
    with_ref,
    without_words,
)
from zeroclaw.gate.policy import Reason
from zeroclaw.gate.scope import Scope
from zeroclaw.store import Put, RowKind
from zeroclaw.value import replace

DEADLINE = datetime(2026, 11, 21, 12, 5, 0, tzinfo=UTC)
BEFORE = DEADLINE - timedelta(microseconds=1)
CHAT = Address(channel="telegram", account="1", chat="7", direct=True)
REF = MessageRef(address=CHAT, message="40")
ANN = Principal(
    id="person:ann", roles=frozenset({"operator"}), channel="telegram", sender="7", display="Ann"
)
BOB = Principal(id="telegram:8", roles=frozenset(), channel="telegram", sender="8", display="Bob")
OPEN = Approval(
    id=ApprovalId("unguessable"),
    action=ActionId("01ACTION"),
    action_hash="0123456789abcdef",
    tool="shell",
    conversation=ConversationId("01CONVERSATION"),
    turn=TurnId("01TURN"),
    requester=BOB,
    approvers=("role:operator",),
    summary="run `ls`",
    arguments="command (2 characters): ls",
    why="the policy asks",
    card="01CARD",
    deadline_at=DEADLINE,
    numbers=(Numbered(place="p", number=4), Numbered(place="q", number=9)),
)
APPROVED = replace(
    OPEN, state="approved", by="Ann", choice="once", answerer=ANN.identity, at=BEFORE
)


def press(
    approval: Approval = OPEN,
    *,
    principal: Principal = ANN,
    requester: Principal = BOB,
    choice: Choice = "once",
    at: datetime = BEFORE,
    may_approve: bool = True,
    reason: str = "",
) -> AnswerResult[Approval]:
    return answer(
        approval,
        principal=principal,
        requester=requester,
        choice=choice,
        admitted_at=at,
        may_approve=may_approve,
        reason=reason,
    )


def counted(approval: Approval) -> AnswerResult[Approval]:
    return AnswerResult(request=approval, how="counted")


def refused(approval: Approval, reason: str) -> AnswerResult[Approval]:
    return AnswerResult(request=approval, how="refused", reason=reason)


def test_an_approver_says_yes() -> None:
    """Approved, by whom and when, with what was chosen. P5, S2-10."""
    assert press() == counted(APPROVED)
    for_a_time = replace(APPROVED, choice="for_a_time")
    assert press(choice="for_a_time", reason="ignored") == counted(for_a_time)


def test_an_approver_says_no() -> None:
    """Denied, with the reason where one was given. P5, S2-10."""
    denied = replace(APPROVED, state="denied", choice="deny")
    assert press(choice="deny") == counted(denied)
    denied_with_reason = replace(denied, choice="deny_with_reason", reason="too risky")
    assert press(choice="deny_with_reason", reason=" too risky\n") == counted(denied_with_reason)


def test_a_denial_whose_reason_is_to_come_leaves_the_question_open() -> None:
    """The reason is a message of its own; until it comes, anyone may answer. P5."""
    assert press(choice="deny_with_reason", reason=" ") == AnswerResult(
        request=OPEN, how="reason_wanted"
    )


def test_an_approver_without_a_name_is_called_by_id() -> None:
    """A card always names its approver."""
    found = press(principal=replace(ANN, display=""))
    assert found == counted(replace(APPROVED, by="ann"))


def test_a_question_is_answered_once() -> None:
    """The second answer changes nothing. P5."""
    assert press(APPROVED, choice="deny") == AnswerResult(request=APPROVED, how="second")


def test_a_press_at_the_deadline_has_lost() -> None:
    """Admitted at the very instant, before any timer fired: it expired. P5."""
    expired = replace(OPEN, state="expired", at=DEADLINE)
    late = AnswerResult(request=expired, how="late")
    assert press(at=DEADLINE) == late
    assert press(at=DEADLINE + timedelta(hours=1)) == late


def test_a_stranger_may_not_answer_and_learns_nothing() -> None:
    """Not even whether it was answered already. P4, P5."""
    reason = "only an operator may answer this"
    assert press(principal=BOB, may_approve=False) == refused(OPEN, reason)
    assert press(APPROVED, principal=BOB, may_approve=False) == refused(APPROVED, reason)
    assert press(principal=BOB, may_approve=False, at=DEADLINE) == refused(OPEN, reason)


@pytest.mark.parametrize(
    "principal",
    [BOB, replace(BOB, id="person:bob"), replace(BOB, channel="web", sender="x")],
    ids=["the same", "known by a new name", "known on another channel"],
)
def test_the_requester_may_be_kept_from_approving(principal: Principal) -> None:
    """Requester and approver can be required to be two people. P5."""
    request = replace(OPEN, requester_may_answer=False)
    reason = "whoever asks may not approve; somebody else has to answer this"
    assert press(request, principal=principal) == refused(request, reason)
    assert press(request, principal=ANN).how == "counted"
    assert press(OPEN, principal=principal).how == "counted"


def test_a_requester_who_turns_out_to_be_the_approver_may_not_approve() -> None:
    """A configuration may have tied the two ids after the question was put, or parted them. P5."""
    request = replace(OPEN, requester_may_answer=False)
    by_now = replace(BOB, id=ANN.id)
    assert press(request, principal=ANN, requester=by_now).how == "refused"
    assert press(replace(request, requester=by_now), principal=ANN, requester=BOB).how == "refused"
    assert press(OPEN, principal=ANN, requester=by_now).how == "counted"


def test_only_what_is_offered_can_be_chosen() -> None:
    """A button that the card doesn't have decides nothing. P5."""
    request = replace(OPEN, choices=("once", "deny"))
    reason = "this answer is not offered here"
    assert press(request, choice="for_a_time") == refused(request, reason)


def test_the_deadline_is_an_answer() -> None:
    """It ends what is open, at the deadline and not before, and nothing that ended. P5."""
    expired = replace(OPEN, state="expired", at=DEADLINE)
    assert expire(OPEN, BEFORE) == OPEN
    assert expire(OPEN, DEADLINE) == expired
    assert expire(OPEN, DEADLINE + timedelta(days=1)) == expired
    assert expire(APPROVED, DEADLINE) == APPROVED


def test_a_question_ends_with_its_turn() -> None:
    """A stop ends what is open by the same compare-and-set, and nothing that ended. P5."""
    stopped = replace(OPEN, state="stopped", by="Bob", at=BEFORE)
    assert stop(OPEN, by="Bob", at=BEFORE) == stopped
    assert stop(APPROVED, by="Bob", at=BEFORE) == APPROVED


def test_a_card_joins_the_refs_once() -> None:
    """A card whose send was never recorded is settled when it is pressed. P5."""
    assert with_ref(APPROVED, REF).refs == (REF,)
    assert with_ref(with_ref(OPEN, REF), REF).refs == (REF,)


def test_a_row_comes_back_as_it_was() -> None:
    """Nothing is lost on disk, open or ended. P5."""
    for approval in (OPEN, with_ref(APPROVED, REF)):
        assert APPROVALS.of(to_put(approval)) == approval
    with pytest.raises(StoreUnusable):
        APPROVALS.of(replace(to_put(OPEN), body=b"{}"))


def test_no_word_of_a_question_off_the_record_outlasts_its_process() -> None:
    """The next one stops it and settles its cards, and needs no more for that (K23)."""
    scope = Scope(tool="shell", resources=("file:/tides",), is_exact=False)
    told = replace(
        OPEN,
        requester=replace(BOB, display="tides"),
        summary="tides",
        summaries=(("de", "tides"),),
        arguments="tides",
        why="tides",
        reasons=(Reason(statement="own", note="tides"),),
        hidden=("tides",),
        scope=scope,
        reason="tides",
        refs=(REF,),
    )
    kept = without_words(to_put(told))
    assert b"tides" not in kept
    stopped = of_another_process(kept, BEFORE)
    assert (stopped.id, stopped.state, stopped.at) == (OPEN.id, "stopped", BEFORE)
    assert (stopped.refs, stopped.numbers) == ((REF,), OPEN.numbers)


def test_a_row_is_due_at_its_deadline_while_it_is_open() -> None:
    """A timer finds open questions, and only them. P5."""
    expected = Put(
        kind=RowKind.APPROVAL,
        key="unguessable",
        body=APPROVALS.codec.encode(OPEN),
        conversation=ConversationId("01CONVERSATION"),
        state="pending",
        place="p",
        due_at=DEADLINE,
    )
    assert to_put(OPEN) == expected
    ended = to_put(replace(APPROVED, numbers=()))
    assert (ended.state, ended.place, ended.due_at) == ("approved", "", None)


SECOND = replace(
    OPEN,
    id=ApprovalId("second"),
    order=1,
    tool="write",
    numbers=(Numbered(place="p", number=5),),
    choices=("once", "deny"),
    deadline_at=DEADLINE + timedelta(seconds=1),
    requester=replace(BOB, display=""),
)


def call(approval: Approval, number: int) -> CardCall:
    return CardCall(
        approval=approval.id,
        number=number,
        tool=approval.tool,
        summary="run `ls`",
        arguments="command (2 characters): ls",
        why="the policy asks",
        hash8="01234567",
    )


CARD = Card(
    key="01CARD",
    asked_by='telegram:8 ("Bob")',
    calls=(call(OPEN, 4), call(SECOND, 5)),
    deadline_at=DEADLINE,
    choices=("once", "deny"),
)


def test_one_card_shows_the_asks_of_a_batch() -> None:
    """In request order, with this chat's numbers, and what all of them offer. P5."""
    assert card_of([SECOND, OPEN], "p") == CARD


def test_a_card_names_its_asker_by_id_where_there_is_no_name() -> None:
    """The requester is always shown. P5."""
    assert card_of([SECOND], "p").asked_by == "telegram:8"


def test_a_card_says_what_a_time_is_offered_for_and_nothing_where_none_is() -> None:
    """The card names no hosts that no answer to it would let run. P5."""
    scope = Scope(tool="fetch", resources=("host:a.example:443",), is_exact=False, for_s=3600)
    offered, not_offered = replace(OPEN, scope=scope), replace(SECOND, scope=scope)
    shown = [call.scope for call in card_of([offered, not_offered], "p").calls]
    assert shown == ["“For a time” allows any URL on `a.example` for 1 hour", ""]


def test_a_card_names_each_secret_that_it_does_not_show_once() -> None:
    """The approver knows that the arguments hold more than they can read. P5."""
    first = replace(OPEN, hidden=('env="A"',))
    second = replace(SECOND, hidden=('env="A"', 'file="/b"', 'env="A"'))
    assert [call.why for call in card_of([first, second], "p").calls] == [
        'the policy asks; one secret is not shown; in its place the arguments have `⟦env="A"⟧`',
        "the policy asks; 3 secrets are not shown; in their place the arguments have "
        '`⟦env="A"⟧`, `⟦file="/b"⟧`',
    ]


def test_a_number_counts_in_its_own_chat() -> None:
    """Each approver chat has numbers of its own; 0 is none."""
    assert [number_of(OPEN, place) for place in ("p", "q", "r")] == [4, 9, 0]


def test_an_outcome_shows_what_has_ended() -> None:
    """How each ended, by whom and when, in the card's order. P5."""
    ending = Ending(approval=APPROVED.id, how="approved", by="Ann", at=BEFORE)
    assert outcome_of([SECOND, APPROVED], "p") == Outcome(card=CARD, endings=(ending,))
    assert ending_of(OPEN) is None


def test_an_outcome_shows_what_its_chat_was_asked() -> None:
    """Not what had ended when that chat was asked; all of it where no chat is known to have been."""
    before = replace(SECOND, numbers=())
    assert [call.number for call in outcome_of([before, APPROVED], "p").card.calls] == [4]
    assert len(outcome_of([before, APPROVED], "moved").card.calls) == 2


def test_approvers_are_named_as_people_say() -> None:
    """Policy principals are no words for a toast."""
    approvers = ("role:operator", "role:boss", "person:ann", "anyone")
    assert approver_names(approvers, "en") == "an operator or a boss or ann or anyone"
    assert approver_names((), "en") == "nobody"


# --- presses, timers and stops in any order, each cut in two by the others ------------------------

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ENDS_AT = START + timedelta(seconds=5)


def person(name: str) -> Principal:
    return Principal(id=f"person:{name}", roles=frozenset(), channel="web", sender=name)


APPROVERS = (person("ann"), person("bob"))
STRANGER = person("eve")
ASKED = replace(
    OPEN,
    requester=person("bob"),
    approvers=("person:ann", "person:bob"),
    requester_may_answer=False,
    deadline_at=ENDS_AT,
    numbers=(),
)


@dataclass(frozen=True, kw_only=True)
class Press:
    """A press that was admitted; it is decided later."""

    by: Principal
    choice: Choice
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Timer:
    """A timer that fired."""

    at: datetime


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A turn that was stopped."""

    at: datetime


Event = Press | Timer | Stop


def decided(functions: Mapping[str, object], event: Event, approval: Approval) -> Approval:
    """The row after an event, as it was read."""
    match event:
        case Press():
            answer = cast("Callable[..., AnswerResult[Approval]]", functions["answer"])
            result = answer(
                approval,
                principal=event.by,
                requester=approval.requester,
                choice=event.choice,
                reason=event.reason,
                admitted_at=event.at,
                may_approve=event.by in APPROVERS,
            )
            return result.request if result.ends else approval
        case Timer():
            expire = cast("Callable[[Approval, datetime], Approval]", functions["expire"])
            return expire(approval, event.at)
        case Stop():
            stop = cast("Callable[..., Approval]", functions["stop"])
            return stop(approval, by="bob", at=event.at)


def explains(approval: Approval, event: Event) -> bool:
    """Whether this event may have ended the question so; said without the code under test."""
    match event:
        case Press():
            yes = event.choice in ("once", "for_a_time")
            has_reason = event.choice != "deny_with_reason" or bool(event.reason)
            in_time = (
                event.by.id == "person:ann"
                and event.at < ENDS_AT
                and has_reason
                and approval.state == ("approved" if yes else "denied")
                and (approval.choice, approval.at) == (event.choice, event.at)
            )
            late = event.by.id == "person:ann" and event.at >= ENDS_AT
            return in_time or (late and approval.state == "expired" and approval.at == ENDS_AT)
        case Timer():
            return event.at >= ENDS_AT and (approval.state, approval.at) == ("expired", ENDS_AT)
        case Stop():
            return (approval.state, approval.at) == ("stopped", event.at)


WAITS = st.sampled_from([0, 5, 1])  # the deadline's instant among them


class Races(RuleBasedStateMachine):
    """One row with a version, and events that have read it and not written yet."""

    functions: Mapping[str, object] = vars(room)

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.row = self.put(ASKED)
        self.version = 1
        self.waiting: list[Event] = []
        self.reading: list[tuple[Event, Put, int]] = []
        self.events: list[Event] = []
        self.ending: bytes | None = None

    def put(self, approval: Approval) -> Put:
        to_put = cast("Callable[[Approval], Put]", self.functions["to_put"])
        return to_put(approval)

    def enqueue(self, event: Event) -> None:
        self.waiting.append(event)
        self.events.append(event)

    @rule(
        seconds=WAITS,
        by=st.sampled_from([*APPROVERS, STRANGER]),
        choice=st.sampled_from(["once", "for_a_time", "deny", "deny_with_reason"]),
        reason=st.sampled_from(["", "too risky"]),
    )
    def a_person_presses(self, seconds: int, by: Principal, choice: Choice, reason: str) -> None:
        self.now += timedelta(seconds=seconds)
        self.enqueue(Press(by=by, choice=choice, reason=reason, at=self.now))

    @rule(seconds=WAITS, stops=st.booleans())
    def a_timer_fires_or_the_turn_is_stopped(self, seconds: int, *, stops: bool) -> None:
        self.now += timedelta(seconds=seconds)
        self.enqueue(Stop(at=self.now) if stops else Timer(at=self.now))

    @precondition(lambda self: self.waiting)
    @rule(index=st.integers(0, 9))
    def an_event_reads_the_row(self, index: int) -> None:
        event = self.waiting.pop(index % len(self.waiting))
        changed = decided(self.functions, event, APPROVALS.of(self.row))
        if changed != APPROVALS.of(self.row):
            self.reading.append((event, self.put(changed), self.version))

    @precondition(lambda self: self.reading)
    @rule(index=st.integers(0, 9))
    def an_event_writes_the_row(self, index: int) -> None:
        event, put, version = self.reading.pop(index % len(self.reading))
        if version == self.version:  # as `transact` does
            self.row, self.version = put, self.version + 1
        else:
            self.waiting.append(event)

    @precondition(lambda self: self.waiting)
    @rule(index=st.integers(0, 9))
    def an_event_is_carried_out(self, index: int) -> None:
        before = len(self.reading)
        self.an_event_reads_the_row(index)
        if len(self.reading) > before:
            self.an_event_writes_the_row(before)

    @invariant()
    def it_ends_once(self) -> None:
        if self.ending is not None:
            assert self.row.body == self.ending
        elif self.row.state != "pending":
            self.ending = self.row.body

    @invariant()
    def it_ends_for_a_reason(self) -> None:
        found = APPROVALS.of(self.row)
        if found.state != "pending":
            assert any(explains(found, event) for event in self.events)

    @invariant()
    def the_row_says_what_it_holds(self) -> None:
        found = APPROVALS.of(self.row)
        open_until = found.deadline_at if found.state == "pending" else None
        assert (self.row.state, self.row.due_at) == (found.state, open_until)
        fixed = replace(found, state="pending", by="", reason="", choice=None, at=None)
        fixed = replace(fixed, answerer="")
        assert fixed == ASKED

    def teardown(self) -> None:
        """Whatever was left over is carried out; then nothing is open past its deadline."""
        self.now = max(self.now, ENDS_AT)
        self.enqueue(Timer(at=self.now))
        while self.waiting or self.reading:
            if self.waiting:
                self.an_event_reads_the_row(0)
            if self.reading:
                self.an_event_writes_the_row(0)
            self.it_ends_once()
            self.it_ends_for_a_reason()
            self.the_row_says_what_it_holds()
        assert self.row.state != "pending"


@pytest.mark.slow
class TestRaces(Races.TestCase):
    """However presses, timers and stops meet, a question is answered once. P5."""

    settings = settings(stateful_step_count=25)


MUTANTS = {
    "a press at the deadline counts": ("at >= request.deadline_at", "at > request.deadline_at"),
    "an ended question is answered": (
        "if not request.is_open:\n        return AnswerResult",
        "if False:\n        return AnswerResult",
    ),
    "a stranger answers": ("if not may_approve:", "if False:"),
    "the requester answers": ("not approval.requester_may_answer and", "False and"),
    "a deadline ends what has ended": (
        "not approval.is_open or now < approval.deadline_at",
        "now < approval.deadline_at",
    ),
    "a deadline comes early": ("now < approval.deadline_at", "False"),
    "a deadline never comes": ("now < approval.deadline_at", "True"),
    "a stop ends what has ended": (
        'if approval.state != "pending":\n        return approval\n    return replace(approval, state="stopped"',
        'if False:\n        return approval\n    return replace(approval, state="stopped"',
    ),
    "an ended row stays due": (
        'due_at=approval.deadline_at if approval.state == "pending" else None',
        "due_at=approval.deadline_at",
    ),
    "an approval is stored open": (
        "approval.id,\n        approval,\n",
        'approval.id,\n        replace(approval, state="pending"),\n',
    ),
    "no is yes": ('return choice in ("once", "for_a_time")', "return True"),
    "a reason is not waited for": ("not reason.strip():", "False:"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_each_fault_can_be_planted(name: str) -> None:
    """What it replaces stands in the room, once."""
    mutant(room, *MUTANTS[name])


@pytest.mark.long("searches until the planted fault is found")
@pytest.mark.parametrize("name", MUTANTS)
def test_the_races_bite(name: str) -> None:
    """Each planted fault breaks an invariant."""
    machine = type("Planted", (Races,), {"functions": mutant(room, *MUTANTS[name])})
    enough = settings(
        max_examples=10_000,  # it stops at the first that breaks something
        stateful_step_count=25,
        phases=(Phase.generate,),
        database=None,
        derandomize=True,
        deadline=None,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=enough)
