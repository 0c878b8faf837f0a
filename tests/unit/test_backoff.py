"""Failures are retried after longer and longer waits."""

from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.backoff import BackOff

AGAIN = BackOff(first_s=0.5, longest_s=8.0)


def test_each_failure_doubles_the_wait_up_to_the_longest() -> None:
    """Nothing that did not fail waits."""
    assert [AGAIN.wait_s(failures) for failures in range(8)] == [0, 0.5, 1, 2, 4, 8, 8, 8]


@given(st.integers(1, 10**9), st.floats(0, 1))
def test_chance_takes_at_most_half_of_a_wait(failures: int, spread: float) -> None:
    """However often it failed."""
    whole = AGAIN.wait_s(failures)
    assert whole / 2 <= AGAIN.wait_s(failures, spread) <= whole <= AGAIN.longest_s
