"""What the chats of this machine share: actions, items, and live events."""

import asyncio
from datetime import timedelta

import pytest

from channels._local import decode
from channels._local.decode import Received, RefusedPost
from channels._local.feed import MAX_READERS, MAX_WAITING, Feed
from channels._local.render import (
    Event,
    Gone,
    Typing,
    adds_to,
    bot,
    by_id,
    event_data,
    id_of,
    person,
    slot,
)
from tests.contract.channel_words import CARD as TWO_CALLS
from tests.contract.channel_words import call
from tests.fakes.manual_clock import EPOCH
from zeroclaw import Command, Ending, Envelope, Outcome, Outgoing, Rendered, Said, TranscriptItem
from zeroclaw.value import replace

CALL = call(1)
CARD = replace(TWO_CALLS, key="c", asked_by="me", calls=(CALL,))
OPEN = Outcome(card=CARD, endings=())
ENDED = Outcome(
    card=CARD, endings=(Ending(approval=CALL.approval, how="denied", by="me", at=EPOCH),)
)
FINAL = TranscriptItem(kind="bot", key="m", ref="m", text="hello there", at=EPOCH)
DRAFT = replace(FINAL, draft=True)
CARD_ITEM = TranscriptItem(kind="card", key="c", ref="c", text="", at=EPOCH, outcome=OPEN)
MINE = person("p", "hi", EPOCH)


def test_a_message_with_an_open_draft_is_listed_once_in_its_final_form() -> None:
    """The final text is stored before its draft is closed."""
    final = TranscriptItem(cursor="1", kind="bot", key="k", ref="m", text="hello there", at=EPOCH)
    draft = replace(final, text="hello", draft=True)
    assert by_id([final, draft]) == {"m": final}
    assert by_id([draft, final]) == {"m": final}


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
        (CARD_ITEM, CARD_ITEM, False),
        (CARD_ITEM, replace(CARD_ITEM, outcome=ENDED), True),
        (replace(CARD_ITEM, outcome=ENDED), CARD_ITEM, False),
        (replace(CARD_ITEM, outcome=ENDED), replace(CARD_ITEM, outcome=ENDED), False),
        (MINE, replace(MINE, at=EPOCH + timedelta(seconds=1)), False),
    ],
)
def test_only_items_missing_from_the_snapshot_are_new(
    known: TranscriptItem, event: Event, *, news: bool
) -> None:
    assert adds_to(event, {id_of(known): known}) is news


def test_the_plain_form_is_shown_when_it_is_asked_for() -> None:
    outgoing = Outgoing(rendered=Rendered(body="*a*", plain="a"), key="m", plain=True)
    assert bot("m", outgoing, EPOCH).text == "a"


def test_stored_items_have_the_ids_of_live_events() -> None:
    """So a client recognises a message in the snapshot of its next connection."""
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
    assert event_data(replace(FINAL, kind="note")) == event_data(FINAL)


def test_a_newer_event_replaces_one_about_the_same_item() -> None:
    assert slot(FINAL) == slot(Gone(id="m"))
    assert slot(Received(id="k1")) == slot(RefusedPost(id="k1", reason=""))
    assert len({slot(FINAL), slot(Received(id="k1")), slot(Typing())}) == 3


# --- live events reach every open page ------------------------------------------------------------


def item(name: str, text: str = "x") -> TranscriptItem:
    return TranscriptItem(kind="bot", key=name, ref=name, text=text, at=EPOCH)


async def test_every_page_gets_every_event_in_order() -> None:
    feed = Feed()
    with feed.subscribe() as first, feed.subscribe() as second:
        feed.publish(item("a"))
        feed.publish(Gone(id="b"))
        feed.publish(Typing())
        expected = (item("a"), Gone(id="b"), Typing())
        assert await first.take() == expected
        assert await second.take() == expected


async def test_a_page_that_does_not_read_is_cut_and_the_others_are_not() -> None:
    """It reconnects with a fresh snapshot; nothing waits for it (P9)."""
    feed = Feed()
    with feed.subscribe() as dead, feed.subscribe() as alive:
        for number in range(MAX_WAITING + 1):
            feed.publish(item(str(number)))
            assert await alive.take() == (item(str(number)),)
        assert await dead.take() is None


async def test_a_ping_wakes_a_page_for_nothing() -> None:
    feed = Feed()
    with feed.subscribe() as page:
        feed.ping()
        assert await page.take() == ()


async def test_a_closed_feed_ends_open_and_new_pages() -> None:
    feed = Feed()
    with feed.subscribe() as early:
        feed.close()
        feed.close()
        assert await early.take() is None
        feed.publish(item("a"))
        assert not feed.has_room()
    with feed.subscribe() as late:
        assert await late.take() is None


async def test_the_number_of_pages_is_bounded() -> None:
    feed = Feed()
    pages = [feed.subscribe() for _ in range(MAX_READERS)]
    for page in pages:
        page.__enter__()
    assert not feed.has_room()
    pages[0].__exit__(None, None, None)
    assert feed.has_room()


async def test_a_cancelled_wait_loses_no_event() -> None:
    feed = Feed()
    with feed.subscribe() as page:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(page.take())
            await asyncio.sleep(0)
            waiting.cancel()
        feed.publish(item("a"))
        assert await page.take() == (item("a"),)


# --- what a person does at a local chat -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("/stop", Command(name="stop")),
        ("  /Stop  ", Command(name="stop")),
        ("/deny 2 because  of that", Command(name="deny", rest="2 because  of that")),
        ('/tool shell {"a":\n "/b"}', Command(name="tool", rest='shell {"a":\n "/b"}')),
        ("/tool\nshell {}", Command(name="tool", rest="shell {}")),
        ("hello", Said(text="hello")),
        ("see /stop", Said(text="see /stop")),
        ("/usr/bin/env", Said(text="/usr/bin/env")),
        ("/ stop", Said(text="/ stop")),
        (" /Deny 1  because no\n", Command(name="deny", rest="1  because no")),
        ("/", Said(text="/")),
        ("//comment", Said(text="//comment")),
    ],
)
def test_a_slash_and_a_word_is_a_command(text: str, read: Said | Command) -> None:
    event = decode.envelope("web", "web", decode.Message(id="12345678", text=text))
    assert isinstance(event, Envelope)
    assert event.body == read
