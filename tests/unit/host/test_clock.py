"""The real clock tells aware times, and monotonic ones that only grow."""

from datetime import UTC

from zeroclaw.host.clock import SystemClock


def test_wall_time_is_aware_and_utc() -> None:
    """What is stored and compared is UTC everywhere."""
    assert SystemClock().now().tzinfo is UTC


def test_monotonic_time_never_goes_back() -> None:
    """Two readings in a row are in order."""
    clock = SystemClock()

    assert clock.monotonic() <= clock.monotonic()


async def test_waiting_for_nothing_returns_at_once() -> None:
    """Zero and less wait for nothing; more waits."""
    clock = SystemClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    began = clock.monotonic()
    await clock.sleep(0.001)

    assert clock.monotonic() > began
