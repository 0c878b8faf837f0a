"""Invisible characters: the approved text is the text that was read, for any input (P5)."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.redact import CHECKED, folded
from zeroclaw.text.escape import (
    escape_for_model,
    escape_invisible,
    without_mark_signs,
    without_markup,
)

DRAWN = (
    "ARABIC NUMBER", "ARABIC SIGN", "ARABIC FOOTNOTE", "ARABIC END", "ARABIC DISPUTED",
    "ARABIC POUND", "ARABIC PIASTRE", "SYRIAC", "KAITHI", "EGYPTIAN",
)  # fmt: skip
"""Format characters that show something themselves, or arrange hieroglyphs."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm \u202egpj.txt", "rm ⟨U+202E⟩gpj.txt"),
        ("a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\x1b[2J\x9b31m\x7f", "⟨U+001B⟩[2J⟨U+009B⟩31m⟨U+007F⟩"),
        ("a\rb\r\r\nc", "a⟨U+000D⟩b⟨U+000D⟩\nc"),
        ("half \ud800 of one", "half ⟨U+D800⟩ of one"),
        ("see\U000e0072\U000e006d this", "see⟨U+E0072⟩⟨U+E006D⟩ this"),
        ("rm\u200d\u200c -\ufe0fr", "rm⟨U+200D⟩⟨U+200C⟩ -⟨U+FE0F⟩r"),
        ("\u200dx", "⟨U+200D⟩x"),
        ("é\u200dя\ufe0f", "é⟨U+200D⟩я⟨U+FE0F⟩"),
        ("😀\ufe0f\u200d\ufe0f\u200d", "😀\ufe0f\u200d⟨U+FE0F⟩⟨U+200D⟩"),
        ("😀\ufe03\U000e0142", "😀⟨U+FE03⟩⟨U+E0142⟩"),
        ("lines\r\nand\ttabs\n", "lines\nand\ttabs\n"),
        ("👩\u200d🔬 ❤\ufe0f\u200d🔥 ©\ufe0f 1\ufe0f\u20e3 שלום می\u200cشود क\u094d\u200dष", None),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str | None) -> None:
    """A command reads in the order in which it would run; emoji and scripts stay whole."""
    assert escape_invisible(text) == (text if shown is None else shown)


def test_no_sign_that_only_steers_or_hides_is_left() -> None:
    """All that Unicode calls control, format, half a pair or a line's end, after ASCII."""
    steering = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        and not unicodedata.name(chr(code), "").startswith(DRAWN)
    ]
    left = [sign for sign in steering if sign in escape_invisible(f"x{sign}")]
    assert left == ["\t", "\n"]


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_spelling_out_twice_changes_nothing(text: str) -> None:
    """The result can be encoded, and a second pass changes nothing."""
    once = escape_invisible(text)
    assert escape_invisible(once) == once
    once.encode()


UNSEEN = st.sampled_from("\u202e\u2066\u200b\xad\U000e0041\U000e01ef\ufe03\x1b\x08\u3164\u2028")
STAYING = st.sampled_from("\u200c\u200d\ufe0e\ufe0f")
SEEN = st.characters(
    exclude_categories=("Cc", "Cf", "Cs", "Mn", "Me", "Zl", "Zp"), exclude_characters="⟨"
)


@given(st.lists(st.one_of(SEEN, UNSEEN, STAYING, st.just("\r\n"))).map("".join))
def test_what_a_model_reads_says_all_that_stood_there(text: str) -> None:
    """Each sign can be had back from its number, is counted, and the rest is as it was."""
    shown, count = escape_for_model(text)
    numbers = re.compile("⟨U\\+([0-9A-F]+)⟩")
    assert numbers.sub(lambda found: chr(int(found[1], 16)), shown) == text
    assert count == len(numbers.findall(shown))


@given(st.lists(st.one_of(SEEN, UNSEEN, STAYING), max_size=30).map("".join))
def test_between_two_signs_that_are_seen_at_most_one_look_and_one_joiner_stay(text: str) -> None:
    """A row of them is how a text is hidden behind an emoji; after ASCII none stays."""
    shown, _ = escape_for_model(text)
    assert (
        re.search("[\u200c\u200d\ufe0e\ufe0f]{3}|[\u200c\u200d][\u200c\u200d\ufe0e\ufe0f]", shown)
        is None
    )
    assert (
        re.search("[\ufe0e\ufe0f]{2}|[\x00-\x7f\u00e0-\u044f][\u200c\u200d\ufe0e\ufe0f]", shown)
        is None
    )


SIGNS = st.sampled_from("✅✔☑🗸🗹🮱🕓🕗\ufe0f \n")


@given(st.text(SIGNS | st.characters(exclude_categories=["Cc", "Cs"])))
def test_without_its_signs_a_text_has_none_that_reads_as_one_of_a_true_mark(text: str) -> None:
    """A thin check mark and a root stay: they are no badge. All else of the text stays (P7)."""
    shown = without_mark_signs(text)
    assert CHECKED not in folded(shown.replace("✓", "").replace("√", ""))
    assert without_mark_signs(shown) == shown
    left = re.compile("[✅✔☑🗸🗹🮱✓◷\U0001f550-\U0001f567\ufe0e\ufe0f]")
    assert left.sub("", shown) == left.sub("", text)


@pytest.mark.parametrize("blanks", [" ", "\t ", "> "])
def test_no_run_of_blanks_is_tried_twice(blanks: str) -> None:
    """In an answer that a channel renders, one would hold every conversation up for minutes (P9)."""
    line = f"{blanks * 100_000}x"
    assert without_markup(line) == line.replace(">", "")
