"""How an answer looks on Discord, and how long that takes for the worst of texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._remote.limits import cut, units
from channels.discord.render import MOST_UNITS, escaped, markdown, measure, plainly


def body(text: str) -> str:
    return markdown(text).body


def test_what_discord_reads_itself_stays_as_it_is() -> None:
    text = "# One\n**bold** *it* `code` ~~no~~\n- a\n  - b\n> quoted\n[site](https://a.example)"
    assert body(text) == text


def test_a_table_is_a_block_whose_columns_stand_below_each_other() -> None:
    """Ideographs take two columns; a row that is short is filled."""
    table = "before\n| a | name |\n|---|:-:|\n| 1 | 中文 |\n| 22 |\nafter"
    assert body(table) == ("before\n```\na   name\n--  ----\n1   中文\n22\n```\nafter")


@pytest.mark.parametrize(
    "text",
    [
        "| a |\nno rule",
        "| a |",
        "| " + "x" * 61 + " |\n|---|",
        "|" + " a |" * 21 + "\n|---|",
        "| a |\n|---|" + "\n| b |" * 200,
    ],
)
def test_what_is_no_table_or_too_large_a_one_stays_readable(text: str) -> None:
    assert "```" not in body(text)
    assert body(text).replace("\\|", "|") == text


def test_fences_of_any_kind_become_discords_and_are_closed() -> None:
    assert body("~~~ py\na ``` b\n~~~") == "```py\na `\u200b`\u200b` b\n```"
    assert body("````\n```\n````\nx") == "```\n`\u200b`\u200b`\n```\nx"
    assert body("```py\nopen") == "```py\nopen\n```"


def test_deep_headings_are_bold_and_pictures_are_links() -> None:
    assert body("#### Deep ##") == "**Deep**"
    assert body("![a](https://a.example/b.png)") == "[a](https://a.example/b.png)"


def test_nothing_is_hidden_behind_a_spoiler() -> None:
    """But in code an escape would be seen."""
    assert body("a ||b|| `c || d` e||") == "a \\|\\|b\\|\\| `c || d` e\\|\\|"
    assert body("a ` ||b|| ``c||``") == "a ` \\|\\|b\\|\\| ``c||``"
    assert body("||[a](<https://b.example>)") == "\\|\\|[a]\\(<https://b.example>)"


def test_controls_are_dropped_and_blank_ends_too() -> None:
    assert body("\x00a\r\nb\x07\u2028 \n") == "a\nb"


def test_the_plain_form_is_shown_letter_by_letter() -> None:
    assert markdown("**a** [b](https://x)").plain == "a b"
    assert escaped("*a* <@1> #b") == "\\*a\\* \\<\\@1\\> \\#b"
    assert plainly("snake_case") == "snake\\_case"
    assert plainly("*" * 1500 + "a") == "a"
    assert units(plainly("_" * 1001 + "x" * 2500)) == MOST_UNITS


def test_length_is_counted_in_utf_16_units() -> None:
    assert measure(markdown("a👩")) == 3
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 5) == "abcd…"
    assert cut("👩👩👩", 4) == "👩…"
    assert cut("ab", 0) == "…"


HOSTILE = [
    "|" * 50_000,
    "`" * 50_000,
    "||`" * 20_000,
    "![" * 25_000,
    "![a](" * 10_000,
    "| a |\n|---|\n" * 5_000,
    "|-" * 25_000 + "\n" + "|-" * 25_000,
    "#### " + " #" * 25_000,
    "```\n~~~\n" * 6_000,
    "> " * 25_000,
    "[" * 50_000,
    "\\|" * 25_000,
    "](http:" * 8_000,
    "](" + " " * 50_000,
    "||` `` ``` " * 5_000,
    "||" + "`a" * 25_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_is_rendered_in_one_pass(text: str) -> None:
    """The test's time-out is the bound: what grows with the square would take minutes (P9)."""
    rendered = markdown(text)
    assert len(rendered.body) < 10 * len(text)


@given(st.text(alphabet="|`~#*_->[]()!\\ \nab:"))
def test_rendering_never_fails_and_blocks_are_closed(text: str) -> None:
    rendered = markdown(text)
    fences = [one for one in rendered.body.split("\n") if one.startswith("```")]
    assert measure(rendered) == units(rendered.body)
    assert len(fences) % 2 == 0
