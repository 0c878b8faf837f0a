"""Verifies receipts: by the running daemon or, when none runs, from the store itself."""

import asyncio
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from zeroclaw.cli.answers import answer
from zeroclaw.errors import StoreUnusable
from zeroclaw.host.control import Unreachable

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
    # The store is only loaded when no daemon holds it.
    from zeroclaw.gate.receipt import Key
    from zeroclaw.gate.receipt_keys import FILE, Keys, read_keys
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.inbound.receipts import Receipts
    from zeroclaw.stores.sqlite import open_store
    from zeroclaw.stores.sqlite.opening import FILE_NAME

    if not await asyncio.to_thread((place / FILE_NAME).is_file):
        message = f"`{place}` holds no data yet; start zeroclaw with `zeroclaw run`"
        raise StoreUnusable(message)
    # Nobody signs with this one: whatever is true was issued by an earlier process.
    nobody = Key(id="", secret=secrets.token_bytes(32))
    stored = await asyncio.to_thread(read_keys, place / FILE)
    kept = (Key(id=one.id, secret=bytes.fromhex(one.secret)) for one in stored)
    store = await open_store(place, clock=SystemClock())
    try:
        receipts = Receipts(store, Keys(current=nobody, every=(*kept, nobody)))
        return tuple(await receipts.verify(text))
    finally:
        await store.aclose()
