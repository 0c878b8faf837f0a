"""Say what the Bot API refused, and whether a call may have arrived, in this house's errors.

What the server says of a refusal is told; what the library says of the connection is not, because
each address that it may name holds the token.
"""

from collections.abc import Mapping
from datetime import timedelta

from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from zeroclaw import (
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    RateLimited,
    ZeroclawError,
)

MOST_CHARS = 200

_MARKUP = ("can't parse", "entity begins", "entity ends", "entity beginning", "entities")
_NO_METHOD = "not found"
_NOT_MODIFIED = "message is not modified"
_DELETED = "message to delete not found"


class MethodUnknown(ChannelRejected):
    """Raised when the server is older than a method, or one that never had it."""


class NotThere(ChannelRejected):
    """Raised when no message of the chat has the number."""


class NotOurs(ChannelRejected):
    """Raised when the message of that number is another sender's."""


class OtherKind(ChannelRejected):
    """Raised when the message of that number is ours, and has no such thing to edit."""


# Of Bot API servers, as tdlib words them; read 2026-11 in its error texts.
_MEANT: Mapping[type[ChannelRejected], tuple[str, ...]] = {
    NotThere: ("message to edit not found", "message_id_invalid"),
    NotOurs: ("message can't be edited",),
    OtherKind: ("no text in the message to edit", "no caption in the message to edit"),
}


def is_as_wanted(error: TelegramError) -> bool:
    """Whether a refusal says that things are as the call wanted them already."""
    said = error.message.lower()
    return isinstance(error, BadRequest) and (_NOT_MODIFIED in said or _DELETED in said)


def translated(name: str, error: TelegramError) -> ZeroclawError:
    """Return what to raise instead.

    Args:
        name: The channel's.
        error: As python-telegram-bot raised it.
    """
    match error:
        case RetryAfter():
            return RateLimited(f"`{name}`: too many calls", retry_after_s=_seconds(error))
        case InvalidToken() | EndPointNotFound():
            return _not_found(name, error)
        case Conflict():
            message = (
                f"`{name}`: another program receives with the same token, and Telegram lets only "
                "one; stop it, or give this daemon a bot of its own"
            )
            return ChannelUnavailable(message)
        case ChatMigrated():
            # What stood in the old group can't be changed any more; a message to it arrives.
            return ChannelRejected(f"`{name}`: the group became another one", gone=True)
        case BadRequest() | Forbidden():
            return _refused(name, error)
        case NetworkError():
            return _network(name, error)
        case _:
            return DeliveryUnknown(f"`{name}`: an answer that can't be read")


def about_the_token(name: str, error: TelegramError) -> ZeroclawError:
    """Return what to raise instead, of a method that every server knows.

    Args:
        name: The channel's.
        error: As python-telegram-bot raised it.
    """
    if not isinstance(error, InvalidToken) or isinstance(error.__cause__, TelegramError):
        return translated(name, error)
    message = f"`{name}`: Telegram does not accept the token; get a valid one from @BotFather"
    return ChannelUnauthorized(message)


def _not_found(name: str, error: TelegramError) -> ZeroclawError:
    """Tell the two statuses apart that the library takes for a bad token, 401 and 404.

    What it means for the token the next poll says; here nothing has arrived, and what was to be
    said waits.
    """
    if isinstance(error.__cause__, TelegramError):
        # A body that is none of a Bot API server: the proxy before it has lost its way.
        return ChannelUnavailable(f"`{name}`: something before Telegram answers in its place")
    said = error.message.lower()
    if isinstance(error, EndPointNotFound) or _NO_METHOD in said:
        return MethodUnknown(f"`{name}`: the server does not know the method")
    return ChannelUnavailable(f"`{name}`: {said[:MOST_CHARS]}")


def _seconds(error: RetryAfter) -> float:
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def _refused(name: str, error: TelegramError) -> ChannelRejected:
    said = error.message.lower()
    message = f"`{name}`: {said[:MOST_CHARS]}"
    for kind, meant in _MEANT.items():
        if any(words in said for words in meant):
            return kind(message, gone=kind is not OtherKind)
    return ChannelRejected(message, markup=any(words in said for words in _MARKUP))


def _network(name: str, error: NetworkError) -> ZeroclawError:
    match error.__cause__:
        case DeliveryUnknown(late=late) as cause:
            return DeliveryUnknown(str(cause), late=late)
        case ZeroclawError() as cause:
            return ChannelUnavailable(str(cause))
        case _:
            # An answer with a status of 500 or more: the proxy before the Bot API answers so too,
            # and whether the server behind it has done its work is not said.
            status = error.message.partition(". ")[0].lower()  # the library puts the body behind it
            return DeliveryUnknown(f"`{name}`: Telegram failed ({status[:MOST_CHARS]})")
