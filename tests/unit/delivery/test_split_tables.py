"""A table that goes on in the next message has its head there too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.delivery.split import MOST_HEAD_CHARS, head_of, pieces, split

HEAD = "| a | b |\n|---|:-:|"
ROWS = tuple(f"| {number} | x |" for number in range(6))


def table(*rows: str, head: str = HEAD) -> str:
    return "\n".join((head, *rows))


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        (table(*ROWS[:2]), 60, (table(*ROWS[:2]),)),
        (table(*ROWS[:3]), 40, (table(*ROWS[:2]), table(ROWS[2]))),
        (
            f"{table(*ROWS[:3])}\n\nThat is all of it, then.",
            40,
            (table(*ROWS[:2]), table(ROWS[2]), "That is all of it, then."),
        ),
        (
            "- x\n\n  " + table(*ROWS[:3]).replace("\n", "\n  "),
            50,
            ("- x\n\n  " + table(ROWS[0]).replace("\n", "\n  "), table(*ROWS[1:3])),
        ),
        ("a | b\n--|--\n1 | 2\n3 | 4", 17, ("a | b\n--|--\n1 | 2", "a | b\n--|--\n3 | 4")),
        ("| a | b |\n|---|\n| 1 |\n| 2 |", 16, ("| a | b |\n|---|", "| 1 |\n| 2 |")),
        ("```\n| a |\n|---|\n| 1 |\n| 2 |\n```", 19, None),
    ],
    ids=["whole", "rows", "before more", "in a list", "without borders", "no table", "code"],
)
def test_rows_that_are_parted_from_their_head_have_it_again(
    text: str, limit: int, parts: tuple[str, ...] | None
) -> None:
    found = split(text, lambda part: len(part) <= limit)
    if parts is None:
        assert all(one.startswith("```\n") and one.count("---") <= 1 for one in found)
    else:
        assert found == parts


@pytest.mark.parametrize("after", ["# a | b", "- a | b", "2. a | b", "> a | b", "```a|b\n|\n```"])
def test_what_ends_a_table_has_no_head_above_it(after: str) -> None:
    """No empty line is needed before it, and its bars are its own."""
    found = split(f"{table(*ROWS[:3])}\n{after}", lambda part: len(part) <= 50)
    assert found == (table(*ROWS[:3]), after)


@given(
    st.lists(
        st.text("abc |\\`*", min_size=1, max_size=12).map(lambda row: f"| {row} |"), max_size=20
    ),
    st.integers(min_value=60, max_value=120),
)
def test_all_rows_are_there_in_order_and_each_part_is_a_table(rows: list[str], limit: int) -> None:
    """And the contents joined are the text, whatever is shown above them."""
    text = table(*rows)
    found = pieces(text, lambda part: len(part) <= limit)
    assert "".join(one.content for one in found) == text
    shown = [one.text.removeprefix(f"{HEAD}") for one in found]
    assert "\n".join(one.strip("\n") for one in shown).strip().split("\n") == (rows or [""])
    assert all(one.text.startswith(HEAD) for one in found)
    assert all(len(one.text) <= limit for one in found)


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("", "|---|"),
        ("a", "|---|"),
        ("| a |", "---"),
        ("| a |", "|   |"),
        ("| a |", "|-x-|"),
        ("| a | b |", "|---|"),
        (r"| a \| b |", "|---|---|"),
        (f"| {'a' * MOST_HEAD_CHARS} |", "|---|"),
    ],
)
def test_what_is_no_head_is_none(above: str, line: str) -> None:
    assert head_of(above, line) == ""


def test_a_head_is_told_at_the_margin() -> None:
    assert head_of(r"  | a \| b | c |", "  |--|--|") == "| a \\| b | c |\n|--|--|"
