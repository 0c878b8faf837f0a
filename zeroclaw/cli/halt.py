"""`zeroclaw halt` and `zeroclaw resume`: everything stops, and goes on.

The daemon answers when the switch is stored and running turns have been told to end. Where none
runs, the switch is stored for the next one.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.answers import Answer
from zeroclaw.cli.invocation import say
from zeroclaw.cli.options import at_place

BY = "the operator on this machine"


@click.command("halt")
@at_place
def command(place: Path) -> None:
    """Stop everything that runs, until `zeroclaw resume`.

    Running answers and commands end, no tool runs, messages wait. It holds over restarts. Works
    without a running daemon: the next one starts halted.
    """
    if asyncio.run(_switch(place, on=True)):
        say("halted: nothing runs and nothing starts, until `zeroclaw resume`")
    else:
        say("no daemon runs; the next one starts halted, until `zeroclaw resume`")


@click.command("resume")
@at_place
def resume(place: Path) -> None:
    """Go on after `zeroclaw halt`.

    Messages that waited are answered now. Works without a running daemon: the next one starts as
    usual.
    """
    if asyncio.run(_switch(place, on=False)):
        click.echo("going on: what waited is answered now")
    else:
        click.echo("no daemon runs; the next one starts as usual")


async def _switch(place: Path, *, on: bool) -> bool:
    """Halt or resume; returns whether a daemon was running."""
    from zeroclaw.cli.client import ask_if_running, store_at

    if await ask_if_running(place, "halt" if on else "resume", Answer, by=BY) is not None:
        return True
    from zeroclaw.inbound.commands.halt import Halt, halt_put
    from zeroclaw.store import Commit, DurablePoint

    async with store_at(place) as (store, now):
        put = halt_put(Halt(by=BY, at=now) if on else None)
        await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(put,)))
    return False
