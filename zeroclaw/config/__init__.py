"""The configuration: its model, validation, what changed, and edits of its file."""

import tomllib

from zeroclaw.errors import ConfigError


def table_of(text: str) -> dict[str, object]:
    """Parse a configuration's text as TOML.

    Raises:
        ConfigError: It is not TOML, or nested too deep.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError((f"not valid TOML: {str(error).lower()}",)) from error
