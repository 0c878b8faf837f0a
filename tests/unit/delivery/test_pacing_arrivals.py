"""Whenever calls reach the platform its own bucket has room, and no slot is left unused."""

import heapq
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.delivery.pacing_play import FREE, draft, final, limited, play
from zeroclaw.channel import Budget
from zeroclaw.delivery.pacing import (
    LATE_S,
    CallEnded,
    Event,
    Grant,
    Rank,
    Request,
    Ticked,
    WakeAt,
    Wanted,
    Withdrawn,
    fresh,
    step,
)
from zeroclaw.value import Value

ACCOUNT = Budget(per_s=5, burst=4)
LONG_AGO = -100.0
SLACK = 1e-3


class Wish(Value):
    """One call that somebody wants to make.

    Attributes:
        after_s: Since the wish before it.
        takes_s: From its grant to its end.
        arrives: At which part of that the platform counts it.
    """

    after_s: float
    rank: Rank
    takes_s: float
    arrives: float


WISHES = st.lists(
    st.builds(
        Wish,
        after_s=st.sampled_from([0.0, 0.0, 0.0, 0.05, 0.5, 3.0]),
        rank=st.sampled_from(Rank),
        takes_s=st.sampled_from([0.0, 0.01, 0.3, 1.1, 4.0]),
        arrives=st.sampled_from([0.0, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=40,
)


class Platform:
    """An account between the pacing and a server; each wish is for a chat of its own."""

    def __init__(self, wishes: list[Wish]) -> None:
        self.state = fresh(limited(account=ACCOUNT), LONG_AGO)
        self.wishes = wishes
        self.wake: float | None = None
        self.due: list[tuple[float, int, Event]] = []
        self.order = count()
        self.granted: list[int] = []
        self.arrived: list[float] = []
        self.ends: list[float] = []
        at = 0.0
        for number, wish in enumerate(wishes):
            at += wish.after_s
            request = Request(id=str(number), chat=f"c{number}", rank=wish.rank)
            self.at(at, Wanted(request=request, at=at))

    def at(self, at: float, event: Event) -> None:
        heapq.heappush(self.due, (at, next(self.order), event))

    def run(self) -> None:
        while self.due or self.wake is not None:
            if self.wake is not None and (not self.due or self.wake < self.due[0][0]):
                self.feed(self.wake, Ticked(at=self.wake))
            else:
                at, _, event = heapq.heappop(self.due)
                self.feed(at, event)

    def feed(self, at: float, event: Event) -> None:
        self.state, effects = step(self.state, event)
        self.wake = None
        for effect in effects:
            match effect:
                case Grant():
                    self.grant(int(effect.id), at)
                case WakeAt():
                    self.wake = effect.at
        if self.state.finals:
            assert not self.has_room(at), "a final waits for nothing but the account"
        elif self.state.drafts:
            assert not self.has_room(at, more=ACCOUNT.burst // 2), (
                "nor does a draft, but for finals"
            )

    def grant(self, number: int, at: float) -> None:
        wish = self.wishes[number]
        if wish.rank is Rank.DRAFT:
            assert not self.state.finals, "a draft goes when no final waits"
        self.granted.append(number)
        self.arrived.append(at + wish.arrives * wish.takes_s)
        self.ends.append(at + wish.takes_s)
        self.at(at + wish.takes_s, CallEnded(chat=f"c{number}", at=at + wish.takes_s))
        self.at(at + wish.takes_s, Withdrawn(id=str(number), at=at + wish.takes_s, for_good=True))

    def has_room(self, at: float, more: int = 0) -> bool:
        """Whether a call passes even when each before it is counted as late as it may be."""
        latest = [*(min(end, at) for end in self.ends), at]
        return all(
            sum(one >= since for one in latest) + more
            <= ACCOUNT.burst + ACCOUNT.per_s * (at - since) - SLACK
            for since in latest[:-1]
        )


@given(WISHES)
def test_no_call_comes_too_early_and_no_slot_is_left_unused(wishes: list[Wish]) -> None:
    """However long calls take on their way, and wherever on it they are counted (P2, P6).

    The platform's bucket is as large as ours, and nothing is subtracted for networks.
    """
    platform = Platform(wishes)
    platform.run()
    left, before = float(ACCOUNT.burst), LONG_AGO
    for at in sorted(platform.arrived):
        left = min(float(ACCOUNT.burst), left + (at - before) * ACCOUNT.per_s) - 1
        before = at
        assert left >= -SLACK, "the platform has room for it"
    assert len(platform.granted) == len(wishes), "nobody is forgotten"
    for rank in Rank:
        ours = [number for number in platform.granted if wishes[number].rank is rank]
        assert ours == sorted(ours), "who asked first goes first"


BUSY = limited(account=Budget(per_s=100, burst=2))


def test_as_many_calls_are_under_way_as_may_arrive_at_once() -> None:
    """They may on a busy machine, where each was granted in its time (P6)."""
    three = [Wanted(request=final(name, chat=name), at=5) for name in ("a", "b", "c")]
    state, effects = play(fresh(BUSY, 0, drafts_at_once=1), *three)
    assert effects == [WakeAt(at=5 + LATE_S)]
    state, effects = play(state, CallEnded(chat="a", at=6))
    assert effects == [WakeAt(at=6.01)]
    assert play(state, Ticked(at=6.01))[1] == [Grant(id="c")]


def test_while_calls_pile_up_drafts_wait_and_finals_do_not() -> None:
    """Whatever is slow, a call is better spent on an answer than on its beginning (P6)."""
    for limits in (BUSY, FREE):
        state, _ = play(fresh(limits, 0, drafts_at_once=1), Wanted(request=final("a"), at=5))
        state, effects = play(state, Wanted(request=draft("d", chat="other"), at=5))
        assert effects == [WakeAt(at=5 + LATE_S)]
        state, effects = play(state, Wanted(request=final("b", chat="b"), at=5))
        assert effects[0] == Grant(id="b")
        state, _ = play(state, CallEnded(chat="c", at=6), CallEnded(chat="b", at=6), Ticked(at=7))
        assert not state.drafts


def test_a_call_that_hangs_holds_up_other_chats_for_a_moment_only() -> None:
    """Its late end is charged to nobody a second time (P9)."""
    late = 5 + LATE_S
    limits = limited(account=Budget(per_s=100, burst=1))
    two = [Wanted(request=final(name, chat=name), at=5) for name in ("a", "b")]
    state, _ = play(fresh(limits, 0), *two)
    state, effects = play(state, Ticked(at=late))
    assert effects == [WakeAt(at=late + 0.01)]
    state, effects = play(state, Ticked(at=late + 0.01))
    assert effects == [Grant(id="b")]
    state, _ = play(
        state,
        CallEnded(chat="b", at=late + 1),
        CallEnded(chat="a", at=20),
        Wanted(request=final("c"), at=20.01),
    )
    assert len(state.under_way) == 1
