"""Draws Markdown tables as aligned plain text, for platforms without tables; pure.

Each line is scanned once, by patterns without nested repetition, so the time is linear.
"""

import re
from collections.abc import Sequence
from unicodedata import east_asian_width

MOST_ROWS, MOST_CELLS, MOST_CELL_CHARS = 200, 20, 60
"""A larger table is left as it is."""
_ROW = re.compile(r"[ \t]{0,3}\|.*")
_RULE = re.compile(r"[ \t]{0,3}\|?[ \t:|-]*-[ \t:|-]*")


def table_end(lines: Sequence[str], at: int) -> int:
    """Return the index after a table that begins at `at`; `at` itself if there is none."""
    if at + 1 >= len(lines) or not _ROW.fullmatch(lines[at]) or not _RULE.fullmatch(lines[at + 1]):
        return at
    end = at + 2
    while end < len(lines) and _ROW.fullmatch(lines[end]):
        end += 1
    return end


def drawn(lines: Sequence[str]) -> list[str]:
    """Return a table's lines with aligned columns; empty if the table is too large."""
    if len(lines) > MOST_ROWS:
        return []
    head, _, *rows = (_cells(line) for line in lines)
    if any(len(row) > MOST_CELLS or max(map(len, row)) > MOST_CELL_CHARS for row in (head, *rows)):
        return []
    count = max(len(row) for row in (head, *rows))
    filled = [[*row, *[""] * (count - len(row))] for row in (head, *rows)]
    widths = [max(_width(row[column]) for row in filled) for column in range(count)]
    shown = ["  ".join(_padded(*one) for one in zip(row, widths, strict=True)) for row in filled]
    rule = "  ".join("-" * max(width, 1) for width in widths)
    return [line.rstrip() for line in (shown[0], rule, *shown[1:])]


def _cells(line: str) -> list[str]:
    parted = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace("\\|", "|") for cell in parted]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(cell: str) -> int:
    """Return a cell's width in columns; ideographs and most emoji take two."""
    return len(cell) if cell.isascii() else sum(1 + (east_asian_width(one) in "WF") for one in cell)
