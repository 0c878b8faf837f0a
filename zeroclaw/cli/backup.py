"""`zeroclaw backup` and `zeroclaw restore`: a copy of all data, even while the daemon runs."""

from pathlib import Path

import click

from zeroclaw.cli.invocation import note
from zeroclaw.cli.options import at_place, progress
from zeroclaw.host.places import CHANNELS

MAX_REVOKED = 1_000_000
"""How many revoked people are copied into the restored data at most."""


@click.command("backup")
@click.argument("path", type=click.Path(path_type=Path))
@at_place
def command(place: Path, *, path: Path) -> None:
    """Copy all data to a new directory, even while the daemon runs.

    PATH must not exist yet. It gets a consistent copy of the database, the receipt keys and the
    channels' own files, readable by you alone. `zeroclaw restore PATH` brings it back. The
    configuration and the workspaces are not included.
    """
    from zeroclaw.gate.receipt_keys import FILE
    from zeroclaw.stores.sqlite.backup import back_up

    back_up(place, path, files=(FILE, CHANNELS), progress=progress(path.name))
    click.echo(f"backed up to {path}")


@click.command("restore")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace existing data, which is lost.")
@at_place
def restore(place: Path, *, path: Path, force: bool) -> None:
    """Replace the data with a backup, while no daemon runs.

    PATH is a directory made by `zeroclaw backup`. The whole copy is checked before anything is
    replaced, and is left unchanged. Messages that a platform delivers again are answered again;
    the channels' own notes here stay, such as which mail was read. The files in all workspaces
    count as untrusted from then on, because the backup does not say who wrote them. Grants for a
    time are removed. Revoked people stay revoked and a halt stays in force, if the replaced data
    can be read. Data that `/forget` erased since the backup comes back.
    """
    from zeroclaw.gate.grant import GRANTS
    from zeroclaw.gate.receipt_keys import FILE
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.host.ids import SystemIds
    from zeroclaw.inbound.identity import PEOPLE
    from zeroclaw.inbound.live_config import HALTS
    from zeroclaw.stores.sqlite.backup import restore as put_back
    from zeroclaw.turn.tool_calls import mark_restored

    is_readable = put_back(
        path,
        place,
        files=(FILE, CHANNELS),
        rows=(mark_restored(SystemIds(SystemClock()).ulid()),),
        drops=(GRANTS.kind,),
        keeps=(
            (PEOPLE.where(state="revoked", limit=MAX_REVOKED), PEOPLE.of),
            (HALTS.where(), HALTS.of),
        ),
        overwrite=force,
    )
    click.echo(f"restored {place} from {path}")
    if not is_readable:
        note(
            "not all of the replaced data can be read: people revoked since the backup may be let "
            "in again, and a halt may have ended; see `zeroclaw pair list`"
        )
