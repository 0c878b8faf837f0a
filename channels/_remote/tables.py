"""Draws Markdown tables as plain text, and keeps libraries from dropping a part of one; pure.

Each line is scanned once, by patterns without nested repetition, so the time is linear.
"""

import re
from collections.abc import Sequence
from unicodedata import east_asian_width

MAX_ROWS, MAX_CELLS, MAX_CELL_CHARS = 200, 20, 60
"""A larger table is left as it is."""
_ROW = re.compile(r"[ \t]{0,3}\|.*")
_BORDER = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^\n]+?(?<!`)\1(?!`)")
AROUND = " \t>"
"""Characters that may surround a line of a table."""
_ENDS = ("```", "~~~")


def table_end(lines: Sequence[str], at: int) -> int:
    """Return the index after a table that begins at `at`; `at` itself if there is none."""
    if at + 1 >= len(lines) or not _ROW.fullmatch(lines[at]) or not is_rule(lines[at + 1]):
        return at
    end = at + 2
    while end < len(lines) and _ROW.fullmatch(lines[end]):
        end += 1
    return end


def is_rule(line: str) -> bool:
    """Whether a line looks like the rule between a table's head and its rows."""
    bare = line.strip(AROUND)
    return "|" in bare and "-" in bare and not bare.strip("|:- \t")


def without_lost_cells(source: str, stand_in: str) -> str:
    """Return Markdown in which no row is longer than its table's head, since libraries drop the excess.

    `stand_in` replaces the pipes in code, which libraries take for borders, and those in the rule of a
    table whose rows are still too long: libraries then show it as plain text.
    """
    lines, rule = _without_pipes(source, stand_in).split("\n"), -1
    for at, line in enumerate(lines):
        bare = line.strip(AROUND)
        if rule < 0 or not bare or bare.startswith(_ENDS):
            rule = at if is_rule(line) else -1
        elif _count_borders(line) > _count_borders(lines[rule]):
            lines[rule], rule = lines[rule].replace("|", stand_in), -1
    return "\n".join(lines)


def _without_pipes(source: str, stand_in: str) -> str:
    return _CODE.sub(lambda code: _BORDER.sub(stand_in, code[0]), source)


def _count_borders(line: str) -> int:
    return len(_BORDER.findall(line.strip(AROUND).strip("|")))


def draw_table(lines: Sequence[str]) -> list[str]:
    """Return a table's lines with aligned columns; empty if the table is too large."""
    if len(lines) > MAX_ROWS:
        return []
    head, _, *rows = (_cells(line) for line in lines)
    if any(len(row) > MAX_CELLS or max(map(len, row)) > MAX_CELL_CHARS for row in (head, *rows)):
        return []
    columns = max(len(row) for row in (head, *rows))
    filled = [[*row, *[""] * (columns - len(row))] for row in (head, *rows)]
    widths = [max(_width(row[column]) for row in filled) for column in range(columns)]
    drawn = ["  ".join(map(_padded, row, widths)) for row in filled]
    rule = "  ".join("-" * max(width, 1) for width in widths)
    return [line.rstrip() for line in (drawn[0], rule, *drawn[1:])]


def _cells(line: str) -> list[str]:
    cells = _BORDER.split(_without_pipes(line.strip().strip("|"), "\x00"))
    return [cell.strip().replace("\\|", "|").replace("\x00", "|") for cell in cells]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(cell: str) -> int:
    """Return a cell's width in columns; ideographs and most emoji take two."""
    return (
        len(cell) if cell.isascii() else sum(1 + (east_asian_width(char) in "WF") for char in cell)
    )
