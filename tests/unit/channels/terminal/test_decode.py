"""A client's line becomes an event, or an error that says what is wrong with it."""

from collections.abc import Mapping

import pytest

from channels._local.decode import RefusedPost, envelope
from channels.terminal.decode import Hello, line
from zeroclaw import Address, ApprovalId, Envelope, MessageRef, Pressed, Said, Sender

ADDRESS = Address(channel="terminal", account="local", chat="operator", direct=True)
ME = Sender(id="operator", verified=True, display="operator")
KEY = "0123456789abcdef"


def event(written: Mapping[str, object]) -> Envelope | RefusedPost:
    decoded = line(written)
    assert not isinstance(decoded, Hello)
    kind = str(written.get("type"))
    return decoded if isinstance(decoded, RefusedPost) else envelope("terminal", kind, decoded)


def test_a_message_keeps_its_text_and_its_id() -> None:
    """The client's id is the dedup key, so a repeated line counts once."""
    assert event({"type": "say", "id": KEY, "text": " hi\nyou "}) == Envelope(
        address=ADDRESS, sender=ME, dedup=(f"say/{KEY}",), body=Said(text=" hi\nyou "), message=KEY
    )


def test_an_answer_names_the_card_that_was_pressed() -> None:
    """A press also reveals a card whose send was never recorded."""
    pressed = {"type": "press", "id": KEY, "approval": "a1", "choice": "deny", "reason": " no "}
    pressed_event = event({**pressed, "card": "c1"})
    assert pressed_event == Envelope(
        address=ADDRESS,
        sender=ME,
        dedup=(f"press/{KEY}",),
        body=Pressed(
            approval=ApprovalId("a1"),
            choice="deny",
            reason="no",
            card=MessageRef(address=ADDRESS, message="c1"),
        ),
    )
    bare = event(pressed)
    assert isinstance(bare, Envelope)
    assert isinstance(bare.body, Pressed)
    assert bare.body.card is None


def test_a_hello_names_a_cursor() -> None:
    assert line({"type": "hello"}) == Hello(after="")
    assert line({"type": "hello", "after": "c"}) == Hello(after="c")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, RefusedPost(id="", reason="type: must be hello, say or press")),
        ({"type": "sing", "id": 3}, RefusedPost(id="", reason="type: must be hello, say or press")),
        (
            {"type": "hello", "after": 3},
            RefusedPost(id="", reason="after: input should be a valid string"),
        ),
        (
            {"type": "say", "id": KEY, "text": " \n"},
            RefusedPost(id=KEY, reason="the message is empty"),
        ),
        (
            {"type": "say", "id": KEY, "text": "x", "more": 1},
            RefusedPost(id=KEY, reason="more: extra inputs are not permitted"),
        ),
        (
            {"type": "press", "id": KEY, "approval": "", "choice": "once"},
            RefusedPost(id=KEY, reason="approval: string should have at least 1 character"),
        ),
    ],
)
def test_an_invalid_line_gets_a_reason(written: dict[str, object], expected: RefusedPost) -> None:
    """P10."""
    assert event(written) == expected
