"""`zeroclaw receipts`: which receipts in a text are true.

    {"call": "receipts", "text": "…"} →
    {"receipts": [{"token": "zc-receipt-…", "verdict": "valid" | "earlier" | "removed" | "false",
                   "tool": "shell", "outcome": "ok", "at": "2026-01-01T12:00:00+00:00"}]}

`tool`, `outcome` and `at` are empty for a false one.
"""

import asyncio
import json
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

from zeroclaw.cli.client import answer, store_at
from zeroclaw.cli.options import as_json, data_place, with_places
from zeroclaw.errors import StoreUnusable
from zeroclaw.host.control import Unreachable

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


Shown = Mapping[str, object]


async def receipts_in(place: Path, text: str) -> tuple[Shown, ...]:
    """Return what each receipt in a text is, as `zeroclaw.cli.receipts` describes it.

    Raises:
        DaemonRefused: The daemon could not.
        StoreUnusable: None runs, and the store can't be opened.
    """
    try:
        told = await answer(place, {"call": "receipts", "text": text})
    except Unreachable:
        return await _from_store(place, text)
    found = told.get("receipts")
    # The daemon answers in JSON, whose objects have text keys only.
    return tuple(cast("list[Shown]", found)) if isinstance(found, list) else ()


async def _from_store(place: Path, text: str) -> tuple[Shown, ...]:
    from zeroclaw.gate.receipt import Key
    from zeroclaw.gate.receipt_keys import FILE, Keys, read_keys
    from zeroclaw.inbound.receipts import Receipts
    from zeroclaw.stores.sqlite.files import FILE_NAME

    if not await asyncio.to_thread((place / FILE_NAME).is_file):
        message = f"`{place}` holds no data yet; start zeroclaw with `zeroclaw run`"
        raise StoreUnusable(message)
    # Nobody signs with this one: whatever is true was issued by an earlier process.
    nobody = Key(id="", secret=secrets.token_bytes(32))
    stored = await asyncio.to_thread(read_keys, place / FILE)
    kept = (Key(id=one.id, secret=bytes.fromhex(one.secret)) for one in stored)
    async with store_at(place) as (store, _):
        receipts = Receipts(store, Keys(current=nobody, every=(*kept, nobody)))
        return tuple(await receipts.verify(text))
