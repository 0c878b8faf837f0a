"""The usage of models by day, person and model, read from the rows of ended turns."""

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, time, timedelta

from zeroclaw.clock import made_at, ulid_time
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import Principal
from zeroclaw.host.answers import Used
from zeroclaw.store import Rows

MAX_DAYS = 3660


def first_day(now: datetime, days: int) -> date:
    """Return the first day of a span of `days` days that ends today."""
    return (now - timedelta(days=min(max(days, 1), MAX_DAYS) - 1)).date()


async def used_since(rows: Rows, first: date) -> tuple[Used, ...]:
    """Return the usage since a day, oldest day first; as far back as turns are stored."""
    found: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    begins = ulid_time(datetime.combine(first, time(), UTC))
    async for turn in TURNS.readable(rows, state="closed", after=begins):
        usage, day = turn.usage, str(made_at(turn.turn).date())
        if usage.total_tokens:
            found[day, person_of(turn.item.principal), turn.model].update(
                turns=1,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
                micros=turn.micros or 0,
                unpriced_tokens=usage.total_tokens if turn.micros is None else 0,
            )
    return tuple(
        Used(day=day, person=person, model=model, **sums)
        for (day, person, model), sums in sorted(found.items())
    )


def person_of(principal: Principal) -> str:
    """Return the name of a person in the configuration, else their id."""
    return principal.id.removeprefix("person:")
