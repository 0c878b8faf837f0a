"""How long to wait before retrying after a failure.

This is a file of its own because rooms of every layer retry, and none of them is below all others.
"""

from zeroclaw.value import Value

MAX_DOUBLINGS = 64


class BackOff(Value):
    """Exponential back-off: the wait doubles with each consecutive failure, up to a limit.

    Attributes:
        first_s: Seconds after the first failure.
        longest_s: The upper limit in seconds, however many failures there were.
    """

    first_s: float
    longest_s: float

    def wait_s(self, failures: int, spread: float = 1.0) -> float:
        """Return the seconds to wait before the next try.

        Args:
            failures: Consecutive failures, the latest included; 0 means no wait.
            spread: Jitter from 0 to 1. The wait is between half of the full back-off (0) and all of
                it (1), so that callers that failed together do not retry together.
        """
        if failures < 1:
            return 0.0
        doubled = self.first_s * 2 ** min(failures - 1, MAX_DOUBLINGS)
        return min(doubled, self.longest_s) * (1 + spread) / 2
