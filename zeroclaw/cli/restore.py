"""`zeroclaw restore`: a backup in the place of the data, while no daemon runs."""

from pathlib import Path

import click

from zeroclaw.cli.options import data_place, with_places


@click.command("restore")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the data that is there; it is lost.")
@with_places
def command(path: Path, config: Path | None, data_dir: Path | None, *, force: bool) -> None:
    """Put a backup in the place of the data, while no daemon runs.

    PATH is what `zeroclaw backup` made. It is checked whole before anything is replaced, and it
    stays as it is. Messages that platforms deliver again since then are answered again.
    """
    from zeroclaw.gate.receipt_keys import FILE
    from zeroclaw.stores.sqlite.copies import restore

    place = data_place(config, data_dir)
    restore(path, place, files=(FILE,), overwrite=force)
    click.echo(f"restored {place} from {path}")
