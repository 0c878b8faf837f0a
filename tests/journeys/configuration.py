"""Writes the configuration of a journey: plain tables as TOML."""

from collections.abc import Mapping
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
