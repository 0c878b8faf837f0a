"""What is measured of Telegram alone: its limits, and a model that writes slowly."""

import asyncio
import re
from collections.abc import Sequence

from channels.telegram.emulator import Limits
from tests.bench.allowed import needed_s, slot
from tests.bench.parts import Place
from tests.bench.platforms import TELEGRAM, talking
from tests.bench.stage_process import Told

WRITERS = 30
PUBLISHED = Limits()
_ENDED = re.compile(r"ended-([0-9.]+)")


async def limited(place: Place) -> None:
    """Measure 200 chats at once within the limits that Telegram publishes."""
    async with talking(place, TELEGRAM, "limits", TELEGRAM.chats, limits="published") as (_, here):
        # What the limit needs is reckoned from a full bucket; after a start ours counts as spent.
        await asyncio.sleep(PUBLISHED.account.burst / PUBLISHED.account.per_s)
        told = (await here.say("text", people=TELEGRAM.chats))[0]
    calls = _counted(told)
    took = max(one.final for one in told) - min(one.delivered for one in told)
    needed = needed_s(len(calls), PUBLISHED.account)
    report, name = place.report, "telegram, 200 chats within limits"
    report.one(f"{name}: calls refused (429)", _refused(told), "", aim="0")
    # One for each answer is the least; more of them would make the ratio smaller, not better.
    report.one(f"{name}: calls that count", len(calls), "", aim=str(TELEGRAM.chats))
    report.one(f"{name}: last answer", took, "s")
    report.one(f"{name}: what the limit needs for them", needed, "s")
    report.one(f"{name}: ratio", took / needed, "", aim="< 1.2")


def _counted(told: Sequence[Told]) -> list[float]:
    """Return when calls were made that count against the limits, in order."""
    return sorted(
        call.at
        for one in told
        for call in one.calls
        if PUBLISHED.counts(call.kind) and not call.refused
    )


def _refused(told: Sequence[Told]) -> int:
    return sum(call.refused for one in told for call in one.calls)


# --- a model that writes slowly ------------------------------------------------------------------


async def streams(place: Place, times: int) -> None:
    """Measure how 200 tokens, 20 ms apart, are seen: by one person alone, and by 30 at once."""
    for limits in ("off", "published"):
        words = "no limits" if limits == "off" else "limits"
        async with talking(place, TELEGRAM, f"slow-{limits}", WRITERS, limits=limits) as (_, here):
            await here.say("text")  # so that nothing is done for the first time
            alone: list[list[Told]] = []
            for _ in range(times):
                await asyncio.sleep(PUBLISHED.chat.burst / PUBLISHED.chat.per_s)  # buckets refill
                alone += await here.say("slow")
            _tell(place, f"one slow answer, {words}", alone, limits, aim="< 50")
            together = await here.say("slow", people=WRITERS)
            _tell(place, f"30 slow answers, {words}", together, limits)


def _tell(
    place: Place, name: str, rounds: Sequence[Sequence[Told]], limits: str, *, aim: str = ""
) -> None:
    told = [one for some in rounds for one in some]
    report = place.report
    report.many(f"{name}: first text", [(one.first - one.delivered) * 1000 for one in told], "ms")
    report.many(f"{name}: calls that show text", [float(len(one.calls)) for one in told], "")
    behind = [(one.final - _ended(one)) * 1000 for one in told]
    report.many(
        f"{name}: final behind the model's end", behind, "ms", aim="" if limits != "off" else aim
    )
    if limits == "off":
        return
    late = [(one.final - _slot(one, some)) * 1000 for some in rounds for one in some]
    report.many(f"{name}: final behind the first slot", late, "ms", aim=aim)
    report.one(f"{name}: calls refused (429)", _refused(told), "", aim="0")


def _ended(told: Told) -> float:
    found = _ENDED.search(told.text)
    assert found is not None
    return float(found.group(1))


def _slot(told: Told, together: Sequence[Told]) -> float:
    """Return when the limits of the chat and of the account allowed a final at the soonest."""
    end = _ended(told)
    chat = [at for at in _counted([told]) if at < told.final]
    account = [at for at in _counted(together) if at < told.final]
    return max(slot(chat, PUBLISHED.chat, end), slot(account, PUBLISHED.account, end))
