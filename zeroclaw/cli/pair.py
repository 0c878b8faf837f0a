"""`zeroclaw pair`: who wants to talk to the bot, who may, and who may no longer.

What changes something needs the running daemon, because it keeps who is who in mind; the list is
read from the store where none runs.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.answers import Text
from zeroclaw.cli.options import at_place


@click.group("pair")
def command() -> None:
    """Show who wants to talk to the bot, and let them in or not.

    On channels with `pairing = "code"`, strangers who write in private get a code, and operators
    a card. Here the same is answered by the code that a stranger tells you.
    """


@command.command("list")
@at_place
def list_(place: Path) -> None:
    """Show who waits, who was let in, and who was revoked; works without a daemon too."""
    click.echo(asyncio.run(_listed(place)))


@command.command("approve")
@click.argument("who", metavar="CODE|PERSON")
@at_place
def approve(place: Path, *, who: str) -> None:
    """Let in who has this code, or take back that somebody was revoked."""
    _change(place, "approve", who)


@command.command("deny")
@click.argument("who", metavar="CODE|PERSON")
@at_place
def deny(place: Path, *, who: str) -> None:
    """Refuse who has this code; they meet silence for a day."""
    _change(place, "deny", who)


@command.command("revoke")
@click.argument("who", metavar="PERSON")
@at_place
def revoke(place: Path, *, who: str) -> None:
    """Put somebody out at once: what they had running is stopped.

    PERSON is a name of the configuration, or <channel>:<sender id>.
    """
    _change(place, "revoke", who)


def _change(place: Path, what: str, who: str) -> None:
    from zeroclaw.cli.client import change

    click.echo(asyncio.run(change(place, "pair", what, who)))


async def _listed(place: Path) -> str:
    from zeroclaw.cli.client import ask_if_running, store_at

    if (told := await ask_if_running(place, "pair", Text, words="list")) is not None:
        return told.text
    from zeroclaw.inbound.commands.pair import listed
    from zeroclaw.text.language import ENGLISH

    async with store_at(place) as (store, now):
        return await listed(store, now, ENGLISH)
