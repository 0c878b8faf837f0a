"""`zeroclaw reload`: the running daemon reads its configuration again.

{"call": "reload"} →
{"file": "/path/config.toml", "live": ["autonomy"], "waiting": ["provider.model"], "warnings": []}
{"faults": ["/path/config.toml: autonomy: …"]}, and nothing has changed
"""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from zeroclaw.cli.client import answer, texts
from zeroclaw.cli.options import data_place, with_places
from zeroclaw.errors import ConfigError


@click.command("reload")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
    """Let the running daemon read its configuration again.

    Who may talk to it, the policy and the limits hold at once, for what is under way too: whoever
    is let in no more has what they had running stopped. Keys that need a restart are named, and
    stay as they were. A file with a fault changes nothing; every fault is printed. SIGHUP does the
    same, and logs it.
    """
    told = asyncio.run(answer(data_place(config, data_dir), {"call": "reload"}))
    if faults := texts(told.get("faults")):
        raise ConfigError((*faults, "nothing was changed"))
    click.echo("\n".join(lines(told)))


def lines(told: Mapping[str, object]) -> Iterator[str]:
    """Return what was taken up as a person reads it."""
    live, waiting = texts(told.get("live")), texts(told.get("waiting"))
    yield f"read        {told.get('file', '')}"
    yield f"holds now   {', '.join(live) or 'nothing new'}"
    if waiting:
        yield f"restart     needed for {', '.join(waiting)}; as it was until then"
    for warning in texts(told.get("warnings")):
        yield f"warning     {warning}"
