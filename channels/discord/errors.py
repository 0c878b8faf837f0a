"""Translates the API's refusals into our errors, by who must act next; pure.

The codes are those of "Opcodes and Status Codes" (docs.discord.com, read 2026-11). Errors include
Discord's message, but never the URL, which may contain an interaction's token.
"""

from collections.abc import Mapping

from channels._remote.fields import as_object, integer, number, parse_json, text
from channels._remote.limits import FAILED, NO_TIME, TOO_MANY, proxy_refused, wait_s
from zeroclaw import (
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    RateLimited,
    ZeroclawError,
)

MAX_CHARS = 200
UNAUTHORIZED = 401

_GONE = frozenset({10008, 50005})
"""Errors of edits after which a new message may work: the message is unknown, or another sender's."""


class TokenRefused(ChannelUnavailable):
    """Raised when one call was unauthorized; whether the token is invalid shows at the gateway."""


class NotFound(ChannelRejected):
    """Raised when the target of a call does not exist."""


class NoReply(ChannelRejected):
    """Raised when the bot may not reply, since it may not read the history."""


class ThreadExists(ChannelRejected):
    """Raised when a message already has a thread."""


class Archived(ChannelRejected):
    """Raised when a message can't be changed or deleted, since its thread is archived."""


_KINDS = {160002: NoReply, 160004: ThreadExists, 50083: Archived}


def refused(name: str, status: int, body: bytes, headers: Mapping[str, str]) -> ZeroclawError:
    """Return the error to raise for a failed call.

    Args:
        name: The channel's name.
        status: The HTTP status, 300 or more.
        body: The answer's body; untrusted.
        headers: The answer's headers; names are case-insensitive.
    """
    answer = as_object(parse_json(body))
    if status == TOO_MANY:
        # The body is exact, the header in whole seconds.
        stated = number(answer, "retry_after")
        retry_after_s = wait_s(headers.get("Retry-After") if stated is None else stated)
        return RateLimited(f"`{name}`: too many calls", retry_after_s=retry_after_s)
    if status >= FAILED or status == NO_TIME:
        # A proxy in front of Discord answers like this too, so Discord may have carried out the call.
        return DeliveryUnknown(f"`{name}`: Discord failed ({status})", late=status == NO_TIME)
    if not answer:
        # Not Discord's JSON: the answer is from a proxy in front of it.
        return proxy_refused(name, "Discord", status)
    if status == UNAUTHORIZED:
        return TokenRefused(f"`{name}`: Discord did not accept the token for one call")
    code = integer(answer, "code") or 0
    message = f"`{name}`: {text(answer, 'message').lower()[:MAX_CHARS]} ({status}, {code})"
    kind = NotFound if status == 404 else ChannelRejected  # noqa: PLR2004
    return _KINDS.get(code, kind)(message, gone=code in _GONE)


def invalid_token(name: str) -> ChannelUnauthorized:
    """Return the error to raise if Discord rejects the token."""
    page = "https://discord.com/developers under Bot, Reset Token"
    return ChannelUnauthorized(f"`{name}`: Discord does not accept the token; get one at {page}")


# Gateway Close Event Codes after which reconnecting is pointless; read 2026-11.
_BAD_TOKEN, _BAD_INTENTS, _FORBIDDEN_INTENTS, _SHARDING = 4004, 4013, 4014, 4011


def closed(name: str, code: int | None) -> ZeroclawError:
    """Return the error to raise after the gateway closed the connection for good."""
    if code == _BAD_TOKEN:
        return invalid_token(name)
    reason = {_SHARDING: "the bot is in too many servers for one connection"}.get(code or 0, "")
    if code in {_BAD_INTENTS, _FORBIDDEN_INTENTS}:
        reason = (
            "Discord does not let this bot read messages in servers; turn on Message Content "
            "Intent at https://discord.com/developers under Bot, or take only mentions: "
            '`servers = "mentioned"`, no `channels` and no `threads`'
        )
    if reason:
        return ChannelUnauthorized(f"`{name}`: {reason}")
    return ChannelUnavailable(f"`{name}`: the gateway closed the connection ({code})")
