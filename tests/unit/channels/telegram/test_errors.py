"""Each failed response becomes an error that says who acts next."""

import pytest

from channels._remote.fields import Json
from channels.telegram.errors import (
    MAX_CHARS,
    Migrated,
    NoChange,
    NoMessage,
    NoMethod,
    NotOurs,
    OtherMessageKind,
    TokenRefused,
    refused,
)
from zeroclaw import (
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    RateLimited,
    ZeroclawError,
)


def answer(status: int, description: object = None, **parameters: object) -> ZeroclawError:
    """Return the error for a Bot API server's refusal."""
    body: Json = {"ok": False, "description": description, "parameters": parameters}
    return refused("t", status, body)


@pytest.mark.parametrize(
    ("status", "description", "kind", "message"),
    [
        (400, "Bad Request: chat not found", ChannelRejected, "chat not found"),
        (403, "Forbidden: bot was blocked", ChannelRejected, "forbidden: bot was blocked"),
        (413, "Request Entity Too Large", ChannelRejected, "request entity too large"),
        (400, "Bad Request: message is not modified: x", NoChange, "message is not modified: x"),
        (400, "Bad Request: message to delete not found", NoChange, "message to delete not found"),
        (400, "Bad Request: message to edit not found", NoMessage, "message to edit not found"),
        (400, "Bad Request: MESSAGE_ID_INVALID", NoMessage, "message_id_invalid"),
        (400, "Bad Request: message can't be edited", NotOurs, "message can't be edited"),
        (
            400,
            "Bad Request: there is no text in the message to edit",
            OtherMessageKind,
            "there is no text in the message to edit",
        ),
        (401, "Unauthorized", TokenRefused, "unauthorized"),
        (404, "Not Found", NoMethod, "the server does not know the method, or the token"),
        (500, "Internal Server Error", DeliveryUnknown, "Telegram failed (internal server error)"),
        (502, None, DeliveryUnknown, "Telegram failed (502)"),
    ],
)
def test_each_refusal_says_who_acts_next(
    status: int, description: object, kind: type[ZeroclawError], message: str
) -> None:
    error = answer(status, description)
    assert (type(error), str(error)) == (kind, f"`t`: {message}")


def test_a_message_too_large_for_a_proxy_is_not_retried_for_ever() -> None:
    """Later messages in its chat would wait behind it."""
    assert type(refused("t", 413, {})) is ChannelRejected
    assert type(refused("t", 403, {})) is ChannelUnavailable


def test_a_second_program_with_the_same_token_is_no_refusal_of_the_token() -> None:
    """The text says what to do (P10)."""
    error = answer(409, "Conflict: terminated by other getUpdates request")
    assert type(error) is ChannelUnavailable
    assert "give this daemon a bot of its own" in str(error)


def test_deleted_messages_and_broken_markup_are_marked() -> None:
    """A new message may replace the one, plain text the other."""
    descriptions = ("message to edit not found", "can't parse entities: no", "chat not found")
    errors = [answer(400, f"Bad Request: {description}") for description in descriptions]
    rejected = [error for error in errors if isinstance(error, ChannelRejected)]
    assert [(error.gone, error.markup) for error in rejected] == [
        (True, False),
        (False, True),
        (False, False),
    ]


def test_a_migrated_group_names_the_new_one() -> None:
    error = answer(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1001)
    assert isinstance(error, Migrated)
    assert (error.chat, error.gone) == (-1001, True)


@pytest.mark.parametrize("chat", ["-1001", None, True, 1.5, 2**70])
def test_a_migration_without_a_target_is_a_refusal(chat: object) -> None:
    error = answer(400, "Bad Request: no", migrate_to_chat_id=chat)
    assert (type(error), str(error)) == (ChannelRejected, "`t`: no")


@pytest.mark.parametrize(
    ("stated", "wait_s"),
    [
        *((7, 7), (2.5, 2.5), ("5", 5), (-1, 1), (0, 1), (None, 1), ("x", 1), ([], 1), ({}, 1)),
        *((1e300, 86_400), (10**400, 1), (float("nan"), 1), ("9" * 5000, 86_400)),
    ],
    ids=lambda value: str(value)[:8],
)
def test_any_wait_can_be_parsed(stated: object, wait_s: float) -> None:
    error = answer(429, "Too Many Requests", retry_after=stated)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == wait_s


def test_a_429_needs_no_wait_and_no_body() -> None:
    """A proxy may answer 429 as well, without forwarding the request."""
    assert isinstance(answer(429), RateLimited)
    assert isinstance(refused("t", 429, {}), RateLimited)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, {}, DeliveryUnknown),
        (200, {"ok": True}, DeliveryUnknown),
        (200, {"ok": "yes", "result": {}, "error_code": 400}, DeliveryUnknown),
        (200, {"ok": False}, DeliveryUnknown),
        (200, {"ok": False, "error_code": "400"}, DeliveryUnknown),
        (200, {"ok": False, "error_code": 400}, ChannelRejected),
        (504, {"ok": False, "error_code": 400}, DeliveryUnknown),
        (408, {}, DeliveryUnknown),
        (302, {}, ChannelUnavailable),
        (400, {}, ChannelUnavailable),
        (401, {"description": "Unauthorized"}, ChannelUnavailable),
        (404, {"ok": True, "result": 7}, ChannelUnavailable),
    ],
)
def test_an_answer_not_from_a_bot_api_server_is_no_refusal(
    status: int, body: Json, kind: type[ZeroclawError]
) -> None:
    """Whether it arrived is unknown if the server itself may have failed (P1)."""
    assert type(refused("t", status, body)) is kind


def test_text_not_from_a_bot_api_server_is_not_shown() -> None:
    error = refused("t", 403, {"description": "hunter2"})
    assert "hunter2" not in str(error)


def test_the_servers_text_is_one_line() -> None:
    """Whatever the server wrote (P10)."""
    assert str(answer(400, " Bad Request:\r\n no\u2028chat\n")) == "`t`: no chat"


def test_only_the_beginning_of_a_long_description_is_shown() -> None:
    """Unstorable characters are replaced."""
    assert len(str(answer(400, "é" * 1_000_000))) < 2 * MAX_CHARS
    assert str(answer(400, "a\ud800")) == "`t`: a\ufffd"
    assert str(answer(400, ["x"])) == "`t`: 400"
