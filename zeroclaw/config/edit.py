"""Reads and edits one key of a configuration's text; keeps comments and order.

tomlkit makes the edit. The result is parsed again and must equal the old table with this one key
changed. A new key goes below the last key of its table, because blank lines and comments after that
may belong to the next table and must stay with it.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress

from pydantic import BaseModel

from zeroclaw.config import table_of
from zeroclaw.config.model import Config
from zeroclaw.config.validate import parse
from zeroclaw.errors import ConfigError
from zeroclaw.json_fields import is_array, is_object

Keys = tuple[str, ...]

_MAX_PARTS = 50
"""Parts of a key path: far more than any key has, and far fewer than end Python's recursion."""
_ENTRY = re.compile(r"\[(\d+)\](?=[.\[]|$)")


def keys_of(dotted: str) -> Keys:
    """Split a key path as TOML does, so parts may be quoted; a list entry is `.0` or `[0]`.

    Raises:
        ConfigError: It is not a key path.
    """
    keys: list[str] = []
    plain = _ENTRY.sub(r".\1", dotted)
    try:
        table: object = tomllib.loads(f"{plain} = 0") if "\n" not in dotted else None
    except tomllib.TOMLDecodeError:
        table = None
    while is_object(table) and len(table) == 1:
        ((name, table),) = table.items()
        keys.append(name)
    if table != 0 or not 0 < len(keys) <= _MAX_PARTS:
        fault = f"`{' '.join(dotted.split())}` is no key path; write one such as `provider.model`"
        raise ConfigError((fault,))
    return tuple(keys)


def value_of(text: str) -> object:
    """Parse a value as TOML; text that is not TOML is a string."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # not TOML, or more than Python can hold
        return text
    # More keys mean that a line break in the value started another line of TOML.
    return table["value"] if list(table) == ["value"] else text


def get(config: Config, channel_tables: Mapping[str, BaseModel], dotted: str) -> object:
    """Return the effective value of a key, which is the default if the file does not set it.

    Args:
        config: The whole configuration.
        channel_tables: The settings of each channel's kind, by channel name.
        dotted: A key path; a number is an index into a list, from 0.

    Raises:
        ConfigError: There is no such key, or it has no value.
    """
    values = config.model_dump(mode="json")
    for name, settings in channel_tables.items():
        values["channels"][name] |= settings.model_dump(mode="json")
    value: object = values
    for key in keys_of(dotted):
        holder, value = value, _child(value, key)
        if value is None and not (isinstance(holder, dict) and key in holder):
            raise ConfigError((_unknown(dotted, key),))
    if value is None:
        fault = f"{dotted}: is not set, and has no default"
        raise ConfigError((fault,))
    return _without_none(value)


def as_toml(value: object) -> str:
    """Return a value for people: a string without quotes, a table as lines, all else as TOML."""
    import tomli_w

    if isinstance(value, str):
        return value
    return tomli_w.dumps(value).rstrip() if is_object(value) else on_one_line(value)


def on_one_line(value: object) -> str:
    """Return any value, tables too, as TOML without line breaks."""
    import tomlkit

    if is_array(value):
        return f"[{', '.join(map(on_one_line, value))}]"
    if is_object(value):
        pairs = (f"{_quoted(key)} = {on_one_line(value[key])}" for key in value)
        return f"{{ {', '.join(pairs)} }}"
    return tomlkit.item(value).as_string()


def set_key(text: str, dotted: str, typed: str) -> str:
    """Return the text with one key set.

    Args:
        text: The whole TOML; empty if there is none yet.
        dotted: A key path; a number is an index into a list, from 0.
        typed: The value as the person typed it.

    Raises:
        ConfigError: The text is not TOML, or the key path leads through a value that is not a
            table.
    """
    import tomlkit

    keys, value = keys_of(dotted), value_of(typed)
    expected = table_of(text)
    is_new = _at(expected, keys) is None
    _put(expected, keys, value, dotted, lambda _: {})
    toml = tomlkit.item(value).as_string() if isinstance(value, str) else typed
    if is_new:
        line = f"{_quoted(keys[-1])} = {toml}"
        after = with_line(text, keys[:-1], line)
        if after is not None and _parses_to(after, expected):
            return after

    def put(document: object) -> None:
        item: object = tomlkit.parse(f"value = {toml}").item("value")
        _put(document, keys, item, dotted, tomlkit.table)

    return _edited(text, put, expected, dotted)


def unset_key(text: str, dotted: str) -> str:
    """Return the text without one key or table, so that its default applies.

    The header line of a table that is empty then is removed too, unless that changes the meaning.

    Args:
        text: The whole TOML.
        dotted: A key path; a number is an index into a list, from 0.

    Raises:
        ConfigError: The text is not TOML, or does not set this key.
    """
    expected = table_of(text)
    keys = _last_of_its_list(expected, keys_of(dotted))
    if not _delete(expected, keys):
        fault = f"{dotted}: the file does not set it, so its default applies"
        raise ConfigError((fault,))
    after = _edited(text, lambda document: _delete(document, keys), expected, dotted)
    table = keys[:-1]
    if table and _is_header_alone(after, table):
        with suppress(ConfigError):  # the meaning of a file with faults is unknown
            shorter = unset_key(after, ".".join(map(_quoted, table)))
            return shorter if parse(shorter) == parse(after) else after
    return after


def _is_header_alone(text: str, keys: Keys) -> bool:
    """Whether a table has no key, and no comment that would be lost with it."""
    import tomlkit
    from tomlkit.items import Table

    table = _at(tomlkit.parse(text), keys)
    return isinstance(table, Table) and not (table.trivia.comment or table.as_string().strip())


def _quoted(key: str) -> str:
    import tomlkit

    return tomlkit.key(key).as_string()


def _last_of_its_list(table: object, keys: Keys) -> Keys:
    """Return the list's key if the path names the only table in the list."""
    match _at(table, keys[:-1]):
        case [dict()] if keys[-1] == "0":
            return keys[:-1]
        case _:
            return keys


def _edited(
    text: str, edit: Callable[[object], object], expected: Mapping[str, object], dotted: str
) -> str:
    """Return the text after an edit through tomlkit; the result must parse to `expected`."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        edit(document)
        after = tomlkit.dumps(document)
        after = after if after.endswith("\n") or not after else f"{after}\n"
    except TOMLKitError:
        after = None
    if after is None or not _parses_to(after, expected):
        fault = f"{dotted}: can't be changed without disturbing its surroundings; edit the file"
        raise ConfigError((fault,))
    return after


def _parses_to(text: str, expected: Mapping[str, object]) -> bool:
    """Whether a text parses to exactly the expected table."""
    try:
        return _pruned(tomllib.loads(text)) == _pruned(expected)
    except tomllib.TOMLDecodeError:
        return False


def _pruned(table: Mapping[str, object]) -> dict[str, object]:
    """Drop empty top-level tables: whether one has a header line is style."""
    return {key: value for key, value in table.items() if value != {}}


def _delete(document: object, keys: Keys) -> bool:
    """Delete a key from tables, plain or tomlkit's; return whether it was there."""
    place, last = _at(document, keys[:-1]), keys[-1]
    if is_object(place) and last in place:
        del place[last]
    elif is_array(place) and _is_in(place, last):
        del place[int(last)]
    else:
        return False
    return True


def _at(place: object, keys: Keys) -> object:
    for key in keys:
        place = _child(place, key)
    return place


def _child(place: object, key: str) -> object:
    if is_object(place):
        return place.get(key)
    return place[int(key)] if is_array(place) and _is_in(place, key) else None


def _put(
    place: object, keys: Keys, value: object, dotted: str, new_table: Callable[[bool], object]
) -> None:
    """Set a key in tables, plain or tomlkit's; `new_table` creates a missing one.

    `new_table` receives whether the new table will only contain tables; it then needs no header
    line.

    Raises:
        ConfigError: The key path leads through a value that is not a table.
    """
    for number, key in enumerate(keys[:-1], start=1):
        child = _child(place, key)
        if child is None and is_object(place):
            place[key] = new_table(number < len(keys) - 1)
            child = place[key]
        if child is None:
            raise ConfigError((_unknown(dotted, key),))
        place = child
    last = keys[-1]
    if is_object(place):
        place[last] = value
    elif is_array(place) and _is_in(place, last):
        place[int(last)] = value
    else:
        raise ConfigError((_unknown(dotted, last),))


def _is_in(entries: list[object], key: str) -> bool:
    return key.isdecimal() and int(key) < len(entries)


def _unknown(dotted: str, key: str) -> str:
    return f"{dotted}: there is no `{key}`; `zeroclaw config schema` lists the keys"


def _without_none(value: object) -> object:
    """Drop unset values; TOML has no null."""
    if is_object(value):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return [*map(_without_none, value)] if is_array(value) else value


def with_line(text: str, table: tuple[str, ...], line: str) -> str | None:
    """Return the text with one more line in a table, None if the text has no such table.

    This reads lines only. The caller parses the result and falls back if it is not as intended.

    Args:
        text: The whole TOML.
        table: The key path of the table; empty for the keys before all tables.
        line: The key and its value, as TOML.
    """
    lines = text.rstrip().split("\n") if text.strip() else []
    headers = {at: path for at, row in enumerate(lines) if (path := _table_opened_by(row))}
    own = [number for number, path in headers.items() if path == table]
    lists = {path[:-2] for path in headers.values() if not path[-1]}
    if table in lists - {()} and not own:  # such as `policy`, above which its statements may stand
        lines, own = [*lines, "", f"[{'.'.join(map(_quoted, table))}]"], [len(lines) + 1]
    if table and len(own) != 1:
        return None
    begin = own[0] + 1 if table else 0
    end = next((number for number in headers if number >= begin), len(lines))
    keys = [number for number in range(begin, end) if _has_content(lines[number])]
    if keys or table:
        below, new = (keys[-1] + 1 if keys else begin), [line]
    else:
        below = _above_comment(lines, end)
        new = [*([""] if below and lines[below - 1].strip() else []), line, ""]
    return "\n".join((*lines[:below], *new, *lines[below:])).rstrip("\n") + "\n"


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _above_comment(lines: list[str], end: int) -> int:
    """Return where the comment directly above line `end` begins; `end` itself if there is none."""
    while 0 < end < len(lines) and lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return end


def _table_opened_by(line: str) -> tuple[str, ...]:
    """Return the key path of the table that a line opens, parsed on its own; empty for none."""
    if not line.lstrip().startswith("["):
        return ()
    try:
        table: object = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while is_object(table) and table:
        ((key, table),) = table.items()
        path.append(key)
    # The header of a list of tables parses to a list with one empty table.
    return (*path, "") if isinstance(table, list) else tuple(path)
