"""`zeroclaw status`: how the running daemon is."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click

from zeroclaw.cli.answers import ChannelSeen, Status
from zeroclaw.cli.options import as_json, at_place, print_found

_KIB = 1024


@click.command("status")
@at_place
@as_json
def command(place: Path, *, as_json: bool) -> None:
    """Show how the running daemon is.

    Its channels, its model, what waits, how much disk it takes, and a fresh link to the web page
    that logs one browser in. Exits with 3 when no daemon runs.
    """
    from zeroclaw.cli.client import answer, read

    told = asyncio.run(answer(place, "status"))
    print_found(told, lines(read(told, Status)), as_json=as_json)


def lines(told: Status) -> Iterator[str]:
    """Return a status as a person reads it."""
    yield f"zeroclaw   {told.version}"
    if told.halted:
        yield f"HALTED     by {told.halted}; `zeroclaw resume` goes on"
    yield f"model      {told.model}"
    if told.restart_for:
        yield f"restart    for {', '.join(told.restart_for)}"
    label = "channels"
    for name, channel in sorted(told.channels.items()):
        yield f"{label:<10} {name} {_condition(channel)}"
        label = ""
    yield f"work       {told.busy} at work, {told.waiting} waiting"
    if told.pending:
        yield f"approvals  {told.pending} to answer; `/pending` in a chat lists them"
    for name, count in sorted(told.dropped.items()):
        yield f"strangers  {count} messages dropped on {name}"
    for name, count in sorted(told.refused.items()):
        yield f"limits     {count} messages not taken on {name}"
    yield f"disk       {_size(told.disk_bytes)}"
    if told.login_url:
        yield f"web page   {told.login_url} (opens once)"


def _condition(channel: ChannelSeen) -> str:
    since = "?" if channel.since is None else f"{channel.since.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"{channel.condition} since {since}{f': {channel.why}' if channel.why else ''}"


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < _KIB:
            return f"{size:.0f} {unit}"
        size /= _KIB
    return f"{size:.1f} GiB"
