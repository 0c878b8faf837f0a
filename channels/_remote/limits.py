"""Platform limits: sizes of texts and files, and waits after a refusal; pure.

Platforms count text in UTF-16 units, of which an emoji takes two.
"""

from typing import Literal

from zeroclaw import ChannelRejected, ChannelUnavailable, ZeroclawError

LONGEST_WAIT_S = 24 * 3600.0
"""Longest wait accepted from a server; anything beyond a day is a fault of the server."""
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


def cut(text: str, most: int) -> str:
    """Shorten a text to at most `most` units; a shortened one ends with an ellipsis."""
    if units(text) <= most:
        return text
    short = text[: max(most - 1, 0)]
    while short and units(short) > most - 1:
        short = short[:-1]
    return f"{short}…"


def wait_s(stated: object) -> float:
    """Return a wait in seconds from a number or the text of a header."""
    try:
        found = float(stated) if isinstance(stated, str | int | float) else 0.0
    except (ValueError, OverflowError):
        found = 0.0
    return min(found, LONGEST_WAIT_S) if found > 0 else UNSTATED_WAIT_S


def check_size(channel: str, size: int, most: int, unit: str = "bytes") -> None:
    """Check the size of a file or a text against the channel's limit.

    Raises:
        ChannelRejected: It is larger.
    """
    if size > most:
        message = f"`{channel}`: {size:,} {unit} are more than {most:,}"
        raise ChannelRejected(message)


def unknown(channel: str, what: Literal["chat", "message", "file"], id_: str) -> ChannelRejected:
    """Return the error to raise for an id that the platform does not have; a message with it is gone."""
    return ChannelRejected(f"`{channel}` has no {what} `{id_[:50]}`", gone=what == "message")


def in_its_place(name: str, platform: str, status: int) -> ZeroclawError:
    """Return the error to raise if a proxy in front of a platform refused a call.

    It may let the call pass later, unless the call is too large for it.
    """
    if status == TOO_LARGE:
        return ChannelRejected(f"`{name}`: something before {platform} takes nothing of that size")
    message = f"`{name}`: something before {platform} answers in its place"
    return ChannelUnavailable(message, barred=True)
