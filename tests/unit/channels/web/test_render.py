"""Chat items as the page gets them, and which of them a snapshot already has."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from channels._local.render import Event, Gone, Typing, adds_to, event_data, file
from channels.web import render
from channels.web.render import frame
from tests.fakes.manual_clock import EPOCH
from tests.unit.channels.local.test_local import CALL, CARD, CARD_ITEM, DRAFT, FINAL, MINE
from zeroclaw import CardWords, Ending, Outcome, OutgoingFile, SentFile, TranscriptItem
from zeroclaw.sse import SseState, feed
from zeroclaw.value import replace

ENDED = Outcome(
    card=CARD, endings=(Ending(approval=CALL.approval, how="denied", by="me", at=EPOCH),)
)


@given(st.text())
def test_rendering_keeps_every_text_as_it_is(text: str) -> None:
    assert render.markdown(text).body == text


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
                "cursor": "",
                "kind": "bot",
                "text": "hello there",
                "at": "2026-01-01T12:00:00+00:00",
                "draft": True,
            },
        ),
        (
            replace(CARD_ITEM, outcome=ENDED),
            "item",
            {
                "id": "c",
                "cursor": "",
                "kind": "card",
                "text": "",
                "at": "2026-01-01T12:00:00+00:00",
                "draft": False,
                "card": {
                    "language": "en",
                    "words": CardWords("en").by_name(0),
                    "asked_by": "me",
                    "deadline_at": "2026-01-01T12:15:00+00:00",
                    "choices": ["once", "for_a_time", "deny"],
                    "calls": [
                        {
                            "approval": "approval-1",
                            "number": 1,
                            "tool": "shell",
                            "summary": "summary 1",
                            "arguments": "command: echo 1",
                            "why": "the policy asks",
                            "scope": "",
                            "hash8": "00000001",
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
    _, (event_read,) = feed(SseState(), frame(event))
    assert (event_read.name, json.loads(event_read.data)) == (name, data)


def test_any_text_is_sent_in_its_own_bytes_on_one_line() -> None:
    """A draft is sent anew at each step, and escapes would triple most of the world's scripts."""
    text = "зло\r\n\u2028\x85" * 100
    sent = frame(replace(MINE, text=text))
    _, (event_read,) = feed(SseState(), sent)
    assert json.loads(event_read.data)["text"] == text
    assert len(sent) < len(text.encode()) + 500


def test_no_text_on_a_card_is_hidden_or_reversed() -> None:
    """A person approves what they read: invisible characters are shown as numbers (P5)."""
    sly = "a\u202eb\x1b\u200b"
    call = replace(CALL, tool=sly, summary=sly, arguments=sly, why=sly)
    ending = Ending(approval=CALL.approval, how="denied", by=sly, at=EPOCH, reason=sly)
    card = replace(CARD, asked_by=sly, calls=(call,))
    item = replace(CARD_ITEM, outcome=Outcome(card=card, endings=(ending,)))
    _, (event_read,) = feed(SseState(), frame(item))
    assert not {"\u202e", "\x1b", "\u200b"} & set(str(json.loads(event_read.data)))
    assert event_read.data.count("\u27e8U+202E\u27e9") == 7


def test_every_character_of_a_files_name_is_shown() -> None:
    """A file of the bot or of a person, who may not have named it: `fdp.exe` used to read as
    `exe.pdf`."""
    sent = SentFile(name="a\u202efdp.exe", size_bytes=1)
    _, (event_read,) = feed(SseState(), frame(replace(MINE, files=(sent.name,), sent=sent)))
    item = json.loads(event_read.data)
    assert [*item["files"], item["sent"]["name"]] == 2 * ["a\u27e8U+202E\u27e9fdp.exe"]


@example("\\\ud800")
@given(st.text(st.characters()))
def test_no_text_breaks_the_stream(text: str) -> None:
    """Line ends, lone surrogates and what looks like a field stay inside their event."""
    _, events = feed(SseState(), frame(replace(FINAL, text=text)))
    assert [json.loads(event.data)["text"] for event in events] == [text]


def test_a_snapshot_has_all_items_and_an_error_its_reason() -> None:
    _, events = feed(
        SseState(), render.snapshot_frame("title", [MINE, CARD_ITEM]) + render.trouble_frame("why")
    )
    assert [event.name for event in events] == ["snapshot", "trouble"]
    snapshot = json.loads(events[0].data)
    assert [item["id"] for item in snapshot["items"]] == ["person/p", "c"]
    assert snapshot["items"][1]["card"]["calls"][0]["ending"] is None
    assert json.loads(events[1].data) == {"why": "why"}


def test_a_file_of_the_bot_is_its_name_and_size_live_and_stored() -> None:
    """Its bytes are fetched when a person saves it."""
    out = OutgoingFile(
        name="a.csv", media_type="text/csv", content=b"milk", key="k", caption="here"
    )
    live = file("k", out, EPOCH)
    stored = TranscriptItem(
        cursor="k",
        kind="bot",
        key="k",
        ref="",
        text="here",
        at=EPOCH,
        sent=SentFile(name="a.csv", size_bytes=4),
    )
    assert event_data(replace(stored, cursor="", at=live.at)) == event_data(live)
    assert not adds_to(live, {"k": stored})
    _, [event] = feed(SseState(), frame(live))
    assert json.loads(event.data)["sent"] == {"name": "a.csv", "size": 4}
