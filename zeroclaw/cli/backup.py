"""`zeroclaw backup`: a copy of all data, made while the daemon goes on."""

import sys
from pathlib import Path

import click

from zeroclaw.cli.options import data_place, with_places

_TENTHS = 10


@click.command("backup")
@click.argument("path", type=click.Path(path_type=Path))
@with_places
def command(path: Path, config: Path | None, data_dir: Path | None) -> None:
    """Copy all data to a new directory, while the daemon runs or not.

    PATH is made, and must not exist. It gets the database as it is at one moment, and the keys of
    receipts, readable by you alone. `zeroclaw restore PATH` puts it back. The configuration and
    the workspaces are not in it.
    """
    from zeroclaw.gate.receipt_keys import FILE
    from zeroclaw.stores.sqlite.copies import back_up

    shown = -1

    def progress(done: int, every: int) -> None:
        nonlocal shown
        tenth = _TENTHS * done // max(every, 1)
        if tenth != shown and sys.stderr.isatty():
            click.echo(f"\rcopying: {tenth * 100 // _TENTHS} %", err=True, nl=False)
            shown = tenth

    back_up(data_place(config, data_dir), path, files=(FILE,), progress=progress)
    if shown >= 0:
        click.echo(err=True)
    click.echo(f"backed up to {path}")
