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
"""Half of the characters that fit into a line to the daemon, 1 MiB: one takes up to twelve bytes in
JSON."""


@click.command("export")
@click.argument("subject", metavar="WHOSE")
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
    subject: str, to: Path | None, config: Path | None, data_dir: Path | None, *, as_page: bool
) -> None:
    """Export one conversation, or everything of one person.

    WHOSE is a conversation's id, a person's name in the configuration, or a sender such as
    telegram:7. For a person, that is all of their private conversations, their messages in others
    with the answers to them, and the bot's memories of them. Secrets are redacted as in chats; a
    running daemon redacts those that only it knows. A damaged record is only listed.
    """
    text = asyncio.run(_exported(subject, config, data_dir, as_page=as_page))
    if to is None:
        click.echo(text, nl=False)
    else:
        _write(to, text)
        click.echo(f"exported to {to}")


async def _exported(
    subject: str, config: Path | None, data_dir: Path | None, *, as_page: bool
) -> str:
    # The whole configuration is loaded, because it knows which secrets exist.
    from zeroclaw.cli.client import secrets_of_daemon
    from zeroclaw.cli.configuration import load, start_of
    from zeroclaw.inbound.identity import People
    from zeroclaw.retention.collect import collect
    from zeroclaw.retention.export import lines, page
    from zeroclaw.stores.sqlite.reader import open_read_only
    from zeroclaw.text.escape import as_json
    from zeroclaw.value import replace

    start = await asyncio.to_thread(
        lambda: start_of(load(config, data_dir), os.environ, needs_all=False)
    )
    place = start.places.data
    people = People(start.config, {it.name: it.manifest for it in start.checked.channels})
    async with open_read_only(place) as store:
        collected = await collect(store, people.id_of(subject) or subject, start.config.people)
    records = lines(collected, start.checked.redactor.redact)
    missing = start.checked.missing
    for key in sorted(missing.keys() - (await secrets_of_daemon(place) if missing else ())):
        note(f"{missing[key]}; the export does not redact it")
    if records:
        texts = tuple(text for record in records for text in (record.by, record.text))
        redacted = iter(await _redacted_by_daemon(place, texts))
        records = tuple(replace(it, by=next(redacted), text=next(redacted)) for it in records)
    damaged = sum(record.kind == "damaged" for record in records)
    if len(records) == damaged:  # and damaged records may belong to other people
        stored = "nothing that can be read" if damaged else "nothing"
        message = f"{stored} is stored of `{subject}`; name a conversation, a person or a sender"
        raise Refused(message)
    if damaged:
        note(f"{damaged} of the records can't be read, and are only listed, as `damaged`")
    if as_page:
        return page(f"zeroclaw: {subject}", records)
    return "".join(f"{as_json(record.as_json())}\n" for record in records)


async def _redacted_by_daemon(place: Path, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Let a running daemon redact as well: its environment may have secrets that this one lacks.

    Returns the texts unchanged if no daemon runs, or it can't, which the operator is told.
    """
    from zeroclaw.cli.client import DaemonRefused, ask
    from zeroclaw.host.answers import Redacted
    from zeroclaw.host.control import DaemonUnreachable, NotRunning

    pieces = [(index, piece) for index, text in enumerate(texts) for piece in _pieces(text)]
    ends = accumulate(len(piece) + 1 for _, piece in pieces)
    redacted = [""] * len(texts)
    try:
        for _, batch in groupby(pieces, key=lambda _: next(ends) // _PIECE_CHARS):
            indexes, parts = zip(*batch, strict=True)
            reply = await ask(place, "redact", Redacted, texts=parts)
            for index, text in zip(indexes, reply.texts, strict=True):
                redacted[index] += text
    except (DaemonUnreachable, DaemonRefused) as error:
        if not isinstance(error, NotRunning):
            note(f"{error}; secrets that only the daemon has are not redacted")
        return texts
    return tuple(redacted)


def _pieces(text: str) -> Iterator[str]:
    """Split a long text after spaces, which few secrets contain, so that it fits into a line."""
    while len(text) > _PIECE_CHARS:
        cut = text.rfind(" ", 0, _PIECE_CHARS) + 1 or _PIECE_CHARS
        yield text[:cut]
        text = text[cut:]
    yield text


def _write(to: Path, text: str) -> None:
    with refused_as(Refused, f"`{to}` can't be written", "name another"):
        descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            to.unlink()
            raise
