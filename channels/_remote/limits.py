"""What platforms state of their limits: sizes of texts and files, and how long they wait; pure.

They count in UTF-16 units, in which an emoji is two, and say their waits in one way or another.
"""

from zeroclaw import ChannelRejected, OutgoingFile

LONGEST_WAIT_S = 24 * 3600.0
"""What a server asks for beyond a day is no wait, but a fault of it."""
UNSTATED_WAIT_S = 1.0
"""What is waited where a server refuses a call as one too many, and does not say for how long."""
FIRST_FAILURE, FAILED, NO_TIME, TOO_MANY = 300, 500, 408, 429
"""Statuses of answers."""


def units(text: str) -> int:
    """Return a length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, most: int) -> str:
    """Return as much of a text as fits so many units, with a sign that some is missing."""
    if units(text) <= most:
        return text
    short = text[: max(most - 1, 0)]
    while short and units(short) > most - 1:
        short = short[:-1]
    return f"{short}…"


def wait_s(stated: object) -> float:
    """Return a wait in seconds, of a number or of what a header says."""
    try:
        found = float(stated) if isinstance(stated, str | int | float) else 0.0
    except (ValueError, OverflowError):
        found = 0.0
    return min(found, LONGEST_WAIT_S) if found > 0 else UNSTATED_WAIT_S


def check_size(channel: str, file: OutgoingFile, most: int) -> None:
    """See that a file is no larger than a channel takes, in bytes.

    Raises:
        ChannelRejected: It is.
    """
    if len(file.content) > most:
        message = f"`{channel}`: {len(file.content):,} bytes are more than {most:,}"
        raise ChannelRejected(message)
