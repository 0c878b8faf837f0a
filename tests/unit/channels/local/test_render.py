"""What stands in a local chat, and what a snapshot of it already has."""

from datetime import timedelta

import pytest

from channels._local.decode import Received, Refused
from channels._local.render import (
    Event,
    Gone,
    Typing,
    bot,
    id_of,
    is_news,
    person,
    slot,
    standing,
    told,
)
from tests.fakes.manual_clock import EPOCH
from zeroclaw import ApprovalId, Card, CardCall, Ending, Outcome, Outgoing, Rendered, TranscriptItem
from zeroclaw.value import replace

CALL = CardCall(
    approval=ApprovalId("a"),
    number=3,
    tool="shell",
    summary="runs",
    arguments="command: ls",
    why="policy",
    hash8="00112233",
)
CARD = Card(key="c", asked_by="me", calls=(CALL,), deadline_at=EPOCH + timedelta(minutes=1))
OPEN = Outcome(card=CARD, endings=())
ENDED = Outcome(
    card=CARD, endings=(Ending(approval=CALL.approval, how="denied", by="me", at=EPOCH),)
)

FINAL = TranscriptItem(kind="bot", key="m", ref="m", text="hello there", at=EPOCH)
DRAFT = replace(FINAL, draft=True)
ASKED = TranscriptItem(kind="card", key="c", ref="c", text="", at=EPOCH, outcome=OPEN)
MINE = person("p", "hi", EPOCH)


def test_a_message_whose_draft_is_still_open_stands_once_as_it_ended() -> None:
    """The final text is stored before its draft is closed."""
    ended = TranscriptItem(cursor="1", kind="bot", key="k", ref="m", text="hello there", at=EPOCH)
    draft = replace(ended, text="hello", draft=True)
    assert standing([ended, draft]) == {"m": ended}
    assert standing([draft, ended]) == {"m": ended}


@pytest.mark.parametrize(
    ("known", "event", "news"),
    [
        (FINAL, FINAL, False),
        (FINAL, replace(FINAL, text="changed"), True),
        (FINAL, replace(DRAFT, text="hello"), False),
        (FINAL, replace(FINAL, ref="other"), True),
        (FINAL, Gone(id="m"), True),
        (FINAL, Typing(), True),
        (DRAFT, FINAL, True),
        (DRAFT, replace(DRAFT, text="hello"), False),
        (DRAFT, DRAFT, False),
        (DRAFT, replace(DRAFT, text="hello there you"), True),
        (ASKED, ASKED, False),
        (ASKED, replace(ASKED, outcome=ENDED), True),
        (replace(ASKED, outcome=ENDED), ASKED, False),
        (replace(ASKED, outcome=ENDED), replace(ASKED, outcome=ENDED), False),
        (MINE, replace(MINE, at=EPOCH + timedelta(seconds=1)), False),
    ],
)
def test_only_what_a_snapshot_lacks_is_news(
    known: TranscriptItem, event: Event, *, news: bool
) -> None:
    assert is_news(event, {id_of(known): known}) is news


def test_the_plain_form_is_shown_when_it_is_asked_for() -> None:
    outgoing = Outgoing(rendered=Rendered(body="*a*", plain="a"), key="m", plain=True)
    assert bot("m", outgoing, EPOCH).text == "a"


def test_what_is_stored_has_the_ids_of_live_events() -> None:
    """So that a client that saw a message knows it in the snapshot of its next connection."""
    bare = TranscriptItem(cursor="c", kind="person", key="", ref="", text="hi", at=EPOCH)
    mine = TranscriptItem(cursor="c", kind="person", key="", ref="m1", text="hi", at=EPOCH)
    sent = TranscriptItem(cursor="c", kind="bot", key="k1", ref="k1", text="hi", at=EPOCH)
    unsent = TranscriptItem(cursor="c", kind="note", key="k1", ref="", text="hi", at=EPOCH)
    lone = TranscriptItem(cursor="c", kind="note", key="", ref="", text="hi", at=EPOCH)
    assert [id_of(item) for item in (bare, mine, sent, unsent, lone)] == [
        "person/c",
        id_of(person("m1", "hi", EPOCH)),
        "k1",
        "k1",
        "c",
    ]


def test_a_note_of_the_daemon_reads_as_the_bots() -> None:
    assert told(replace(FINAL, kind="note")) == told(FINAL)


def test_a_newer_event_takes_the_place_of_one_about_the_same() -> None:
    assert slot(FINAL) == slot(Gone(id="m"))
    assert slot(Received(id="k1")) == slot(Refused(id="k1", why=""))
    assert len({slot(FINAL), slot(Received(id="k1")), slot(Typing())}) == 3
