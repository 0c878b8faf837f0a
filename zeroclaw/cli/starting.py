"""Makes what the daemon is started with, of a configuration that is found to have no fault."""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from zeroclaw.cli.faults import faults_in
from zeroclaw.cli.loading import Loaded, in_file, load
from zeroclaw.daemon.checked import check
from zeroclaw.daemon.parts import Fresh, Start
from zeroclaw.errors import ConfigError
from zeroclaw.host.places import read_config


def rereading(
    path: Path | None, data_dir: Path | None, environment: Mapping[str, str]
) -> Callable[[], Fresh] | None:
    """Return what reads a configuration again, None where it has no file.

    Args:
        path: As it was found at the start.
        data_dir: As given on the command line.
        environment: `os.environ`, for references to secrets.
    """
    if path is None:
        return None

    def reread() -> Fresh:
        if faults := faults_in(read_config(path), environment=environment):
            raise ConfigError(in_file(path, faults))
        loaded = load(path, data_dir)
        return Fresh(config=loaded.config, checked=check(loaded.config, environment))

    return reread


def start_of(
    loaded: Loaded, environment: Mapping[str, str], *, needs_secrets: bool = True
) -> Start:
    """Check a configuration; blocks on files, a keyring and imports.

    Args:
        loaded: As read.
        environment: `os.environ`, for references to secrets.
        needs_secrets: See `check`.

    Raises:
        ConfigError: With every fault, each with the file's name before it.
    """
    try:
        checked = check(loaded.config, environment, needs_secrets=needs_secrets)
    except ConfigError as error:
        raise ConfigError(in_file(loaded.places.config, error.faults)) from error
    return Start(
        config=loaded.config,
        checked=checked,
        places=loaded.places,
        version=version("zeroclaw"),
    )
