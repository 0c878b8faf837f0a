"""`zeroclaw export`: what is kept of a conversation or a person, for reading and for machines."""

import asyncio
import json
import os
from pathlib import Path

import click

from zeroclaw.cli.options import with_places
from zeroclaw.errors import Refused


class NotExported(Refused):
    """Raised when there is nothing to write out, or nowhere."""


@click.command("export")
@click.argument("whose", metavar="WHOSE")
@click.option(
    "--to",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where it is written, readable by you alone; else to stdout. Must not exist.",
)
@click.option("--page", "as_page", is_flag=True, help="A page for a browser, not JSON lines.")
@with_places
def command(
    whose: str, to: Path | None, config: Path | None, data_dir: Path | None, *, as_page: bool
) -> None:
    """Write out one conversation, or all of one person, as JSON lines or as a page.

    WHOSE is a conversation's id, a person's name in the configuration, or a sender such as
    telegram:7. Of a person come the conversations that they alone read, whole, and of all others
    what they said there and what came of it. Secrets are redacted as in chats. Works with and
    without a running daemon.
    """
    text = asyncio.run(_exported(whose, config, data_dir, as_page=as_page))
    if to is None:
        click.echo(text, nl=False)
    else:
        _write(to, text)
        click.echo(f"exported to {to}")


async def _exported(
    whose: str, config: Path | None, data_dir: Path | None, *, as_page: bool
) -> str:
    # The configuration is loaded whole, because it knows which secrets there are.
    from zeroclaw.cli.loading import load
    from zeroclaw.cli.starting import start_of
    from zeroclaw.keeping.collect import collect
    from zeroclaw.keeping.export import lines
    from zeroclaw.keeping.page import page
    from zeroclaw.stores.sqlite.reading import open_for_looking

    start = await asyncio.to_thread(lambda: start_of(load(config, data_dir), os.environ))
    async with open_for_looking(start.places.data) as kept:
        found = lines(await collect(kept, whose), start.checked.redactor.redact)
    if not found:
        message = f"nothing is kept of `{whose}`; name a conversation, a person or a sender"
        raise NotExported(message)
    if as_page:
        return page(f"zeroclaw: {whose}", found)
    return "".join(f"{json.dumps(line.as_json(), ensure_ascii=False)}\n" for line in found)


def _write(to: Path, text: str) -> None:
    try:
        descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        message = f"`{to}` can't be written: {why}"
        raise NotExported(message) from error
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
