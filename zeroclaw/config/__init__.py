"""The configuration: its model, validation, what changed, and edits of its file."""

import re
import tomllib
from collections.abc import Iterator

from zeroclaw.errors import ConfigError
from zeroclaw.json_fields import is_array, is_object

_UNFIT = re.compile("[\0\ud800-\udfff]")
"""Characters that no path, no store and no file takes. TOML can write a NUL; the others stand for
bytes of a command line that are not UTF-8."""


def table_of(text: str) -> dict[str, object]:
    """Parse a configuration's text as TOML.

    Raises:
        ConfigError: It is not TOML, is nested too deep, or has a text with a NUL.
    """
    try:
        table = tomllib.loads(text)
        unfit = tuple(_unfit(table, ""))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError((f"not valid TOML: {str(error).lower()}",)) from error
    except (ValueError, RecursionError) as error:  # what TOML allows and Python can't hold
        why = "a number is too long" if isinstance(error, ValueError) else "it is nested too deeply"
        raise ConfigError((f"not valid TOML: {why}",)) from error
    if unfit:
        raise ConfigError(tuple(f"{path}: has a NUL, or is not UTF-8 text" for path in unfit))
    return table


def _unfit(value: object, path: str) -> Iterator[str]:
    """Yield the key path of each unfit text, of keys too."""
    if isinstance(value, str):
        if _UNFIT.search(value):
            yield path
    elif is_object(value):
        for key, inner in value.items():
            place = f"{path}.{key}" if path else key
            yield from (*_unfit(key, place), *_unfit(inner, place))
    elif is_array(value):
        for number, inner in enumerate(value):
            yield from _unfit(inner, f"{path}[{number}]")
