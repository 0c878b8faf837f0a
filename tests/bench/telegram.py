"""What is measured of Telegram alone: its limits, and a model that writes slowly."""

import asyncio
import re
from collections.abc import Sequence

from channels.telegram.emulator import Limits
from tests.bench.allowed import needed_s, slot
from tests.bench.parts import Place
from tests.bench.platforms import TELEGRAM, talking
from tests.bench.stage_process import Exchange

WRITERS = 30
PUBLISHED = Limits()
_ENDED = re.compile(r"ended-([0-9.]+)")


async def limited(place: Place) -> None:
    """Measure 200 chats at once within the limits that Telegram publishes."""
    async with talking(place, TELEGRAM, "limits", TELEGRAM.chats, limits="published") as (_, stage):
        # What the limit needs is reckoned from a full bucket; after a start ours counts as spent.
        await asyncio.sleep(PUBLISHED.account.burst / PUBLISHED.account.per_s)
        exchanges = (await stage.say("text", people=TELEGRAM.chats))[0]
    calls = _counted(exchanges)
    elapsed_s = max(exchange.final for exchange in exchanges) - min(
        exchange.delivered for exchange in exchanges
    )
    needed = needed_s(len(calls), PUBLISHED.account)
    report, name = place.report, "telegram, 200 chats within limits"
    report.one(f"{name}: calls refused (429)", _refused(exchanges), "", aim="0")
    # One for each answer is the least; more of them would make the ratio smaller, not better.
    report.one(f"{name}: calls that count", len(calls), "", aim=str(TELEGRAM.chats))
    report.one(f"{name}: last answer", elapsed_s, "s")
    report.one(f"{name}: what the limit needs for them", needed, "s")
    report.one(f"{name}: ratio", elapsed_s / needed, "", aim="< 1.2")


def _counted(exchanges: Sequence[Exchange]) -> list[float]:
    """Return when calls were made that count against the limits, in order."""
    return sorted(
        call.at
        for exchange in exchanges
        for call in exchange.calls
        if PUBLISHED.counts(call.kind) and not call.refused
    )


def _refused(exchanges: Sequence[Exchange]) -> int:
    return sum(call.refused for exchange in exchanges for call in exchange.calls)


# --- a model that writes slowly ------------------------------------------------------------------


async def streams(place: Place, times: int) -> None:
    """Measure how 200 tokens, 20 ms apart, are seen: by one person alone, and by 30 at once."""
    for limits in ("off", "published"):
        words = "no limits" if limits == "off" else "limits"
        async with talking(place, TELEGRAM, f"slow-{limits}", WRITERS, limits=limits) as (_, stage):
            await stage.say("text")  # so that nothing is done for the first time
            alone: list[list[Exchange]] = []
            for _ in range(times):
                await asyncio.sleep(PUBLISHED.chat.burst / PUBLISHED.chat.per_s)  # buckets refill
                alone += await stage.say("slow")
            _tell(place, f"one slow answer, {words}", alone, limits, aim="< 50")
            together = await stage.say("slow", people=WRITERS)
            _tell(place, f"30 slow answers, {words}", together, limits)


def _tell(
    place: Place, name: str, rounds: Sequence[Sequence[Exchange]], limits: str, *, aim: str = ""
) -> None:
    all_exchanges = [exchange for exchanges in rounds for exchange in exchanges]
    report = place.report
    report.many(
        f"{name}: first text",
        [(exchange.first - exchange.delivered) * 1000 for exchange in all_exchanges],
        "ms",
    )
    report.many(
        f"{name}: calls that show text",
        [float(len(exchange.calls)) for exchange in all_exchanges],
        "",
    )
    behind = [(exchange.final - _ended(exchange)) * 1000 for exchange in all_exchanges]
    report.many(
        f"{name}: final behind the model's end", behind, "ms", aim="" if limits != "off" else aim
    )
    if limits == "off":
        return
    late = [
        (exchange.final - _slot(exchange, exchanges)) * 1000
        for exchanges in rounds
        for exchange in exchanges
    ]
    report.many(f"{name}: final behind the first slot", late, "ms", aim=aim)
    report.one(f"{name}: calls refused (429)", _refused(all_exchanges), "", aim="0")


def _ended(exchange: Exchange) -> float:
    found = _ENDED.search(exchange.text)
    assert found is not None
    return float(found.group(1))


def _slot(exchange: Exchange, together: Sequence[Exchange]) -> float:
    """Return when the limits of the chat and of the account allowed a final at the soonest."""
    end = _ended(exchange)
    chat = [at for at in _counted([exchange]) if at < exchange.final]
    account = [at for at in _counted(together) if at < exchange.final]
    return max(slot(chat, PUBLISHED.chat, end), slot(account, PUBLISHED.account, end))
