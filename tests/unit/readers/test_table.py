"""Tables of any bytes, by rows."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.readers.replies import ReadRequest
from zeroclaw.readers.text import CELL_CHARS, MOST_COLUMNS, delimiter_of, read_table


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ('"x, y";b\n"u, v";2\n', ";"),
        ("alone\n", ","),
        ("", ","),
        ("a;b\n" + "1;2\n" * 10_000, ";"),
        ("x" * 20_000, ","),
    ],
)
def test_columns_are_parted_by_what_parts_them_evenly(text: str, delimiter: str) -> None:
    assert delimiter_of(text) == delimiter


def test_a_cell_is_one_line_and_not_too_long() -> None:
    """Whatever stands in it."""
    out = io.StringIO()
    csv.writer(out).writerows([["a", "b"], ["two\nlines", "x" * 1_000]])
    reply = read_table(out.getvalue().encode(), ReadRequest(reader="table", limit=5_000))
    assert reply.text == f"row | a | b\n1 | two lines | {'x' * CELL_CHARS}…"


def test_columns_that_are_too_many_are_counted() -> None:
    """One row is shown however little room there is, so that every call gets somewhere."""
    data = b",".join(b"x" for _ in range(MOST_COLUMNS + 7)) + b"\n1,2\n3,4\n"
    reply = read_table(data, ReadRequest(reader="table", limit=10))
    first, second = reply.text.split("\n")
    assert first.endswith(" | [7 more columns]")
    assert second == "1 | 1 | 2"
    assert reply.about.endswith("rows 1 to 1; read on with offset 1")


def test_an_empty_table_has_no_rows() -> None:
    reply = read_table(b"\n\n", ReadRequest(reader="table"))
    assert reply.about.endswith("0 rows below the first; the first, and no rows; this is the end")
    assert reply.text == "row | "


def test_rows_that_are_not_there_are_a_sentence() -> None:
    """And a long table is judged by whole rows of its beginning."""
    data = b"a,b\n" + b"1,2\n" * 5_000
    reply = read_table(data, ReadRequest(reader="table", offset=9, rows=1, limit=1_000))
    assert reply.text.endswith("\n10 | 1 | 2")
    failed = read_table(data, ReadRequest(reader="table", offset=5_000, rows=1, limit=1_000)).failed
    assert failed == "offset: there are no rows behind 5000, only 5,000"


@given(st.binary(max_size=2_000), st.integers(0, 50), st.integers(1, 20), st.integers(100, 1_000))
def test_any_bytes_give_rows_or_a_sentence(data: bytes, offset: int, rows: int, limit: int) -> None:
    """Within what one row beside the first may take."""
    reply = read_table(data, ReadRequest(reader="table", offset=offset, rows=rows, limit=limit))
    assert bool(reply.failed) != bool(reply.about)
    assert reply.text.count("\n") <= rows


@given(st.lists(st.lists(st.text("ab ,;", max_size=5), min_size=2, max_size=2), max_size=30))
def test_rows_read_one_behind_the_other_make_the_whole(rows: list[list[str]]) -> None:
    """Each offset that is named leads on."""
    out = io.StringIO()
    csv.writer(out, delimiter="|").writerows([["a", "b"], *rows])
    data = out.getvalue().encode()
    every = read_table(data, ReadRequest(reader="table", limit=100_000)).text.split("\n")[1:]
    found: list[str] = []
    for at in range(0, len(every), 4):
        reply = read_table(data, ReadRequest(reader="table", offset=at, rows=4, limit=100_000))
        found += reply.text.split("\n")[1:]
    assert found == every
