"""The fakes' clocks do what the rooms' tests rely on."""

import asyncio

import pytest

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import EPOCH, LoopClock, ManualClock


async def test_sleepers_wake_in_the_order_they_are_due() -> None:
    clock, woken = ManualClock(), list[tuple[str, float]]()

    async def nap(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(nap("late", 5))
        group.create_task(nap("early", 2))
        await clock.advance(4)
        assert woken == [("early", 2)]
        assert clock.sleeping() == (1,)
        await clock.advance(1)
    assert woken == [("early", 2), ("late", 5)]
    assert (clock.now() - EPOCH).total_seconds() == 5


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(clock.sleep(5))
        await clock.settle()
        task.cancel()
    assert clock.sleeping() == ()


async def test_virtual_time_jumps_and_timeouts_follow_it() -> None:
    clock = LoopClock()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await clock.sleep(7200)
    assert clock.monotonic() == 3600


def test_ids_sort_by_time_of_making() -> None:
    ids = CountingIds()
    made = [ids.ulid() for _ in range(100)]
    assert made == sorted(made)
    assert {len(ulid) for ulid in made} == {26}
    assert ids.token() != ids.token()
