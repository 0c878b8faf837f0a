"""`zeroclaw pair`: who wants to talk to the bot, who may, and who may no longer.

    {"call": "pair", "words": "list" | "approve CODE|PERSON" | "deny CODE|PERSON" | "revoke PERSON"}
    → {"text": "…", "changed": true}

`text` is what a person reads. What changes something needs the running daemon, because it keeps
who is who in mind; the list is read from the store where none runs.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.client import answer, change, store_at
from zeroclaw.cli.options import data_place, with_places
from zeroclaw.host.control import Unreachable


@click.group("pair")
def command() -> None:
    """Show who wants to talk to the bot, and let them in or not.

    On channels with `pairing = "code"`, strangers who write in private get a code, and operators
    a card. Here the same is answered by the code that a stranger tells you.
    """


@command.command("list")
@with_places
def list_(config: Path | None, data_dir: Path | None) -> None:
    """Show who waits, who was let in, and who was revoked; works without a daemon too."""
    click.echo(asyncio.run(_listed(data_place(config, data_dir))))


@command.command("approve")
@click.argument("who", metavar="CODE|PERSON")
@with_places
def approve(who: str, config: Path | None, data_dir: Path | None) -> None:
    """Let in who has this code, or take back that somebody was revoked."""
    _do("approve", who, data_place(config, data_dir))


@command.command("deny")
@click.argument("who", metavar="CODE|PERSON")
@with_places
def deny(who: str, config: Path | None, data_dir: Path | None) -> None:
    """Refuse who has this code; they meet silence for a day."""
    _do("deny", who, data_place(config, data_dir))


@command.command("revoke")
@click.argument("who", metavar="PERSON")
@with_places
def revoke(who: str, config: Path | None, data_dir: Path | None) -> None:
    """Put somebody out at once: what they had running is stopped.

    PERSON is a name of the configuration, or <channel>:<sender id>.
    """
    _do("revoke", who, data_place(config, data_dir))


def _do(what: str, who: str, place: Path) -> None:
    click.echo(asyncio.run(change(place, "pair", what, who)))


async def _listed(place: Path) -> str:
    try:
        told = await answer(place, {"call": "pair", "words": "list"})
    except Unreachable:
        return await _in_store(place)
    return str(told.get("text", ""))


async def _in_store(place: Path) -> str:
    from zeroclaw.inbound.commands.pair import listed
    from zeroclaw.text.language import ENGLISH

    async with store_at(place) as (store, clock):
        return await listed(store, clock.now(), ENGLISH)
