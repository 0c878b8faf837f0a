"""Each failed response becomes an error that says who acts next."""

import json

import pytest

from channels.discord.errors import NotFound, ThreadExists, TokenRefused, closed, refused
from zeroclaw import (
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    RateLimited,
    ZeroclawError,
)


def answer(status: int, body: object = None, **headers: str) -> ZeroclawError:
    return refused("d", status, b"<html>" if body is None else json.dumps(body).encode(), headers)


@pytest.mark.parametrize(
    ("body", "headers", "wait_s"),
    [
        ({"retry_after": 0.3}, {}, 0.3),
        ({"retry_after": 7, "global": True}, {}, 7),
        (None, {"Retry-After": "4"}, 4),
        (None, {"Retry-After": "soon"}, 1),
        ({"retry_after": -1}, {}, 1),
        ({"retry_after": 1e9}, {}, 86_400),
    ],
)
def test_a_wait_is_the_one_that_discord_gives(
    body: object, headers: dict[str, str], wait_s: float
) -> None:
    error = answer(429, body, **headers)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == wait_s


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, None, DeliveryUnknown),
        (502, None, DeliveryUnknown),
        (408, None, DeliveryUnknown),
        (401, {"message": "401: Unauthorized", "code": 0}, TokenRefused),
        (401, None, ChannelUnavailable),
        (404, None, ChannelUnavailable),
        (413, None, ChannelRejected),
        (403, {"message": "Missing Access", "code": 50001}, ChannelRejected),
        (404, {"message": "Unknown Channel", "code": 10003}, NotFound),
        (400, {"message": "Invalid Form Body", "code": 50035}, ChannelRejected),
    ],
)
def test_each_refusal_says_who_acts_next(status: int, body: object, kind: type[Exception]) -> None:
    """A single call's 401 or 404 does not condemn the account."""
    assert type(answer(status, body)) is kind


@pytest.mark.parametrize(
    ("code", "gone"), [(10008, True), (50005, True), (50083, False), (1, False)]
)
def test_a_message_that_can_no_longer_be_edited_is_gone(code: int, gone: bool) -> None:
    error = answer(400, {"message": "No", "code": code})
    assert isinstance(error, ChannelRejected)
    assert error.gone is gone


def test_a_long_refusal_is_cut_to_one_line() -> None:
    assert len(str(answer(400, {"message": "X" * 5_000}))) < 250


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (4004, ChannelUnauthorized, "does not accept the token"),
        (4014, ChannelUnauthorized, "turn on Message Content Intent"),
        (4013, ChannelUnauthorized, "turn on Message Content Intent"),
        (4011, ChannelUnauthorized, "too many servers"),
        (4012, ChannelUnavailable, "4012"),
        (None, ChannelUnavailable, "None"),
    ],
)
def test_a_gateway_that_closes_for_good_says_what_to_do(
    code: int | None, kind: type[Exception], message: str
) -> None:
    error = closed("d", code)
    assert type(error) is kind
    assert message in str(error)
    assert "\n" not in str(error)


def test_an_already_open_thread_is_distinguished() -> None:
    assert isinstance(answer(400, {"code": 160004}), ThreadExists)
