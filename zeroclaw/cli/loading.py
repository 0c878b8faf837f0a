"""Reads a whole configuration for a command; loads its models, so commands import it late."""

import os
from pathlib import Path

from zeroclaw.cli.options import config_place
from zeroclaw.config.model import Config
from zeroclaw.config.validate import parse
from zeroclaw.errors import ConfigError
from zeroclaw.host.places import Places, places_of, read_config
from zeroclaw.value import Value


class Loaded(Value):
    """A configuration and where everything is."""

    config: Config
    places: Places


def load(config: Path | None, data_dir: Path | None = None) -> Loaded:
    """Read the configuration.

    Raises:
        ConfigError: With every fault, each with the file's name before it.
    """
    path = config_place(config)
    try:
        parsed = parse(read_config(path))
    except ConfigError as error:
        raise ConfigError(in_file(path, error.faults)) from error
    places = places_of(
        config=path,
        data_dir=parsed.data_dir if data_dir is None else str(data_dir),
        workspace_dir=parsed.workspace_dir,
        environment=os.environ,
        home=Path.home(),
    )
    return Loaded(config=parsed, places=places)


def in_file(path: Path | None, faults: tuple[str, ...]) -> tuple[str, ...]:
    """Return faults with the file's name before each."""
    return faults if path is None else tuple(f"{path}: {fault}" for fault in faults)
