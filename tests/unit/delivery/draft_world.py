"""One draft, its pacing and a platform that does as it likes, with all that they promise."""

import pickle
from collections.abc import Callable
from typing import ClassVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.unit.delivery.pacing_play import limited
from zeroclaw.channel import Budget, Capabilities
from zeroclaw.delivery import pacing
from zeroclaw.delivery.draft import (
    Call,
    Closed,
    Delete,
    Demanded,
    Draft,
    DraftEnded,
    Edit,
    Effect,
    Event,
    Faded,
    Granted,
    Landed,
    Preview,
    RequestSlot,
    Send,
    Showed,
    Withdraw,
    opened,
    step,
)
from zeroclaw.delivery.outcomes import Delivered, Rejected, Unknown, Unreachable
from zeroclaw.envelope import Address, MessageRef
from zeroclaw.text import catalogue

LIMITS = limited(chat=Budget(per_s=4, burst=6), edit_interval_s=1.0)
TEXTS = st.lists(st.sampled_from(["a", "b", "full"]), max_size=3).map(tuple)
SECONDS = st.sampled_from([0.0, 0.4, 1.0, 5.0])
HERE = Address(channel="chat", account="a", chat="c", direct=True)
ABOVE = catalogue.CONTINUED_ABOVE.en
Step = Callable[[Draft, Event], tuple[Draft, tuple[Effect, ...]]]
Paced = Callable[[pacing.Pacing, pacing.Event], tuple[pacing.Pacing, tuple[pacing.Effect, ...]]]


def sent(call: int, message: str) -> Landed:
    """A send has arrived as this message."""
    return Landed(call=call, outcome=Delivered(value=MessageRef(address=HERE, message=message)))


def done(call: int) -> Landed:
    """An edit, a deletion or a preview was carried out."""
    return Landed(call=call, outcome=Delivered(value=None))


def failed(call: int) -> Landed:
    """Nothing has arrived."""
    return Landed(call=call, outcome=Unreachable(reason="away"))


def refused(call: int, *, gone: bool = False, markup: bool = False) -> Landed:
    """The platform refused it for good."""
    return Landed(call=call, outcome=Rejected(reason="no", gone=gone, markup=markup))


def lost(call: int) -> Landed:
    """It may have arrived."""
    return Landed(call=call, outcome=Unknown(reason="no answer"))


class World(RuleBasedStateMachine):
    """One draft and its pacing, back to back, on a platform that does as it likes."""

    step: ClassVar[Step] = staticmethod(step)
    pace: ClassVar[Paced] = staticmethod(pacing.step)

    @initialize(
        traits=st.builds(
            Capabilities,
            max_length=st.just(100),
            can_edit=st.sampled_from([True, True, True, False]),
            can_delete=st.booleans(),
            multi_message=st.sampled_from([True, True, False]),
            idempotent_send=st.sampled_from([True, True, True, False]),
            native_draft=st.booleans(),
        ),
        left=st.integers(0, 2),
    )
    def open(self, traits: Capabilities, left: int) -> None:
        self.at = 100.0
        self.traits = traits
        self.paced = pacing.fresh(LIMITS, 0)
        # What people see, by message; deleted ones are not here.
        self.chat: dict[str, str] = {f"left{number}": "?" for number in range(left)}
        self.by_key: dict[str, str] = {}
        self.draft = opened("t", traits, tuple(self.chat))
        # What is seen and not sent; whether that is known; whether such calls may be made.
        self.preview: str | None = None
        self.preview_lost = False
        self.previews = traits.native_draft
        self.demanded = 0
        self.is_last = False
        self.requested: str | None = None
        self.newest_text: tuple[str, ...] | None = None
        self.in_flight: Call | None = None
        self.calls: list[tuple[float, Call]] = []
        self.refused: dict[str, float] = {}
        self.closed = False
        self.is_read_now = False
        self.ended: DraftEnded | None = None
        self.made = 0
        self.resent = 0

    def feed(self, event: Event) -> None:
        if isinstance(event, Landed):
            self.let_go()
        again = pickle.loads(pickle.dumps(self.draft))
        self.draft, effects = type(self).step(self.draft, event)
        assert (self.draft, effects) == type(self).step(again, event), "storable between steps"
        for effect in effects:
            match effect:
                case RequestSlot():
                    self.requested = effect.message
                    request = pacing.Request(
                        id="d", chat="c", rank=pacing.Rank.DRAFT, message=effect.message
                    )
                    is_waited_for = self.is_read_now or self.waited_for()
                    assert not effect.soon or is_waited_for, "only what is waited for is soon"
                    self.feed_pacing(pacing.Requested(request=request, at=self.at))
                case Withdraw():
                    self.requested = None
                    self.feed_pacing(pacing.Withdrawn(id="d", at=self.at))
                case DraftEnded():
                    assert self.ended is None, "a draft ends once"
                    self.ended = effect
                case Send() | Edit() | Delete() | Preview():
                    self.call(effect)
        self.check_rest()

    def feed_pacing(self, event: pacing.Event) -> None:
        self.paced, effects = type(self).pace(self.paced, event)
        for effect in effects:
            if isinstance(effect, pacing.Grant):
                self.feed(Granted())
                if self.in_flight is None:
                    self.let_go()

    def let_go(self) -> None:
        """The chat is free for the next call."""
        self.feed_pacing(pacing.CallEnded(chat="c", at=self.at))

    def call(self, call: Call) -> None:
        assert self.in_flight is None, "never two calls at once"
        assert self.requested == about(call), "as requested"
        self.requested = None
        assert not self.closed, "no call after the end"
        assert not self.is_last, "what the final says is not shown before it"
        assert self.traits.can_edit, "a channel that can't edit gets nothing before the final"
        if isinstance(call, Send):
            assert call.text in self.texts, "always the newest text"
            self.check_send()
        elif isinstance(call, Preview):
            assert (call.text,) == self.shown()[-1:], "always the newest text"
            assert self.previews, "nothing is previewed where it can't be"
            assert not self.waited_for(), "what is waited for is sent"
            assert self.preview != call.text or self.preview_lost, "no idle preview"
        elif isinstance(call, Edit):
            assert call.text in {*self.texts[call.part : call.part + 1], ABOVE}, "newest"
            is_idle = self.chat.get(call.message) == call.text and not self.ends(call)
            assert not is_idle or self.unsure(call), "no idle edit"
        if not isinstance(call, Send):
            edited_at = [at for at, earlier in self.calls if about(earlier) == about(call)]
            interval = LIMITS.min_edit_interval_s * (2 if about(call) in self.refused else 1)
            assert not edited_at or self.at - edited_at[-1] >= interval - 1e-3, (
                "the interval is kept"
            )
        self.in_flight = call
        self.calls.append((self.at, call))

    def unsure(self, call: Edit) -> bool:
        """Whether the answer to an earlier edit of the message was lost."""
        return self.draft.parts[call.part].text is None

    def ends(self, call: Edit) -> bool:
        """Whether a message above a card is still shown as one that grows."""
        goes_on_below = self.is_read_now and self.traits.multi_message
        return goes_on_below and not self.draft.parts[call.part].is_ended

    @property
    def texts(self) -> tuple[str, ...]:
        return self.newest_text or ()

    def shown(self) -> tuple[str, ...]:
        return self.texts if self.traits.multi_message else self.texts[:1]

    def waited_for(self) -> bool:
        """Whether the next part was demanded, and is no message."""
        return len(self.draft.parts) < min(self.demanded, len(self.shown()))

    def check_send(self) -> None:
        is_last = len(self.draft.parts) == len(self.shown()) - 1
        assert not is_last or not self.previews or self.waited_for(), "what grows is previewed"

    def check_rest(self) -> None:
        """The newest text stands, or is on its way, unless the platform refused."""
        draft = self.draft
        is_over = self.closed or draft.muted or self.is_last
        if is_over or not self.traits.can_edit or self.newest_text is None:
            return
        expected = self.shown()
        parts = [self.chat.get(part.message or "") for part in draft.parts]
        if self.previews and len(parts) == len(expected) - 1 and not self.waited_for():
            parts.append(self.preview)
        deleted = any(part.message is None for part in draft.parts)
        rest = {ABOVE} if len(parts) > len(expected) else set[str]()
        is_shown = tuple(parts[: len(expected)]) == expected and set(parts[len(expected) :]) <= rest
        if self.is_read_now and self.traits.multi_message:
            is_shown = is_shown and all(part.is_ended for part in draft.parts[: len(expected)])
        waiting = any(request.rank is pacing.Rank.DRAFT for request in self.paced.waiting.values())
        under_way = self.in_flight is not None or waiting
        assert is_shown or under_way or deleted or self.deleted_unnoticed(), (
            "the newest text is on its way"
        )

    def deleted_unnoticed(self) -> bool:
        """A person deleted a message, and no call has reported it yet."""
        return any(part.message not in self.chat for part in self.draft.parts if part.message)

    @rule(parts=TEXTS, is_last=st.sampled_from([False, False, False, True]))
    def show(self, parts: tuple[str, ...], *, is_last: bool = False) -> None:
        if not self.closed:
            takes_away = is_last and self.traits.can_delete
            self.newest_text = parts if parts or takes_away else self.newest_text
            self.is_last = is_last
            self.is_read_now = False
        before = self.draft
        self.feed(Showed(parts=parts, is_last=is_last))
        assert not self.closed or self.draft == before, "texts after the end change nothing"

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.at += seconds
        self.feed_pacing(pacing.Ticked(at=self.at))

    @rule(soon=st.booleans())
    def a_person_waits(self, *, soon: bool) -> None:
        if not self.closed:
            self.demanded = len(self.texts)
            self.is_last = False
        self.is_read_now = soon
        self.feed(Demanded(soon=soon))

    @rule()
    def the_preview_fades(self) -> None:
        self.preview = None
        self.feed(Faded())

    # Rare, like a refusal for good, because little can happen after it.
    @precondition(lambda self: cast("World", self).draft.calls % 4 == 3)
    @rule()
    def close(self) -> None:
        self.closed = True
        self.feed(Closed())
        assert self.ended is not None or self.in_flight is not None, "waits for its call only"

    @precondition(lambda self: bool(cast("World", self).chat))
    @rule(index=st.integers(0, 3))
    def a_person_deletes(self, index: int) -> None:
        del self.chat[list(self.chat)[index % len(self.chat)]]

    def landed(self) -> Call:
        assert self.in_flight is not None
        call, self.in_flight = self.in_flight, None
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
                    self.preview = None
                self.by_key[call.key] = message
                self.preview_lost = False
                return sent(call.call, message)
            case Edit():
                if call.message not in self.chat:
                    return refused(call.call, gone=True)
                self.chat[call.message] = call.text
                return done(call.call)
            case Delete():
                self.chat.pop(call.message, None)
                return done(call.call)
            case Preview():
                self.preview, self.preview_lost = call.text, False
                return done(call.call)

    @precondition(lambda self: cast("World", self).in_flight is not None)
    @rule()
    def succeed(self) -> None:
        call = self.landed()
        outcome = self.carry_out(call)
        message = self.by_key[call.key] if isinstance(call, Send) else getattr(call, "message", "")
        self.refused.clear()
        self.feed_pacing(pacing.CallAnswered(chat="c", at=self.at, message=message))
        self.feed(outcome)

    @precondition(lambda self: cast("World", self).in_flight is not None)
    @rule(retry_after_s=SECONDS)
    def fail(self, retry_after_s: float) -> None:
        call = self.landed()
        if not isinstance(call, Send) and not retry_after_s:
            # A wait that is named teaches no interval, because the chat's budget is known.
            self.refused[about(call)] = self.at
        self.feed_pacing(pacing.CallRefused(chat="c", at=self.at, retry_after_s=retry_after_s))
        self.feed(failed(call.call))

    @precondition(lambda self: cast("World", self).in_flight is not None)
    @rule(arrives=st.booleans())
    def lose_the_answer(self, arrives: bool) -> None:
        call = self.landed()
        if arrives:
            self.carry_out(call)
        self.preview_lost = self.preview_lost or isinstance(call, Preview | Send)
        self.feed(lost(call.call))

    @precondition(lambda self: cast("World", self).in_flight is not None)
    @rule(markup=st.sampled_from([True, True, True, False]))
    def refuse(self, markup: bool) -> None:
        call = self.landed()
        if isinstance(call, Preview) and not (markup and not call.plain):
            self.previews = False
        self.feed(refused(call.call, markup=markup))

    @precondition(lambda self: cast("World", self).in_flight is not None)
    @rule(parts=TEXTS)
    def succeed_and_show_more(self, parts: tuple[str, ...]) -> None:
        self.succeed()
        self.show(parts)

    @rule(parts=TEXTS, arrives=st.booleans())
    def show_more_and_lose_the_answer(self, parts: tuple[str, ...], arrives: bool) -> None:
        self.show(parts)
        self.wait(5.0)
        if self.in_flight is not None:
            self.lose_the_answer(arrives)

    @rule()
    def everything_comes_to_rest(self) -> None:
        """With a platform that behaves, the chat shows the newest text after so many calls."""
        for _ in range(40):
            if self.in_flight is not None:
                self.succeed()
            self.wait(30.0)
        assert self.in_flight is None, "comes to rest"
        if self.closed:
            assert self.ended is not None, "a closed draft ends"
            known = tuple(part.message for part in self.draft.parts if part.message is not None)
            assert self.ended.messages == known, "the final gets every message"


def about(call: Call) -> str:
    """What a call is paced by."""
    match call:
        case Send():
            return ""
        case Preview():
            return call.key
        case Edit() | Delete():
            return call.message
