"""Markdown becomes text and entities that Telegram always takes."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._remote.limits import cut, units
from channels.telegram import render
from channels.telegram.render import MOST_BLOCKS, markdown, measure
from channels.telegram.styled import Mark, Styled, from_body

MARKUP = st.lists(
    st.sampled_from(
        (
            *("a", "b c", "\n", "\n\n", "*", "**", "_", "`", "```", "||", "<", ">", "> ", "> > "),
            *("[x]", "(https://e.x)", "(javascript:x)", "- ", "1. ", "# ", "| a |\n|--|\n", "$"),
            *("\\", "&lt;", "👩🏽‍🚀", "\u202e", "&#x202e;", "\ud83d", "\x00", "\ue000", "    "),
            *("~~", "![i]", "\r\n"),
        )
    ),
    max_size=30,
).map("".join)


def styled(text: str) -> Styled:
    return from_body(markdown(text).body)


@pytest.mark.slow
@given(MARKUP)
def test_offsets_lie_within_the_text_and_never_in_the_middle_of_a_character(text: str) -> None:
    """Telegram refuses a message with an entity that does not; S2-06."""
    found = styled(text)
    edges = {units(found.text[:at]) for at in range(len(found.text) + 1)}
    assert [
        one for one in found.marks if {one["offset"], one["offset"] + one["length"]} - edges
    ] == []
    assert [one for one in found.marks if one["length"] <= 0] == []
    found.text.encode()
    assert measure(markdown(text)) == units(found.text)


@pytest.mark.slow
@given(MARKUP)
def test_quotes_are_never_nested(text: str) -> None:
    quotes = [one for one in styled(text).marks if one["type"] == "blockquote"]
    for one, other in pairwise(quotes):
        assert one["offset"] + one["length"] <= other["offset"]


@pytest.mark.parametrize(
    ("text", "shown", "marks"),
    [
        ("*hello*", "hello", [Mark(type="italic", offset=0, length=5)]),
        ("👩🏽‍🚀 **b**", "👩🏽‍🚀 b", [Mark(type="bold", offset=8, length=1)]),
        (
            "```python\nx < 1\n```",
            "x < 1",
            [Mark(type="pre", offset=0, length=5, language="python")],
        ),
        (
            "[l](https://e.x/?a=<b)",
            "l",
            [Mark(type="text_link", offset=0, length=1, url="https://e.x/?a=<b")],
        ),
        ("> a\n> > b", "a\nb", [Mark(type="blockquote", offset=0, length=3)]),
        ("- a\n- b", "• a\n• b", []),
        ("a < b <i>c</i> <script>x</script>", "a < b <i>c</i> <script>x</script>", []),
        ("<!-- all of it -->", "<!-- all of it -->", []),
        ("[p](tg://user?id=7) ![e](tg://emoji?id=5368324170671202286)", "p e", []),
        ("a\u202eb &#x202e;c\x00\r\nd", "ab \ufffdc\nd", []),
        ("[]()", "[]()", []),
        ("", "", []),
    ],
)
def test_markdown_looks_as_telegram_can_show_it(text: str, shown: str, marks: list[Mark]) -> None:
    assert styled(text) == Styled(text=shown, marks=tuple(marks))
    assert markdown(text).plain == shown


def test_an_underlined_heading_is_bold_too() -> None:
    kinds = {one["type"] for one in styled("# Title\n\ntext").marks}
    assert kinds == {"bold", "underline"}


@given(st.text(), st.integers(min_value=1, max_value=20))
def test_what_is_cut_fits(text: str, most: int) -> None:
    assert units(cut(text, most)) <= most
    assert cut(text, units(text)) == text


NESTED = r"\sqrt{" * 60 + "x" + "}" * 60


@pytest.mark.parametrize(
    "formula",
    [f"${NESTED}$", rf"\({NESTED}\)", rf"\[{NESTED}\]", "$$" + r"\frac{" * 60 + "$$", "$$" * 2_000],
)
def test_a_formula_is_shown_as_it_was_written(formula: str) -> None:
    """The library's own reading of one doubles its time with each root in a root (P9)."""
    shown = markdown(formula).plain
    assert shown == re.sub(r"\\([()\[\]])", r"\1", formula)


@pytest.mark.parametrize("opener", ["> ", ">", "- ", "* ", "1. ", "- > "])
def test_what_is_nested_as_nobody_writes_is_shown_as_it_was_written(opener: str) -> None:
    """It takes the library seconds, which grow with the square of the levels (P9)."""
    text = f"**b**\n\n{opener * 4_000}a"
    assert styled(text) == Styled(text=text)
    assert styled(f"{opener * 10}**a**").marks


def test_prices_and_variables_keep_their_signs() -> None:
    assert markdown("$x$ costs $5, `$HOME`").plain == "$x$ costs $5, $HOME"


def test_a_text_that_holds_every_sign_for_private_use_is_shown() -> None:
    """Nothing is left to stand for what is hidden from the library; that breaks nothing."""
    every = "".join(map(chr, range(0xE000, 0xF900)))
    assert markdown(every).plain.endswith(every[3:])


@pytest.mark.parametrize("block", ["```\n", "~~~\n", "# a\n", "  ## a\n"])
def test_a_text_of_nothing_but_blocks_stays_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    """The library takes a second for a few thousand of them, on the event loop; it is not asked."""
    monkeypatch.setattr(render, "_parsed", None)
    text = block * (MOST_BLOCKS + 1)
    assert markdown(text).plain == text.strip()
