"""Translates the Bot API's refusals into our errors, by who must act next; pure.

Errors include the server's description, but never the URL, which contains the token.
"""

from collections.abc import Mapping

from channels._remote.fields import Json, inner, integer, text
from channels._remote.limits import FAILED, FIRST_FAILURE, NO_TIME, TOO_MANY, proxy_refused, wait_s
from zeroclaw import (
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    RateLimited,
    ZeroclawError,
)

MAX_CHARS = 200
UNAUTHORIZED, NOT_FOUND, CONFLICT = 401, 404, 409

_MARKUP = ("can't parse", "entity begins", "entity ends", "entity beginning", "entities")


class TokenRefused(ChannelUnavailable):
    """Raised when one call was unauthorized; whether the token is invalid shows at the next poll."""


class NoMethod(TokenRefused):
    """Raised when the server is too old for a method, or does not know the token.

    The Bot API has answered so for valid tokens, too (github.com/nearai/ironclaw/issues/991, read 2026-11).
    """


class Migrated(ChannelRejected):
    """Raised when a group was migrated to `chat`; the old one's messages can't be changed any more."""

    def __init__(self, message: str, *, chat: int) -> None:
        super().__init__(message, gone=True)
        self.chat = chat


class NoChange(ChannelRejected):
    """Raised when a change was already in place."""


class NoMessage(ChannelRejected):
    """Raised when the chat has no message with that id."""


class NotOurs(ChannelRejected):
    """Raised when the message with that id is from another sender."""


class NoTopic(ChannelRejected):
    """Raised when Telegram does not find the topic to post to."""


class OtherMessageKind(ChannelRejected):
    """Raised when the message is ours, but has no text, or no caption, to edit."""


# The wording of tdlib, which Bot API servers are built on; from its error texts, read 2026-11.
_WORDINGS: Mapping[type[ChannelRejected], tuple[str, ...]] = {
    NoChange: ("message is not modified", "message to delete not found"),
    NoMessage: ("message to edit not found", "message_id_invalid"),
    NotOurs: ("message can't be edited",),
    NoTopic: ("message thread not found",),
    OtherMessageKind: ("no text in the message to edit", "no caption in the message to edit"),
}


def refused(name: str, status: int, body: Json, wait: str | None = None) -> ZeroclawError:
    """Return the error to raise for a failed call.

    Args:
        name: The channel's name.
        status: The HTTP status.
        body: The body; untrusted.
        wait: The answer's Retry-After header; a proxy gives no other hint.
    """
    # Without `"ok": false` the answer is not from a Bot API server; then ignore the body.
    error: Json = body if body.get("ok") is False else {}
    code = status if status >= FIRST_FAILURE else integer(error, "error_code") or 0
    line = " ".join(text(error, "description")[:MAX_CHARS].lower().split())
    description = line.removeprefix("bad request: ") or str(code)
    parameters = inner(error, "parameters")
    if code == TOO_MANY or "retry_after" in parameters:
        retry_after_s = wait_s(parameters.get("retry_after", wait))
        return RateLimited(f"`{name}`: too many calls", retry_after_s=retry_after_s)
    if code < FIRST_FAILURE:
        return DeliveryUnknown(f"`{name}`: an answer that can't be read")
    if code >= FAILED or code == NO_TIME:
        # The proxy in front of the Bot API answers like this too, so the call may have been carried out.
        return DeliveryUnknown(f"`{name}`: Telegram failed ({description})", late=code == NO_TIME)
    if not error:
        return proxy_refused(name, "Telegram", code)
    if (chat := integer(parameters, "migrate_to_chat_id")) is not None:
        return Migrated(f"`{name}`: the group became another one", chat=chat)
    return _by_code(name, code, description)


def _by_code(name: str, code: int, description: str) -> ZeroclawError:
    message = f"`{name}`: {description}"
    if code == UNAUTHORIZED:
        return TokenRefused(message)
    if code == NOT_FOUND:
        return NoMethod(f"`{name}`: the server does not know the method, or the token")
    if code == CONFLICT:
        message = (
            f"`{name}`: another program receives with the same token, and Telegram lets only "
            "one; stop it, or give this daemon a bot of its own"
        )
        return ChannelUnavailable(message)
    for kind, wordings in _WORDINGS.items():
        if any(wording in description for wording in wordings):
            return kind(message, gone=kind in {NoMessage, NotOurs})
    return ChannelRejected(message, markup=any(wording in description for wording in _MARKUP))
