"""`zeroclaw status`: how the running daemon is.

    {"call": "status"} →
    {"version": "0.1.0", "model": "…", "halted": "" | "<who>",
     "restart_for": ["<key that a reload found changed>"],
     "channels": {"web": {"condition": "up", "since": "2026-01-01T12:00:00+00:00", "why": ""}},
     "busy": 0, "waiting": 0, "pending": 0, "dropped": {"<channel>": 0},
     "refused": {"<channel>": 0}, "disk_bytes": 0, "login_url": "http://127.0.0.1:8420/?login=…"}

A key that an older daemon doesn't send is left out of what is shown.
"""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import click

from zeroclaw.cli.client import answer, table, texts, time
from zeroclaw.cli.options import as_json, data_place, print_found, with_places

_KIB = 1024


@click.command("status")
@with_places
@as_json
def command(config: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Show how the running daemon is.

    Its channels, its model, what waits, how much disk it takes, and a fresh link to the web page
    that logs one browser in. Exits with 3 when no daemon runs.
    """
    told = asyncio.run(answer(data_place(config, data_dir), {"call": "status"}))
    print_found(told, lines(told), as_json=as_json)


def lines(told: Mapping[str, object]) -> Iterator[str]:
    """Return a status as a person reads it."""
    yield f"zeroclaw   {told.get('version', '')}"
    if halted := told.get("halted"):
        yield f"HALTED     by {halted}; `zeroclaw resume` goes on"
    yield f"model      {told.get('model', '')}"
    if keys := texts(told.get("restart_for")):
        yield f"restart    for {', '.join(keys)}"
    label = "channels"
    for name, channel in sorted(table(told.get("channels")).items()):
        yield f"{label:<10} {name} {_condition(table(channel))}"
        label = ""
    yield f"work       {told.get('busy', 0)} at work, {told.get('waiting', 0)} waiting"
    if pending := told.get("pending"):
        yield f"approvals  {pending} to answer; `/pending` in a chat lists them"
    for name, count in sorted(table(told.get("dropped")).items()):
        yield f"strangers  {count} messages dropped on {name}"
    for name, count in sorted(table(told.get("refused")).items()):
        yield f"limits     {count} messages not taken on {name}"
    yield f"disk       {_size(told.get('disk_bytes'))}"
    if url := told.get("login_url"):
        yield f"web page   {url} (opens once)"


def _condition(channel: Mapping[str, object]) -> str:
    why = f": {channel['why']}" if channel.get("why") else ""
    return f"{channel.get('condition', '?')} since {_local(time(channel.get('since')))}{why}"


def _local(at: datetime | None) -> str:
    return "?" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def _size(value: object) -> str:
    size = float(value) if isinstance(value, int | float) else 0.0
    for unit in ("B", "KiB", "MiB"):
        if size < _KIB:
            return f"{size:.0f} {unit}"
        size /= _KIB
    return f"{size:.1f} GiB"
