"""Finds the line where a new key belongs in a configuration's text: below the last of its table.

Behind it may come blank lines and comments that are about the next table; those stay with it. It
looks at lines alone, so whoever uses it reads the result again, and takes another way if it is
not what was meant.
"""

import tomllib
from typing import cast


def with_line(text: str, table: tuple[str, ...], line: str) -> str | None:
    """Return the text with one more line in a table, None where the text has no such table.

    Args:
        text: The whole TOML.
        table: The key path of the table; empty for the keys before all tables.
        line: The key and its value, as TOML.
    """
    lines = text.rstrip().split("\n") if text.strip() else []
    opened = {number: found for number, one in enumerate(lines) if (found := _opened_by(one))}
    mine = [number for number, found in opened.items() if found == table]
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
    """Return where the comment begins that stands right above a line, if there is such a line."""
    while 0 < end < len(lines) and lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return end


def _opened_by(line: str) -> tuple[str, ...]:
    """Return the key path of the table that a line opens, as if it stood alone; empty for none."""
    if not line.lstrip().startswith("["):
        return ()
    try:
        found: object = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(found, dict) and found:
        ((key, found),) = cast("dict[str, object]", found).items()
        path.append(key)
    # A list of tables has one that says nothing.
    return (*path, "") if isinstance(found, list) else tuple(path)
