"""`zeroclaw halt`: everything stops, also when no daemon runs yet."""

from pathlib import Path

import click

from zeroclaw.cli.options import data_place, with_places
from zeroclaw.cli.typed import say


@click.command("halt")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
    """Stop everything that runs, until `zeroclaw resume`.

    Running answers and commands end, no tool runs, messages wait. It holds over restarts. Works
    without a running daemon: the next one starts halted.
    """
    from zeroclaw.cli.switching import switch

    if switch(data_place(config, data_dir), on=True):
        say("halted: nothing runs and nothing starts, until `zeroclaw resume`")
    else:
        say("no daemon runs; the next one starts halted, until `zeroclaw resume`")
