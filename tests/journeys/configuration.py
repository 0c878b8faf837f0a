"""Writes the configuration of a journey: plain tables as TOML."""

from collections.abc import Mapping
from typing import cast

import tomli_w

WITHOUT_DEFAULT_CHANNELS: Mapping[str, object] = {
    "channels": {"web": {"enabled": False}, "terminal": {"enabled": False}}
}
"""For tests that name the channels to run; a default channel then needs `enabled`."""


def toml(tables: Mapping[str, object]) -> str:
    """Return tables as TOML text."""
    return tomli_w.dumps(tables)


def merged(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, object]:
    """Merge two configurations table by table; the second one's values win."""
    result = dict(first)
    for key, value in second.items():
        value_before = result.get(key)
        if isinstance(value_before, Mapping) and isinstance(value, Mapping):
            tables = cast("Mapping[str, object]", value_before), cast("Mapping[str, object]", value)
            result[key] = merged(*tables)
        else:
            result[key] = value
    return result
