"""Platforms' limits are kept, finals go first, and drafts thin out evenly."""

import heapq
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.delivery.pacing_play import FREE, draft, final, limited, play
from zeroclaw.channel import Budget
from zeroclaw.delivery import pacing
from zeroclaw.delivery.pacing import (
    LATE_S,
    CallAnswered,
    CallEnded,
    CallRefused,
    CallUnreached,
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
from zeroclaw.value import Value, replace


def test_without_limits_everybody_calls_at_once() -> None:
    """The first text is shown without a wait (P6)."""
    _, effects = play(fresh(FREE, 0), Requested(request=draft("d"), at=0))
    assert effects == [Grant(id="d")]


def test_after_a_start_each_bucket_is_spent() -> None:
    """Nobody knows what the process before used, so the burst is not there yet (P6)."""
    limits = limited(chat=Budget(per_s=1, burst=5), account=Budget(per_s=10, burst=5))
    state, effects = play(fresh(limits, 100), Requested(request=final("f"), at=100))
    assert effects == [WakeAt(at=101)]
    assert step(state, Ticked(at=101))[1] == (Grant(id="f"),)


def test_a_message_seen_before_the_start_counts_as_just_edited() -> None:
    """A restart does not shorten an interval (P6)."""
    limits = limited(edit_interval_s=3)
    _, effects = play(fresh(limits, 100), Requested(request=draft("d", message="m"), at=101))
    assert effects == [WakeAt(at=103)]


def test_two_edits_of_a_message_are_an_interval_apart() -> None:
    """Counted from the grant of an edit, and from the answer of a send (P6)."""
    limits = limited(edit_interval_s=3)
    state, _ = play(
        fresh(limits, 0),
        Requested(request=draft("d"), at=10),
        CallAnswered(chat="c", at=11, message="m"),
    )
    state, effects = play(state, Requested(request=draft("d", message="m"), at=11))
    assert effects == [WakeAt(at=14)]
    state, effects = play(state, Ticked(at=14))
    assert effects == [Grant(id="d")]
    state, effects = play(
        state,
        CallAnswered(chat="c", at=16, message="m"),
        Requested(request=draft("d", message="m"), at=16),
    )
    assert effects == [WakeAt(at=17)]


def test_a_platforms_wait_is_obeyed_to_the_letter() -> None:
    """Nothing is called in that chat before it is over; other chats go on (P6, P9)."""
    state, _ = play(
        fresh(FREE, 0),
        Requested(request=draft("d"), at=1),
        CallRefused(chat="c", at=2, retry_after_s=30),
        Requested(request=final("f"), at=3),
    )
    _, effects = play(state, Requested(request=final("other", chat="o"), at=3))
    assert effects == [Grant(id="other"), WakeAt(at=32)]


@pytest.mark.parametrize("retry_after_s", [0.0, -5.0])
def test_a_refusal_without_a_wait_never_shortens_the_interval(retry_after_s: float) -> None:
    """The gap after it is longer than before it, not gone (P6)."""
    limits = limited(edit_interval_s=2)
    edit = draft("d", message="m")
    state, _ = play(
        fresh(limits, 0),
        Requested(request=edit, at=10),
        CallRefused(chat="c", at=10, retry_after_s=retry_after_s),
    )
    _, effects = play(state, Requested(request=edit, at=10))
    assert effects == [WakeAt(at=14)]


def test_each_refusal_doubles_the_gap_and_each_answer_shortens_it_a_little() -> None:
    """A platform that names no numbers is learned (P6)."""
    state, gaps = fresh(FREE, 0), list[float]()
    for event in (*[CallRefused(chat="c", at=1)] * 8, *[CallAnswered(chat="c", at=1)] * 2):
        state, _ = step(state, event)
        gaps.append(state.chats["c"].gap_s)
    assert gaps == pytest.approx([0.5, 1, 2, 4, 8, 16, 30, 30, 24, 19.2])


def test_a_small_gap_ends() -> None:
    """After enough answers nothing is left of a refusal."""
    state, _ = play(
        fresh(FREE, 0), CallRefused(chat="c", at=1), *[CallAnswered(chat="c", at=1)] * 11
    )
    assert state.chats["c"].gap_s == 0


KNOWN = limited(chat=Budget(per_s=1, burst=2))


def test_where_the_budget_is_known_a_named_wait_is_all_that_a_refusal_costs() -> None:
    """The next call comes when the platform said, without a burst, and then all is as before (P6)."""
    state, _ = play(fresh(KNOWN, 0), CallRefused(chat="c", at=50, retry_after_s=3))
    state, effects = play(state, *[Requested(request=final(name), at=50) for name in ("a", "b")])
    assert effects == [WakeAt(at=53)]
    state, effects = play(state, Ticked(at=53))
    assert effects == [Grant(id="a")]
    state, effects = play(state, CallEnded(chat="c", at=53.1))
    assert effects == [WakeAt(at=54)]
    assert play(state, Ticked(at=54))[1] == [Grant(id="b")]
    assert state.chats["c"].gap_s == 0


def test_a_named_wait_gives_a_chat_no_call_that_its_budget_does_not() -> None:
    limits = limited(chat=Budget(per_s=0.1, burst=2))
    state, _ = play(
        fresh(limits, 0),
        Requested(request=final("a"), at=50),
        CallAnswered(chat="c", at=50),
        Requested(request=final("b"), at=50),
        CallRefused(chat="c", at=50, retry_after_s=3),
    )
    assert play(state, Requested(request=final("next"), at=50))[1] == [WakeAt(at=60)]


def test_during_an_outage_calls_become_rarer_until_one_is_answered() -> None:
    """A platform that is away is not hammered, and nothing is left of it when it is back (P9)."""
    state, waits = fresh(KNOWN, 0), list[float]()
    for _ in range(8):
        state, effects = play(
            state, CallUnreached(chat="c", at=50), Requested(request=final("f"), at=50)
        )
        wake = effects[-1]
        assert isinstance(wake, WakeAt)
        waits.append(wake.at - 50)
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert step(state, CallAnswered(chat="c", at=50))[1] == (Grant(id="f"),)


def test_an_answer_in_another_chat_shortens_what_an_outage_left() -> None:
    """The platform is there again, so no call waits out the pause of the outage (P9)."""
    state, _ = play(
        fresh(KNOWN, 0), *[CallUnreached(chat="c", at=50)] * 6, Requested(request=final("f"), at=50)
    )
    _, effects = play(state, CallAnswered(chat="other", at=50.1))
    assert effects == [WakeAt(at=50.5)]


def test_two_chats_refused_at_once_hold_the_account() -> None:
    """Of a platform that names no budgets: a third chat waits as long (P6)."""
    state, _ = play(
        fresh(FREE, 0),
        CallRefused(chat="a", at=1, retry_after_s=10),
        CallRefused(chat="b", at=2, retry_after_s=20),
    )
    _, effects = play(state, Requested(request=final("f", chat="third"), at=3))
    assert effects == [WakeAt(at=22)]


GROUPS = limited(chat=Budget(per_s=1, burst=2), group=Budget(per_s=0.3, burst=2))


def test_two_busy_groups_that_are_refused_hold_no_other_chat() -> None:
    """Each has a limit of its own, which is known; others are not made to wait for it (P2, P9)."""
    state, _ = play(
        fresh(GROUPS, 0),
        CallRefused(chat="a", at=11, retry_after_s=30),
        CallRefused(chat="b", at=11, retry_after_s=30),
        CallRefused(chat="b", at=12, retry_after_s=29),
        CallRefused(chat="c", at=12, retry_after_s=10),
    )
    _, effects = play(state, Requested(request=final("f", chat="third"), at=13))
    assert effects == [Grant(id="f")]


@pytest.mark.parametrize("retry_after_s", [28, 30])
def test_chats_whose_waits_end_together_hold_the_account(retry_after_s: float) -> None:
    """The platform names the rest of the same wait to each call; then the whole account waits (P6)."""
    state, _ = play(
        fresh(GROUPS, 0),
        CallRefused(chat="a", at=11, retry_after_s=30),
        CallRefused(chat="b", at=12, retry_after_s=30),
        CallRefused(chat="c", at=13, retry_after_s=retry_after_s),
    )
    _, effects = play(state, Requested(request=final("f", chat="third"), at=14))
    assert effects == [WakeAt(at=13 + retry_after_s)]


def test_finals_go_before_drafts() -> None:
    """With one token to share, the final takes it, though it came last (P6)."""
    limits = limited(account=Budget(per_s=1))
    _, effects = play(
        fresh(limits, 0),
        Requested(request=draft("d", chat="a"), at=0.1),
        Requested(request=final("f", chat="b"), at=0.2),
        Ticked(at=1),
    )
    assert effects[0] == Grant(id="f")


def test_a_draft_does_not_take_the_token_its_chats_final_waits_for() -> None:
    """A final that waits for its message's interval keeps its place (P6)."""
    limits = limited(account=Budget(per_s=0.1), edit_interval_s=20)
    _, effects = play(
        fresh(limits, 0),
        Requested(request=final("f", message="m"), at=11),
        Requested(request=draft("d"), at=11),
    )
    assert effects == [WakeAt(at=20)]


@pytest.mark.parametrize(("burst", "left"), [(2, 1), (5, 2), (20, 10)])
def test_drafts_leave_a_part_of_a_burst_to_finals(burst: int, left: int) -> None:
    """So many answers go at once that their own drafts would else have held up (P6)."""
    budget = Budget(per_s=1, burst=burst)
    for limits in (limited(chat=budget), limited(account=budget)):
        state = fresh(limits, 0)
        granted: dict[Rank, int] = {}
        for rank in (Rank.DRAFT, Rank.FINAL):
            for number in range(burst + 1):
                request = Request(id=f"{rank} {number}", chat="c", rank=rank)
                state, effects = step(state, Requested(request=request, at=100))
                granted[rank] = granted.get(rank, 0) + effects.count(Grant(id=request.id))
                state, _ = step(state, CallEnded(chat="c", at=100))
        assert granted == {Rank.DRAFT: burst - left, Rank.FINAL: left}


@pytest.mark.parametrize("burst", [4, 20])
def test_after_a_start_drafts_wait_for_no_stock_that_is_filled_first(burst: int) -> None:
    """They have every second call that comes in, and finals keep the others (P6)."""
    budget = Budget(per_s=1, burst=burst)
    for limits in (limited(chat=budget), limited(account=budget)):
        state, granted = fresh(limits, 0), list[int]()
        for at in range(burst):
            state, effects = step(state, Requested(request=draft("d"), at=at))
            if Grant(id="d") in effects:
                granted.append(at)
                state, _ = step(state, CallEnded(chat="c", at=at))
        assert granted == [2, *range(3, burst, 2)]
        left = 0
        for number in range(burst):
            state, effects = step(state, Requested(request=final(f"f{number}"), at=burst))
            left += Grant(id=f"f{number}") in effects
            state, _ = step(state, CallEnded(chat="c", at=burst))
        assert left == burst // 2


@pytest.mark.parametrize("burst", [1, 2, 20])
def test_in_the_long_run_drafts_have_the_whole_budget(burst: int) -> None:
    """What they leave to finals is a stock, no share (P6)."""
    budget = Budget(per_s=0.5, burst=burst)
    state, granted = fresh(limited(chat=budget, account=budget), 0), list[int]()
    for at in range(400):
        state, effects = step(state, Requested(request=draft("d"), at=at))
        if Grant(id="d") in effects:
            granted.append(at)
            state, _ = step(state, CallEnded(chat="c", at=at))
    assert [later - at for at, later in zip(granted[-20:], granted[-19:], strict=False)] == [2] * 19


APART = limited(
    chat=Budget(per_s=1, burst=2),
    account=Budget(per_s=10, burst=20),
    edits=Budget(per_s=0.5, burst=4),
)


def test_edits_that_count_apart_cost_their_chat_nothing() -> None:
    """An answer is edited behind as many messages as the chat takes, and the other way round (P6)."""
    state = fresh(APART, 0)
    for number, message in enumerate(("m", "m", "", "", "m", "m")):
        name = f"f{number}"
        state, effects = step(state, Requested(request=final(name, message=message), at=100))
        assert Grant(id=name) in effects
        state, _ = step(state, CallEnded(chat="c", at=100))
    for message, at in (("m", 102), ("", 101)):
        assert step(state, Requested(request=final("f", message=message), at=100))[1] == (
            WakeAt(at=at),
        )


def test_no_more_drafts_begin_than_can_be_ended_by_an_edit() -> None:
    """The others' answers are new messages, which do not wait for edits (P6)."""
    state, begun = fresh(APART, 0), list[str]()
    for chat in "abcdef":
        state, effects = step(state, Requested(request=draft(chat, chat=chat), at=100))
        begun += [chat for _ in effects if Grant(id=chat) in effects][:1]
    assert begun == ["a", "b"]
    for chat in "ab":
        state, _ = step(state, CallEnded(chat=chat, at=100))
    for chat, message in (("a", "m"), ("b", "m"), ("c", ""), ("d", "")):
        request = final(f"final {chat}", chat=chat, message=message)
        assert Grant(id=request.id) in step(state, Requested(request=request, at=100))[1]


@pytest.mark.parametrize("message", ["", "m"])
def test_a_final_goes_at_once_behind_a_draft_that_grows_as_often_as_it_may(message: str) -> None:
    """As a new message or as the last edit of its draft (P6)."""
    limits = limited(
        chat=Budget(per_s=1, burst=2), account=Budget(per_s=28, burst=20), edit_interval_s=1
    )
    state, _ = play(fresh(limits, 0), CallAnswered(chat="c", at=50, message="m"))
    for at in range(51, 80):
        state, effects = play(state, Requested(request=draft("d", message="m"), at=at))
        assert effects == [Grant(id="d")]
        state, _ = step(state, CallEnded(chat="c", at=at))
    _, effects = play(state, Requested(request=final("f", message=message), at=79.01))
    assert effects == [Grant(id="f")]


def test_where_only_an_interval_is_known_a_final_keeps_it() -> None:
    """Nothing else says what the platform bears (P6)."""
    limits = limited(edit_interval_s=3)
    state, _ = play(fresh(limits, 0), CallAnswered(chat="c", at=10, message="m"))
    assert play(state, Requested(request=final("f", message="m"), at=11))[1] == [WakeAt(at=13)]


def test_what_a_refusal_taught_holds_a_final_too() -> None:
    """The platform has just said that its budget is another (P6)."""
    limits = limited(chat=Budget(per_s=1, burst=2), edit_interval_s=1)
    state, _ = play(
        fresh(limits, 0),
        Requested(request=draft("d", message="m"), at=50),
        CallRefused(chat="c", at=50, retry_after_s=0),
    )
    assert play(state, Requested(request=final("f", message="m"), at=50))[1] == [WakeAt(at=52)]


def test_a_withdrawn_request_is_not_granted() -> None:
    """A closed draft uses up no budget."""
    limits = limited(account=Budget(per_s=1))
    state, _ = play(fresh(limits, 0), Requested(request=draft("d"), at=0.5))
    for event in (Withdrawn(id="d", at=1), Withdrawn(id="d", at=1, for_good=True)):
        assert step(state, event)[1] == ()


def waiting(state: Pacing) -> list[Rank]:
    """The ranks of the waiting requests."""
    return [request.rank for request in state.waiting.values()]


def test_asking_again_keeps_one_place() -> None:
    """A draft has one slot, however much text arrives."""
    limits = limited(account=Budget(per_s=1))
    state, _ = play(fresh(limits, 0), *[Requested(request=draft("d"), at=0.5)] * 3)
    assert waiting(state) == [Rank.DRAFT]


def test_asking_again_as_a_final_leaves_no_draft_behind() -> None:
    """A draft that a person waits for goes before other drafts (P6)."""
    limits = limited(account=Budget(per_s=1))
    state, _ = play(
        fresh(limits, 0),
        Requested(request=draft("d"), at=0.5),
        Requested(request=final("d"), at=0.5),
    )
    assert waiting(state) == [Rank.FINAL]


@given(st.integers(2, 8), st.integers(10, 60))
def test_drafts_of_an_account_thin_out_evenly(drafts: int, ticks: int) -> None:
    """No open draft is served twice while another waits for its first (P2, P6)."""
    names = [f"d{number}" for number in range(drafts)]
    state, served = (fresh(limited(account=Budget(per_s=1)), 0), dict.fromkeys(names, 0))
    for at in range(ticks):
        for name in names:
            state, effects = step(state, Requested(request=draft(name, chat=name), at=at))
            for effect in effects:
                if isinstance(effect, Grant):
                    served[effect.id] += 1
                    state, _ = step(state, CallEnded(chat=effect.id, at=at))
    assert max(served.values()) - min(served.values()) <= 1


def test_idle_chats_are_forgotten_and_busy_ones_are_not() -> None:
    """Memory is bounded, and forgetting shortens nothing."""
    limits = limited(chat=Budget(per_s=1), edit_interval_s=1)
    state = fresh(limits, 0)
    state, _ = play(state, CallRefused(chat="held", at=1, retry_after_s=10_000))
    for number in range(1000):
        chat = f"c{number}"
        state, _ = play(
            state,
            Requested(request=draft("d", chat=chat), at=number),
            CallAnswered(chat=chat, at=number, message="m"),
        )
    assert len(state.chats) <= pacing.REMEMBERED + 1
    assert len(state.messages) <= pacing.REMEMBERED + 1
    assert "held" in state.chats


def test_idle_groups_are_forgotten_like_chats() -> None:
    limits = limited(group=Budget(per_s=1))
    state = fresh(limits, 0)
    for number in range(1000):
        request = replace(draft("d", chat=f"g{number}"), in_group=True)
        state, _ = play(
            state, Requested(request=request, at=number), CallAnswered(chat=request.chat, at=number)
        )
    assert len(state.groups) <= pacing.REMEMBERED + 1
    assert state.groups <= state.chats.keys()


def test_in_a_chat_one_call_is_under_way_at_a_time() -> None:
    """The second call knows the first one's refusal before it is made (P6)."""
    state, effects = play(
        fresh(FREE, 0), *[Requested(request=final(name), at=5) for name in ("a", "b")]
    )
    assert effects == []
    state, _ = step(state, CallRefused(chat="c", at=6, retry_after_s=3))
    state, effects = step(state, CallEnded(chat="c", at=6))
    assert effects == (WakeAt(at=9),)
    assert step(state, Ticked(at=9))[1] == (Grant(id="b"),)


# --- whenever calls arrive, the platform's own bucket has room, and no slot is left unused --------

ACCOUNT = Budget(per_s=5, burst=4)
LONG_AGO = -100.0
SLACK = 1e-3


class Wish(Value):
    """One call that a caller wants to make.

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
            self.at(at, Requested(request=request, at=at))

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
        if Rank.FINAL in waiting(self.state):
            assert not self.has_room(at), "a final waits for nothing but the account"
        elif Rank.DRAFT in waiting(self.state):
            assert not self.has_room(at, more=ACCOUNT.burst // 2), (
                "nor does a draft, but for finals"
            )

    def grant(self, number: int, at: float) -> None:
        wish = self.wishes[number]
        if wish.rank is Rank.DRAFT:
            assert Rank.FINAL not in waiting(self.state), "a draft goes when no final waits"
        self.granted.append(number)
        self.arrived.append(at + wish.arrives * wish.takes_s)
        self.ends.append(at + wish.takes_s)
        self.at(at + wish.takes_s, CallEnded(chat=f"c{number}", at=at + wish.takes_s))
        self.at(at + wish.takes_s, Withdrawn(id=str(number), at=at + wish.takes_s, for_good=True))

    def has_room(self, at: float, more: int = 0) -> bool:
        """Whether a call passes even when each before it is counted as late as it may be."""
        latest = [*(min(end, at) for end in self.ends), at]
        return all(
            sum(at >= since for at in latest) + more
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
    three = [Requested(request=final(name, chat=name), at=5) for name in ("a", "b", "c")]
    state, effects = play(fresh(BUSY, 0, drafts_at_once=1), *three)
    assert effects == [WakeAt(at=5 + LATE_S)]
    state, effects = play(state, CallEnded(chat="a", at=6))
    assert effects == [WakeAt(at=6.01)]
    assert play(state, Ticked(at=6.01))[1] == [Grant(id="c")]


def test_while_calls_pile_up_drafts_wait_and_finals_do_not() -> None:
    """Whatever is slow, a call is better spent on an answer than on its beginning (P6)."""
    for limits in (BUSY, FREE):
        state, _ = play(fresh(limits, 0, drafts_at_once=1), Requested(request=final("a"), at=5))
        state, effects = play(state, Requested(request=draft("d", chat="other"), at=5))
        assert effects == [WakeAt(at=5 + LATE_S)]
        state, effects = play(state, Requested(request=final("b", chat="b"), at=5))
        assert effects[0] == Grant(id="b")
        state, _ = play(state, CallEnded(chat="c", at=6), CallEnded(chat="b", at=6), Ticked(at=7))
        assert waiting(state) == []


def test_a_call_that_hangs_holds_up_other_chats_for_a_moment_only() -> None:
    """Its late end is not charged a second time (P9)."""
    late = 5 + LATE_S
    limits = limited(account=Budget(per_s=100, burst=1))
    two = [Requested(request=final(name, chat=name), at=5) for name in ("a", "b")]
    state, _ = play(fresh(limits, 0), *two)
    state, effects = play(state, Ticked(at=late))
    assert effects == [WakeAt(at=late + 0.01)]
    state, effects = play(state, Ticked(at=late + 0.01))
    assert effects == [Grant(id="b")]
    state, _ = play(
        state,
        CallEnded(chat="b", at=late + 1),
        CallEnded(chat="a", at=20),
        Requested(request=final("c"), at=20.01),
    )
    assert len(state.under_way) == 1
