"""Keep those tables from the library that it would draw for seconds.

It draws each row as wide as the widest cell of every column, and fills up rows that have fewer cells.
So a few thousand signs, of one long cell above many short rows or of many columns above empty ones,
become millions, while everybody waits. Such a table is shown as it was written.
"""

from collections.abc import Iterator, Sequence

MOST_CELLS = 4_000
"""Of all tables of a text. No message holds as many; one costs some 40 microseconds."""
MOST_DRAWN = 400_000
"""Characters of all tables of a text; no message holds a hundredth of that."""
_AROUND = " \t>"


def is_rule(line: str) -> bool:
    """Whether a line looks like the one between a table's head and its rows."""
    bare = line.strip(_AROUND)
    return "|" in bare and "-" in bare and not bare.strip("|:- \t")


def without_huge(source: str, stand_in: str) -> str:
    """Return a text in which no table that is too large can be read.

    Args:
        source: Markdown, each of its lines ended by a line feed alone.
        stand_in: One sign, put in the place of each `|` between such a table's head and its rows.
    """
    lines = source.split("\n")
    cells = drawn = 0
    for rows in _blocks(lines):
        rules = [at for at in rows if is_rule(lines[at])]
        if not rules:
            continue
        columns = max(lines[at].count("|") + 1 for at in rules)
        lengths = [len(lines[at]) for at in rows]
        more_cells = len(rows) * columns
        more_drawn = len(rows) * min(columns * max(lengths), sum(lengths))
        if cells + more_cells <= MOST_CELLS and drawn + more_drawn <= MOST_DRAWN:
            cells, drawn = cells + more_cells, drawn + more_drawn
            continue
        for at in rules:
            lines[at] = lines[at].replace("|", stand_in)
    return "\n".join(lines)


def _blocks(lines: Sequence[str]) -> Iterator[range]:
    """Return where lines stand with no blank one between them; no table reaches further."""
    start = 0
    for at, line in enumerate(lines):
        if not line.strip(_AROUND):
            yield range(start, at)
            start = at + 1
    yield range(start, len(lines))
