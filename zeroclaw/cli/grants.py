"""`zeroclaw grants`: what was approved for a time, and its end.

A grant's `name` is the number that it has in every chat, or the end of its id where an earlier
release made it, and `revoke` takes both. A grant ends with the answer: the next call asks again.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.answers import Grants
from zeroclaw.cli.options import as_json, at_place, print_found


@click.group("grants")
def command() -> None:
    """Show what runs without asking, and end it.

    Whoever answers an approval "for a time" grants that conversation more such calls of that tool.
    """


@command.command("list")
@at_place
@as_json
def list_(place: Path, *, as_json: bool) -> None:
    """Show every grant that holds: its id, tool, resources, end, and by and for whom."""
    from zeroclaw.cli.client import ask

    told = asyncio.run(ask(place, "grants", Grants, words="list"))
    print_found(told.grants, (told.text,), as_json=as_json)


@command.command("revoke")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@at_place
def revoke(place: Path, *, ids: tuple[str, ...]) -> None:
    """End grants at once: the next such call asks again.

    ID is what `zeroclaw grants list` shows. Fails when none of them was ended.
    """
    from zeroclaw.cli.client import change

    click.echo(asyncio.run(change(place, "grants", "revoke", *ids)))
