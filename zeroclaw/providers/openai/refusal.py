"""Interprets an endpoint's refusal by its status, headers and text.

Pure. The same code interprets an HTTP status, an error object in a stream that began with 200, and
a 200 with an error in its body.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

from zeroclaw.errors import (
    ContextOverflow,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnauthorized,
    ProviderUnusable,
    StreamBroken,
    ZeroclawError,
)
from zeroclaw.json_fields import is_array, is_object, object_at, parse, text_at
from zeroclaw.providers.openai.request import Dialect
from zeroclaw.redact import LONGEST_VALUE, LONGEST_WORD
from zeroclaw.text.escape import shortened
from zeroclaw.value import Value, replace

SHOWN_CHARS = 200
LOOKED_AT_CHARS = 16_384
"""How much of an endpoint's text is searched and redacted: a stream event can hold megabytes."""

# Busy, as is everything from 500 on (529 is Anthropic's "overloaded", 52x are Cloudflare's).
BUSY_STATUSES = frozenset({408, 425, 429})
UNAUTHORIZED_STATUSES = frozenset({401, 403})
REDIRECTS = range(300, 400)  # not followed: that would send the key and the conversation there
TOO_LARGE_STATUS = 413
NOT_FOUND_STATUS = 404  # for the model (Ollama, vLLM, OpenAI), or for the whole path
SERVER_STATUSES = range(500, 600)
STATUSES = range(400, 600)  # a `code` outside is the endpoint's own numbering

# In `type` and `code` of OpenAI, Anthropic, llama.cpp, vLLM and OpenRouter (documents and sources
# read 2026-11).
_UNAUTHORIZED = re.compile("invalid_api_key|authentication_error|permission_|unauthorized")
_FLAGGED = "flagged"
_NOT_FOUND = re.compile("model_not_found|not_found_error")
_BUSY = re.compile(
    "rate_limit|too_many_requests|overloaded|server_error|internal_error|api_error|unavailable"
    "|timeout"
)
# A 429 where waiting does not help: the account has no credit.
_EMPTY_ACCOUNT = re.compile("insufficient_quota|billing_")
# The same, and the texts of endpoints that send no code for it: vLLM, SGLang, Mistral and LM Studio
# ("context length"), Gemini's compatible endpoint ("maximum number of tokens"), Anthropic ("prompt is
# too long", "context limit"), Groq ("reduce the length"), xAI ("prompt length"), Moonshot ("model
# token limit"), Together ("max_new_tokens"), DashScope ("input length").
_OVERFLOW = re.compile(
    r"context.(?:length|limit|size|window)|(?:input|prompt) (?:length|is too long)|model token limit"
    r"|max_new_tokens|too many tokens|reduce the length of the messages|request_too_large"
    r"|exceeds the maximum number of tokens|string_above_max_length"
)
# More than the account may send in a minute, whatever it has sent: OpenAI with 429, Groq with 413.
_FAR_TOO_LARGE = "request too large for"
# OpenAI and vLLM state a "maximum context length", llama.cpp an "available context size"; Anthropic
# and Mistral put the number before the word "maximum". An account's limit bounds a request, too. A smaller
# number is no window of today, and every conversation would be cut to it.
_WINDOW = re.compile(
    r"(?:context (?:length|size|window)|prompt length|token limit)(?: is| of)?(?: only)?"
    r"[^0-9]{0,3}([0-9]{4,8})|([0-9]{4,8}) maximum|limit ([0-9]{4,8}) requested",
    re.IGNORECASE,
)
# DeepSeek, OpenRouter and Gemini want these back, while Groq, Cerebras and Mistral refuse them.
_FIELDS = "(?:reasoning_content|reasoning_details|extra_content)"
_REFUSED = "(?:unsupported|not supported|not permitted|not allowed|unknown|unrecognized)"
# Near each other: a refusal may quote a person's text.
_NOT_TAKEN = re.compile(f"{_FIELDS}.{{0,40}}{_REFUSED}|{_REFUSED}.{{0,40}}{_FIELDS}")
_OBJECTIONS: tuple[tuple[str, Mapping[str, object]], ...] = (
    # OpenAI's reasoning models.
    ("use 'max_completion_tokens'", {"limit": "max_completion_tokens"}),
    # Ollama, OpenRouter and Groq, of a model. vLLM and llama.cpp name a switch for operators.
    ("does not support tools|found that support tool use", {"takes_tools": False}),
    ("tool calling.{1,3}is not supported", {"takes_tools": False}),
    # Bedrock and LiteLLM, of a person without tools in a chat where somebody else has some.
    ("without `tools=` param|toolconfig field must be defined", {"needs_tools": True}),
    # The chat templates of Gemma 1 and 2, and Google's endpoint of Gemma 3.
    ("system role not supported|developer instruction is not enabled", {"takes_system": False}),
    # Servers that are older than the field.
    (f"stream_options.{{0,40}}{_REFUSED}", {"takes_stream_options": False}),
    (f"{_REFUSED}.{{0,40}}stream_options", {"takes_stream_options": False}),
    # Mistral, and its chat templates.
    (r"tool call ids? .{0,200}length (?:of )?9", {"has_short_ids": True}),
    # Anthropic, of ids with other characters, such as Kimi's `functions.shell:0`.
    (r"tool_use\.id: string should match pattern", {"has_short_ids": True}),
    # DeepSeek and Moonshot, of a call that another model or a person made.
    (
        r"missing `?reasoning_content|reasoning_content.{0,99}(?:missing|passed back)",
        {"needs_reasoning": True, "takes_vendor_fields": True},
    ),
)
"""Patterns of refusals, in lower case, and the changes of the dialect that they call for."""


class Refusal(Value):
    """An endpoint's refusal.

    Attributes:
        status: The HTTP status, or the one in the error object, or 0.
        codes: Its `type` and `code`, and `flagged` after a moderation, in lower case, in one line; the
            beginning of long ones.
        text: Its message, as sent; the beginning of a long one.
    """

    status: int
    codes: str
    text: str


def read_error(error: object, *, status: int) -> Refusal:
    """Parse an `error` value: an object, a text, or anything else.

    A status inside the object overrides the one given.
    """
    if not is_object(error):
        text = error if isinstance(error, str) else ""
        return Refusal(status=status, codes="", text=text[:LOOKED_AT_CHARS])
    values = [error.get(name) for name in ("code", "status", "status_code")]
    statuses = [value for value in values if isinstance(value, int) and value in STATUSES]
    labels = {text_at(error, name).lower() for name in ("type", "code", "status")}
    metadata = object_at(error, "metadata")  # OpenRouter's; 403 where a filter flagged the request
    labels |= {_FLAGGED} if metadata.get("reasons") else set()
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    # Mistral sends a list of faulty fields.
    text = message if isinstance(message, str) else json.dumps(message)
    inner = object_at(metadata, "raw")  # an error that it passes on
    return Refusal(
        status=statuses[0] if statuses else status,
        codes=" ".join(sorted(labels)).strip()[:LOOKED_AT_CHARS],
        text=(text or text_at(inner, "message"))[:LOOKED_AT_CHARS],
    )


def read_body(body: str, *, status: int) -> Refusal:
    """Parse the body of a refusal; one that is not JSON is used as its message."""
    try:
        parsed = parse(body)
    except ValueError:
        page = body.lstrip().startswith("<")
        return read_error("a web page" if page else body, status=status)
    if is_array(parsed) and parsed:  # Gemini's compatible endpoint wraps the object in an array
        parsed = parsed[0]
    error = parsed.get("error", parsed) if is_object(parsed) else parsed
    return read_error(error, status=status)


def error_for(
    refusal: Refusal,
    *,
    endpoint: str,
    redact: Callable[[str], str],
    retry_after_s: float | None = None,
) -> ZeroclawError:
    """Return the error for a refusal, by who must act next, with a one-line text.

    Args:
        refusal: The refusal.
        endpoint: The endpoint's name in the text.
        redact: Removes secrets; called before the text is cut to its shown length.
        retry_after_s: From the headers.
    """
    labels, status = refusal.codes, refusal.status
    text = _safe_text(refusal.text, redact) or _safe_text(labels, redact) or "no reason"
    number = f" ({status})" if status else ""
    if status == TOO_LARGE_STATUS or _overflows(refusal):
        return ContextOverflow(
            f"the request is too large for `{endpoint}`: {text}", context_tokens=_window(refusal)
        )
    if "tool_use_failed" in labels:  # Groq can't read a call that the model wrote
        return StreamBroken(f"`{endpoint}` could not finish the answer{number}: {text}")
    if _EMPTY_ACCOUNT.search(labels):
        return ProviderRejected(f"the account at `{endpoint}` is used up{number}: {text}")
    is_flagged = _FLAGGED in labels
    if (status in UNAUTHORIZED_STATUSES and not is_flagged) or _UNAUTHORIZED.search(labels):
        return ProviderUnauthorized(
            f"`{endpoint}` refused the key{number}: {text}; check `provider.api_key`"
        )
    if status == NOT_FOUND_STATUS or _NOT_FOUND.search(labels):
        return ProviderUnusable(
            f"`{endpoint}` has no such model{number}: {text}; check `provider.model` and "
            "`provider.base_url`"
        )
    if status in BUSY_STATUSES or status in SERVER_STATUSES or _BUSY.search(labels):
        return ProviderOverloaded(
            f"`{endpoint}` is busy{number}: {text}", retry_after_s=retry_after_s
        )
    if status in REDIRECTS:
        return ProviderRejected(
            f"`{endpoint}` redirects the request{number}; check `provider.base_url`"
        )
    return ProviderRejected(f"`{endpoint}` refused the request{number}: {text}")


def adapted(dialect: Dialect, refusal: Refusal) -> Dialect:
    """Return the dialect of the next attempt after a refusal: the same, unless it objects to that.

    It changes a few times at most, whatever the refusals say.
    """
    text = refusal.text.lower()
    for pattern, changes in _OBJECTIONS:
        if re.search(pattern, text):
            return replace(dialect, **changes)
    if _NOT_TAKEN.search(text) and not dialect.needs_reasoning:
        return replace(dialect, takes_vendor_fields=False)
    return dialect


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how many seconds to wait, never below zero; None if missing or malformed.

    `retry-after` is seconds or an HTTP date (RFC 9110, 10.2.3); `retry-after-ms` is OpenAI's.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if isfinite(seconds):
            return max(0.0, seconds)
    try:
        then = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):  # the second for a huge year or time zone
        return None
    if then.tzinfo is None:  # "-0000": unknown zone, which in HTTP means UTC
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())


def _safe_text(text: str, redact: Callable[[str], str]) -> str:
    """Return a text from the endpoint as people and logs see it."""
    safe = redact(text[:LOOKED_AT_CHARS])
    # The text may have been cut in the middle of a secret.
    return one_line(safe if len(text) < LOOKED_AT_CHARS else safe[: -LONGEST_VALUE - LONGEST_WORD])


def one_line(text: str) -> str:
    """Make a foreign text fit into our lines: no control characters, cut, no full stop."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return shortened(" ".join(printable.split()), SHOWN_CHARS).rstrip(".")


def _window(refusal: Refusal) -> int | None:
    """Return the context window stated in a refusal."""
    found = _WINDOW.search(refusal.text.replace(",", ""))
    return int(next(filter(None, found.groups()))) if found else None


def _overflows(refusal: Refusal) -> bool:
    """Whether it says that the request is too long; in its text with some statuses only."""
    text = refusal.text.lower()
    searched = f"{refusal.codes} {text}" if refusal.status in (0, 200, 400, 422) else refusal.codes
    return _OVERFLOW.search(searched) is not None or _FAR_TOO_LARGE in text
