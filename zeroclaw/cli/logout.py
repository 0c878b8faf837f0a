"""`zeroclaw logout`: every browser is logged out of the web page.

    {"call": "logout"} → {"sessions": 2}

A button on the page logs out the browser that shows it.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.client import answer
from zeroclaw.cli.options import data_place, with_places
from zeroclaw.errors import Refused
from zeroclaw.host.control import Unreachable


@click.command("logout")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
    """Log every browser out of the web page.

    And of the console. Open pages say so at once, and login links that nobody has used yet open nothing any more. Works
    without a running daemon. `zeroclaw status` prints a new link.
    """
    count = asyncio.run(_log_out(data_place(config, data_dir)))
    said = "1 browser is" if count == 1 else f"{count} browsers are"
    click.echo(f"{said} logged out" if count else "no browser was logged in")


async def _log_out(place: Path) -> int:
    try:
        told = await answer(place, {"call": "logout"})
    except Unreachable:
        return await asyncio.to_thread(_in_file, place)
    count = told.get("sessions")
    return count if isinstance(count, int) else 0


def _in_file(place: Path) -> int:
    # What serves the page is only loaded when no daemon does.
    from zeroclaw.host.local_listener import SESSIONS, log_out_stored

    try:
        return log_out_stored(place / SESSIONS)
    except OSError as error:
        message = f"`{place / SESSIONS}` can't be written: {str(error.strerror).lower()}"
        raise Refused(message) from error
