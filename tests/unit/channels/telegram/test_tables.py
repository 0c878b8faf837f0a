"""No table of a few thousand signs takes seconds to draw; what would is shown as it was written."""

import pytest

from channels.telegram.render import markdown
from channels.telegram.rich import MOST_CELLS, without_huge
from channels.telegram.styled import from_body

RULE = "|-|-|"
MANY_COLUMNS = "\n".join(("|a" * 600, "|-" * 600, *["||"] * 400))
LONG_CELL = "\n".join(("|a|b|", RULE, f"|{'ä' * 3000}|b|", *["|c|d|"] * 800))
MANY_TABLES = "\n\n".join(["\n".join(("|a" * 30, "|-" * 30, *["|b|"] * 30))] * 20)


@pytest.mark.parametrize("text", [MANY_COLUMNS, LONG_CELL], ids=["columns", "long cell"])
@pytest.mark.parametrize("before", ["", "> "])
def test_a_table_that_would_be_millions_of_signs_is_shown_as_it_was_written(
    text: str, before: str
) -> None:
    """The library fills each row up to the widest one, for ten seconds of 4,000 signs (P9)."""
    written = "\n".join(f"{before}{line}" for line in text.split("\n"))
    found = from_body(markdown(written, richly=True).body)
    assert found.text.replace("\n\n", "\n") == text
    assert found.rich == ""


def test_of_many_tables_those_are_drawn_that_are_not_too_much_together() -> None:
    shown = markdown(MANY_TABLES).plain
    assert 0 < shown.count("-+-") // 29 <= MOST_CELLS // (31 * 32)
    assert shown.count("|-|-") > 0
    assert len(shown) <= 4 * len(MANY_TABLES)


@pytest.mark.parametrize(
    "text",
    [
        f"|a|b|\n{RULE}\n" + "| some words | more of them |\n" * 150,
        f"|a|b|\n{RULE}\n|{'c' * 1000}|d|",
        "\n".join(["|" + "cell|" * 20, "|" + "-|" * 20, *["|" + "cell|" * 20] * 60]),
    ],
    ids=["long", "wide", "columns"],
)
def test_a_table_that_people_write_is_one(text: str) -> None:
    assert without_huge(text, "!") == text


def test_only_its_rule_is_changed_and_what_stands_apart_stays() -> None:
    small = f"|a|b|\n{RULE}\n|c|d|"
    found = without_huge(f"{small}\n\n{LONG_CELL}\n\n{small}", "!")
    assert found.startswith(f"{small}\n\n|a|b|\n!-!-!\n|ä")
    assert found.endswith(small)
    assert found.count("!") == RULE.count("|")
