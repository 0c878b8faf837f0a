"""`zeroclaw chat`: a conversation in this terminal."""

import asyncio
import sys
from pathlib import Path

import click

from zeroclaw.cli.invocation import handed_on
from zeroclaw.cli.options import at_place


@click.command("chat")
@at_place
def command(place: Path) -> None:
    """Talk with the bot in this terminal.

    Joins the daemon that runs; when none runs, starts one that ends when you leave. Answers are
    shown while they are written. When a call waits for your approval, answer with a (approve
    once), t (approve for a time) or d (deny), or by its number: /approve 1, /deny 1 because …

    /help lists the commands. A line that ends with a backslash goes on in the next one. Ctrl-C
    stops the answer that is being written, twice leaves, as does Ctrl-D.

    Into a pipe it is a script: each line is said when the one before was answered.

    \b
    echo "What is on my list?" | zeroclaw chat
    """  # noqa: D301  the \b is click's
    asyncio.run(_chat(place))


async def _chat(place: Path) -> None:
    from zeroclaw.cli.chat.own_daemon import DidNotStart, with_own_daemon
    from zeroclaw.cli.chat.session import sit
    from zeroclaw.cli.client import is_running

    if await is_running(place):
        await sit(place)
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        click.echo("no daemon runs, so I start one; it ends when you leave")
    try:
        await with_own_daemon(place, handed_on(), lambda: sit(place))
    except DidNotStart:
        # Another command may have started one at the same moment.
        if not await is_running(place):
            raise
        await sit(place)
