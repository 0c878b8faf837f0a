"""Platform limits: sizes of texts and files, and waits after a refusal; pure.

Platforms count text in UTF-16 units, of which an emoji takes two.
"""

from hashlib import blake2b
from typing import Literal

from zeroclaw import ChannelRejected, ChannelUnavailable, RateLimited, ZeroclawError

LONGEST_WAIT_S = 24 * 3600.0
"""Longest wait accepted from a server; a longer one is a fault of the server."""
LONGEST_QUIET_S = 30.0
"""Longest wait that a platform may ask for before it sends events, without the channel counting as down."""
UNSTATED_WAIT_S = 1.0
"""Wait after a rate-limit refusal that states no time."""
MARK_SLACK_S = 600.0
"""How far the local clock may be ahead of a platform's."""
FIRST_FAILURE, FAILED, NO_TIME, TOO_LARGE, TOO_MANY = 300, 500, 408, 413, 429
"""HTTP statuses."""


def units(text: str) -> int:
    """Return a length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, max_units: int) -> str:
    """Shorten a text to at most `max_units` units; a shortened one ends with an ellipsis."""
    if units(text) <= max_units:
        return text
    short = text[: max(max_units - 1, 0)]
    while short and units(short) > max_units - 1:
        short = short[:-1]
    return f"{short}…"


def short_hash(text: str, max_bytes: int) -> str:
    """Return a hash of a text, such as a message's key, in hexadecimal: two characters per byte."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=max_bytes).hexdigest()


def wait_s(stated: object) -> float:
    """Parse a wait in seconds, given as a number or as the text of a header."""
    try:
        seconds = float(stated) if isinstance(stated, str | int | float) else 0.0
    except (ValueError, OverflowError):
        seconds = 0.0
    return min(seconds, LONGEST_WAIT_S) if seconds > 0 else UNSTATED_WAIT_S


def unavailable(message: str, wait: str | None) -> ChannelUnavailable:
    """Return the error to raise for a passing failure; `wait` is its Retry-After header, if any."""
    return RateLimited(message, retry_after_s=wait_s(wait)) if wait else ChannelUnavailable(message)


def check_size(channel: str, size: int, limit: int, unit: str = "bytes") -> None:
    """Check the size of a file or a text against the channel's limit.

    Raises:
        ChannelRejected: It is larger.
    """
    if size > limit:
        message = f"`{channel}`: {size:,} {unit} are more than {limit:,}"
        raise ChannelRejected(message)


def unknown(channel: str, kind: Literal["chat", "message", "file"], id_: str) -> ChannelRejected:
    """Return the error for an id that the platform does not have; a missing message counts as gone."""
    return ChannelRejected(f"`{channel}` has no {kind} `{id_[:50]}`", gone=kind == "message")


def proxy_refused(name: str, platform: str, status: int) -> ZeroclawError:
    """Return the error to raise if a proxy in front of a platform refused a call.

    The proxy may let the call pass later, unless the call is too large for it.
    """
    if status == TOO_LARGE:
        return ChannelRejected(
            f"`{name}`: a proxy in front of {platform} accepts nothing of that size"
        )
    message = f"`{name}`: a proxy in front of {platform} answers in its place"
    return ChannelUnavailable(message, barred=True)
