"""Writes the configuration of a journey: plain tables as TOML."""

import random
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

import tomli_w

WITHOUT_DEFAULT_CHANNELS: Mapping[str, object] = {
    "channels": {"web": {"enabled": False}, "terminal": {"enabled": False}}
}
"""For whoever names the channels that run, and says `enabled` of a default one."""


def toml(tables: Mapping[str, object]) -> str:
    """Return tables as TOML text."""
    return tomli_w.dumps(tables)


def merged(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, object]:
    """Return both, table by table; where both say something else, the second counts."""
    result = dict(first)
    for key, value in second.items():
        known = result.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            tables = cast("Mapping[str, object]", known), cast("Mapping[str, object]", value)
            result[key] = merged(*tables)
        else:
            result[key] = value
    return result


def free_port() -> int:
    """Return a port for a daemon that is not there yet, below those that systems hand out by themselves.

    One of theirs may be another connection's before the daemon takes it.
    """
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
