"""A connection that is lost is made anew: at once, then after growing waits, then the channel is down."""

import asyncio
from collections.abc import Coroutine

import pytest

from channels._remote.http import Http
from channels._remote.kept import Ended, keep_connected
from tests.contract.loopback_harness import no_log
from tests.fakes.manual_clock import ManualClock
from zeroclaw import ChannelUnavailable, RateLimited


async def test_each_failure_is_waited_for_longer_until_the_channel_is_down() -> None:
    """One that stood is made anew at once, and the waits begin anew."""
    clock, http = ManualClock(), Http("chat", "Chat")
    ends = [Ended(why="lost", was_up=True), *[Ended(why="no")] * 2, Ended(why="lost", was_up=True)]
    at: list[float] = []

    async def hear() -> Ended:
        at.append(clock.monotonic())
        if ends:
            return ends.pop(0)
        raise ChannelUnavailable("`chat`: it is away")

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(_error_of(keep_connected(hear, http, clock, no_log)))
        for _ in range(40):
            await clock.advance(0.5)
        assert str(await keeping) == "`chat`: the gateway can't be heard: it is away"
    assert at == [0, 0, 0, 1, 1, 1, 2, 4, 8]


@pytest.mark.parametrize("error", [RateLimited("later", retry_after_s=60), None])
async def test_a_long_wait_and_a_channel_that_is_closed_end_it(error: RateLimited | None) -> None:
    clock, http = ManualClock(), Http("chat", "Chat")

    async def hear() -> Ended:
        if error is not None:
            raise error
        await http.aclose()
        return Ended(why="closed", was_up=True)

    raised = await _error_of(keep_connected(hear, http, clock, no_log))
    assert raised is error or "closed" in str(raised)


async def _error_of(work: Coroutine[object, object, None]) -> ChannelUnavailable:
    with pytest.raises(ChannelUnavailable) as raised:
        await work
    return raised.value
