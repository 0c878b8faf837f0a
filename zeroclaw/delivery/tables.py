"""Tell the head of a table, which stands again above rows that go on in the next message."""

import re

MOST_HEAD_CHARS = 400
"""A longer head would leave little room for rows; they go on without it."""
_BORDER = re.compile(r"(?<!\\)\|")


def head_of(above: str, line: str) -> str:
    """Return the head that two lines are, as two lines at the margin; empty for none.

    Args:
        above: The line with the names of the columns.
        line: The one that would part it from the rows, such as `|---|--:|`.
    """
    named, rule = above.strip(), line.strip()
    is_rule = "|" in rule and "-" in rule and not rule.strip("|:- \t")
    if not is_rule or "|" not in named or _columns(named) != _columns(rule):
        return ""
    head = f"{named}\n{rule}"
    return head if len(head) <= MOST_HEAD_CHARS else ""


def _columns(row: str) -> int:
    return len(_BORDER.findall(row.removeprefix("|").removesuffix("|"))) + 1
