"""`zeroclaw receipts`: checks the receipts in a text."""

import asyncio
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from zeroclaw.cli.invocation import note
from zeroclaw.cli.options import as_json, at_place, print_found
from zeroclaw.host.answers import Verdicts
from zeroclaw.text.escape import in_a_mark

_NAME = re.compile(r"[\w.-]+", re.ASCII)
_WORDS = {
    "valid": "valid",
    "earlier": "valid, from an earlier run",
    "removed": "valid according to the audit; the result itself can't be read any more",
}


def _typed(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    return sys.stdin.read() if text == "-" else text


@click.group("receipts")
def command() -> None:
    """Tell true receipts from false ones."""


@command.command("verify")
@click.argument("text", metavar="TOKEN|-", callback=_typed)
@at_place
@as_json
def verify(place: Path, *, text: str, as_json: bool) -> None:
    """Check for each receipt in a text whether this daemon issued it.

    TOKEN is a receipt (zc-receipt-…) or any text that contains receipts; - reads the text from
    stdin. A true receipt proves that the tool was called, when, and with which outcome. Exits with
    1 if a receipt is false or can't be checked, or if the text contains none. No daemon has to run.
    """
    found = asyncio.run(receipts_in(place, text))
    if found or as_json:
        print_found(found, map(line, found), as_json=as_json)
    else:
        note("there is no receipt in this text")
    if not found or any(one.get("verdict") not in _WORDS for one in found):
        raise click.exceptions.Exit(1)


def line(one: Mapping[str, object]) -> str:
    """Return a verdict as a line for a person."""
    if one["verdict"] == "unchecked":
        return f"{one['token']}: can't be checked: the audit or a conversation is damaged"
    if (words := _WORDS.get(str(one["verdict"]))) is None:
        return f"{one['token']}: FALSE: nobody here issued it for what is stored"
    tool = str(one["tool"])
    if not _NAME.fullmatch(tool):  # a model made it up
        tool = in_a_mark(tool).replace("`", "'")
        tool = f"`{tool}`"
    return f"{one['token']}: {words}; {tool}, {one['outcome']}, {one['at']}"


async def receipts_in(place: Path, text: str) -> Sequence[Mapping[str, object]]:
    """Return the verdict on each receipt in a text, as `Verdicts` describes it.

    Raises:
        DaemonRefused: The daemon could not verify them.
        StoreUnusable: No daemon runs, and the store can't be opened.
    """
    from zeroclaw.cli.client import ask_if_running
    from zeroclaw.gate.receipt import find_tokens

    # The daemon gets no more than it needs: a whole text may be longer than a line of the socket.
    text = " ".join(find_tokens(text))
    if (told := await ask_if_running(place, "receipts", Verdicts, text=text)) is not None:
        return told.receipts
    from zeroclaw.gate.receipt_keys import kept_keys
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.inbound import receipts
    from zeroclaw.stores.sqlite.reader import open_read_only

    now, unused = SystemClock().now(), secrets.token_bytes(32)
    keys = await asyncio.to_thread(kept_keys, place, now=now, secret=unused)
    async with open_read_only(place) as looking:
        return await receipts.ReceiptVerifier(looking, keys).verify(text)
