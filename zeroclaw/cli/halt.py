"""`zeroclaw halt` and `zeroclaw resume`: everything stops, and goes on.

    {"call": "halt", "by": "the operator on this machine"} → {"halted": true}
    {"call": "resume", "by": …} → {"halted": false}

The answer comes when the switch is stored and running turns have been told to end. Where no daemon
runs, the switch is stored for the next one.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.client import answer, store_at
from zeroclaw.cli.invocation import say
from zeroclaw.cli.options import data_place, with_places
from zeroclaw.host.control import Unreachable


@click.command("halt")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
    """Stop everything that runs, until `zeroclaw resume`.

    Running answers and commands end, no tool runs, messages wait. It holds over restarts. Works
    without a running daemon: the next one starts halted.
    """
    if switch(data_place(config, data_dir), on=True):
        say("halted: nothing runs and nothing starts, until `zeroclaw resume`")
    else:
        say("no daemon runs; the next one starts halted, until `zeroclaw resume`")


@click.command("resume")
@with_places
def resume(config: Path | None, data_dir: Path | None) -> None:
    """Go on after `zeroclaw halt`.

    Messages that waited are answered now. Works without a running daemon: the next one starts as
    usual.
    """
    if switch(data_place(config, data_dir), on=False):
        click.echo("going on: what waited is answered now")
    else:
        click.echo("no daemon runs; the next one starts as usual")


BY = "the operator on this machine"


def switch(place: Path, *, on: bool) -> bool:
    """Halt or resume; returns whether a daemon was running.

    Raises:
        DaemonRefused: The daemon could not.
        StoreUnusable: None runs, and the store can't be opened.
    """
    return asyncio.run(_switch(place, on=on))


async def _switch(place: Path, *, on: bool) -> bool:
    try:
        await answer(place, {"call": "halt" if on else "resume", "by": BY})
    except Unreachable:
        await _in_store(place, on=on)
        return False
    return True


async def _in_store(place: Path, *, on: bool) -> None:
    from zeroclaw.inbound.commands.halt import Halt, halt_put
    from zeroclaw.store import Commit, DurablePoint

    async with store_at(place) as (store, clock):
        put = halt_put(Halt(by=BY, at=clock.now()) if on else None)
        await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(put,)))
