"""Every channel's promises for calls that come too often: one refusal, and no repeat by itself."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.channel_adapters import ADAPTERS
from tests.contract.channel_house import PEOPLE, POKED, living
from tests.contract.channel_suite import Adapter, Desk, Harness
from tests.contract.channel_words import REAL, outgoing, over, texts
from zeroclaw import RateLimited
from zeroclaw.provider import Finished, TextDelta

# Most open real sockets.
pytestmark = pytest.mark.slow

MOST = 60
"""More than any platform takes at once in one chat."""
WITH_LIMITS = [adapter for adapter in ADAPTERS if adapter.capabilities.chat_budget.per_s]
WITHOUT_LIMITS = [adapter for adapter in ADAPTERS if not adapter.capabilities.chat_budget.per_s]


async def send_many(harness: Harness, count: int) -> None:
    """Send one message after the other."""
    for number in range(count):
        sent = outgoing(harness, f"number {number}", f"k{number}")
        await harness.channel.send(harness.address, sent)


@over(WITH_LIMITS)
async def test_what_comes_too_often_is_refused_once_and_passes_when_its_time_has_come(
    adapter: Adapter, tmp_path: Path
) -> None:
    """The adapter says how long to wait, does not retry by itself, and then sends. P6."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        refused = harness.keep_limits()
        with pytest.raises(RateLimited) as raised:
            await send_many(harness, MOST)
        before = await texts(harness)
        assert raised.value.retry_after_s > 0
        await harness.clock.advance(raised.value.retry_after_s)
        await harness.channel.send(harness.address, outgoing(harness, "late", "late"))
        assert await texts(harness) == [*before, "late"]
        assert refused() == 1


@over(WITHOUT_LIMITS)
async def test_what_has_no_limit_takes_all_at_once(adapter: Adapter, tmp_path: Path) -> None:
    """That there is none is true: no time passes here."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        await send_many(harness, 10)
        assert sorted(await texts(harness)) == [f"number {number}" for number in range(10)]


@over([limit for limit in WITH_LIMITS if limit in REAL])
async def test_a_bot_that_is_busy_from_its_first_second_on_causes_no_refusal(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Drafts, long answers, notes and cards of several chats, as often as people write. P6, P9."""
    async with living(adapter, tmp_path) as home:
        refused = home.harness.keep_limits()
        async with home.running():
            for number in range(9):
                grows = asyncio.Event()
                for person in PEOPLE:
                    first, second = TextDelta(text="One, "), TextDelta(text=f"two, {number}.")
                    home.world.model.will((first, grows, second, Finished(reason="stop")))
                    await home.turn_to(person)
                    assert await home.harness.say("count")
                await home.world.clock.advance(0.1)
                grows.set()
            for person in PEOPLE:
                await home.until_texts(person, "two, 8.")
            await home.answer("olga", await home.request_approval())
            await home.until_texts("ann", POKED)
            assert refused() == 0
