"""`zeroclaw chat`: a conversation in this terminal."""

import asyncio
import sys
from pathlib import Path

import click

from zeroclaw.cli.invocation import daemon_options
from zeroclaw.cli.options import at_place


@click.command("chat")
@at_place
def command(place: Path) -> None:
    """Talk to the bot in this terminal.

    Connects to the running daemon, or starts one that ends when you leave. Answers appear while
    they are written. When a call waits for your approval, answer with a (approve once), t (approve
    for a time) or d (deny), or by its number: /approve 1, /deny 1 because …

    /help lists the commands, and Tab completes them. Alt-Enter, or a backslash before Enter, begins
    a further line, and pasted lines are one message, which Enter sends. The up arrow and Ctrl-R find
    your earlier messages. Ctrl-C stops the answer that is being written; press it twice, or Ctrl-D,
    to leave.

    Input from a pipe is a script: each line is sent once the previous one has been answered.

    \b
    echo "What is on my list?" | zeroclaw chat
    """  # noqa: D301  the \b is click's
    asyncio.run(talk(place))


async def talk(place: Path) -> None:
    """Talk to the running daemon, or to one of this session's own."""
    from zeroclaw.cli.chat.own_daemon import DidNotStart, with_own_daemon
    from zeroclaw.cli.chat.session import converse
    from zeroclaw.cli.client import ask_if_running, is_running
    from zeroclaw.host.answers import Status

    # Not `is_running`: a daemon that hangs still accepts connections.
    if await ask_if_running(place, "status", Status):
        await converse(place)
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        click.echo("no daemon is running, so I start one; it ends when you leave")
    try:
        await with_own_daemon(place, daemon_options(), lambda: converse(place))
    except DidNotStart:
        # Another command may have started one at the same time.
        if not await is_running(place):
            raise
        await converse(place)
