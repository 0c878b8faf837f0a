"""Turns the halt switch, in the running daemon or, when none runs, in the store itself.

    {"call": "halt", "by": "the operator on this machine"} → {"halted": true}
    {"call": "resume", "by": …} → {"halted": false}

The answer comes when the switch is stored and running turns have been told to end.
"""

import asyncio
from pathlib import Path

from zeroclaw.cli.answers import answer
from zeroclaw.host.control import Unreachable

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
    # The store is only loaded when no daemon holds it.
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.inbound.commands.halt import Halt, halt_put
    from zeroclaw.store import Commit, DurablePoint
    from zeroclaw.stores.sqlite import open_store

    clock = SystemClock()
    store = await open_store(place, clock=clock)
    try:
        put = halt_put(Halt(by=BY, at=clock.now()) if on else None)
        await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(put,)))
    finally:
        await store.aclose()
