"""Writes the configuration of a journey: plain tables as TOML."""

import json
from collections.abc import Mapping
from typing import cast


def toml(tables: Mapping[str, object]) -> str:
    """Return tables as TOML text, nested ones as inline tables."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in tables.items())


def _key(key: str) -> str:
    return json.dumps(key)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return f"{{{', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in table.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(inner) for inner in cast('list[object]', value))}]"
    return json.dumps(value)


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
