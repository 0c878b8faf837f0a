"""`zeroclaw resume`: the end of a halt."""

from pathlib import Path

import click

from zeroclaw.cli.options import data_place, with_places


@click.command("resume")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
    """Go on after `zeroclaw halt`.

    Messages that waited are answered now. Works without a running daemon: the next one starts as
    usual.
    """
    from zeroclaw.cli.switching import switch

    if switch(data_place(config, data_dir), on=False):
        click.echo("going on: what waited is answered now")
    else:
        click.echo("no daemon runs; the next one starts as usual")
