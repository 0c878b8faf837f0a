"""The configuration: its model, validation, comparison, and edits of its file."""

import re
import tomllib
from collections.abc import Iterator

from zeroclaw.errors import ConfigError
from zeroclaw.json_fields import is_array, is_object

_INVALID = re.compile("[\0\ud800-\udfff]")
"""Characters that no path, store or file accepts. TOML can contain a NUL; the others stand for
bytes of a command line that are not UTF-8."""
_KEY = re.compile(r"\('(.*?)',?\)")
"""A key in a sentence of `tomllib`: the tuple of its parts."""
_NO_END = "a text in quotes ends on its line; its last quote is missing"
_IN_WORDS = {
    "invalid value": 'this is no value; a text needs quotes: "…"',
    "cannot overwrite a value": "this key has a value already, further up",
    r"illegal character '\n'": _NO_END,
    r"found invalid character '\n'": _NO_END,
}
"""Replaces sentences of `tomllib` that only its authors understand."""


def table_of(text: str) -> dict[str, object]:
    """Parse a configuration's text as TOML.

    Raises:
        ConfigError: It is not TOML, is nested too deep, or has a text with a NUL.
    """
    try:
        table = tomllib.loads(text)
        invalid = tuple(_invalid_texts(table, ""))
    except tomllib.TOMLDecodeError as error:
        reason = _KEY.sub(lambda key: "`" + key[1].replace("', '", ".") + "`", str(error).lower())
        for theirs, ours in _IN_WORDS.items():
            reason = reason.replace(theirs, ours)
        raise ConfigError((f"not valid TOML: {reason}",)) from error
    except (ValueError, RecursionError) as error:  # TOML allows it, Python does not
        reason = "a number is too long"
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        raise ConfigError((f"not valid TOML: {reason}",)) from error
    if invalid:
        raise ConfigError(tuple(f"{path}: has a NUL, or is not UTF-8 text" for path in invalid))
    return table


def _invalid_texts(value: object, path: str) -> Iterator[str]:
    """Yield the key path of each text or key with invalid characters."""
    if isinstance(value, str):
        if _INVALID.search(value):
            yield path
    elif is_object(value):
        for key, inner in value.items():
            inner_path = f"{path}.{key}" if path else key
            yield from (*_invalid_texts(key, inner_path), *_invalid_texts(inner, inner_path))
    elif is_array(value):
        for number, inner in enumerate(value):
            yield from _invalid_texts(inner, f"{path}[{number}]")
