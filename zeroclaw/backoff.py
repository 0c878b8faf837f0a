"""How long to wait before something that failed is tried again.

A file of its own, for rooms of every layer try again, and none of them is below all others.
"""

from zeroclaw.value import Value

MOST_DOUBLINGS = 64


class BackOff(Value):
    """Waits that double with each failure in a row, up to a bound.

    Attributes:
        first_s: After the first failure.
        longest_s: However many there were.
    """

    first_s: float
    longest_s: float

    def wait_s(self, failures: int, spread: float = 1.0) -> float:
        """Return the seconds to wait.

        Args:
            failures: In a row, the last one counted; none means no wait.
            spread: From 0 to 1, by chance: what part of the wait's latter half is waited too, so
                that those who failed together do not come again together.
        """
        if failures < 1:
            return 0.0
        doubled = self.first_s * 2 ** min(failures - 1, MOST_DOUBLINGS)
        return min(doubled, self.longest_s) * (1 + spread) / 2
