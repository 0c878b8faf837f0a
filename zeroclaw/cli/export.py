"""`zeroclaw export`: the stored data of a conversation or a person, as a page or JSON lines."""

import asyncio
import os
from collections.abc import Iterator
from itertools import accumulate, groupby
from pathlib import Path

import click

from zeroclaw.cli.invocation import note
from zeroclaw.cli.options import with_places
from zeroclaw.errors import Refused, refused_as

_PIECE_CHARS = 40_000
"""Half of what fits into a line to the daemon, which is 1 MiB: one character takes up to twelve
bytes in JSON."""


@click.command("export")
@click.argument("whose", metavar="WHOSE")
@click.option(
    "--to",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A new file, readable by you alone. Default: stdout.",
)
@click.option(
    "--page", "as_page", is_flag=True, help="Write a page for a browser instead of JSON lines."
)
@with_places
def command(
    whose: str, to: Path | None, config: Path | None, data_dir: Path | None, *, as_page: bool
) -> None:
    """Export one conversation, or everything of one person.

    WHOSE is a conversation's id, a person's name in the configuration, or a sender such as
    telegram:7. For a person, that is all of their private conversations, what they said in others
    with the answers to it, and what the bot remembers about them. Secrets are redacted as in chats;
    a running daemon redacts those that only it knows. Of a damaged record, only its existence.
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
    # The whole configuration is loaded, because it knows which secrets exist.
    from zeroclaw.cli.client import held_by_daemon
    from zeroclaw.cli.configuration import load, start_of
    from zeroclaw.retention.collect import collect
    from zeroclaw.retention.export import lines, page
    from zeroclaw.stores.sqlite.reader import open_read_only
    from zeroclaw.text.escape import as_json
    from zeroclaw.value import replace

    start = await asyncio.to_thread(
        lambda: start_of(load(config, data_dir), os.environ, needs_all=False)
    )
    place = start.places.data
    async with open_read_only(place) as kept:
        found = lines(
            await collect(kept, whose, start.config.people), start.checked.redactor.redact
        )
    missing = start.checked.missing
    for key in sorted(missing.keys() - (await held_by_daemon(place) if missing else ())):
        note(f"{missing[key]}; where somebody wrote it, it is not redacted")
    if found:
        texts = tuple(text for line in found for text in (line.by, line.text))
        told = iter(await _redacted_there(place, texts))
        found = tuple(replace(line, by=next(told), text=next(told)) for line in found)
    damaged = sum(line.kind == "damaged" for line in found)
    if len(found) == damaged:  # such a record may be anybody's
        what = "nothing that can be read" if damaged else "nothing"
        message = f"{what} is kept of `{whose}`; name a conversation, a person or a sender"
        raise Refused(message)
    if damaged:
        note(f"{damaged} of the records can't be read, and are only named, as `damaged`")
    if as_page:
        return page(f"zeroclaw: {whose}", found)
    return "".join(f"{as_json(line.as_json())}\n" for line in found)


async def _redacted_there(place: Path, said: tuple[str, ...]) -> tuple[str, ...]:
    """Let a running daemon redact as well: its environment may have secrets that this one lacks.

    Returns the texts unchanged if no daemon runs, or an older one.
    """
    from zeroclaw.cli.client import DaemonRefused, ask
    from zeroclaw.host.answers import Redacted
    from zeroclaw.host.control import DaemonUnreachable

    pieces = [(at, piece) for at, text in enumerate(said) for piece in _pieces(text)]
    ends = accumulate(len(piece) + 1 for _, piece in pieces)
    redacted = [""] * len(said)
    try:
        for _, batch in groupby(pieces, key=lambda _: next(ends) // _PIECE_CHARS):
            places, texts = zip(*batch, strict=True)
            told = await ask(place, "redact", Redacted, texts=texts)
            for at, text in zip(places, told.texts, strict=True):
                redacted[at] += text
    except (DaemonUnreachable, DaemonRefused):
        return said
    return tuple(redacted)


def _pieces(text: str) -> Iterator[str]:
    """Split a long text after spaces, which few secrets contain, so that it fits into a line."""
    while len(text) > _PIECE_CHARS:
        cut = text.rfind(" ", 0, _PIECE_CHARS) + 1 or _PIECE_CHARS
        yield text[:cut]
        text = text[cut:]
    yield text


def _write(to: Path, text: str) -> None:
    with refused_as(Refused, f"`{to}` can't be written"):
        descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            to.unlink()
            raise
