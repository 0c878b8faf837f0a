"""The pacing of an account keeps its promises in any order of events."""

import pickle
from collections.abc import Callable
from typing import ClassVar, cast

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.fakes.mutant import find_the_fault, mutant
from tests.unit.delivery.pacing_play import limited
from zeroclaw.channel import Budget
from zeroclaw.delivery import pacing
from zeroclaw.delivery.pacing import (
    LATE_S,
    CallAnswered,
    CallEnded,
    CallRefused,
    CallUnreached,
    Effect,
    Event,
    Grant,
    Pacing,
    Rank,
    Request,
    Requested,
    Ticked,
    WakeAt,
    Withdrawn,
    fresh,
    step,
)

Step = Callable[[Pacing, Event], tuple[Pacing, tuple[Effect, ...]]]
SLACK_S = 1e-3


GROUP = "b"
GROUP_BUDGET = Budget(per_s=0.4, burst=1)
CHATS = st.sampled_from(["a", GROUP])
MESSAGES = st.sampled_from(["", "m1", "m2"])
SECONDS = st.sampled_from([0.0, 0.01, 0.3, 1.0, 2.5, 40.0])


def is_paid_as_edit(request: Request) -> bool:
    """Whether a request is an edit, or will end as one."""
    return bool(request.message) or request.rank is Rank.DRAFT


class World(RuleBasedStateMachine):
    """An account under any load; the platform's own books are kept beside it."""

    step: ClassVar[Step] = staticmethod(step)

    def __init__(self) -> None:
        super().__init__()
        self.at = 5.0
        self.waiting: dict[str, Request] = {}
        self.granted: list[tuple[float, Request]] = []
        self.held: dict[str, float] = {}
        self.taught = False
        self.refused: dict[str, float] = {}
        self.open: list[tuple[float, Request]] = []
        self.ends: list[float] = []
        self.wake: float | None = None
        self.made = 0

    # Some platforms name a budget for a chat, others an interval for its messages only; some count
    # edits apart.
    @initialize(
        chat=st.sampled_from([Budget(per_s=1, burst=2), Budget()]),
        edits=st.sampled_from([Budget(), Budget(per_s=0.7, burst=2)]),
    )
    def begin(self, chat: Budget, edits: Budget) -> None:
        self.limits = limited(
            chat=chat,
            account=Budget(per_s=1.2, burst=3),
            edits=edits,
            edit_interval_s=1.5,
            group=GROUP_BUDGET,
        )
        self.state = fresh(self.limits, self.at)

    def feed(self, event: Event) -> None:
        before = self.state
        again = pickle.loads(pickle.dumps(before))
        self.state, effects = type(self).step(before, event)
        assert (self.state, effects) == type(self).step(again, event), "storable between steps"
        self.wake = None
        for effect in effects:
            match effect:
                case Grant():
                    self.check_grant(self.waiting.pop(effect.id))
                case WakeAt():
                    self.wake = effect.at
        busy = {request.chat for _, request in self.open}
        can_wait = any(request.chat not in busy for request in self.waiting.values())
        assert can_wait == (self.wake is not None), (
            "a request that waits for an instant has an alarm"
        )
        assert self.wake is None or self.wake > self.at, "alarms are in the future"
        for request in self.waiting.values():
            if request.rank is Rank.FINAL:
                self.check_final(request)

    def check_grant(self, request: Request) -> None:
        assert all(other.chat != request.chat for _, other in self.open), (
            "one call at a time in a chat"
        )
        for grants, budget in self.books(request):
            reserve = 1 if request.rank is Rank.DRAFT and budget.burst > 1 else 0
            assert self.fits(grants, budget, reserve), "the budget is kept, and drafts leave a call"
        assert self.at >= self.held.get(request.chat, 0) - SLACK_S, "a stated wait is obeyed"
        edited_at = [
            at
            for at, other in self.granted
            if request.message and other.message == request.message and other.chat == request.chat
        ]
        for at in edited_at:
            assert (
                request.rank is Rank.FINAL and self.has_budget(request)
            ) or self.at - at >= self.limits.min_edit_interval_s - SLACK_S, (
                "the interval is kept, by finals where nothing else is known"
            )
        since_refusal = self.refused.get(request.chat)
        if since_refusal is not None and edited_at:
            assert self.at - edited_at[-1] >= 2 * self.limits.min_edit_interval_s - SLACK_S, (
                "a refusal lengthens it"
            )
        finals = [
            other
            for other in self.waiting.values()
            if other.rank is Rank.FINAL and other.chat == request.chat
        ]
        assert request.rank is Rank.FINAL or not finals, "a final goes before its chat's drafts"
        self.granted.append((self.at, request))
        self.open.append((self.at, request))

    def end(self, outcome: Callable[[Request], Event]) -> None:
        """The oldest call under way comes to its end; its outcome is fed first."""
        granted, request = self.open[0]
        self.feed(outcome(request))
        self.open.pop(0)
        self.ends.append(min(self.at, granted + LATE_S))
        self.feed(CallEnded(chat=request.chat, at=self.at))

    def books(self, request: Request) -> list[tuple[list[float], Budget]]:
        """The instants that count with a request, by budget.

        A call may reach the platform at its very end, and then as late counts as the worst.
        """
        edits = self.limits.edit_budget
        in_chat = [
            at
            for at, other in self.granted
            if other.chat == request.chat and not (other.message and edits.per_s)
        ]
        chat = GROUP_BUDGET if request.in_group else self.limits.chat_budget
        on_their_way = [min(self.at, granted + LATE_S) for granted, _ in self.open]
        books = [(sorted([*self.ends, *on_their_way]), self.limits.account_budget)]
        if is_paid_as_edit(request):
            books.append(([at for at, other in self.granted if is_paid_as_edit(other)], edits))
        if not (request.message and edits.per_s):
            books.append((in_chat, chat))
        return books

    def fits(
        self, grants: list[float], budget: Budget, reserve: int, slack_s: float = SLACK_S
    ) -> bool:
        """Whether a budget bears one call more, and has so many left after it."""
        return not budget.per_s or all(
            len(grants) - max(number - 1, 0) + 1 + reserve
            <= (0 if number == 0 else budget.burst) + budget.per_s * (self.at - at) + slack_s
            for number, at in enumerate([5.0, *grants])
        )

    def has_budget(self, request: Request) -> bool:
        return request.chat == GROUP or self.limits.chat_budget.per_s > 0

    def check_final(self, request: Request) -> None:
        """A final that waits is held by a budget, a stated wait or a refusal, and by nothing else."""
        is_free = all(self.fits(*books, 0, -SLACK_S) for books in self.books(request))
        # What a refusal has taught lasts for a while that these books don't know.
        is_free = is_free and self.has_budget(request) and not self.taught
        is_free = is_free and all(other.chat != request.chat for _, other in self.open)
        assert not is_free, "nothing else holds up a final"

    @rule(chat=CHATS, message=MESSAGES, rank=st.sampled_from(Rank))
    def ask(self, chat: str, message: str, rank: Rank) -> None:
        self.made += 1
        request = Request(
            id=str(self.made), chat=chat, message=message, rank=rank, in_group=chat == GROUP
        )
        self.waiting[request.id] = request
        self.feed(Requested(request=request, at=self.at))

    @precondition(lambda self: bool(cast("World", self).waiting))
    @rule(index=st.integers(0, 9), forever=st.booleans())
    def withdraw(self, index: int, forever: bool) -> None:
        name = list(self.waiting)[index % len(self.waiting)]
        del self.waiting[name]
        self.feed(Withdrawn(id=name, at=self.at, for_good=forever))

    @precondition(lambda self: bool(cast("World", self).open))
    @rule()
    def answer(self) -> None:
        self.refused.pop(self.open[0][1].chat, None)
        self.end(
            lambda request: CallAnswered(chat=request.chat, at=self.at, message=request.message)
        )

    @precondition(lambda self: bool(cast("World", self).open))
    @rule(retry_after_s=SECONDS)
    def refuse(self, retry_after_s: float) -> None:
        request = self.open[0][1]
        if not (retry_after_s and self.has_budget(request)):
            self.refused[request.chat] = self.at
        self.taught = True
        until = self.at + retry_after_s
        self.held[request.chat] = max(until, self.held.get(request.chat, 0))
        self.end(lambda call: CallRefused(chat=call.chat, at=self.at, retry_after_s=retry_after_s))

    @precondition(lambda self: bool(cast("World", self).open))
    @rule()
    def lose_the_platform(self) -> None:
        self.taught = True
        self.end(lambda request: CallUnreached(chat=request.chat, at=self.at))

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        until = self.at + seconds
        while self.wake is not None and self.wake <= until:
            self.ring()
        self.at = until
        self.feed(Ticked(at=self.at))

    @precondition(lambda self: cast("World", self).wake is not None)
    @rule()
    def ring(self) -> None:
        assert self.wake is not None
        waiting, under_way, self.at = len(self.waiting), len(self.state.under_way), self.wake
        self.feed(Ticked(at=self.at))
        is_late = len(self.state.under_way) < under_way
        assert len(self.waiting) < waiting or is_late, "an alarm rings for somebody"


@pytest.mark.slow
class TestPacing(World.TestCase):
    """Limits are kept and no request is forgotten, in any order of events (P2, P6)."""


MUTANTS = [
    pytest.param("ready = max(at, lane.held_until)", "ready = at", id="forgets the stated wait"),
    pytest.param("event.at + max(event.retry_after_s, 0.0)", "event.at", id="ignores its length"),
    pytest.param(
        "ready = max(ready, last + max(interval_s, lane.gap_s))",
        "ready = max(ready, last + lane.gap_s if lane.gap_s else interval_s)",
        id="forgets the interval",
    ),
    pytest.param(
        "lane = replace(lane, gap_s=max(lane.gap_s, gap_s))",
        "lane = replace(lane, gap_s=event.retry_after_s)",
        id="lets a refusal shorten the interval",
    ),
    pytest.param(
        "account = _spend(state.account, state.limits.account_budget, at)",
        "account = state.account",
        id="does not charge the account",
    ),
    pytest.param(
        "lane = _spend(lane, _budget(state, chat), at)", "pass", id="does not charge the chat"
    ),
    pytest.param(
        "edits = _spend(edits, state.limits.edit_budget, at)", "pass", id="does not charge edits"
    ),
    pytest.param(
        "if request.message or request.rank is Rank.DRAFT:",
        "if request.message:",
        id="begins drafts that no edit will end",
    ),
    pytest.param(
        "lane = replace(lane, last=at)\n",
        "lane = _spend(lane, _budget(state, chat), at)\n",
        id="charges a chat for edits that count apart",
    ),
    pytest.param(
        "        ready = max(ready, _edits_ready_at(state, request.rank, at))\n",
        "        pass\n",
        id="lets finals edit without end",
    ),
    pytest.param(
        "return group if group is not None and chat in state.groups else state.limits.chat_budget",
        "return state.limits.chat_budget",
        id="takes a group for a private chat",
    ),
    pytest.param(
        "return Lane(tokens=0.0,", "return Lane(tokens=2.0,", id="starts with a full bucket"
    ),
    pytest.param(
        "state = _after_a_call(state, chat, max(granted + LATE_S, state.account.at))",
        "state = replace(state, under_way=_without_key(state.under_way, chat))",
        id="forgets a late call",
    ),
    pytest.param(
        "if chat not in state.under_way:\n        return state",
        "if chat not in state.under_way:\n        pass",
        id="charges a late call twice",
    ),
    pytest.param(
        "busy=state.busy | {chat}", "busy=state.busy", id="lets calls of a chat overtake each other"
    ),
    pytest.param(
        "state = replace(state, busy=state.busy - {event.chat})", "pass", id="holds a chat for good"
    ),
    pytest.param("reserve + len(under_way)", "reserve", id="forgets calls under way"),
    pytest.param("if request.chat not in promised]", "]", id="gives a final's token to a draft"),
    pytest.param("(*effects, WakeAt(at=wake_at))", "(*effects, WakeAt(at=at))", id="rings at once"),
    pytest.param("if wake_at < inf else", "if wake_at < at else", id="sets no alarm"),
    pytest.param(
        "reserve = _reserve(budget, rank, at - state.started)\n",
        "reserve = 0\n",
        id="lets drafts take all of the account",
    ),
    pytest.param(
        "if rank is Rank.FINAL or not budget.per_s:\n",
        "if not budget.per_s:\n",
        id="has finals leave a call too",
    ),
    pytest.param(
        "interval_s = 0.0 if is_free else state.limits.min_edit_interval_s",
        "interval_s = state.limits.min_edit_interval_s",
        id="holds finals by the interval",
    ),
]


@pytest.mark.parametrize(("fragment", "replacement"), MUTANTS)
def test_each_fault_can_be_planted(fragment: str, replacement: str) -> None:
    """What it replaces stands in the room, once."""
    mutant(pacing, fragment, replacement)


@pytest.mark.long("searches until the planted fault is found")
@pytest.mark.parametrize(("fragment", "replacement"), MUTANTS)
def test_every_promise_bites(fragment: str, replacement: str) -> None:
    """A planted fault is found by one of the promises above."""

    class Mutated(World):
        step = staticmethod(cast("Step", mutant(pacing, fragment, replacement)["step"]))

    find_the_fault(Mutated)
