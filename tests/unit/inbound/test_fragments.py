"""Which event is the rest of which message."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conversation.test_message_text import item
from zeroclaw.conversation.inbox import Fragment, PersonMessage
from zeroclaw.envelope import (
    Address,
    Attachment,
    Command,
    Continues,
    Deleted,
    Envelope,
    ItemId,
    Said,
    Sender,
)
from zeroclaw.inbound.fragments import (
    CUT_WITHIN,
    MAX_CHARS,
    MAX_FRAGMENTS,
    SENT_WITHIN,
    PartialMessage,
    as_rest,
    extend,
    is_next,
)
from zeroclaw.value import replace

AT = datetime(2026, 11, 22, tzinfo=UTC)
MORE = Continues(within_s=1.5, room=3)
FILE = Attachment(reference="f", name="f", media_type="image/jpeg")
TEXT = PartialMessage(
    id=ItemId("1"), place="p", sender="ada", group="", last=ItemId("1"), until=10.0, sent_at=AT
)
ALBUM = replace(TEXT, group="g")
NEXT = Envelope(
    address=Address(channel="chat", account="a", chat="1"),
    sender=Sender(id="ada", verified=True),
    dedup=("2",),
    body=Said(text="more"),
    sent_at=AT + timedelta(seconds=1),
)

CUT = replace(NEXT, body=Command(name="pair", rest="1234"), verbatim="/pair 1234")


def run_after(number: int, ask: PersonMessage, piece: Fragment) -> PartialMessage | None:
    """A run after so many pieces that all go on."""
    run = extend(None, item("1", ask), ask, piece, now=0.0)
    for index in range(2, number + 1):
        assert run is not None
        run = extend(run, item(str(index), ask), ask, piece, now=float(index))
    return run


@pytest.mark.parametrize(
    ("run", "envelope", "now", "is_rest"),
    [
        (TEXT, NEXT, 9.9, True),
        (TEXT, NEXT, 10.0, False),
        (TEXT, replace(NEXT, continues=MORE), 9.0, True),
        (TEXT, replace(NEXT, body=Command(name="help")), 9.0, False),
        (TEXT, CUT, 9.0, True),
        (TEXT, replace(CUT, alone=True), 9.0, False),
        (TEXT, replace(CUT, sent_at=None), 9.0, False),
        (replace(TEXT, sent_at=None), CUT, 9.0, False),
        (TEXT, replace(CUT, sent_at=AT + CUT_WITHIN * 2), 9.0, False),
        (TEXT, replace(CUT, body=Command(name="stop"), verbatim="/stop"), 9.0, False),
        (TEXT, replace(NEXT, body=Deleted(message="2")), 9.0, False),
        (TEXT, replace(NEXT, alone=True), 9.0, False),
        (TEXT, replace(NEXT, attachments=(FILE,)), 9.0, False),
        (TEXT, replace(NEXT, body=Said(text="more", quoted=(FILE,))), 9.0, True),
        (TEXT, replace(NEXT, continues=Continues(within_s=1, group="g")), 9.0, False),
        (TEXT, replace(NEXT, sent_at=AT + SENT_WITHIN * 2), 9.0, False),
        (TEXT, replace(NEXT, sent_at=AT - SENT_WITHIN * 2), 9.0, False),
        (TEXT, replace(NEXT, sent_at=None), 9.0, True),
        (replace(TEXT, sent_at=None), NEXT, 9.0, True),
        (replace(TEXT, chars=MAX_CHARS), NEXT, 9.0, False),
        (ALBUM, NEXT, 9.0, False),
        (ALBUM, replace(NEXT, continues=Continues(within_s=1, group="h")), 9.0, False),
        (
            ALBUM,
            replace(NEXT, attachments=(FILE,), continues=Continues(within_s=1, group="g")),
            9.0,
            True,
        ),
    ],
)
def test_what_joins(run: PartialMessage, envelope: Envelope, now: float, *, is_rest: bool) -> None:
    """Only what the same person sends at once, and what it can be the rest of."""
    assert is_next(run, envelope, now=now) is is_rest


@pytest.mark.parametrize(
    ("envelope", "rest"),
    [
        (NEXT, Said(text="more")),
        (CUT, Said(text="/pair 1234")),
        (replace(CUT, verbatim="> x\n\n/pair"), Said(text="> x\n\n/pair", own="")),
        (replace(CUT, verbatim=""), None),
    ],
)
def test_the_rest_of_a_text_may_read_like_a_command(envelope: Envelope, rest: Said | None) -> None:
    """After a quotation it is not the writer's own."""
    assert as_rest(envelope) == rest


def test_a_whole_message_opens_nothing() -> None:
    ask = PersonMessage(text="x")
    assert extend(None, item("1", ask), ask, Fragment(run=ItemId("1")), now=0.0) is None


def test_a_run_counts_what_it_holds() -> None:
    """So that what is too much is another message."""
    piece = Fragment(run=ItemId("1"), more_s=1.5, room=3)
    ask = PersonMessage(text="xx", attachments=(FILE,))
    two = run_after(2, ask, piece)
    assert two is not None
    assert (two.id, two.last, two.fragments, two.chars, len(two.files)) == ("1", "2", 2, 4, 2)
    assert two.until == 3.5
    last = replace(piece, more_s=0.0)
    assert extend(two, item("3", ask), ask, last, now=3.0) is None


@given(st.integers(min_value=1, max_value=2 * MAX_FRAGMENTS))
def test_a_run_has_an_end(number: int) -> None:
    """However many come, it holds no more than so many."""
    piece, ask = Fragment(run=ItemId("1"), more_s=1.0), PersonMessage(text="x")
    run = extend(None, item("1", ask), ask, piece, now=0.0)
    held = 1
    for index in range(2, number + 1):
        if run is None:
            break
        held += 1
        run = extend(run, item(str(index), ask), ask, piece, now=0.0)
    assert held == min(number, MAX_FRAGMENTS)
