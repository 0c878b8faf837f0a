"""`zeroclaw receipts`: checks the receipts in a text."""

import asyncio
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from zeroclaw.cli.invocation import note
from zeroclaw.cli.options import as_json, at_place, print_result
from zeroclaw.host.answers import Verdicts
from zeroclaw.text.escape import in_a_mark

_NAME = re.compile(r"[\w.-]+", re.ASCII)
_GENUINE = {
    "valid": "valid",
    "earlier": "valid, from an earlier run",
    "removed": "valid according to the audit; the result itself can't be read any more",
}


def _text_or_stdin(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    return sys.stdin.read() if text == "-" else text


@click.group("receipts")
def command() -> None:
    """Tell true receipts from false ones."""


@command.command("verify")
@click.argument("text", metavar="TOKEN|-", callback=_text_or_stdin)
@at_place
@as_json
def verify(place: Path, *, text: str, as_json: bool) -> None:
    """Check for each receipt in a text whether this daemon issued it.

    TOKEN is a receipt (zc-receipt-…) or any text that contains receipts; - reads the text from
    stdin. A true receipt proves that the tool was called, when, and with which outcome. Exits with
    1 if a receipt is false or can't be checked, or if the text contains none. No daemon has to run.
    """
    receipts = asyncio.run(receipts_in(place, text))
    if receipts or as_json:
        print_result(receipts, map(line, receipts), as_json=as_json)
    else:
        note("there is no receipt in this text")
    if not receipts or any(receipt.get("verdict") not in _GENUINE for receipt in receipts):
        raise click.exceptions.Exit(1)


def line(receipt: Mapping[str, object]) -> str:
    """Return the verdict on a receipt as a line for a person."""
    token = receipt["token"]
    if receipt["verdict"] == "unchecked":
        return f"{token}: can't be checked: the audit or a conversation is damaged"
    if (verdict := _GENUINE.get(str(receipt["verdict"]))) is None:
        return f"{token}: FALSE: this daemon did not issue it for a stored result"
    tool = str(receipt["tool"])
    if not _NAME.fullmatch(tool):  # a model made it up
        tool = in_a_mark(tool).replace("`", "'")
        tool = f"`{tool}`"
    return f"{token}: {verdict}; {tool}, {receipt['outcome']}, {receipt['at']}"


async def receipts_in(place: Path, text: str) -> Sequence[Mapping[str, object]]:
    """Return the verdict on each receipt in a text, as `Verdicts` describes it.

    Raises:
        DaemonRefused: The daemon could not verify them.
        StoreUnusable: No daemon runs, and the store can't be opened.
    """
    from zeroclaw.cli.client import ask_if_running
    from zeroclaw.gate.receipt import find_tokens

    # The daemon gets the tokens only: the text may be longer than a line of the socket.
    text = " ".join(find_tokens(text))
    if (reply := await ask_if_running(place, "receipts", Verdicts, text=text)) is not None:
        return reply.receipts
    from zeroclaw.gate.receipt_keys import stored_keys
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.inbound import receipts
    from zeroclaw.stores.sqlite.reader import open_read_only

    now, unused = SystemClock().now(), secrets.token_bytes(32)
    keys = await asyncio.to_thread(stored_keys, place, now=now, secret=unused)
    async with open_read_only(place) as store:
        return await receipts.ReceiptVerifier(store, keys).verify(text)
