"""Localized when a change of the configuration's file holds."""

import asyncio
from pathlib import Path

from zeroclaw.config.diff import changed_keys, is_live
from zeroclaw.config.validate import parse
from zeroclaw.errors import ConfigError
from zeroclaw.host.control import Unreachable, request


def when_it_holds(before: str, after: str, place: Path) -> str:
    """Return it in a few words.

    Args:
        before: The old text.
        after: The new one.
        place: The data directory, where a daemon may run.
    """
    try:
        keys = changed_keys(parse(before), parse(after))
    except ConfigError:
        return "it holds when the file has no fault and zeroclaw is started again"
    if not keys:
        return "nothing else changes by it"
    if not asyncio.run(_runs(place)):
        return "it holds when zeroclaw is started"
    if all(map(is_live, keys)):
        return "a zeroclaw runs; `zeroclaw reload` puts it in force"
    return "a zeroclaw runs; it holds when that is started again"


async def _runs(place: Path) -> bool:
    try:
        await request(place, {"call": "status"})
    except Unreachable:
        return False
    return True
