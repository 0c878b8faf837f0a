"""A draft shows the newest text, in one message after another, and never gets in its own way."""

import pickle
from collections.abc import Callable
from dataclasses import replace
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
from zeroclaw.delivery import pacing
from zeroclaw.delivery.draft import (
    CONTINUED_ABOVE,
    Ask,
    Call,
    Closed,
    Delete,
    Done,
    Draft,
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
    Traits,
    Unknown,
    Withdraw,
    opened,
    step,
)

TRAITS = Traits(can_edit=True, can_delete=True, multi_message=True, idempotent_send=False)
FRESH = opened("t", 1, TRAITS)


def show(number: int, *parts: str, fence: int = 1, turn: str = "t") -> Showed:
    return Showed(turn=turn, fence=fence, number=number, parts=parts)


def play(draft: Draft, *events: Event) -> tuple[Draft, list[Effect]]:
    """The draft after the events, and the effects of the last one."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        draft, effects = step(draft, event)
    return draft, list(effects)


def send(call: int, text: str, *, key: str = "t:0", plain: bool = False) -> Send:
    return Send(call=call, key=key, text=text, plain=plain)


def edit(call: int, text: str, *, part: int = 0, plain: bool = False, key: str = "") -> Edit:
    return Edit(
        call=call,
        part=part,
        message=f"m{part}",
        key=key or f"t:{part}",
        text=text,
        plain=plain,
    )


ONE = play(FRESH, show(0, "a"), Granted(), Sent(call=0, message="m0"))[0]
TWO = play(ONE, show(1, "a", "b"), Granted(), Sent(call=1, message="m1"))[0]


def test_the_first_text_is_asked_for_and_sent_at_once() -> None:
    """Leading edge (S2-06)."""
    draft, effects = play(FRESH, show(0, "a"))
    assert effects == [Ask(message="")]
    assert play(draft, Granted())[1] == [send(0, "a")]


def test_later_texts_edit_the_same_message_with_the_newest_only() -> None:
    """Trailing edge: what came between is never shown (S2-06)."""
    draft, effects = play(ONE, show(1, "ab"))
    assert effects == [Ask(message="m0")]
    assert play(draft, show(2, "abc"))[1] == []
    assert play(draft, show(2, "abc"), Granted())[1] == [edit(1, "abc")]


def test_while_one_call_is_under_way_there_is_no_other() -> None:
    """Text that arrives meanwhile waits for the outcome (P6)."""
    draft, effects = play(FRESH, show(0, "a"), Granted(), show(1, "ab"))
    assert effects == []
    assert play(draft, Granted())[1] == []
    assert play(draft, Sent(call=0, message="m0"))[1] == [Ask(message="m0")]


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(show(0, "old"), id="an older number"),
        pytest.param(show(5, "old", fence=0), id="an older fence"),
        pytest.param(show(5, "other", turn="other"), id="another turn"),
        pytest.param(show(5), id="a blank text"),
    ],
)
def test_frames_that_are_no_news_show_nothing(frame: Showed) -> None:
    """An older frame never undoes a newer one (P6)."""
    assert play(ONE, frame)[1] == []


def test_a_newer_holder_of_the_turn_goes_on() -> None:
    """Numbers start again with a newer fence."""
    assert play(ONE, show(0, "new", fence=2))[1] == [Ask(message="m0")]


def test_a_blank_frame_makes_the_ones_before_it_old() -> None:
    """Its number counts, though it shows nothing."""
    assert play(ONE, show(3), show(2, "old"))[1] == []


def test_one_draft_lasts_across_tool_calls() -> None:
    """The text after a tool call goes on in the same message (K4)."""
    draft, _ = play(ONE, show(1, "a\n\nb"), Granted(), Done(call=1))
    assert [(part.message, part.text) for part in draft.parts] == [("m0", "a\n\nb")]


def test_a_full_part_is_finished_and_the_text_goes_on_in_the_next() -> None:
    """The earlier part stays as it is from then on (S2-20)."""
    draft, effects = play(ONE, show(1, "a full", "rest"), Granted())
    assert effects == [edit(1, "a full")]
    draft, effects = play(draft, Done(call=1))
    assert effects == [Ask(message="")]
    draft, effects = play(draft, Granted())
    assert effects == [send(2, "rest", key="t:1")]
    draft, effects = play(
        draft, Sent(call=2, message="m1"), show(2, "a full", "rest grows"), Granted()
    )
    assert effects == [edit(3, "rest grows", part=1)]


def test_a_shorter_text_takes_its_last_messages_away() -> None:
    """A re-asked answer replaces what was shown, the last message first (P6)."""
    three, _ = play(TWO, show(2, "a", "b", "c"), Granted(), Sent(call=2, message="m2"))
    draft, effects = play(three, show(3, "x"), Granted())
    assert effects == [edit(3, "x")]
    draft, effects = play(draft, Done(call=3), Granted())
    assert effects == [Delete(call=4, part=2, message="m2")]
    draft, effects = play(draft, Done(call=4), Granted(), Done(call=5))
    assert [part.message for part in draft.parts] == ["m0"]
    draft, effects = play(draft, show(4, "x", "again"), Granted())
    assert effects == [send(6, "again", key="t:3")]


def test_where_nothing_can_be_deleted_a_message_says_that_it_is_over() -> None:
    """Also when the platform only refuses to delete this one (P6)."""
    lasting = replace(TWO, traits=replace(TRAITS, can_delete=False))
    refused, _ = play(TWO, show(2, "x"), Granted(), Done(call=2), Granted(), Rejected(call=3))
    for before in (play(lasting, show(2, "x"), Granted(), Done(call=2))[0], refused):
        draft, effects = play(before, Granted())
        assert effects == [edit(draft.calls - 1, CONTINUED_ABOVE, part=1)]
        assert play(draft, Done(call=draft.calls - 1))[1] == []


def test_a_message_already_deleted_needs_no_deleting() -> None:
    """Gone is what was wanted."""
    draft, effects = play(TWO, show(2, "a"), Granted(), Rejected(call=2, gone=True))
    assert effects == []
    assert [part.message for part in draft.parts] == ["m0"]


def test_a_channel_that_carries_one_message_shows_the_first_part() -> None:
    """The rest comes with the final (S2-20)."""
    single = replace(FRESH, traits=replace(TRAITS, multi_message=False))
    draft, _ = play(single, show(0, "a", "b"), Granted())
    assert play(draft, Sent(call=0, message="m0"))[1] == []


def test_a_channel_that_can_not_edit_shows_nothing_before_the_final() -> None:
    """It flushes once, at the end (S2-20)."""
    flushing = replace(FRESH, traits=replace(TRAITS, can_edit=False))
    assert play(flushing, show(0, "a"))[1] == []
    assert play(flushing, Closed())[1] == [Ended(messages=())]


def test_what_failed_is_asked_for_again() -> None:
    """With the text of then, not of now (P6)."""
    draft, effects = play(ONE, show(1, "ab"), Granted(), show(2, "abc"), Failed(call=1))
    assert effects == [Ask(message="m0")]
    assert play(draft, Granted())[1] == [edit(2, "abc")]


def test_an_edit_of_unknown_outcome_is_repeated() -> None:
    """The whole text again does no harm."""
    draft, effects = play(ONE, show(1, "ab"), Granted(), Unknown(call=1))
    assert effects == [Ask(message="m0")]
    assert draft.parts[0].text is None


def test_a_deletion_of_unknown_outcome_is_repeated() -> None:
    """Deleting twice does no harm."""
    _, effects = play(TWO, show(2, "a"), Granted(), Unknown(call=2))
    assert effects == [Ask(message="m1")]


def test_a_send_of_unknown_outcome_is_repeated_only_under_its_key() -> None:
    """Where the platform knows the key; elsewhere the draft falls silent and says so (P1)."""
    keyed = replace(FRESH, traits=replace(TRAITS, idempotent_send=True))
    draft, effects = play(keyed, show(0, "a"), Granted(), Unknown(call=0), Granted())
    assert effects == [send(1, "a")]
    # It may have been the first attempt that arrived, with the text of then.
    assert play(draft, Sent(call=1, message="m0"))[1] == [Ask(message="m0")]
    draft, effects = play(FRESH, show(0, "a"), Granted(), Unknown(call=0), show(1, "ab"))
    assert (effects, draft.uncertain) == ([], True)


def test_refused_markup_is_repeated_as_plain_text() -> None:
    """And stays plain for the rest of the draft (P6)."""
    draft, effects = play(ONE, show(1, "*a"), Granted(), Rejected(call=1, markup=True), Granted())
    assert effects == [edit(2, "*a", plain=True)]
    assert play(draft, Rejected(call=2, markup=True), show(2, "*a*"))[1] == []


@pytest.mark.parametrize("flags", [{}, {"gone": True}])
def test_a_refused_send_silences_the_draft(flags: dict[str, bool]) -> None:
    """The final tries again and the operator learns of it; the draft does not insist."""
    _, effects = play(FRESH, show(0, "a"), Granted(), Rejected(call=0, **flags), show(1, "ab"))
    assert effects == []


def test_a_message_that_somebody_deleted_is_sent_again_once() -> None:
    """A second time it is left to the final (P6)."""
    draft, effects = play(ONE, show(1, "ab"), Granted(), Rejected(call=1, gone=True), Granted())
    assert effects == [send(2, "ab", key="t:1")]
    draft, _ = play(draft, Sent(call=2, message="again"), show(2, "abc"), Granted())
    draft, effects = play(draft, Rejected(call=3, gone=True))
    assert effects == []
    assert play(draft, show(3, "abcd"), Closed())[1] == [Ended(messages=())]


def test_an_earlier_message_that_is_gone_is_not_sent_below_the_later_ones() -> None:
    """Order is worth more than completeness while the answer is written."""
    draft, effects = play(TWO, show(2, "x", "b"), Granted(), Rejected(call=2, gone=True))
    assert effects == []
    assert play(draft, show(3, "x", "bc"))[1] == [Ask(message="m1")]
    assert play(draft, show(3, "x"), Granted(), Done(call=3), Closed())[1] == [Ended(messages=())]


def test_messages_of_a_former_life_are_replaced_by_the_new_text() -> None:
    """A resumed turn goes on in its messages (K4)."""
    draft, effects = play(opened("t", 1, TRAITS, ("m0", "m1")), show(0, "new"), Granted())
    assert effects == [edit(0, "new", key="t:0")]
    assert play(draft, Done(call=0), Granted())[1] == [Delete(call=1, part=1, message="m1")]


def test_closing_waits_for_the_call_under_way_and_for_no_other() -> None:
    """Its message is among those that the final takes over (P6)."""
    draft, effects = play(FRESH, show(0, "a"), Granted(), show(1, "ab"), Closed())
    assert effects == []
    assert play(draft, Sent(call=0, message="m0"))[1] == [Ended(messages=("m0",))]


def test_closing_takes_back_what_was_asked() -> None:
    """A closed draft uses up nobody's budget; late grants and frames do nothing."""
    draft, effects = play(ONE, show(1, "ab"), Closed())
    assert effects == [Withdraw(), Ended(messages=("m0",))]
    for late in (Granted(), show(2, "abc"), Closed(), Done(call=0)):
        assert play(draft, late)[1] == []


def test_text_that_returns_to_what_stands_needs_no_call() -> None:
    """What was asked is taken back."""
    assert play(ONE, show(1, "ab"), show(2, "a"))[1] == [Withdraw()]


def test_an_outcome_that_does_not_fit_its_call_is_a_fault_of_the_caller() -> None:
    """The machine does not guess."""
    draft, _ = play(FRESH, show(0, "a"), Granted())
    with pytest.raises(ValueError, match="can't end as"):
        step(draft, Done(call=0))


# --- any order of events, against the pacing and a platform --------------------------------------

LIMITS = pacing.Limits(chat=Budget(per_s=2, burst=2), account=Budget(), edit_interval_s=1.0)
TEXTS = st.lists(st.sampled_from(["a", "b", "full"]), max_size=3).map(tuple)
SECONDS = st.sampled_from([0.0, 0.4, 1.0, 5.0])
Step = Callable[[Draft, Event], tuple[Draft, tuple[Effect, ...]]]
Paced = Callable[[pacing.Pacing, pacing.Event], tuple[pacing.Pacing, tuple[pacing.Effect, ...]]]


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
                    request = pacing.Request(
                        id="d", chat="c", rank=pacing.Rank.DRAFT, message=effect.message
                    )
                    self.feed_pacing(pacing.Wanted(request=request, at=self.at))
                case Withdraw():
                    self.asked = None
                    self.feed_pacing(pacing.Withdrawn(id="d", at=self.at))
                case Ended():
                    assert self.ended is None, "a draft ends once"
                    self.ended = effect
                case Send() | Edit() | Delete():
                    self.call(effect)
        self.check_rest()

    def feed_pacing(self, event: pacing.Event) -> None:
        self.paced, effects = type(self).pace(self.paced, event)
        for effect in effects:
            if isinstance(effect, pacing.Grant):
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
        self.feed_pacing(pacing.Ticked(at=self.at))

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
        self.feed_pacing(pacing.Answered(chat="c", at=self.at, message=message))
        self.feed(outcome)

    @precondition(lambda self: cast("World", self).flight is not None)
    @rule(retry_after_s=SECONDS)
    def fail(self, retry_after_s: float) -> None:
        call = self.landed()
        if not isinstance(call, Send):
            self.refused[call.message] = self.at
        self.feed_pacing(pacing.Refused(chat="c", at=self.at, retry_after_s=retry_after_s))
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


TestDraft = World.TestCase

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
        "ready = max(ready, last + max(state.limits.edit_interval_s, lane.gap_s))",
        "ready = max(ready, last)",
        id="no interval",
    ),
]


def find_the_fault(mutated: type[World]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            mutated,
            settings=settings(
                max_examples=500, derandomize=True, database=None, phases=[Phase.generate]
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
