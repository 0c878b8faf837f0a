"""What stands in the chat, as the page is sent it, and what a snapshot already has."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.web import render
from channels.web.render import Event, Gone, Item, Typing, frame, is_news, stored
from tests.fakes.manual_clock import EPOCH
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CardWords,
    Ending,
    Outcome,
    Outgoing,
    OutgoingFile,
    SentFile,
    TranscriptItem,
)
from zeroclaw.sse import SseState, feed
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

FINAL = Item(id="m", kind="bot", text="hello there", at=EPOCH)
DRAFT = replace(FINAL, draft=True)
ASKED = Item(id="c", kind="card", text="", at=EPOCH, outcome=OPEN)
MINE = render.person("p", "hi", EPOCH)


@given(st.text())
def test_rendering_keeps_every_text_as_it_is(text: str) -> None:
    assert render.markdown(text).body == text


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        (TranscriptItem(cursor="1", kind="person", key="", ref="p", text="hi", at=EPOCH), MINE),
        (TranscriptItem(cursor="1", kind="person", key="p", ref="", text="hi", at=EPOCH), MINE),
        (
            TranscriptItem(cursor="1", kind="person", key="", ref="", text="hi", at=EPOCH),
            replace(MINE, id="person/1"),
        ),
        (
            TranscriptItem(cursor="1", kind="bot", key="m", ref="", text="hello there", at=EPOCH),
            FINAL,
        ),
        (
            TranscriptItem(cursor="1", kind="note", key="k", ref="m", text="hello there", at=EPOCH),
            FINAL,
        ),
        (
            TranscriptItem(
                cursor="1", kind="bot", key="m", ref="m", text="hello there", at=EPOCH, draft=True
            ),
            DRAFT,
        ),
        (
            TranscriptItem(
                cursor="1", kind="card", key="c", ref="", text="", at=EPOCH, outcome=OPEN
            ),
            ASKED,
        ),
    ],
)
def test_a_stored_item_has_the_id_of_its_live_events(kept: TranscriptItem, shown: Item) -> None:
    """Snapshot and live events name the same message alike, so that neither doubles the other."""
    assert stored(kept) == shown


def test_a_message_whose_draft_is_still_open_stands_once_as_it_ended() -> None:
    """The final text is stored before its draft is closed."""
    ended = TranscriptItem(cursor="1", kind="bot", key="k", ref="m", text="hello there", at=EPOCH)
    draft = replace(ended, text="hello", draft=True)
    assert render.standing([ended, draft]) == {"m": FINAL}
    assert render.standing([draft, ended]) == {"m": FINAL}


@pytest.mark.parametrize(
    ("known", "event", "news"),
    [
        (FINAL, FINAL, False),
        (FINAL, replace(FINAL, text="changed"), True),
        (FINAL, replace(DRAFT, text="hello"), False),
        (FINAL, replace(FINAL, id="other"), True),
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
def test_only_what_a_snapshot_lacks_is_news(known: Item, event: Event, *, news: bool) -> None:
    assert is_news(event, {known.id: known}) is news


def test_the_plain_form_is_shown_when_it_is_asked_for() -> None:
    outgoing = Outgoing(rendered=replace(render.markdown("*a*"), plain="a"), key="m", plain=True)
    assert render.bot("m", outgoing, EPOCH).text == "a"


@pytest.mark.parametrize(
    ("event", "name", "data"),
    [
        (Gone(id="m"), "gone", {"id": "m"}),
        (Typing(), "typing", {}),
        (
            DRAFT,
            "item",
            {
                "id": "m",
                "kind": "bot",
                "text": "hello there",
                "at": "2026-01-01T12:00:00+00:00",
                "draft": True,
            },
        ),
        (
            replace(ASKED, outcome=ENDED),
            "item",
            {
                "id": "c",
                "kind": "card",
                "text": "",
                "at": "2026-01-01T12:00:00+00:00",
                "draft": False,
                "card": {
                    "language": "en",
                    "words": CardWords("en").by_name(0),
                    "asked_by": "me",
                    "deadline_at": "2026-01-01T12:01:00+00:00",
                    "choices": ["once", "for_a_time", "deny"],
                    "calls": [
                        {
                            "approval": "a",
                            "number": 3,
                            "tool": "shell",
                            "summary": "runs",
                            "arguments": "command: ls",
                            "why": "policy",
                            "scope": "",
                            "hash8": "00112233",
                            "ending": {
                                "how": "denied",
                                "said": "denied by me",
                                "at": "2026-01-01T12:00:00+00:00",
                                "reason": "",
                            },
                        }
                    ],
                },
            },
        ),
    ],
)
def test_an_event_of_the_stream_holds_the_whole_item(
    event: Event, name: str, data: dict[str, object]
) -> None:
    _, (heard,) = feed(SseState(), frame(event, 7))
    assert (heard.name, json.loads(heard.data)) == (name, data)
    assert b"\nid: 7\n" in frame(event, 7)


def test_nothing_on_a_card_is_hidden_or_turned_round() -> None:
    """What is approved is what was read: signs that can't be seen stand as numbers (P5)."""
    sly = "a\u202eb\x1b\u200b"
    call = replace(CALL, tool=sly, summary=sly, arguments=sly, why=sly)
    ending = Ending(approval=CALL.approval, how="denied", by=sly, at=EPOCH, reason=sly)
    card = replace(CARD, asked_by=sly, calls=(call,))
    item = replace(ASKED, outcome=Outcome(card=card, endings=(ending,)))
    _, (heard,) = feed(SseState(), frame(item, 1))
    assert not {"\u202e", "\x1b", "\u200b"} & set(str(json.loads(heard.data)))
    assert heard.data.count(r"\u27e8U+202E\u27e9") == 7


@given(st.text(st.characters()))
def test_no_text_breaks_the_stream(text: str) -> None:
    """Line ends, lone surrogates and what looks like a field stay inside their event."""
    _, heard = feed(SseState(), frame(replace(FINAL, text=text), 1))
    assert [json.loads(event.data)["text"] for event in heard] == [text]


def test_a_snapshot_holds_all_that_stands_and_a_trouble_says_why() -> None:
    _, heard = feed(
        SseState(),
        render.snapshot_frame("title", [MINE, ASKED], 3) + render.trouble_frame("why"),
    )
    assert [event.name for event in heard] == ["snapshot", "trouble"]
    snapshot = json.loads(heard[0].data)
    assert [item["id"] for item in snapshot["items"]] == ["person/p", "c"]
    assert snapshot["items"][1]["card"]["calls"][0]["ending"] is None
    assert json.loads(heard[1].data) == {"why": "why"}


def test_a_file_of_the_bot_is_its_name_and_size_live_and_stored() -> None:
    """Its bytes are fetched by whoever saves it."""
    out = OutgoingFile(
        name="a.csv", media_type="text/csv", content=b"milk", key="k", caption="here"
    )
    live = render.file("k", out, EPOCH)
    kept = TranscriptItem(
        cursor="k",
        kind="bot",
        key="k",
        ref="",
        text="here",
        at=EPOCH,
        sent=SentFile(name="a.csv", size_bytes=4),
    )
    assert stored(kept) == live
    assert not is_news(live, {"k": live})
    _, [event] = feed(SseState(), frame(live, 1))
    assert json.loads(event.data)["sent"] == {"name": "a.csv", "size": 4}
