"""`zeroclaw grants`: what was approved for a time, and its end.

    {"call": "grants", "words": "list"} → {"text": "…", "changed": false, "grants": [{"id": "…",
        "name": "…", "tool": "…", "resources": ["…"], "arguments_hash": "", "conversation": "…",
        "holder": "…", "granted_by": "…", "until": "2026-01-01T12:00:00+00:00"}]}
    {"call": "grants", "words": "revoke ID …"} → {"text": "…", "changed": true}

`text` is what a person reads; `name` is the number that the grant has in every chat, or the end of its
id where an earlier release made it, and `revoke` takes both. A grant ends with the answer: the next call asks again.
"""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.client import answer, change
from zeroclaw.cli.options import as_json, data_place, print_found, with_places


@click.group("grants")
def command() -> None:
    """Show what runs without asking, and end it.

    Whoever answers an approval "for a time" grants that conversation more such calls of that tool.
    """


@command.command("list")
@with_places
@as_json
def list_(config: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Show every grant that holds: its id, tool, resources, end, and by and for whom."""
    told = asyncio.run(answer(data_place(config, data_dir), {"call": "grants", "words": "list"}))
    print_found(told.get("grants", []), (str(told.get("text", "")),), as_json=as_json)


@command.command("revoke")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@with_places
def revoke(ids: tuple[str, ...], config: Path | None, data_dir: Path | None) -> None:
    """End grants at once: the next such call asks again.

    ID is what `zeroclaw grants list` shows. Fails when none of them was ended.
    """
    place = data_place(config, data_dir)
    click.echo(asyncio.run(change(place, "grants", "revoke", *ids)))
