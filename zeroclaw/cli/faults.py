"""Finds every fault of a configuration at once.

A table, or a channel, that has a fault is left out while the rest is looked at.
"""

import tomllib
from collections.abc import Mapping
from typing import cast

from pydantic import ValidationError

from zeroclaw.config.model import Config
from zeroclaw.config.validate import config_of, faults_of
from zeroclaw.daemon.checked import check
from zeroclaw.errors import ConfigError


def faults_in(
    text: str, *, environment: Mapping[str, str], needs_secrets: bool = True
) -> tuple[str, ...]:
    """Return one line for each fault, `key.path: what is wrong, what is allowed`; none is good.

    Args:
        text: The whole TOML.
        environment: `os.environ`, for references to secrets.
        needs_secrets: See `check`.
    """
    try:
        table = cast("dict[str, object]", tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return (f"not valid TOML: {str(error).lower()}",)
    faults: list[str] = []
    config = _readable(table, faults)
    try:
        broken = _channels(table) - set(config.channels)
        check(config, environment, needs_secrets=needs_secrets, broken=broken)
    except ConfigError as error:
        faults += error.faults
    return tuple(faults)


def _channels(table: Mapping[str, object]) -> set[str]:
    """Return the channels that are written there, whatever is wrong with them."""
    named = table.get("channels")
    return set(cast("dict[str, object]", named)) if isinstance(named, dict) else set()


def _readable(table: dict[str, object], faults: list[str]) -> Config:
    """Return the configuration without the tables, and the channels, that have faults."""
    try:
        return config_of(table)
    except ValidationError as error:
        faults.extend(faults_of(error))
        broken = {tuple(str(part) for part in fault["loc"][:2]) for fault in error.errors()}
    kept = {key: one for key, one in table.items() if not _is_broken(key, broken)}
    channels = table.get("channels")
    if isinstance(channels, dict):
        named = cast("dict[str, object]", channels)
        kept["channels"] = {
            name: one for name, one in named.items() if ("channels", name) not in broken
        }
    return config_of(kept)


def _is_broken(key: str, broken: set[tuple[str, ...]]) -> bool:
    return any(place[:1] == (key,) for place in broken)
