"""`zeroclaw chat`: a conversation in this terminal."""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.options import with_places
from zeroclaw.host.places import data_place


@click.command("chat")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
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
    asyncio.run(_chat(data_place(config, data_dir), _handed_on(config, data_dir)))


def _handed_on(config: Path | None, data_dir: Path | None) -> tuple[str, ...]:
    """Return the options that a daemon of our own is started with."""
    named = () if config is None else ("--config", str(config))
    return named if data_dir is None else (*named, "--data-dir", str(data_dir))


async def _chat(place: Path, arguments: tuple[str, ...]) -> None:
    from zeroclaw.cli.chat.own_daemon import DidNotStart, with_own_daemon
    from zeroclaw.cli.chat.session import ink_of_stdout, sit
    from zeroclaw.cli.client import is_running

    if await is_running(place):
        await sit(place)
        return
    if ink_of_stdout().moves:
        click.echo("no daemon runs, so I start one; it ends when you leave")
    try:
        await with_own_daemon(place, arguments, lambda: sit(place))
    except DidNotStart:
        # Another command may have started one at the same moment.
        if not await is_running(place):
            raise
        await sit(place)
