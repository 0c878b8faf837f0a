"""Loads a configuration for a command, finds its faults, and prepares a daemon's start.

This file imports pydantic and the configuration's models, so commands import it late.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ValidationError

from zeroclaw.channel import ChannelManifest
from zeroclaw.config import table_of
from zeroclaw.config.model import Config, ProviderSettings
from zeroclaw.config.validate import config_of, faults_of, parse
from zeroclaw.daemon.config_check import ChannelPart, check, kinds_of
from zeroclaw.daemon.foundation import Start
from zeroclaw.errors import ConfigError, ProviderUnusable
from zeroclaw.foreign import Raised, call
from zeroclaw.host.places import Places, find_config, places_of, read_config
from zeroclaw.json_fields import is_object, object_at
from zeroclaw.redact import Redactor
from zeroclaw.value import Value


class Loaded(Value):
    """A configuration and its places.

    Attributes:
        data_dir: As given on the command line.
        written: The configuration as in the file, if `config` has a discovered model instead.
        reason: Why a model was chosen, in one line; empty if the configuration names it.
    """

    config: Config
    places: Places
    data_dir: Path | None = None
    written: Config | None = None
    reason: str = ""


def load(config: Path | None, data_dir: Path | None = None) -> Loaded:
    """Find the configuration and read it; see `read`."""
    return read(find_config(config), data_dir)


def read(path: Path | None, data_dir: Path | None = None) -> Loaded:
    """Read a configuration.

    Raises:
        ConfigError: It can't be read, or has faults. Lists every fault, also those of its valid
            tables, each preceded by the file's name.
    """
    text = read_config(path)
    try:
        parsed = parse(text)
        data = parsed.data_dir if data_dir is None else str(data_dir)
        places = places_of(path, data, parsed.workspace_dir, parsed.skills_dir)
    except ConfigError as error:
        faults = dict.fromkeys((*error.faults, *faults_in(text, environment=os.environ)))
        raise ConfigError(in_file(path, tuple(faults))) from error
    return Loaded(config=parsed, places=places, data_dir=data_dir)


def in_file(path: Path | None, faults: tuple[str, ...]) -> tuple[str, ...]:
    """Return faults, each preceded by the file's name."""
    return faults if path is None else tuple(f"{path}: {fault}" for fault in faults)


def start_of(loaded: Loaded, environment: Mapping[str, str], *, needs_all: bool = True) -> Start:
    """Check a configuration; blocks on files, a keyring and imports.

    Args:
        loaded: As read.
        environment: `os.environ`, for references to secrets.
        needs_all: See `check`.

    Raises:
        ConfigError: Lists every fault, each preceded by the file's name.
    """
    try:
        checked = check(loaded.config, environment, needs_all=needs_all)
    except ConfigError as error:
        raise ConfigError(in_file(loaded.places.config, error.faults)) from error
    path, data_dir = loaded.places.config, loaded.data_dir

    def reread() -> Start:
        # A daemon that was started without a file finds the one that was written since.
        return start_of(load(path, data_dir) if path is None else read(path, data_dir), environment)

    return Start(
        config=loaded.config,
        checked=checked,
        places=loaded.places,
        version=version("zeroclaw"),
        reread=reread,
        written=loaded.written,
    )


def faults_in(text: str, *, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line for each fault, `key.path: the fault, the allowed values`; empty if none.

    Args:
        text: The whole TOML.
        environment: `os.environ`, for references to secrets.
    """
    faults: list[str] = []
    try:
        table = table_of(text)
        channels = {*object_at(table, "channels")}
        config = _readable(table, faults)
        check(config, environment, broken=channels - config.channels.keys())
    except ConfigError as error:
        faults += _of_other_keys(error.faults, faults)
    return tuple(faults)


def unready(settings: ProviderSettings, places: Places) -> Iterator[str]:
    """Yield the reason why a local model can't answer, if any; the daemon starts all the same."""
    if settings.kind == "local":
        from zeroclaw.providers.local.checks import check_model
        from zeroclaw.providers.local.provider import model_file_of

        try:
            check_model(model_file_of(settings, places.models))
        except ProviderUnusable as error:
            yield str(error)


def _readable(table: dict[str, object], faults: list[str]) -> Config:
    """Return the configuration without the keys that have faults, which it removes."""
    while True:
        try:
            return config_of(table)
        except ValidationError as error:
            faults += _of_other_keys(faults_of(error, Config), faults)
            # All are found before one is removed: below a key that is gone, its table would be found.
            for holder, key in [_last_key(table, fault["loc"]) for fault in error.errors()]:
                holder.pop(key, None)


def _of_other_keys(more: Iterable[str], faults: Iterable[str]) -> list[str]:
    """Return further faults without those of keys that have one already, and so were left out.

    Nor of tables with such a key: they may lack only what was left out.
    """
    known = [f"{_key_of(fault)}." for fault in faults]
    return [
        fault for fault in more if not any(key.startswith(f"{_key_of(fault)}.") for key in known)
    ]


def _key_of(fault: str) -> str:
    return fault.partition(": ")[0]


def _last_key(
    table: dict[str, object], path: tuple[int | str, ...]
) -> tuple[dict[str, object], str]:
    """Return the last key on a path that the table has, and the table with it; a list as a whole."""
    key, below = str(path[0]), path[1:]
    inner = table.get(key)
    if is_object(inner) and below and below[0] in inner:
        return _last_key(inner, below)
    return table, key


def channel_kinds() -> Mapping[str, tuple[ChannelManifest, type[BaseModel]]]:
    """Return the manifest and the settings model of each channel kind; see `kinds_of`.

    Raises:
        ConfigError: A channel is installed but can't be loaded.
    """
    faults: list[str] = []
    kinds = kinds_of(faults)
    if faults:
        raise ConfigError(tuple(faults))
    return kinds


def channel_models() -> Mapping[str, type[BaseModel]]:
    """Return the settings model of each channel kind; see `channel_kinds`."""
    return {kind: model for kind, (_, model) in channel_kinds().items()}


class TrialResult(Value):
    """The result of trying a model or a platform.

    Attributes:
        is_ok: It works, or there was nothing to try.
        line: One sentence for a person.
    """

    is_ok: bool
    line: str


async def ask_platform(part: ChannelPart, redactor: Redactor, *, within_s: float) -> TrialResult:
    """Check a channel's settings with its platform, by the manifest's `check`.

    Raises:
        ConfigError: The check can't be loaded, or its extra is not installed.
    """
    target = await asyncio.to_thread(part.load_function, part.manifest.check)
    ask = cast("Callable[[BaseModel, Mapping[str, str]], Awaitable[str]]", target)
    try:
        async with asyncio.timeout(within_s):
            answer = await call(lambda: ask(part.settings, part.secrets))
    except TimeoutError:
        return TrialResult(is_ok=False, line=f"no answer within {within_s:g} s")
    is_ok = not isinstance(answer, Raised)
    line = redactor.redact(answer if is_ok else answer.line)
    line = line.removeprefix(f"`{part.name}`: ")  # the caller names it
    return TrialResult(is_ok=is_ok, line=line)
