"""Makes what the daemon is started with, of a configuration that is found to have no fault."""

from collections.abc import Mapping
from importlib.metadata import version

from zeroclaw.cli.loading import Loaded, in_file
from zeroclaw.daemon.checked import check
from zeroclaw.daemon.parts import Start
from zeroclaw.errors import ConfigError


def start_of(loaded: Loaded, environment: Mapping[str, str]) -> Start:
    """Check a configuration; blocks on files, a keyring and imports.

    Args:
        loaded: As read.
        environment: `os.environ`, for references to secrets.

    Raises:
        ConfigError: With every fault, each with the file's name before it.
    """
    try:
        checked = check(loaded.config, environment)
    except ConfigError as error:
        raise ConfigError(in_file(loaded.places.config, error.faults)) from error
    return Start(
        config=loaded.config,
        checked=checked,
        places=loaded.places,
        version=version("zeroclaw"),
    )
