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

_MOST_PARTS = 50
"""Parts of a key path: far more than any key has, and far fewer than end Python's recursion."""
_ENTRY = re.compile(r"\[(\d+)\](?=[.\[]|$)")


def keys_of(dotted: str) -> Keys:
    """Split a key path as TOML does, so parts may be quoted; a list entry is `.0` or `[0]`.

    Raises:
        ConfigError: It is not a key path.
    """
    found: list[str] = []
    plain = _ENTRY.sub(r".\1", dotted)
    try:
        table: object = tomllib.loads(f"{plain} = 0") if "\n" not in dotted else None
    except tomllib.TOMLDecodeError:
        table = None
    while is_object(table) and len(table) == 1:
        ((name, table),) = table.items()
        found.append(name)
    if table != 0 or not 0 < len(found) <= _MOST_PARTS:
        fault = f"`{' '.join(dotted.split())}` is no key path; write one such as `provider.model`"
        raise ConfigError((fault,))
    return tuple(found)


def value_of(text: str) -> object:
    """Parse a value as TOML; text that is not TOML is a string."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # not TOML, or more than Python can hold
        return text
    # More keys mean that a line break in the value started another line of TOML.
    return table["value"] if list(table) == ["value"] else text


def get(config: Config, own: Mapping[str, BaseModel], dotted: str) -> object:
    """Return the effective value of a key, which is the default if the file does not set it.

    Args:
        config: The whole configuration.
        own: The settings of each channel's kind, by channel name.
        dotted: A key path; a number is an index into a list, from 0.

    Raises:
        ConfigError: There is no such key, or it has no value.
    """
    whole = config.model_dump(mode="json")
    for name, settings in own.items():
        whole["channels"][name] |= settings.model_dump(mode="json")
    value: object = whole
    for key in keys_of(dotted):
        holder, value = value, _inside(value, key)
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
        pairs = (f"{_spelled(key)} = {on_one_line(value[key])}" for key in value)
        return f"{{ {', '.join(pairs)} }}"
    return tomlkit.item(value).as_string()


def set_key(text: str, dotted: str, given: str) -> str:
    """Return the text with one key set.

    Args:
        text: The whole TOML; empty if there is none yet.
        dotted: A key path; a number is an index into a list, from 0.
        given: The value as typed.

    Raises:
        ConfigError: The text is not TOML, or the key path leads through a value that is not a
            table.
    """
    import tomlkit

    keys, value = keys_of(dotted), value_of(given)
    wanted = table_of(text)
    is_new = _at(wanted, keys) is None
    _put(wanted, keys, value, dotted, lambda _: {})
    toml = tomlkit.item(value).as_string() if isinstance(value, str) else given
    if is_new:
        line = f"{_spelled(keys[-1])} = {toml}"
        after = with_line(text, keys[:-1], line)
        if after is not None and _comes_to(after, wanted):
            return after

    def put(document: object) -> None:
        item: object = tomlkit.parse(f"value = {toml}").item("value")
        _put(document, keys, item, dotted, tomlkit.table)

    return _edited(text, put, wanted, dotted)


def unset_key(text: str, dotted: str) -> str:
    """Return the text without one key or table, so that its default applies.

    A header line that is left above nothing goes as well, unless it switches something on.

    Args:
        text: The whole TOML.
        dotted: A key path; a number is an index into a list, from 0.

    Raises:
        ConfigError: The text is not TOML, or does not set this key.
    """
    wanted = table_of(text)
    keys = _last_of_its_list(wanted, keys_of(dotted))
    if not _take(wanted, keys):
        fault = f"{dotted}: the file says nothing of it, so its default holds"
        raise ConfigError((fault,))
    after = _edited(text, lambda document: _take(document, keys), wanted, dotted)
    above = keys[:-1]
    if above and _is_header_alone(after, above):
        with suppress(ConfigError):  # of a file with faults the meaning is unknown
            fewer = unset_key(after, ".".join(map(_spelled, above)))
            return fewer if parse(fewer) == parse(after) else after
    return after


def _is_header_alone(text: str, keys: Keys) -> bool:
    """Whether a table has no key, and no comment that would be lost with it."""
    import tomlkit
    from tomlkit.items import Table

    table = _at(tomlkit.parse(text), keys)
    return isinstance(table, Table) and not (table.trivia.comment or table.as_string().strip())


def _spelled(key: str) -> str:
    import tomlkit

    return tomlkit.key(key).as_string()


def _last_of_its_list(table: object, keys: Keys) -> Keys:
    """Return the list's own key if the path names the only table left in the list."""
    match _at(table, keys[:-1]):
        case [dict()] if keys[-1] == "0":
            return keys[:-1]
        case _:
            return keys


def _edited(
    text: str, edit: Callable[[object], object], wanted: Mapping[str, object], dotted: str
) -> str:
    """Return the text after an edit through tomlkit; the result must parse to `wanted`."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        edit(document)
        after = tomlkit.dumps(document)
        after = after if after.endswith("\n") or not after else f"{after}\n"
    except TOMLKitError:
        after = None
    if after is None or not _comes_to(after, wanted):
        fault = f"{dotted}: can't be changed without disturbing its surroundings; edit the file"
        raise ConfigError((fault,))
    return after


def _comes_to(text: str, wanted: Mapping[str, object]) -> bool:
    """Whether a text parses to exactly the wanted table."""
    try:
        return _pruned(tomllib.loads(text)) == _pruned(wanted)
    except tomllib.TOMLDecodeError:
        return False


def _pruned(table: Mapping[str, object]) -> dict[str, object]:
    """Drop empty top-level tables: whether one has a header line is style."""
    return {key: one for key, one in table.items() if one != {}}


def _take(document: object, keys: Keys) -> bool:
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
        place = _inside(place, key)
    return place


def _inside(place: object, key: str) -> object:
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
        inside = _inside(place, key)
        if inside is None and is_object(place):
            place[key] = new_table(number < len(keys) - 1)
            inside = place[key]
        if inside is None:
            raise ConfigError((_unknown(dotted, key),))
        place = inside
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
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return [*map(_without_none, value)] if is_array(value) else value


def with_line(text: str, table: tuple[str, ...], line: str) -> str | None:
    """Return the text with one more line in a table, None if the text has no such table.

    This looks at lines only. The caller parses the result and falls back if it is not as intended.

    Args:
        text: The whole TOML.
        table: The key path of the table; empty for the keys before all tables.
        line: The key and its value, as TOML.
    """
    lines = text.rstrip().split("\n") if text.strip() else []
    opened = {number: found for number, one in enumerate(lines) if (found := _opened_by(one))}
    mine = [number for number, found in opened.items() if found == table]
    lists = {found[:-2] for found in opened.values() if not found[-1]}
    if table in lists - {()} and not mine:  # such as `policy`, above which its statements may stand
        lines, mine = [*lines, "", f"[{'.'.join(map(_spelled, table))}]"], [len(lines) + 1]
    if table and len(mine) != 1:
        return None
    begin = mine[0] + 1 if table else 0
    end = next((number for number in opened if number >= begin), len(lines))
    keys = [number for number in range(begin, end) if _says_something(lines[number])]
    if keys or table:
        below, new = (keys[-1] + 1 if keys else begin), [line]
    else:
        below = _above_comment(lines, end)
        new = [*([""] if below and lines[below - 1].strip() else []), line, ""]
    return "\n".join((*lines[:below], *new, *lines[below:])).rstrip("\n") + "\n"


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _above_comment(lines: list[str], end: int) -> int:
    """Return where the comment directly above line `end` begins; `end` itself if there is none."""
    while 0 < end < len(lines) and lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return end


def _opened_by(line: str) -> tuple[str, ...]:
    """Return the key path of the table that a line opens, parsed on its own; empty for none."""
    if not line.lstrip().startswith("["):
        return ()
    try:
        found: object = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while is_object(found) and found:
        ((key, found),) = found.items()
        path.append(key)
    # The header of a list of tables parses to a list with one empty table.
    return (*path, "") if isinstance(found, list) else tuple(path)
