"""`zeroclaw receipts`: which receipts in a text are true.

    {"call": "receipts", "text": "…"} →
    {"receipts": [{"token": "zc-receipt-…", "verdict": "valid" | "earlier" | "removed" | "false",
                   "tool": "shell", "outcome": "ok", "at": "2026-01-01T12:00:00+00:00"}]}

`tool`, `outcome` and `at` are empty for a false one.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

from zeroclaw.cli.options import as_json, data_place, with_places

_WORDS = {
    "valid": "valid",
    "earlier": "valid, from an earlier run",
    "removed": "valid by the audit; the result that it stood under is kept no longer",
}


@click.group("receipts")
def command() -> None:
    """Tell true receipts from false ones."""


@command.command("verify")
@click.argument("text", metavar="TOKEN|-")
@with_places
@as_json
def verify(text: str, config: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Say of each receipt in a text whether this daemon issued it.

    TOKEN is a receipt (zc-receipt-…) or any text with receipts in it; - reads the text from
    stdin. A true receipt proves that the tool ran, when, and with which outcome. Exits with 1 when
    one is false, or when the text holds none. Works without a running daemon.
    """
    from zeroclaw.cli.proving import receipts_in

    given = sys.stdin.read() if text == "-" else text
    found = asyncio.run(receipts_in(data_place(config, data_dir), given))
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif not found:
        click.echo("zeroclaw: there is no receipt in this text", err=True)
    else:
        click.echo("\n".join(map(line, found)))
    if not found or any(one.get("verdict") not in _WORDS for one in found):
        raise click.exceptions.Exit(1)


def line(one: Mapping[str, object]) -> str:
    """Return a verdict as a person reads it."""
    words = _WORDS.get(cast("str", one.get("verdict")), "FALSE: nobody here issued it")
    if one.get("verdict") not in _WORDS:
        return f"{one.get('token')}: {words}"
    return f"{one.get('token')}: {words}; {one.get('tool')}, {one.get('outcome')}, {one.get('at')}"
