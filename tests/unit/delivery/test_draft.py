"""A draft shows the newest text, in one message after another, and never gets in its own way."""

import pytest

from tests.unit.delivery.draft_world import ABOVE, done, failed, lost, refused, sent
from zeroclaw.channel import Capabilities
from zeroclaw.delivery.draft import (
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
    is_previewed,
    opened,
    step,
)
from zeroclaw.value import replace

TRAITS = Capabilities(max_length=100, can_edit=True, can_delete=True)
FRESH = opened("t", TRAITS)


def show(*parts: str) -> Showed:
    return Showed(parts=parts)


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
        call=call, part=part, message=f"m{part}", key=key or f"t:{part}", text=text, plain=plain
    )


ONE = play(FRESH, show("a"), Granted(), sent(0, "m0"))[0]
TWO = play(ONE, show("a", "b"), Granted(), sent(1, "m1"))[0]


def test_the_first_text_is_asked_for_and_sent_at_once() -> None:
    """Leading edge (S2-06)."""
    draft, effects = play(FRESH, show("a"))
    assert effects == [RequestSlot(message="")]
    assert play(draft, Granted())[1] == [send(0, "a")]


def test_later_texts_edit_the_same_message_with_the_newest_only() -> None:
    """Trailing edge: what came between is never shown (S2-06)."""
    draft, effects = play(ONE, show("ab"))
    assert effects == [RequestSlot(message="m0")]
    assert play(draft, show("abc"))[1] == []
    assert play(draft, show("abc"), Granted())[1] == [edit(1, "abc")]


def test_the_last_text_is_left_to_the_final() -> None:
    """Which follows at once: an answer that comes whole is one call, and no draft (S2-06, P6)."""
    last = replace(show("ab"), is_last=True)
    assert play(FRESH, last, Closed())[1] == [DraftEnded(messages=())]
    assert play(ONE, last, Closed())[1] == [DraftEnded(messages=("m0",))]
    assert play(ONE, replace(last, parts=("a full", "rest")))[1] == []
    assert play(FRESH, show("a"), last)[1] == [Withdraw()]
    assert play(FRESH, show("a"), Granted(), last, sent(0, "m0"))[1] == []


def test_the_last_text_before_a_tool_is_shown() -> None:
    """People read it while they wait, and what follows the tool as well (K4)."""
    draft, effects = play(ONE, replace(show("ab"), is_last=True), Demanded())
    assert effects == [RequestSlot(message="m0")]
    draft, effects = play(draft, Granted(), done(1), show("abc"))
    assert effects == [RequestSlot(message="m0")]


def test_while_one_call_is_under_way_there_is_no_other() -> None:
    """Text that arrives meanwhile waits for the outcome (P6)."""
    draft, effects = play(FRESH, show("a"), Granted(), show("ab"))
    assert effects == []
    assert play(draft, Granted())[1] == []
    assert play(draft, sent(0, "m0"))[1] == [RequestSlot(message="m0")]


def test_a_blank_text_shows_nothing_new() -> None:
    """Most texts begin with less than a person can see (P6)."""
    assert play(ONE, show())[1] == []


def test_a_blank_text_that_a_person_reads_takes_the_messages_away() -> None:
    """What goes on below a card may not replace a text above it (P6)."""
    last = replace(show(), is_last=True)
    draft, effects = play(opened("t", TRAITS, ("m0",)), last, Demanded(soon=True), Granted())
    assert effects == [Delete(call=0, part=0, message="m0")]
    assert play(draft, done(0), show("a"), Granted())[1] == [send(1, "a", key="t:1")]


def test_what_a_person_reads_before_they_answer_is_asked_for_sooner() -> None:
    """As a message of its own or in the one that stands, until the turn goes on (P6)."""
    card = Demanded(soon=True)
    draft, effects = play(FRESH, show("a"), Demanded())
    assert effects == []
    draft, effects = play(draft, card)
    assert effects == [RequestSlot(message="", soon=True)]
    draft, _ = play(draft, Granted(), sent(0, "m0"), show("ab"))
    assert draft.requested == RequestSlot(message="m0")
    draft, effects = play(draft, card)
    assert effects == [RequestSlot(message="m0", soon=True)]
    assert play(draft, show("abc"))[1] == [RequestSlot(message="m0")]


def test_one_draft_lasts_across_tool_calls() -> None:
    """The text after a tool call goes on in the same message (K4)."""
    draft, _ = play(ONE, show("a\n\nb"), Granted(), done(1))
    assert [(part.message, part.text) for part in draft.parts] == [("m0", "a\n\nb")]


def test_a_full_part_is_finished_and_the_text_goes_on_in_the_next() -> None:
    """The earlier part stays as it is from then on (S2-20)."""
    draft, effects = play(ONE, show("a full", "rest"), Granted())
    assert effects == [edit(1, "a full")]
    draft, effects = play(draft, done(1))
    assert effects == [RequestSlot(message="")]
    draft, effects = play(draft, Granted())
    assert effects == [send(2, "rest", key="t:1")]
    draft, effects = play(draft, sent(2, "m1"), show("a full", "rest grows"), Granted())
    assert effects == [edit(3, "rest grows", part=1)]


def test_a_shorter_text_takes_its_last_messages_away() -> None:
    """A re-asked answer replaces what was shown, the last message first (P6)."""
    three, _ = play(TWO, show("a", "b", "c"), Granted(), sent(2, "m2"))
    draft, effects = play(three, show("x"), Granted())
    assert effects == [edit(3, "x")]
    draft, effects = play(draft, done(3), Granted())
    assert effects == [Delete(call=4, part=2, message="m2")]
    draft, effects = play(draft, done(4), Granted(), done(5))
    assert [part.message for part in draft.parts] == ["m0"]
    draft, effects = play(draft, show("x", "again"), Granted())
    assert effects == [send(6, "again", key="t:3")]


def test_where_nothing_can_be_deleted_a_message_says_that_it_is_over() -> None:
    """Also when the platform only refuses to delete this one (P6)."""
    lasting = replace(TWO, traits=replace(TRAITS, can_delete=False))
    state, _ = play(TWO, show("x"), Granted(), done(2), Granted(), refused(3))
    for before in (play(lasting, show("x"), Granted(), done(2))[0], state):
        draft, effects = play(before, Granted())
        assert effects == [edit(draft.calls - 1, ABOVE, part=1)]
        assert play(draft, done(draft.calls - 1))[1] == []


def test_a_message_already_deleted_needs_no_deleting() -> None:
    """It was to be gone."""
    draft, effects = play(TWO, show("a"), Granted(), refused(2, gone=True))
    assert effects == []
    assert [part.message for part in draft.parts] == ["m0"]


def test_a_channel_that_carries_one_message_shows_the_first_part() -> None:
    """The rest comes with the final (S2-20)."""
    single = replace(FRESH, traits=replace(TRAITS, multi_message=False))
    draft, _ = play(single, show("a", "b"), Granted())
    assert play(draft, sent(0, "m0"))[1] == []


def test_a_channel_that_can_not_edit_shows_nothing_before_the_final() -> None:
    """It flushes once, at the end (S2-20)."""
    flushing = replace(FRESH, traits=replace(TRAITS, can_edit=False))
    assert play(flushing, show("a"))[1] == []
    assert play(flushing, Closed())[1] == [DraftEnded(messages=())]


def test_what_failed_is_asked_for_again() -> None:
    """With the text of then, not of now (P6)."""
    draft, effects = play(ONE, show("ab"), Granted(), show("abc"), failed(1))
    assert effects == [RequestSlot(message="m0")]
    assert play(draft, Granted())[1] == [edit(2, "abc")]


def test_an_edit_of_unknown_outcome_is_repeated() -> None:
    """The whole text again does no harm."""
    draft, effects = play(ONE, show("ab"), Granted(), lost(1))
    assert effects == [RequestSlot(message="m0")]
    assert draft.parts[0].text is None


def test_a_deletion_of_unknown_outcome_is_repeated() -> None:
    """Deleting twice does no harm."""
    _, effects = play(TWO, show("a"), Granted(), lost(2))
    assert effects == [RequestSlot(message="m1")]


def test_a_send_of_unknown_outcome_is_repeated_only_under_its_key() -> None:
    """Where the platform knows the key; elsewhere the draft falls silent and says so (P1)."""
    keyed = replace(FRESH, traits=replace(TRAITS, idempotent_send=True))
    draft, effects = play(keyed, show("a"), Granted(), lost(0), Granted())
    assert effects == [send(1, "a")]
    # It may have been the first attempt that arrived, with the text of then.
    assert play(draft, sent(1, "m0"))[1] == [RequestSlot(message="m0")]
    draft, effects = play(FRESH, show("a"), Granted(), lost(0), show("ab"))
    assert (effects, draft.uncertain) == ([], True)


def test_refused_markup_is_repeated_as_plain_text() -> None:
    """And stays plain for the rest of the draft (P6)."""
    draft, effects = play(ONE, show("*a"), Granted(), refused(1, markup=True), Granted())
    assert effects == [edit(2, "*a", plain=True)]
    assert play(draft, refused(2, markup=True), show("*a*"))[1] == []


@pytest.mark.parametrize("flags", [{}, {"gone": True}])
def test_a_refused_send_silences_the_draft(flags: dict[str, bool]) -> None:
    """The final tries again and the operator learns of it; the draft does not insist."""
    _, effects = play(FRESH, show("a"), Granted(), refused(0, **flags), show("ab"))
    assert effects == []


def test_a_message_that_a_person_deleted_is_sent_again_once() -> None:
    """A second time it is left to the final (P6)."""
    draft, effects = play(ONE, show("ab"), Granted(), refused(1, gone=True), Granted())
    assert effects == [send(2, "ab", key="t:1")]
    draft, _ = play(draft, sent(2, "again"), show("abc"), Granted())
    draft, effects = play(draft, refused(3, gone=True))
    assert effects == []
    assert play(draft, show("abcd"), Closed())[1] == [DraftEnded(messages=())]


def test_an_earlier_message_that_is_gone_is_not_sent_below_the_later_ones() -> None:
    """Order is worth more than completeness while the answer is written."""
    draft, effects = play(TWO, show("x", "b"), Granted(), refused(2, gone=True))
    assert effects == []
    assert play(draft, show("x", "bc"))[1] == [RequestSlot(message="m1")]
    assert play(draft, show("x"), Granted(), done(3), Closed())[1] == [DraftEnded(messages=())]


def test_messages_of_a_former_life_are_replaced_by_the_new_text() -> None:
    """A resumed turn goes on in its messages (K4)."""
    draft, effects = play(opened("t", TRAITS, ("m0", "m1")), show("new"), Granted())
    assert effects == [edit(0, "new", key="t:0")]
    assert play(draft, done(0), Granted())[1] == [Delete(call=1, part=1, message="m1")]


def test_closing_waits_for_the_call_under_way_and_for_no_other() -> None:
    """Its message is among those that the final takes over (P6)."""
    draft, effects = play(FRESH, show("a"), Granted(), show("ab"), Closed())
    assert effects == []
    assert play(draft, sent(0, "m0"))[1] == [DraftEnded(messages=("m0",))]


def test_closing_withdraws_the_request() -> None:
    """A closed draft uses up no budget; late grants and frames do nothing."""
    draft, effects = play(ONE, show("ab"), Closed())
    assert effects == [Withdraw(), DraftEnded(messages=("m0",))]
    for late in (Granted(), show("abc"), Closed(), done(0)):
        assert play(draft, late)[1] == []


def test_text_that_returns_to_what_stands_needs_no_call() -> None:
    """The request is withdrawn."""
    assert play(ONE, show("ab"), show("a"))[1] == [Withdraw()]


def test_an_outcome_that_does_not_fit_its_call_is_a_fault_of_the_caller() -> None:
    """The machine does not guess."""
    draft, _ = play(FRESH, show("a"), Granted())
    with pytest.raises(ValueError, match="can't make"):
        step(draft, done(0))


# --- previews: where a platform shows unsent text, a draft is no message before it must be --------

NATIVE = Capabilities(max_length=100, can_edit=True, can_delete=True, native_draft=True)
UNSEEN = opened("t", NATIVE)


def preview(call: int, text: str, *, key: str = "t:0", plain: bool = False) -> Preview:
    return Preview(call=call, key=key, text=text, plain=plain)


SEEN = play(UNSEEN, show("a"), Granted(), done(0))[0]


def test_a_growing_text_is_previewed_and_leaves_no_message() -> None:
    """The newest text only; the final is sent in its place (S2-06, P6)."""
    draft, effects = play(UNSEEN, show("a"))
    assert effects == [RequestSlot(message="t:0")]
    draft, effects = play(draft, Granted())
    assert effects == [preview(0, "a")]
    draft, effects = play(draft, show("ab"), show("abc"), done(0), Granted())
    assert effects == [preview(1, "abc")]
    assert play(draft, done(1))[1] == []
    assert play(draft, done(1), Closed())[1] == [DraftEnded(messages=())]


def test_the_last_text_is_not_previewed() -> None:
    """The final follows, and would have to wait for that (S2-06, P6)."""
    last = replace(show("ab"), is_last=True)
    assert play(UNSEEN, last)[1] == []
    assert play(SEEN, last)[1] == []
    assert play(SEEN, show("aa"), last)[1] == [Withdraw()]


def test_the_last_text_before_a_tool_becomes_a_message() -> None:
    """People read it while they are waited for; what follows the tool is previewed again (K4)."""
    draft, effects = play(UNSEEN, replace(show("a"), is_last=True), Demanded())
    assert effects == [RequestSlot(message="", soon=True)]
    draft, effects = play(draft, Granted(), sent(0, "m0"), show("a", "more"))
    assert effects == [RequestSlot(message="t:1")]


def test_the_same_text_is_not_previewed_twice() -> None:
    assert play(SEEN, show("a"))[1] == []
    assert play(SEEN, show("ab"), show("a"))[1] == [Withdraw()]


def test_a_full_part_becomes_a_message_and_the_next_is_previewed() -> None:
    """This ends the preview of the part before, without a wait (S2-20)."""
    draft, effects = play(SEEN, show("a full", "rest"))
    assert effects == [RequestSlot(message="")]
    draft, effects = play(draft, Granted())
    assert effects == [send(1, "a full")]
    draft, effects = play(draft, sent(1, "m0"))
    assert effects == [RequestSlot(message="t:1")]
    draft, effects = play(draft, Granted())
    assert effects == [preview(2, "rest", key="t:1")]
    assert play(draft, done(2), Closed())[1] == [DraftEnded(messages=("m0",))]


def test_a_demanded_part_becomes_a_message_and_goes_on_in_it() -> None:
    """Before a card or a tool is waited for; the text after it continues there (K4)."""
    draft, effects = play(SEEN, Demanded())
    assert effects == [RequestSlot(message="", soon=True)]
    assert is_previewed(draft)
    draft, effects = play(draft, Granted())
    assert effects == [send(1, "a")]
    draft, effects = play(draft, sent(1, "m0"))
    assert (effects, is_previewed(draft)) == ([], False)
    draft, effects = play(draft, show("a\n\nb"), Granted())
    assert effects == [Edit(call=2, part=0, message="m0", key="t:0", text="a\n\nb", plain=False)]
    draft, effects = play(draft, done(2), show("a full", "more"), Granted())
    draft, effects = play(draft, done(3), Granted())
    assert effects == [preview(4, "more", key="t:1")]
    assert play(draft, done(4), Demanded())[1] == [RequestSlot(message="", soon=True)]


def test_a_demanded_part_waits_for_the_preview_under_way() -> None:
    """Never two calls at once (P6)."""
    draft, effects = play(UNSEEN, show("a"), Granted(), Demanded())
    assert effects == []
    assert play(draft, done(0))[1] == [RequestSlot(message="", soon=True)]


def test_a_pending_request_is_made_again_for_sooner() -> None:
    """A full part, when a person begins to wait for all of them."""
    draft, effects = play(SEEN, show("a full", "rest"))
    assert effects == [RequestSlot(message="")]
    assert play(draft, Demanded())[1] == [RequestSlot(message="", soon=True)]


def test_where_nothing_was_shown_nothing_is_demanded() -> None:
    """The text after the tools is previewed like any other."""
    draft, effects = play(UNSEEN, Demanded())
    assert (effects, is_previewed(draft)) == ([], False)
    assert play(draft, show("a"))[1] == [RequestSlot(message="t:0")]


@pytest.mark.parametrize("outcome", [failed(1), lost(1)])
def test_a_preview_that_did_not_come_through_is_made_again_with_the_newest(outcome: Landed) -> None:
    """It stands nowhere, so nothing is uncertain (P1)."""
    draft, effects = play(SEEN, show("ab"), Granted(), show("abc"), outcome)
    assert (effects, draft.uncertain) == ([RequestSlot(message="t:0")], False)
    assert play(draft, Granted())[1] == [preview(2, "abc")]


def test_a_lost_preview_is_made_again_though_its_text_is_the_one_of_before() -> None:
    """Nobody knows which of the two is seen."""
    draft, _ = play(SEEN, show("ab"), Granted(), show("a"))
    assert play(draft, lost(1))[1] == [RequestSlot(message="t:0")]


def test_a_lost_send_may_have_taken_the_preview_away() -> None:
    """The text has shrunk to what was previewed before, and it may no longer be seen."""
    resends = replace(SEEN, traits=replace(NATIVE, idempotent_send=True))
    draft, _ = play(resends, show("a", "b"), Granted(), lost(1))
    assert play(draft, show("a"), Granted())[1] == [preview(2, "a")]


def test_a_preview_that_has_faded_is_shown_again() -> None:
    """Platforms take it away after a while of silence (P6)."""
    assert play(SEEN, Faded(), Granted())[1] == [preview(1, "a")]


@pytest.mark.parametrize("gone", [False, True])
def test_a_refused_preview_makes_the_draft_go_on_in_messages(gone: bool) -> None:
    """For good: it is not requested again in this draft."""
    draft, effects = play(SEEN, show("ab"), Granted(), refused(1, gone=gone))
    assert effects == [RequestSlot(message="")]
    draft, effects = play(draft, Granted(), sent(2, "m0"), show("abc"))
    assert effects == [RequestSlot(message="m0")]


def test_refused_markup_is_previewed_as_plain_text() -> None:
    """And refused once more, it is no fault of the markup."""
    draft, effects = play(UNSEEN, show("*a"), Granted(), refused(0, markup=True), Granted())
    assert effects == [preview(1, "*a", plain=True)]
    draft, effects = play(draft, refused(1, markup=True), Granted())
    assert effects == [Send(call=2, key="t:0", text="*a", plain=True)]


def test_a_message_of_a_former_life_is_gone_on_with() -> None:
    """It is there, so it is edited; only what needs a new one is previewed (K4)."""
    draft, effects = play(opened("t", NATIVE, ("m0",)), show("new"), Granted())
    assert [type(effect) for effect in effects] == [Edit]
    draft, effects = play(draft, done(0), show("new", "more"))
    assert effects == [RequestSlot(message="t:1")]


def test_a_channel_that_carries_one_message_previews_the_first_part() -> None:
    """The rest comes with the final (S2-20)."""
    single = opened("t", replace(NATIVE, multi_message=False))
    draft, effects = play(single, show("a", "b"), Granted())
    assert effects == [preview(0, "a")]
    assert play(draft, done(0), Demanded(), Granted())[1] == [send(1, "a")]


def test_text_above_a_card_is_shown_before_what_stands_there_is_ended() -> None:
    """A person reads all of it while they decide; the rest only saves time later (P6)."""
    draft, effects = play(TWO, show("a", "b", "c"), Demanded(soon=True), Granted())
    assert effects == [send(2, "c", key="t:2")]
    draft, effects = play(draft, sent(2, "m2"), Granted())
    assert effects == [edit(3, "a")]
