"""Presses, timers and stops in any order, each cut in two by the others, end a question once."""

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
from zeroclaw.envelope import ActionId, ApprovalId, Choice, ConversationId, Principal, TurnId
from zeroclaw.gate import approval as room
from zeroclaw.gate.approval import APPROVALS, AnswerResult, Approval
from zeroclaw.store import Put
from zeroclaw.value import replace

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DEADLINE = START + timedelta(seconds=5)


def person(name: str) -> Principal:
    return Principal(id=f"person:{name}", roles=frozenset(), channel="web", sender=name)


APPROVERS = (person("ann"), person("bob"))
STRANGER = person("eve")
OPEN = Approval(
    id=ApprovalId("unguessable"),
    action=ActionId("01ACTION"),
    action_hash="0123",
    tool="shell",
    conversation=ConversationId("01CONVERSATION"),
    turn=TurnId("01TURN"),
    requester=person("bob"),
    approvers=("person:ann", "person:bob"),
    requester_may_answer=False,
    summary="run `ls`",
    arguments="ls",
    why="the policy asks",
    card="01CARD",
    deadline_at=DEADLINE,
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
    """What an event makes of the row as it was read."""
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
            told = event.choice != "deny_with_reason" or bool(event.reason)
            in_time = (
                event.by.id == "person:ann"
                and event.at < DEADLINE
                and told
                and approval.state == ("approved" if yes else "denied")
                and (approval.choice, approval.at) == (event.choice, event.at)
            )
            late = event.by.id == "person:ann" and event.at >= DEADLINE
            return in_time or (late and approval.state == "expired" and approval.at == DEADLINE)
        case Timer():
            return event.at >= DEADLINE and (approval.state, approval.at) == ("expired", DEADLINE)
        case Stop():
            return (approval.state, approval.at) == ("stopped", event.at)


WAITS = st.sampled_from([0, 5, 1])  # the deadline's instant among them


class Races(RuleBasedStateMachine):
    """One row with a version, and events that have read it and not written yet."""

    functions: Mapping[str, object] = vars(room)

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.row = self.put(OPEN, 0)
        self.version = 1
        self.waiting: list[Event] = []
        self.reading: list[tuple[Event, Put]] = []
        self.happened: list[Event] = []
        self.ending: bytes | None = None

    def put(self, approval: Approval, version: int) -> Put:
        to_put = cast("Callable[..., Put]", self.functions["to_put"])
        return to_put(approval, expect=version)

    def happens(self, event: Event) -> None:
        self.waiting.append(event)
        self.happened.append(event)

    @rule(
        seconds=WAITS,
        by=st.sampled_from([*APPROVERS, STRANGER]),
        choice=st.sampled_from(["once", "for_a_time", "deny", "deny_with_reason"]),
        reason=st.sampled_from(["", "too risky"]),
    )
    def somebody_presses(self, seconds: int, by: Principal, choice: Choice, reason: str) -> None:
        self.now += timedelta(seconds=seconds)
        self.happens(Press(by=by, choice=choice, reason=reason, at=self.now))

    @rule(seconds=WAITS, stops=st.booleans())
    def a_timer_fires_or_the_turn_is_stopped(self, seconds: int, *, stops: bool) -> None:
        self.now += timedelta(seconds=seconds)
        self.happens(Stop(at=self.now) if stops else Timer(at=self.now))

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 9))
    def an_event_reads_the_row(self, which: int) -> None:
        event = self.waiting.pop(which % len(self.waiting))
        changed = decided(self.functions, event, APPROVALS.of(self.row))
        if changed != APPROVALS.of(self.row):
            self.reading.append((event, self.put(changed, self.version)))

    @precondition(lambda self: self.reading)
    @rule(which=st.integers(0, 9))
    def an_event_writes_the_row(self, which: int) -> None:
        event, put = self.reading.pop(which % len(self.reading))
        if put.expect in (None, self.version):
            self.row, self.version = put, self.version + 1
        else:
            self.waiting.append(event)

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 9))
    def an_event_is_carried_out(self, which: int) -> None:
        before = len(self.reading)
        self.an_event_reads_the_row(which)
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
            assert any(explains(found, event) for event in self.happened)

    @invariant()
    def the_row_says_what_it_holds(self) -> None:
        found = APPROVALS.of(self.row)
        open_until = found.deadline_at if found.state == "pending" else None
        assert (self.row.state, self.row.due_at) == (found.state, open_until)
        fixed = replace(found, state="pending", by="", reason="", choice=None, at=None)
        assert fixed == OPEN

    def teardown(self) -> None:
        """Whatever was left over is carried out; then nothing is open past its deadline."""
        self.now = max(self.now, DEADLINE)
        self.happens(Timer(at=self.now))
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
    "a write does not compare": ("expect=expect,", "expect=None,"),
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
