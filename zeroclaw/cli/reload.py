"""`zeroclaw reload`: the running daemon reads its configuration again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click

from zeroclaw.cli.answers import Reloaded
from zeroclaw.cli.options import at_place
from zeroclaw.errors import ConfigError


@click.command("reload")
@at_place
def command(place: Path) -> None:
    """Let the running daemon read its configuration again.

    Who may talk to it, the policy and the limits hold at once, for what is under way too: whoever
    is let in no more has what they had running stopped. Keys that need a restart are named, and
    stay as they were. A file with a fault changes nothing; every fault is printed. SIGHUP does the
    same, and logs it.
    """
    from zeroclaw.cli.client import ask

    done = asyncio.run(ask(place, "reload", Reloaded))
    if done.faults:
        raise ConfigError((*done.faults, "nothing was changed"))
    click.echo("\n".join(lines(done)))


def lines(done: Reloaded) -> Iterator[str]:
    """Return what was taken up as a person reads it."""
    yield f"read        {done.file}"
    yield f"holds now   {', '.join(done.live) or 'nothing new'}"
    if done.waiting:
        yield f"restart     needed for {', '.join(done.waiting)}; as it was until then"
    for warning in done.warnings:
        yield f"warning     {warning}"
