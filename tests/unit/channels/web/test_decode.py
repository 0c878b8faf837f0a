"""A page's posts become envelopes."""

import json

import pytest

from channels._local.decode import Press, RefusedPost, envelope, read
from channels.web import decode
from zeroclaw import Address, ApprovalId, Envelope, MessageRef, Pressed, Said, Sender

ADDRESS = Address(channel="web", account="local", chat="operator", direct=True)
ME = Sender(id="operator", verified=True, display="operator")
KEY = "0f8fad5b-d9cb-469f-a165-70867728950e"


def body(**fields: object) -> bytes:
    return json.dumps({"id": KEY, **fields}).encode()


def message(body: bytes) -> Envelope | RefusedPost:
    decoded = read(decode.Message, body)
    return decoded if isinstance(decoded, RefusedPost) else envelope("web", "message", decoded)


def answer(body: bytes) -> Envelope | RefusedPost:
    decoded = read(Press, body)
    return decoded if isinstance(decoded, RefusedPost) else envelope("web", "answer", decoded)


def test_a_message_is_from_the_operator_under_the_pages_own_id() -> None:
    assert message(body(text=" hello\n")) == Envelope(
        address=ADDRESS,
        sender=ME,
        dedup=(f"message/{KEY}",),
        body=Said(text=" hello\n"),
        message=KEY,
    )


def test_an_answer_names_approval_choice_reason_and_card() -> None:
    posted = body(approval="a", choice="deny", reason=" no ", card="c")
    assert answer(posted) == Envelope(
        address=ADDRESS,
        sender=ME,
        dedup=(f"answer/{KEY}",),
        body=Pressed(
            approval=ApprovalId("a"),
            choice="deny",
            reason="no",
            card=MessageRef(address=ADDRESS, message="c"),
        ),
    )


def test_an_answer_may_be_given_without_reason_and_card() -> None:
    pressed = answer(body(approval="a", choice="once"))
    assert isinstance(pressed, Envelope)
    assert pressed.body == Pressed(approval=ApprovalId("a"), choice="once")


@pytest.mark.parametrize(
    ("posted", "reason"),
    [
        (b"", "body: invalid json"),
        (b"[]", "body: input should be"),
        (b'{"id": "12345678", "text": "\\ud800"}', "body: invalid json"),
        (body(), "text: field required"),
        (body(text=1), "text: input should be a valid string"),
        (body(text="x", extra=1), "extra: extra inputs are not permitted"),
        (body(text=" \n "), "the message is empty"),
        (json.dumps({"id": "short", "text": "x"}).encode(), "id: string should match"),
        (json.dumps({"id": "../../..", "text": "x"}).encode(), "id: string should match"),
        (b"\xff", "body: invalid json"),
    ],
)
def test_an_invalid_message_is_refused_in_one_line(posted: bytes, reason: str) -> None:
    """The line names the field and its fault (P10)."""
    refused = message(posted)
    assert isinstance(refused, RefusedPost)
    assert refused.reason.startswith(reason)
    assert "\n" not in refused.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"approval": "", "choice": "once"},
        {"approval": "a", "choice": "maybe"},
        {"approval": "a", "choice": "deny", "reason": "x" * 2001},
        {"approval": "a"},
    ],
)
def test_an_invalid_answer_is_refused(fields: dict[str, object]) -> None:
    assert isinstance(answer(body(**fields)), RefusedPost)
