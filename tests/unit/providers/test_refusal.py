"""What the refusals of many endpoints mean, and how they are reported."""

import json
from datetime import UTC, datetime

import pytest

from zeroclaw.errors import (
    ContextOverflow,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnauthorized,
    ProviderUnusable,
    StreamBroken,
    ZeroclawError,
)
from zeroclaw.json_fields import int_at, parse
from zeroclaw.providers.openai.refusal import (
    LOOKED_AT_CHARS,
    adapted,
    error_for,
    one_line,
    read_body,
    read_error,
    retry_after,
)
from zeroclaw.providers.openai.request import Dialect

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def error_of(body: str, status: int) -> ZeroclawError:
    return error_for(read_body(body, status=status), endpoint="host", redact=str)


OVERFLOWS: list[tuple[int, object]] = [
    (400, {"error": {"message": "m", "code": "context_length_exceeded"}}),
    (500, {"error": {"message": "m", "code": "context_length_exceeded"}}),
    (400, {"error": {"code": 400, "message": "m", "type": "exceed_context_size_error"}}),
    (413, {"error": "too big"}),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens."}),
    (400, {"detail": "prompt is too long: 210000 tokens > 200000 maximum"}),
    (422, {"error": {"message": "Please reduce the length of the messages or completion."}}),
    # Anthropic, LM Studio (two), xAI, Moonshot, Together, DashScope
    (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 9 + 2 > 10"}}),
    (
        0,
        "Trying to keep the first 9 tokens when context the overflows. However, the model is loaded"
        " with context length of only 8 tokens, which is not enough.",
    ),
    (0, "The number of tokens to keep is greater than the context length."),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (
        400,
        {"error": {"message": "Your request exceeded model token limit: 8192 (requested: 9000)"}},
    ),
    (
        422,
        {"error": {"message": "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000"}},
    ),
    (400, {"error": {"message": "Range of input length should be [1, 30720]"}}),
]
UNAUTHORIZED: list[tuple[int, object]] = [
    (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
    (403, {"error": {"message": ""}}),
    (200, {"error": {"type": "authentication_error", "message": "no"}}),
]
BUSY: list[tuple[int, object]] = [
    (429, {"error": {"message": "slow down", "type": "rate_limit_error"}}),
    (500, "oops"),
    (503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    (408, ""),
    (200, {"error": {"code": 502, "message": "upstream"}}),
    (200, {"error": {"type": "server_error"}}),
]
REJECTED: list[tuple[int, object]] = [
    (400, {"error": {"message": "bad tool", "type": "invalid_request_error"}}),
    (402, {"error": {"message": "Insufficient Balance"}}),
    (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
    (400, [{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}]),
    (302, "moved"),
    (400, 7),
    (403, {"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}}),
    (200, {"error": {"metadata": {"raw": {"message": "inner"}}}}),
]


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        *((ContextOverflow, *case) for case in OVERFLOWS),
        *((ProviderUnauthorized, *case) for case in UNAUTHORIZED),
        *((ProviderOverloaded, *case) for case in BUSY),
        *((ProviderRejected, *case) for case in REJECTED),
        (ProviderUnusable, 404, {"error": {"message": "no such model", "code": "model_not_found"}}),
        (ProviderUnusable, 404, "404 page not found"),
        (
            StreamBroken,
            400,
            {"error": {"message": "Failed to call a function", "code": "tool_use_failed"}},
        ),
        (ProviderUnusable, 400, {"error": {"message": "m", "type": "not_found_error"}}),
    ],
)
def test_a_refusal_is_the_error_of_who_must_act_next(
    kind: type[ZeroclawError], status: int, body: object
) -> None:
    """By code, type, status and, for a request that is too long, common texts."""
    text = body if isinstance(body, str) else json.dumps(body)
    assert type(error_of(text, status)) is kind


def test_the_endpoints_words_are_reported_in_one_line() -> None:
    body = json.dumps({"error": {"message": "no such\n\x1b[31mmodel\u2028 here."}})
    assert str(error_of(body, 418)) == "`host` refused the request (418): no such [31mmodel here"
    assert str(error_of("", 418)) == "`host` refused the request (418): no reason"
    moved = "`host` redirects the request (307); check `provider.base_url`"
    assert str(error_of("<html>", 307)) == moved
    assert str(error_of("<html>", 502)) == "`host` is busy (502): a web page"
    assert str(error_of('{"error":{"type":"server_error"}}', 0)) == "`host` is busy: server_error"


def test_a_message_that_is_not_a_text_is_reported_too() -> None:
    """Mistral's and FastAPI's lists of faulty fields."""
    fields = {"detail": [{"loc": ["body", "n"], "msg": "Extra inputs are not permitted"}]}
    for body in ({"object": "error", "message": fields}, fields):
        assert '"msg": "Extra inputs are not permitted"' in str(error_of(json.dumps(body), 422))


def test_a_long_message_is_cut() -> None:
    assert one_line("x" * 300) == "x" * 199 + "…"


def test_secrets_are_taken_out_before_the_message_is_cut() -> None:
    """A secret that lies on the cut would show its first half otherwise."""
    secret = "sk-" + "s" * 40
    body = json.dumps({"error": "x" * 180 + secret})
    error = error_for(
        read_body(body, status=400),
        endpoint="host",
        redact=lambda text: text.replace(secret, "***"),
    )
    assert str(error).endswith("x***")


def test_how_long_to_wait_travels_with_the_error() -> None:
    refusal = read_error({"code": 429}, status=200)
    error = error_for(refusal, endpoint="host", redact=str, retry_after_s=3.0)
    assert isinstance(error, ProviderOverloaded)
    assert error.retry_after_s == 3.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Sat, 21 Nov 2026 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 08:00:30 -0000"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 07:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Sat, 21 Nov 20260000000000 08:00:30 GMT"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 08:00:30 +99999999999999999"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a":Infinity}', "[" * 100_000])
def test_a_body_that_is_no_json_is_a_refusal(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the kind is the promise
        parse(text)


def test_a_truth_is_no_number() -> None:
    assert int_at({"n": True}, "n") is None


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, you sent 9,000", 8192),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        (
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            32768,
        ),
        ("maximum context length of 131,072 tokens", 131_072),
        ("the model is loaded with context length of only 4096 tokens", 4096),
        ("This model's maximum prompt length is 131072 but the request contains 537812", 131_072),
        ("Your request exceeded model token limit: 8192 (requested: 9000)", 8192),
        ("Please reduce the length of the messages or completion.", None),
        ("context length: 300 tokens over the limit", None),
    ],
)
def test_a_refusal_may_name_the_window(text: str, window: int | None) -> None:
    """In any wording; the next request keeps to it (K11)."""
    error = error_of(json.dumps({"error": {"message": text}}), 400)
    assert isinstance(error, ContextOverflow)
    assert error.context_tokens == window


@pytest.mark.parametrize("status", [429, 413])
def test_more_tokens_than_an_account_may_send_in_a_minute_are_too_many(status: int) -> None:
    """OpenAI's 429 and Groq's 413: no waiting makes the request fit."""
    message = "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 41000."
    body = {"error": {"message": message, "type": "tokens", "code": "rate_limit_exceeded"}}
    error = error_of(json.dumps(body), status)
    assert isinstance(error, ContextOverflow)
    assert error.context_tokens == 30_000
    body["error"]["message"] = "Rate limit reached (TPM): Limit 30000, Used 29000, Requested 2000."
    assert isinstance(error_of(json.dumps(body), 429), ProviderOverloaded)


@pytest.mark.parametrize("name", ["message", "type"])
def test_no_more_of_it_is_redacted_than_may_be_shown(name: str) -> None:
    """A stream's event holds megabytes, which would delay every chat (P9)."""
    redacted: list[str] = []

    def redact(text: str) -> str:
        redacted.append(text)
        return text

    refusal = read_error({name: "pass word " * 400_000}, status=500)
    text = str(error_for(refusal, endpoint="host", redact=redact))
    assert "pass word pass word" in text
    assert max(map(len, (*redacted, refusal.codes, refusal.text))) <= LOOKED_AT_CHARS


@pytest.mark.parametrize(
    ("beginning", "then"),
    [
        ("tool call id a", "length 9"),
        ("reasoning_content", "missing"),
        ("reasoning_details", "are not permitted"),
        ("unknown field", "extra_content"),
    ],
)
def test_words_far_apart_are_no_dialect(beginning: str, then: str) -> None:
    """They may be a person's, and to look in all of a long text takes the square of its length (P9)."""
    near, far = (read_error(f"{beginning}{' ' * gap}{then}", status=400) for gap in (9, 999))
    assert adapted(Dialect(), near) != adapted(Dialect(), far) == Dialect()


def test_half_a_secret_at_the_cut_is_not_shown() -> None:
    """Blanks before it are shown as one."""
    blank = " " * (LOOKED_AT_CHARS - 6)
    error = error_for(
        read_error({"message": f"{blank}hunter2-secret"}, status=500), endpoint="e", redact=str
    )
    assert str(error) == "`e` is busy (500): no reason"


def test_a_type_is_reported_on_one_line() -> None:
    """What an endpoint says in place of a message is foreign, too (P10)."""
    error = error_for(read_error({"type": "a\x1b[2J\nb"}, status=500), endpoint="e", redact=str)
    assert str(error) == "`e` is busy (500): a [2j b"
