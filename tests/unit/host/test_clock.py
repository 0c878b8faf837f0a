"""The real clock, and ids that sort by time of creation."""

import re
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.clock import made_at
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.ids import SystemIds


def test_wall_time_is_aware_and_utc() -> None:
    """Stored and compared times are UTC everywhere."""
    assert SystemClock().now().tzinfo is UTC


def test_monotonic_time_never_goes_back() -> None:
    """Two readings in a row are in order."""
    clock = SystemClock()

    assert clock.monotonic() <= clock.monotonic()


async def test_waiting_for_nothing_returns_at_once() -> None:
    """Zero and less return at once; a positive time waits."""
    clock = SystemClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    began = clock.monotonic()
    await clock.sleep(0.001)

    assert clock.monotonic() > began


# --- ids and tokens -------------------------------------------------------------------------------

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class SetClock(ManualClock):
    """A clock whose wall time is set by hand, backwards too."""

    at = EPOCH

    def now(self) -> datetime:
        return self.at


def test_ulids_of_one_millisecond_sort_in_order_of_creation() -> None:
    """The clock stands still for all of them."""
    ids = SystemIds(ManualClock())
    ulids = [ids.ulid() for _ in range(10_000)]

    assert sorted(set(ulids)) == ulids
    assert all(ULID.fullmatch(ulid) for ulid in ulids)


def test_ulids_sort_in_order_of_creation_when_the_clock_is_set_back() -> None:
    """Keys of rows stay in order when the machine's time is corrected."""
    clock = SetClock()
    ids = SystemIds(clock)
    before = ids.ulid()
    clock.at = EPOCH - timedelta(days=1)
    back = ids.ulid()
    clock.at = EPOCH + timedelta(milliseconds=1)
    after = ids.ulid()

    assert before < back < after


def test_ulids_sort_after_those_of_an_earlier_process_with_a_later_clock() -> None:
    """Stored messages are served in the order of arrival, also after a restart."""
    before = SystemIds(ManualClock()).ulid()
    clock = SetClock()
    clock.at = EPOCH - timedelta(hours=1)
    ids = SystemIds(clock)
    ids.follow(before)
    assert ids.ulid() > before
    ids.follow(SystemIds(clock).ulid())
    assert ids.ulid() > before


@pytest.mark.parametrize("far", [timedelta(days=2), timedelta(days=40_000)], ids=str)
def test_a_ulid_of_the_far_future_is_not_followed(far: timedelta) -> None:
    """Otherwise one wrong clock would date all later rows."""
    clock = SetClock()
    clock.at = EPOCH + far
    wrong = SystemIds(clock).ulid()
    ids = SystemIds(ManualClock())
    ids.follow(wrong)
    assert ids.ulid() < wrong


def test_ulids_leave_the_far_future_with_the_clock() -> None:
    """Otherwise one moment of a wrong clock would date all rows until the next start."""
    clock = SetClock()
    ids = SystemIds(clock)
    clock.at = EPOCH + timedelta(days=2)
    ids.ulid()
    clock.at = EPOCH
    assert made_at(ids.ulid()) == EPOCH


def test_a_clock_that_was_never_set_follows_any_ulid() -> None:
    """A machine without a battery starts in 1970; waiting rows go first, and stay young (P2)."""
    before, clock = SystemIds(ManualClock()).ulid(), SetClock()
    clock.at = EPOCH.fromtimestamp(20, tz=EPOCH.tzinfo)
    ids = SystemIds(clock)
    ids.follow(before)
    assert before < ids.ulid()


@pytest.mark.parametrize("key", ["", "z", "ann/1", "é" * 26])
def test_an_invalid_ulid_is_not_followed(key: str) -> None:
    ids = SystemIds(ManualClock())
    ids.follow(key)
    assert ULID.fullmatch(ids.ulid())


def test_a_ulid_begins_with_its_millisecond() -> None:
    """48 bits of milliseconds since 1970 come first (github.com/ulid/spec)."""
    clock = SetClock()
    clock.at = EPOCH.fromtimestamp(1469918176.385, tz=EPOCH.tzinfo)

    assert SystemIds(clock).ulid()[:10] == "01ARYZ6S41"


def test_ulids_of_many_threads_are_all_different() -> None:
    """The store's threads and the loop may make ids at once."""
    ids = SystemIds(ManualClock())
    ulids: list[str] = []
    threads = [
        Thread(target=lambda: ulids.extend([ids.ulid() for _ in range(500)])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(ulids)) == 2000


def test_tokens_are_32_random_bytes() -> None:
    """43 characters of base64url, all different."""
    ids = SystemIds(ManualClock())
    tokens = {ids.token() for _ in range(1000)}

    assert len(tokens) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_a_ulid_holds_the_time_of_its_creation() -> None:
    """Its first ten characters are the milliseconds, so rows age by their ids."""
    ulid = SystemIds(ManualClock()).ulid()
    assert made_at(ulid) == EPOCH
