"""`zeroclaw logout`: every browser is logged out of the web page.

A button on the page logs out the browser that shows it.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.answers import LoggedOut
from zeroclaw.cli.options import at_place
from zeroclaw.errors import Refused, system_words


@click.command("logout")
@at_place
def command(place: Path) -> None:
    """Log every browser out of the web page.

    And of the console. Open pages say so at once, and login links that nobody has used yet open nothing any more. Works
    without a running daemon. `zeroclaw status` prints a new link.
    """
    from zeroclaw.cli.client import ask_if_running

    told = asyncio.run(ask_if_running(place, "logout", LoggedOut))
    count = _in_file(place) if told is None else told.sessions
    said = "1 browser is" if count == 1 else f"{count} browsers are"
    click.echo(f"{said} logged out" if count else "no browser was logged in")


def _in_file(place: Path) -> int:
    # What serves the page is only loaded when no daemon does.
    from zeroclaw.host.local_listener import SESSIONS, log_out_stored

    try:
        return log_out_stored(place / SESSIONS)
    except OSError as error:
        message = f"`{place / SESSIONS}` can't be written: {system_words(error)}"
        raise Refused(message) from error
