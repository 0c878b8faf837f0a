"""What the limits of a platform allow, counted from the calls that were made."""

from collections.abc import Sequence

from channels.telegram.emulator import Rate


def needed_s(count: int, rate: Rate) -> float:
    """Return the seconds that a full bucket needs for so many calls, the first one at 0."""
    return max(0.0, count - rate.burst) / rate.per_s


def slot(earlier: Sequence[float], rate: Rate, wanted: float) -> float:
    """Return when a bucket lets a call pass, at the soonest when it is wanted.

    Args:
        earlier: When calls passed before, in order, beginning with a full bucket.
        rate: The bucket's.
        wanted: When the next call could be made otherwise.
    """
    left, at = float(rate.burst), wanted
    for number, call in enumerate(earlier):
        elapsed = call - earlier[number - 1] if number else 0.0
        left, at = min(float(rate.burst), left + elapsed * rate.per_s) - 1, call
    at_wanted = min(float(rate.burst), left + (wanted - at) * rate.per_s)
    return wanted + max(0.0, 1 - at_wanted) / rate.per_s
