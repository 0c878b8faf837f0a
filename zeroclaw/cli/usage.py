"""`zeroclaw usage`: the models' usage by day, person or model; also works without a daemon."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import msgspec

from zeroclaw.cli.client import ask_if_running
from zeroclaw.cli.options import Integer, as_json, at_place, print_result
from zeroclaw.host.answers import By, UsageReport, Used


@click.command("usage")
@click.option(
    "--days",
    type=Integer(1, 3660),
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
    print_result(msgspec.to_builtins(used), lines(used, by), as_json=as_json)


async def _used(place: Path, days: int) -> tuple[Used, ...]:
    reply = await ask_if_running(place, "usage", UsageReport, days=days)
    if reply is not None:
        return reply.used
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.limits.usage import first_day, used_since
    from zeroclaw.stores.sqlite.reader import open_read_only

    async with open_read_only(place) as store:
        return await used_since(store, first_day(SystemClock().now(), days))


def lines(used: tuple[Used, ...], by: By) -> Iterator[str]:
    """Return the sums as lines for a person, followed by the total."""
    from zeroclaw.limits.prices import AS_OF, grouped, total

    if not used:
        yield "no model was used"
        return
    sums = {**grouped(used, by), "all": total(used)}
    width = max(map(len, (by, *sums)))
    yield f"{by:<{width}}  {'turns':>7}  {'input':>13}  {'cached':>13}  {'output':>13}  {'US dollars':>12}"
    for name, row in sums.items():
        yield (
            f"{name:<{width}}  {row.turns:>7,}  {row.input_tokens:>13,}  {row.cached_tokens:>13,}"
            f"  {row.output_tokens:>13,}  {row.micros / 1_000_000:>12,.4f}"
        )
    if unpriced := sums["all"].unpriced_tokens:
        yield f"no price is known for {unpriced:,} tokens; add it to `budget.prices`"
    if sums["all"].micros:
        yield f"without `budget.prices`, list prices of {AS_OF} count"
