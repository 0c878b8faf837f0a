"""The linear pattern matcher against the standard library's, which is right but can be stalled."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.tools.files.pattern import Pattern, PatternInvalid

ATOMS = st.sampled_from(
    [
        r"a",
        r"b",
        r"c",
        r"_",
        r".",
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        r"\b",
        r"\B",
        r"^",
        r"$",
        r"[ab]",
        r"[^a]",
        r"[a-c]",
        r"[\d_]",
        r"[^\W]",
        r"[]a]",
        r"[a-]",
        r"1",
        r"-",
        r"\.",
        r"\t",
        r"a{",
        r"(a|b)",
        r"(?:ab|)",
        r"()",
    ]
)
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "{0}", "{0,}"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, REPEATS).map(lambda two: f"({two[0]}){two[1]}"),
    ),
    max_leaves=6,
)


# Not the empty line: there Python before 3.14 says that `\B` is nowhere.
@given(pattern=PATTERNS, line=st.text("abB_ 1-.\t", min_size=1, max_size=8), fold=st.booleans())
def test_it_finds_what_the_standard_library_finds(pattern: str, line: str, fold: bool) -> None:
    """The two agree about every pattern that this one reads."""
    theirs = re.search(pattern, line, re.IGNORECASE if fold else re.NOFLAG)
    assert Pattern(pattern, ignore_case=fold).is_in(line) == (theirs is not None)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "a*a*a*a*a*a*b", "(.*a){20}b"])
def test_a_pattern_that_stalls_others_takes_no_time(pattern: str) -> None:
    """Each letter is looked at once, whatever the pattern (the test's time-out is the assertion)."""
    assert not Pattern(pattern).is_in("a" * 20_000)


def test_what_is_remembered_stays_bounded() -> None:
    """Many different letters make it forget, and still answer rightly."""
    line = "".join(chr(0x4E00 + number) for number in range(20_500))
    pattern = Pattern("x$")
    assert (pattern.is_in(line), pattern.is_in(line + "x")) == (False, True)


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("a)", "a `)` without a `(`, at character 2"),
        ("(a", "a `(` without its `)`, at character 3"),
        ("[a", "a `[` without its `]`, at character 3"),
        ("*a", "nothing before `*` to repeat, at character 2"),
        ("a**", "a repeat of a repeat"),
        ("a+?", "a repeat of a repeat"),
        (r"(a)\1", r"a `\` before something it means nothing for"),
        ("a\\", r"a `\` before something it means nothing for"),
        ("(?=a)", "a group that looks ahead or behind"),
        ("[b-a]", "a range that falls"),
        (r"[b-\a]", r"a `\` before something it means nothing for"),
        ("a{201}", "at most 200"),
        ("a{3,2}", "a repeat must rise"),
        ("((a{200}){200}){200}", "the pattern is too large"),
        ("(" * 60, "groups too deep"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_explained(pattern: str, complaint: str) -> None:
    """The model reads what is wrong and where."""
    with pytest.raises(PatternInvalid) as raised:
        Pattern(pattern)
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [(r"[\]x]", "]"), (r"[a\-z]", "-"), (r"[!-\/]", "."), ("a{,}", "a{,}"), ("a{x}", "a{x}")],
)
def test_escapes_and_braces_that_are_letters(pattern: str, line: str) -> None:
    """What reads like a letter is one."""
    assert Pattern(pattern).is_in(line)
