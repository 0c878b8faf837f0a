"""Where a platform shows unsent text, a draft is no message before it must be one."""

import pytest

from tests.unit.delivery.draft_world import done, failed, lost, refused, sent
from zeroclaw.channel import Capabilities
from zeroclaw.delivery.draft import (
    Closed,
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
    is_previewed,
    opened,
    step,
)
from zeroclaw.value import replace

TRAITS = Capabilities(max_length=100, can_edit=True, can_delete=True, native_draft=True)
FRESH = opened("t", 1, TRAITS)


def show(number: int, *parts: str) -> Showed:
    return Showed(turn="t", fence=1, number=number, parts=parts)


def play(draft: Draft, *events: Event) -> tuple[Draft, list[Effect]]:
    """The draft after the events, and the effects of the last one."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        draft, effects = step(draft, event)
    return draft, list(effects)


def preview(call: int, text: str, *, key: str = "t:0", plain: bool = False) -> Preview:
    return Preview(call=call, key=key, text=text, plain=plain)


def send(call: int, text: str, *, key: str = "t:0") -> Send:
    return Send(call=call, key=key, text=text, plain=False)


SEEN = play(FRESH, show(0, "a"), Granted(), done(0))[0]


def test_a_growing_text_is_previewed_and_leaves_no_message() -> None:
    """The newest text only; the final is sent in its place (S2-06, P6)."""
    draft, effects = play(FRESH, show(0, "a"))
    assert effects == [RequestSlot(message="t:0")]
    draft, effects = play(draft, Granted())
    assert effects == [preview(0, "a")]
    draft, effects = play(draft, show(1, "ab"), show(2, "abc"), done(0), Granted())
    assert effects == [preview(1, "abc")]
    assert play(draft, done(1))[1] == []
    assert play(draft, done(1), Closed())[1] == [DraftEnded(messages=())]


def test_the_last_text_is_not_previewed() -> None:
    """The final follows, and would have to wait for that (S2-06, P6)."""
    last = replace(show(1, "ab"), is_last=True)
    assert play(FRESH, last)[1] == []
    assert play(SEEN, last)[1] == []
    assert play(SEEN, show(1, "aa"), replace(last, number=2))[1] == [Withdraw()]


def test_the_last_text_before_a_tool_becomes_a_message() -> None:
    """People read it while they are waited for; what follows the tool is previewed again (K4)."""
    draft, effects = play(FRESH, replace(show(0, "a"), is_last=True), Demanded())
    assert effects == [RequestSlot(message="", soon=True)]
    draft, effects = play(draft, Granted(), sent(0, "m0"), show(1, "a", "more"))
    assert effects == [RequestSlot(message="t:1")]


def test_the_same_text_is_not_previewed_twice() -> None:
    assert play(SEEN, show(1, "a"))[1] == []
    assert play(SEEN, show(1, "ab"), show(2, "a"))[1] == [Withdraw()]


def test_a_full_part_becomes_a_message_and_the_next_is_previewed() -> None:
    """Which ends the preview of the part before; nobody waits for it (S2-20)."""
    draft, effects = play(SEEN, show(1, "a full", "rest"))
    assert effects == [RequestSlot(message="")]
    draft, effects = play(draft, Granted())
    assert effects == [send(1, "a full")]
    draft, effects = play(draft, sent(1, "m0"))
    assert effects == [RequestSlot(message="t:1")]
    draft, effects = play(draft, Granted())
    assert effects == [preview(2, "rest", key="t:1")]
    assert play(draft, done(2), Closed())[1] == [DraftEnded(messages=("m0",))]


def test_what_is_demanded_becomes_a_message_and_goes_on_in_it() -> None:
    """Before a card or a tool is waited for; the text after it continues there (K4)."""
    draft, effects = play(SEEN, Demanded())
    assert effects == [RequestSlot(message="", soon=True)]
    assert is_previewed(draft)
    draft, effects = play(draft, Granted())
    assert effects == [send(1, "a")]
    draft, effects = play(draft, sent(1, "m0"))
    assert (effects, is_previewed(draft)) == ([], False)
    draft, effects = play(draft, show(1, "a\n\nb"), Granted())
    assert effects == [Edit(call=2, part=0, message="m0", key="t:0", text="a\n\nb", plain=False)]
    draft, effects = play(draft, done(2), show(2, "a full", "more"), Granted())
    draft, effects = play(draft, done(3), Granted())
    assert effects == [preview(4, "more", key="t:1")]
    assert play(draft, done(4), Demanded())[1] == [RequestSlot(message="", soon=True)]


def test_what_is_demanded_waits_for_the_preview_under_way() -> None:
    """Never two calls at once (P6)."""
    draft, effects = play(FRESH, show(0, "a"), Granted(), Demanded())
    assert effects == []
    assert play(draft, done(0))[1] == [RequestSlot(message="", soon=True)]


def test_what_is_asked_for_already_is_asked_for_sooner() -> None:
    """A full part, when somebody begins to wait for all of them."""
    draft, effects = play(SEEN, show(1, "a full", "rest"))
    assert effects == [RequestSlot(message="")]
    assert play(draft, Demanded())[1] == [RequestSlot(message="", soon=True)]


def test_where_nothing_was_shown_nothing_is_demanded() -> None:
    """The text after the tools is previewed like any other."""
    draft, effects = play(FRESH, Demanded())
    assert (effects, is_previewed(draft)) == ([], False)
    assert play(draft, show(0, "a"))[1] == [RequestSlot(message="t:0")]


@pytest.mark.parametrize("outcome", [failed(1), lost(1)])
def test_a_preview_that_did_not_come_through_is_made_again_with_the_newest(outcome: Landed) -> None:
    """It stands nowhere, so nothing is uncertain (P1)."""
    draft, effects = play(SEEN, show(1, "ab"), Granted(), show(2, "abc"), outcome)
    assert (effects, draft.uncertain) == ([RequestSlot(message="t:0")], False)
    assert play(draft, Granted())[1] == [preview(2, "abc")]


def test_a_lost_preview_is_made_again_though_its_text_is_the_one_of_before() -> None:
    """Nobody knows which of the two is seen."""
    draft, _ = play(SEEN, show(1, "ab"), Granted(), show(2, "a"))
    assert play(draft, lost(1))[1] == [RequestSlot(message="t:0")]


def test_a_lost_send_may_have_taken_the_preview_away() -> None:
    """The text has shrunk to what was previewed before, and nobody knows that it is still seen."""
    resends = replace(SEEN, traits=replace(TRAITS, idempotent_send=True))
    draft, _ = play(resends, show(1, "a", "b"), Granted(), lost(1))
    assert play(draft, show(2, "a"), Granted())[1] == [preview(2, "a")]


def test_a_preview_that_has_faded_is_shown_again() -> None:
    """Platforms take it away after a while of silence (P6)."""
    assert play(SEEN, Faded(), Granted())[1] == [preview(1, "a")]


@pytest.mark.parametrize("gone", [False, True])
def test_a_refused_preview_makes_the_draft_go_on_in_messages(gone: bool) -> None:
    """For good: it is not asked for again in this draft."""
    draft, effects = play(SEEN, show(1, "ab"), Granted(), refused(1, gone=gone))
    assert effects == [RequestSlot(message="")]
    draft, effects = play(draft, Granted(), sent(2, "m0"), show(2, "abc"))
    assert effects == [RequestSlot(message="m0")]


def test_refused_markup_is_previewed_as_plain_text() -> None:
    """And refused once more, it is no fault of the markup."""
    draft, effects = play(FRESH, show(0, "*a"), Granted(), refused(0, markup=True), Granted())
    assert effects == [preview(1, "*a", plain=True)]
    draft, effects = play(draft, refused(1, markup=True), Granted())
    assert effects == [Send(call=2, key="t:0", text="*a", plain=True)]


def test_a_message_of_a_former_life_is_gone_on_with() -> None:
    """It is there, so it is edited; only what needs a new one is previewed (K4)."""
    draft, effects = play(opened("t", 1, TRAITS, ("m0",)), show(0, "new"), Granted())
    assert [type(effect) for effect in effects] == [Edit]
    draft, effects = play(draft, done(0), show(1, "new", "more"))
    assert effects == [RequestSlot(message="t:1")]


def test_a_channel_that_carries_one_message_previews_the_first_part() -> None:
    """The rest comes with the final (S2-20)."""
    single = opened("t", 1, replace(TRAITS, multi_message=False))
    draft, effects = play(single, show(0, "a", "b"), Granted())
    assert effects == [preview(0, "a")]
    assert play(draft, done(0), Demanded(), Granted())[1] == [send(1, "a")]
