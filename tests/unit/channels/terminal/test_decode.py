"""What a client writes becomes an event, or a sentence about what is wrong with it."""

import pytest

from channels._local.decode import Unreadable
from channels.terminal.decode import Event, Hello, line
from zeroclaw import (
    Address,
    ApprovalId,
    Envelope,
    MessageRef,
    Pressed,
    Said,
    Sender,
)

HERE = Address(channel="terminal", account="local", chat="operator", direct=True)
ME = Sender(id="operator", verified=True, display="operator")
KEY = "0123456789abcdef"


def test_a_message_keeps_its_text_and_its_id() -> None:
    """The client's id is the dedup key, so that a line that is written again counts once."""
    assert line("terminal", {"type": "say", "id": KEY, "text": " hi\nyou "}) == Event(
        id=KEY,
        envelope=Envelope(
            address=HERE,
            sender=ME,
            dedup=(f"say/{KEY}",),
            body=Said(text=" hi\nyou "),
            message=KEY,
        ),
    )


def test_an_answer_names_the_card_that_was_pressed() -> None:
    """A card whose send was never recorded becomes known by being pressed."""
    pressed = {"type": "press", "id": KEY, "approval": "a1", "choice": "deny", "reason": " no "}
    found = line("terminal", {**pressed, "card": "c1"})
    assert found == Event(
        id=KEY,
        envelope=Envelope(
            address=HERE,
            sender=ME,
            dedup=(f"press/{KEY}",),
            body=Pressed(
                approval=ApprovalId("a1"),
                choice="deny",
                reason="no",
                card=MessageRef(address=HERE, message="c1"),
            ),
        ),
    )
    bare = line("terminal", pressed)
    assert isinstance(bare, Event)
    assert isinstance(bare.envelope.body, Pressed)
    assert bare.envelope.body.card is None


def test_a_hello_names_a_cursor() -> None:
    assert line("terminal", {"type": "hello"}) == Hello(after="")
    assert line("terminal", {"type": "hello", "after": "c"}) == Hello(after="c")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, Unreadable(id="", why="type: must be hello, say or press")),
        ({"type": "sing", "id": 3}, Unreadable(id="", why="type: must be hello, say or press")),
        (
            {"type": "hello", "after": 3},
            Unreadable(id="", why="after: input should be a valid string"),
        ),
        (
            {"type": "say", "id": KEY, "text": " \n"},
            Unreadable(id=KEY, why="the message is empty"),
        ),
        (
            {"type": "say", "id": KEY, "text": "x", "more": 1},
            Unreadable(id=KEY, why="more: extra inputs are not permitted"),
        ),
        (
            {"type": "press", "id": KEY, "approval": "", "choice": "once"},
            Unreadable(id=KEY, why="approval: string should have at least 1 character"),
        ),
    ],
)
def test_a_line_that_is_no_event_is_told_why(
    written: dict[str, object], expected: Unreadable
) -> None:
    """P10."""
    assert line("terminal", written) == expected
