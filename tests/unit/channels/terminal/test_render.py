"""Chat items become lines that can't harm a terminal."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._local import CAPABILITIES
from channels._local.decode import Received, RefusedPost
from channels._local.render import Gone, Typing, bot, card
from channels.terminal.render import MAX_CHARS, line, markdown, visible
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CardWords,
    Ending,
    Outcome,
    Outgoing,
    Rendered,
    TranscriptItem,
)

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
LONGEST_LINE = 1024 * 1024


def call(number: int, arguments: str = "{}") -> CardCall:
    return CardCall(
        approval=ApprovalId(f"a{number}"),
        number=number,
        tool="shell",
        summary="run `ls`",
        arguments=arguments,
        why="it does more than read",
        hash8="0a1b2c3d",
    )


def outcome(*endings: Ending, calls: tuple[CardCall, ...] = (call(1),)) -> Outcome:
    deadline = NOW + timedelta(minutes=15)
    return Outcome(
        card=Card(key="c1", asked_by="ann", calls=calls, deadline_at=deadline), endings=endings
    )


ENDED = Ending(approval=ApprovalId("a1"), how="denied", by="ann", at=NOW, reason="no\x1b[2J")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# A *b*\n\n\t- `c`\n", "# A *b*\n\n\t- `c`\n"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("a\x7fb\x9b31m", "a␡b⟨U+009B⟩31m"),
        ("pay \u202egnp.exe", "pay ⟨U+202E⟩gnp.exe"),
        ("half \ud83d", "half ⟨U+D83D⟩"),
        ("grüße 😀", "grüße 😀"),
    ],
)
def test_control_characters_are_shown_escaped(text: str, shown: str) -> None:
    """A model or a tool can't move the cursor, hide a line or reverse text."""
    assert markdown(text) == Rendered(body=shown, plain=shown)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_escaping_twice_changes_nothing(text: str) -> None:
    once = visible(text)
    assert visible(once) == once
    assert all(sign.isprintable() or sign not in "\x1b\x9b\x08\r\x7f\u202e" for sign in once)


def test_a_message_is_whole_under_its_id() -> None:
    outgoing = Outgoing(rendered=Rendered(body="*hi*", plain="hi"), key="k1", draft=True)
    assert line(bot("k1", outgoing, NOW)) == {
        "type": "item",
        "id": "k1",
        "kind": "bot",
        "text": "*hi*",
        "at": "2026-01-01T12:00:00+00:00",
        "draft": True,
        "cursor": "",
    }
    plain = Outgoing(rendered=Rendered(body="*hi*", plain="hi"), key="k1", plain=True)
    assert bot("k1", plain, NOW).text == "hi"


def test_a_card_shows_the_whole_call_and_its_outcome() -> None:
    """The choices, the deadline, and the outcome (P5)."""
    shown = line(card("c1", outcome(ENDED, calls=(call(1), call(2))), NOW))["card"]
    assert shown == {
        "language": "en",
        "words": CardWords("en").by_name(1),
        "asked_by": "ann",
        "deadline_at": "2026-01-01T12:15:00+00:00",
        "choices": ["once", "for_a_time", "deny"],
        "calls": [
            {
                "approval": "a1",
                "number": 1,
                "tool": "shell",
                "summary": "run `ls`",
                "arguments": "{}",
                "why": "it does more than read",
                "scope": "",
                "hash8": "0a1b2c3d",
                "ending": {
                    "how": "denied",
                    "said": "denied by ann",
                    "at": "2026-01-01T12:00:00+00:00",
                    "reason": "no⟨U+001B⟩[2J",
                },
            },
            {
                "approval": "a2",
                "number": 2,
                "tool": "shell",
                "summary": "run `ls`",
                "arguments": "{}",
                "why": "it does more than read",
                "scope": "",
                "hash8": "0a1b2c3d",
                "ending": None,
            },
        ],
    }


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 3])
def test_the_longest_lines_fit_the_socket(calls: int) -> None:
    """The card says what is left out."""
    long = tuple(call(number, "\x9b" * 1_000_000) for number in range(calls))
    item = card("c1", outcome(calls=long), NOW)
    assert len(json.dumps(line(item))) < LONGEST_LINE
    assert "not all of 1000000 characters is shown" in str(line(item))
    stored = TranscriptItem(kind="bot", key="k1", ref="k1", text="\x9b" * MAX_CHARS, at=NOW)
    assert len(json.dumps(line(stored))) < LONGEST_LINE
    text = "\U0010ffff" * CAPABILITIES.max_length
    outgoing = Outgoing(rendered=markdown(text), key="k1")
    assert len(json.dumps(line(bot("k1", outgoing, NOW)))) < LONGEST_LINE
    assert CAPABILITIES.max_length < MAX_CHARS


def test_minor_events_are_short_lines() -> None:
    assert line(Gone(id="k1")) == {"type": "gone", "id": "k1"}
    assert line(Typing()) == {"type": "typing"}
    assert line(Received(id="i", toast="ok\x1b")) == {"type": "received", "id": "i", "toast": "ok␛"}
    assert line(RefusedPost(id="i", reason="no", again=True)) == {
        "type": "refused",
        "id": "i",
        "why": "no",
        "again": True,
    }
