"""`zeroclaw usage`: the models' usage by day, person or model; works without a daemon, too."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import msgspec

from zeroclaw.cli.client import ask_if_running
from zeroclaw.cli.options import Whole, as_json, at_place, print_found
from zeroclaw.host.answers import By, UsageReport, Used


@click.command("usage")
@click.option(
    "--days",
    type=Whole(1, 3660),
    default=30,
    show_default=True,
    help="How many days, including today; days are UTC.",
)
@click.option(
    "--by",
    type=click.Choice(get_args(By)),
    default="day",
    show_default=True,
    help="What to add up by.",
)
@at_place
@as_json
def command(place: Path, *, days: int, by: By, as_json: bool) -> None:
    """Show how many tokens models used, and what that cost.

    Counts the turns that have ended and are still stored. The price is the one that was known when
    the turn ended: from `budget.prices`, zero for a model on this machine, or a built-in list price.
    """
    used = asyncio.run(_used(place, days))
    print_found(msgspec.to_builtins(used), lines(used, by), as_json=as_json)


async def _used(place: Path, days: int) -> tuple[Used, ...]:
    told = await ask_if_running(place, "usage", UsageReport, days=days)
    if told is not None:
        return told.used
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.limits.usage import first_day, used_since
    from zeroclaw.stores.sqlite.reader import open_read_only

    async with open_read_only(place) as kept:
        return await used_since(kept, first_day(SystemClock().now(), days))


def lines(used: tuple[Used, ...], by: By) -> Iterator[str]:
    """Return the sums as lines for a person, followed by the total."""
    from zeroclaw.limits.prices import AS_OF, grouped, total

    if not used:
        yield "no model was used"
        return
    found = {**grouped(used, by), "all": total(used)}
    wide = max(map(len, (by, *found)))
    yield f"{by:<{wide}}  {'turns':>7}  {'input':>13}  {'cached':>13}  {'output':>13}  {'US dollars':>12}"
    for name, one in found.items():
        money = f"{one.micros / 1_000_000:,.4f}"
        yield (
            f"{name:<{wide}}  {one.turns:>7,}  {one.input_tokens:>13,}  {one.cached_tokens:>13,}"
            f"  {one.output_tokens:>13,}  {money:>12}"
        )
    if unpriced := found["all"].unpriced_tokens:
        yield f"no price is known for {unpriced:,} tokens; add it to `budget.prices`"
    if found["all"].micros:
        yield f"without `budget.prices`, list prices of {AS_OF} count"
