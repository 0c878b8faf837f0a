"""What a client writes becomes an event, or a sentence about what is wrong with it."""

from collections.abc import Mapping

import pytest

from channels._local.decode import RefusedPost, envelope
from channels.terminal.decode import Hello, line
from zeroclaw import Address, ApprovalId, Envelope, MessageRef, Pressed, Said, Sender

HERE = Address(channel="terminal", account="local", chat="operator", direct=True)
ME = Sender(id="operator", verified=True, display="operator")
KEY = "0123456789abcdef"


def event(written: Mapping[str, object]) -> Envelope | RefusedPost:
    found = line(written)
    assert not isinstance(found, Hello)
    kind = str(written.get("type"))
    return found if isinstance(found, RefusedPost) else envelope("terminal", kind, found)


def test_a_message_keeps_its_text_and_its_id() -> None:
    """The client's id is the dedup key, so that a line that is written again counts once."""
    assert event({"type": "say", "id": KEY, "text": " hi\nyou "}) == Envelope(
        address=HERE, sender=ME, dedup=(f"say/{KEY}",), body=Said(text=" hi\nyou "), message=KEY
    )


def test_an_answer_names_the_card_that_was_pressed() -> None:
    """A card whose send was never recorded becomes known by being pressed."""
    pressed = {"type": "press", "id": KEY, "approval": "a1", "choice": "deny", "reason": " no "}
    found = event({**pressed, "card": "c1"})
    assert found == Envelope(
        address=HERE,
        sender=ME,
        dedup=(f"press/{KEY}",),
        body=Pressed(
            approval=ApprovalId("a1"),
            choice="deny",
            reason="no",
            card=MessageRef(address=HERE, message="c1"),
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
def test_a_line_that_is_no_event_is_told_why(
    written: dict[str, object], expected: RefusedPost
) -> None:
    """P10."""
    assert event(written) == expected
