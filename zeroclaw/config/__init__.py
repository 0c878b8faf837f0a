"""The configuration: its model, what is wrong with it, what changed in it, and edits of its file."""

import tomllib

from zeroclaw.errors import ConfigError


def table_of(text: str) -> dict[str, object]:
    """Return what a configuration's text holds, as TOML has it.

    Raises:
        ConfigError: It is no TOML, or nests too deep.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError((f"not valid TOML: {str(error).lower()}",)) from error
