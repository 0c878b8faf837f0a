"""What every channel promises of calls that come too often: told so once, and never repeated by itself."""

from pathlib import Path

import pytest

from tests.contract.channel_adapters import ADAPTERS
from tests.contract.channel_suite import Adapter, Desk, Harness
from tests.contract.channel_words import outgoing, over, texts
from zeroclaw import RateLimited

# Most open real sockets.
pytestmark = pytest.mark.slow

MOST = 60
"""More than any platform takes at once in one chat."""
WITH_LIMITS = [one for one in ADAPTERS if one.capabilities.chat_budget.per_s]
WITHOUT_LIMITS = [one for one in ADAPTERS if not one.capabilities.chat_budget.per_s]


async def send_many(harness: Harness, count: int) -> None:
    """Send one message after the other."""
    for number in range(count):
        sent = outgoing(harness, f"number {number}", f"k{number}")
        await harness.channel.send(harness.address, sent)


@over(WITH_LIMITS)
async def test_what_comes_too_often_is_refused_once_and_passes_when_its_time_has_come(
    adapter: Adapter, tmp_path: Path
) -> None:
    """The adapter says how long to wait, asks no more by itself, and then sends. P6."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        refused = harness.keep_limits()
        with pytest.raises(RateLimited) as told:
            await send_many(harness, MOST)
        before = await texts(harness)
        assert told.value.retry_after_s > 0
        await harness.clock.advance(told.value.retry_after_s)
        await harness.channel.send(harness.address, outgoing(harness, "late", "late"))
        assert await texts(harness) == [*before, "late"]
        assert refused() == 1


@over(WITHOUT_LIMITS)
async def test_what_has_no_limit_takes_all_at_once(adapter: Adapter, tmp_path: Path) -> None:
    """That there is none is true: no time passes here."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        await send_many(harness, 10)
        assert sorted(await texts(harness)) == [f"number {number}" for number in range(10)]
