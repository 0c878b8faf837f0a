"""What models used, by day, person and model: read from the rows of the turns that are over."""

from datetime import UTC, date, datetime, time, timedelta

from zeroclaw.clock import made_at, ulid_time
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import Principal
from zeroclaw.host.answers import Used
from zeroclaw.store import Rows

MOST_DAYS = 3660


def first_day(now: datetime, days: int) -> date:
    """Return the first of so many days, today's the last."""
    return (now - timedelta(days=min(max(days, 1), MOST_DAYS) - 1)).date()


async def used_since(rows: Rows, first: date) -> tuple[Used, ...]:
    """Return what was used from a day on, the oldest day first; as far back as turns are kept."""
    found: dict[tuple[str, str, str], list[int]] = {}
    begins_at = datetime.combine(first, time(), UTC)
    async for turn in TURNS.all(rows, state="closed", after=ulid_time(begins_at)):
        usage, day = turn.usage, str(made_at(turn.turn).date())
        if usage.total_tokens:
            sums = found.setdefault((day, person_of(turn.item.principal), turn.model), [0] * 6)
            unpriced = usage.total_tokens if turn.micros is None else 0
            counted = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
            for at, more in enumerate((1, *counted, turn.micros or 0, unpriced)):
                sums[at] += more
    return tuple(
        Used(
            day=day,
            person=person,
            model=model,
            turns=turns,
            input_tokens=sent,
            output_tokens=written,
            cached_tokens=cached,
            micros=micros,
            unpriced_tokens=unpriced,
        )
        for (day, person, model), (turns, sent, written, cached, micros, unpriced) in sorted(
            found.items()
        )
    )


def person_of(principal: Principal) -> str:
    """Return what stands for a person: their name in the configuration, else their id."""
    return principal.id.removeprefix("person:")
