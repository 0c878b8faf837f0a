"""A draft and its pacing keep their promises in any order of events, on a platform that does as it likes."""

import pickle
from collections.abc import Callable
from typing import ClassVar, cast

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.fakes.mutant import mutant
from zeroclaw.channel import Budget
from zeroclaw.delivery import draft as room
from zeroclaw.delivery import pacing, pacing_events
from zeroclaw.delivery.draft import (
    CONTINUED_ABOVE,
    Draft,
    Traits,
    opened,
    step,
)
from zeroclaw.delivery.draft_events import (
    Ask,
    Call,
    Closed,
    Delete,
    Done,
    Edit,
    Effect,
    Ended,
    Event,
    Failed,
    Granted,
    Rejected,
    Send,
    Sent,
    Showed,
    Unknown,
    Withdraw,
)

LIMITS = pacing.Limits(chat=Budget(per_s=2, burst=2), account=Budget(), edit_interval_s=1.0)
TEXTS = st.lists(st.sampled_from(["a", "b", "full"]), max_size=3).map(tuple)
SECONDS = st.sampled_from([0.0, 0.4, 1.0, 5.0])
Step = Callable[[Draft, Event], tuple[Draft, tuple[Effect, ...]]]
Paced = Callable[
    [pacing.Pacing, pacing_events.Event], tuple[pacing.Pacing, tuple[pacing_events.Effect, ...]]
]


class World(RuleBasedStateMachine):
    """One draft and its pacing, back to back, on a platform that does as it likes."""

    step: ClassVar[Step] = staticmethod(step)
    pace: ClassVar[Paced] = staticmethod(pacing.step)

    @initialize(
        traits=st.builds(
            Traits,
            can_edit=st.sampled_from([True, True, True, False]),
            can_delete=st.booleans(),
            multi_message=st.sampled_from([True, True, False]),
            idempotent_send=st.sampled_from([True, True, True, False]),
        ),
        left=st.integers(0, 2),
    )
    def open(self, traits: Traits, left: int) -> None:
        self.at = 100.0
        self.traits = traits
        self.paced = pacing.fresh(LIMITS, 0)
        # What people see, by message; deleted ones are not here.
        self.chat: dict[str, str] = {f"left{number}": "?" for number in range(left)}
        self.by_key: dict[str, str] = {}
        self.draft = opened("t", 1, traits, tuple(self.chat))
        self.asked: str | None = None
        self.newest = -1
        self.wanted: tuple[str, ...] = ()
        self.flight: Call | None = None
        self.calls: list[tuple[float, Call]] = []
        self.refused: dict[str, float] = {}
        self.closed = False
        self.ended: Ended | None = None
        self.made = 0
        self.resent = 0

    def feed(self, event: Event) -> None:
        again = pickle.loads(pickle.dumps(self.draft))
        self.draft, effects = type(self).step(self.draft, event)
        assert (self.draft, effects) == type(self).step(again, event), "storable between steps"
        for effect in effects:
            match effect:
                case Ask():
                    self.asked = effect.message
                    request = pacing_events.Request(
                        id="d", chat="c", rank=pacing_events.Rank.DRAFT, message=effect.message
                    )
                    self.feed_pacing(pacing_events.Wanted(request=request, at=self.at))
                case Withdraw():
                    self.asked = None
                    self.feed_pacing(pacing_events.Withdrawn(id="d", at=self.at))
                case Ended():
                    assert self.ended is None, "a draft ends once"
                    self.ended = effect
                case Send() | Edit() | Delete():
                    self.call(effect)
        self.check_rest()

    def feed_pacing(self, event: pacing_events.Event) -> None:
        self.paced, effects = type(self).pace(self.paced, event)
        for effect in effects:
            if isinstance(effect, pacing_events.Grant):
                self.feed(Granted())

    def call(self, call: Call) -> None:
        assert self.flight is None, "never two calls at once"
        assert self.asked == ("" if isinstance(call, Send) else call.message), "as asked"
        self.asked = None
        assert not self.closed, "no call after the end"
        assert self.traits.can_edit, "a channel that can't edit gets nothing before the final"
        if isinstance(call, Send):
            assert call.text in self.wanted, "always the newest text"
        elif isinstance(call, Edit):
            assert call.text in {*self.wanted[call.part : call.part + 1], CONTINUED_ABOVE}, "newest"
            assert self.chat.get(call.message) != call.text or self.unsure(call), "no idle edit"
        if not isinstance(call, Send):
            touched = [
                at
                for at, one in self.calls
                if not isinstance(one, Send) and one.message == call.message
            ]
            interval = LIMITS.edit_interval_s * (2 if call.message in self.refused else 1)
            assert not touched or self.at - touched[-1] >= interval - 1e-3, "the interval is kept"
        self.flight = call
        self.calls.append((self.at, call))

    def unsure(self, call: Edit) -> bool:
        """Whether the answer to an earlier edit of the message was lost."""
        return self.draft.parts[call.part].text is None

    def check_rest(self) -> None:
        """What was asked to be shown last stands, or is on its way, unless the platform refused."""
        draft = self.draft
        if self.closed or draft.muted or not self.traits.can_edit or not self.wanted:
            return
        wanted = self.wanted if self.traits.multi_message else self.wanted[:1]
        parts = [self.chat.get(part.message or "") for part in draft.parts]
        gone = any(part.message is None for part in draft.parts)
        rest = {CONTINUED_ABOVE} if len(parts) > len(wanted) else set[str]()
        stands = tuple(parts[: len(wanted)]) == wanted and set(parts[len(wanted) :]) <= rest
        under_way = self.flight is not None or bool(self.paced.waiting)
        assert stands or under_way or gone or self.unseen(), "the newest text is on its way"

    def unseen(self) -> bool:
        """Somebody deleted a message, and nothing has told us yet."""
        return any(part.message not in self.chat for part in self.draft.parts if part.message)

    @rule(parts=TEXTS, step_back=st.sampled_from([0, 0, 0, 1, 3]), fence=st.sampled_from([1, 1, 0]))
    def show(self, parts: tuple[str, ...], step_back: int, fence: int) -> None:
        number = self.newest + 1 - step_back
        if fence == 1 and step_back == 0:
            self.newest = number
            if parts and not self.closed:
                self.wanted = parts
        before = self.draft
        self.feed(Showed(turn="t", fence=fence, number=number, parts=parts))
        assert not self.closed or self.draft == before, "frames after the end change nothing"

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.at += seconds
        self.feed_pacing(pacing_events.Ticked(at=self.at))

    # Rare, like a refusal for good, because little can happen after it.
    @precondition(lambda self: cast("World", self).draft.calls % 4 == 3)
    @rule()
    def close(self) -> None:
        self.closed = True
        self.feed(Closed())
        assert self.ended is not None or self.flight is not None, "waits for its call only"

    @precondition(lambda self: bool(cast("World", self).chat))
    @rule(which=st.integers(0, 3))
    def somebody_deletes(self, which: int) -> None:
        del self.chat[list(self.chat)[which % len(self.chat)]]

    def landed(self) -> Call:
        assert self.flight is not None
        call, self.flight = self.flight, None
        return call

    def carry_out(self, call: Call) -> Event:
        match call:
            case Send():
                if self.traits.idempotent_send and self.by_key.get(call.key) in self.chat:
                    message = self.by_key[call.key]
                else:
                    self.made += 1
                    message = f"m{self.made}"
                    self.chat[message] = call.text
                self.by_key[call.key] = message
                return Sent(call=call.call, message=message)
            case Edit():
                if call.message not in self.chat:
                    return Rejected(call=call.call, gone=True)
                self.chat[call.message] = call.text
                return Done(call=call.call)
            case Delete():
                self.chat.pop(call.message, None)
                return Done(call=call.call)

    @precondition(lambda self: cast("World", self).flight is not None)
    @rule()
    def succeed(self) -> None:
        call = self.landed()
        outcome = self.carry_out(call)
        message = outcome.message if isinstance(outcome, Sent) else getattr(call, "message", "")
        self.refused.clear()
        self.feed_pacing(pacing_events.Answered(chat="c", at=self.at, message=message))
        self.feed(outcome)

    @precondition(lambda self: cast("World", self).flight is not None)
    @rule(retry_after_s=SECONDS)
    def fail(self, retry_after_s: float) -> None:
        call = self.landed()
        if not isinstance(call, Send):
            self.refused[call.message] = self.at
        self.feed_pacing(pacing_events.Refused(chat="c", at=self.at, retry_after_s=retry_after_s))
        self.feed(Failed(call=call.call))

    @precondition(lambda self: cast("World", self).flight is not None)
    @rule(arrives=st.booleans())
    def lose_the_answer(self, arrives: bool) -> None:
        call = self.landed()
        if arrives:
            self.carry_out(call)
        self.feed(Unknown(call=call.call))

    @precondition(lambda self: cast("World", self).flight is not None)
    @rule(markup=st.sampled_from([True, True, True, False]))
    def refuse(self, markup: bool) -> None:
        self.feed(Rejected(call=self.landed().call, markup=markup))

    @precondition(lambda self: cast("World", self).flight is not None)
    @rule(parts=TEXTS)
    def succeed_and_show_more(self, parts: tuple[str, ...]) -> None:
        self.succeed()
        self.show(parts, 0, 1)

    @rule(parts=TEXTS, arrives=st.booleans())
    def show_more_and_lose_the_answer(self, parts: tuple[str, ...], arrives: bool) -> None:
        self.show(parts, 0, 1)
        self.wait(5.0)
        if self.flight is not None:
            self.lose_the_answer(arrives)

    @rule()
    def everything_comes_to_rest(self) -> None:
        """With a platform that behaves, the chat shows the newest text after so many calls."""
        for _ in range(40):
            if self.flight is not None:
                self.succeed()
            self.wait(30.0)
        assert self.flight is None, "comes to rest"
        if self.closed:
            assert self.ended is not None, "a closed draft ends"
            known = tuple(part.message for part in self.draft.parts if part.message is not None)
            assert self.ended.messages == known, "the final gets every message"


@pytest.mark.slow
class TestDraft(World.TestCase):
    """Whatever comes, and in whatever order, the draft keeps its promises (P6)."""

    settings = settings.get_profile("thorough")


MUTANTS = [
    pytest.param(
        "    if draft.flight is not None or draft.ended:\n",
        "    if draft.ended:\n",
        id="two calls at once",
    ),
    pytest.param(
        "(frame.fence, frame.number) > (draft.fence, draft.number)", "True", id="older after newer"
    ),
    pytest.param("newer and not draft.closed", "newer", id="takes frames after the end"),
    pytest.param(
        "if draft.closed or draft.muted or", "if draft.muted or", id="calls after the end"
    ),
    pytest.param(
        "        case Failed():\n            return draft\n",
        "        case Failed():\n            return replace(draft, wanted=())\n",
        id="drops a failed text",
    ),
    pytest.param(
        "replace(draft.parts[call.part], text=None)",
        "replace(draft.parts[call.part], text=call.text)",
        id="takes a lost edit for shown",
    ),
    pytest.param(
        "part = replace(draft.parts[call.part], text=call.text)",
        "part = replace(draft.parts[call.part], text=draft.wanted[0])",
        id="takes the newest text for shown",
    ),
    pytest.param(
        "Ended(messages=messages)", "Ended(messages=messages[:1])", id="forgets messages at the end"
    ),
    pytest.param(
        "    if draft.closed:\n        draft = replace(draft, ended=True)",
        "    if draft.closed and effects:\n        draft = replace(draft, ended=True)",
        id="does not end",
    ),
    pytest.param(
        "for number in range(len(draft.parts) - 1, len(wanted) - 1, -1):",
        "for number in ():",
        id="leaves old messages",
    ),
    pytest.param(
        "not draft.traits.can_edit or ", "", id="shows drafts where nothing can be edited"
    ),
    pytest.param(
        "part.message is not None and part.text != text",
        "part.message is not None",
        id="edits idly",
    ),
    pytest.param(
        "    if target != draft.asked:\n",
        "    if target is not None and draft.asked is None:\n",
        id="asks for the wrong message",
    ),
]
PACING_MUTANTS = [
    pytest.param(
        "gap_s=max(lane.gap_s, min(max(gap_s * GROWTH, FIRST_GAP_S), LONGEST_GAP_S))",
        "gap_s=event.retry_after_s",
        id="a refusal with no wait shortens the interval",
    ),
    pytest.param(
        "ready = max(ready, last + max(interval_s, lane.gap_s))",
        "ready = max(ready, last)",
        id="no interval",
    ),
]


def find_the_fault(mutated: type[World]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            mutated,
            settings=settings(
                max_examples=10_000,  # it stops at the first that breaks a promise
                derandomize=True,
                database=None,
                phases=[Phase.generate],
            ),
        )


@pytest.mark.slow
@pytest.mark.parametrize(("fragment", "replacement"), MUTANTS)
def test_every_promise_bites(fragment: str, replacement: str) -> None:
    """A fault planted in the draft is found by one of the promises above."""

    class Mutated(World):
        step = staticmethod(cast("Step", mutant(room, fragment, replacement)["step"]))

    find_the_fault(Mutated)


@pytest.mark.slow
@pytest.mark.parametrize(("fragment", "replacement"), PACING_MUTANTS)
def test_every_promise_about_time_bites(fragment: str, replacement: str) -> None:
    """A fault planted in the pacing is seen in the draft."""

    class Mutated(World):
        pace = staticmethod(cast("Paced", mutant(pacing, fragment, replacement)["step"]))

    find_the_fault(Mutated)
