"""Token buckets: how often a bot may call its platform, and how long it has to wait.

A refused call costs no token, but closes its bucket until its `retry_after` has passed.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from zeroclaw import Value

# The bot counts by another clock and across a network, so a thousandth of a call is tolerated.
_TOLERANCE = 1e-3


class Rate(Value):
    """A burst of calls at once, and `per_s` calls a second after that."""

    per_s: float
    burst: int


@dataclass(eq=False, kw_only=True)
class _Bucket:
    rate: Rate
    left: float
    at: float
    closed_until: float = -math.inf

    def wait_s(self, count: int, at: float) -> int:
        """Return the whole seconds to wait until `count` calls may pass; 0 if they may now."""
        self.left = min(self.rate.burst, self.left + (at - self.at) * self.rate.per_s)
        self.at = at
        if at < self.closed_until - _TOLERANCE:
            return max(1, math.ceil(self.closed_until - at - _TOLERANCE))
        # A count above the burst, such as a large album, passes when the bucket is full.
        missing = min(count, self.rate.burst) - self.left
        if missing <= _TOLERANCE:
            return 0
        wait_s = math.ceil(missing / self.rate.per_s)
        self.closed_until = at + wait_s
        return wait_s


@dataclass(eq=False, kw_only=True)
class Buckets:
    """The buckets of one account.

    Attributes:
        refused: Number of calls that came too early.
    """

    refused: int = 0
    _buckets: dict[Hashable, _Bucket] = field(default_factory=dict[Hashable, _Bucket])

    def take(self, rates: Mapping[Hashable, Rate], at: float, *, count: int = 1) -> int:
        """Count a call; return 0, or the seconds to wait if it is one too many.

        Args:
            rates: The rate of each bucket that it draws on, by the bucket's name.
            at: The monotonic time in seconds.
            count: The number of calls that it counts as.
        """
        buckets = [self._bucket(key, rate, at) for key, rate in rates.items()]
        longest = max((bucket.wait_s(count, at) for bucket in buckets), default=0)
        if longest:
            self.refused += 1
            return longest
        for bucket in buckets:
            bucket.left -= count
        return 0

    def _bucket(self, key: Hashable, rate: Rate, at: float) -> _Bucket:
        if key not in self._buckets:
            self._buckets[key] = _Bucket(rate=rate, left=rate.burst, at=at)
        return self._buckets[key]
