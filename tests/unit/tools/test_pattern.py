"""The pattern of a search against the standard library's, which is right but can be stalled."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.tools.files import pattern as patterns
from zeroclaw.tools.files.pattern import BLOCK_BYTES, FoundLine, Pattern, PatternInvalid

ATOMS = st.sampled_from(
    [
        r"a",
        r"b",
        r"_",
        r".",
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        r"\b",
        r"^",
        r"$",
        r"[ab]",
        r"[^a]",
        r"[a-c]",
        r"[\d_]",
        r"[^\W]",
        r"[]a]",
        r"1",
        r"-",
        r"\.",
        r"\t",
        r"é",
        r"(a|b)",
        r"(?:ab|)",
        r"()",
    ]
)
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "{0}"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, REPEATS).map(lambda two: f"({two[0]}){two[1]}"),
    ),
    max_leaves=6,
)
LINES = st.lists(st.text("abB_ 1-.\té", max_size=8), min_size=1, max_size=12)


def found(pattern: Pattern, data: bytes) -> list[FoundLine]:
    return list(pattern.lines(data, lambda: None))


@given(pattern=PATTERNS, lines=LINES, fold=st.booleans(), block_bytes=st.integers(1, 40))
def test_it_finds_the_lines_that_the_standard_library_finds(
    pattern: str, lines: list[str], fold: bool, block_bytes: int
) -> None:
    """The two agree line by line, wherever the blocks of the file end."""
    flags = re.ASCII | (re.IGNORECASE if fold else re.NOFLAG)
    theirs = [
        FoundLine(number=number, text=line)
        for number, line in enumerate(lines, start=1)
        # What ends the file is no line of its own, and of a long one only a block is searched.
        if (line or number < len(lines))
        and re.search(pattern, line, flags)
        and len(line.encode()) < block_bytes
    ]
    data = "\n".join(lines).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patterns, "BLOCK_BYTES", block_bytes)
        ours = found(Pattern(pattern, ignore_case=fold), data)
    short = [one for one in ours if len(lines[one.number - 1].encode()) < block_bytes]
    assert short == theirs


@given(text=st.text("ab.*(\\[é\r", min_size=1, max_size=3), line=st.text("ab.*(\\[é\r", max_size=8))
def test_a_text_is_found_as_it_is(text: str, line: str) -> None:
    """Nothing in it means anything but itself."""
    assert bool(found(Pattern(text, regex=False), line.encode())) == (text in line)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "a*a*a*a*a*a*b", "(.*a){20}b"])
def test_a_pattern_that_stalls_others_takes_no_time(pattern: str) -> None:
    """Each byte is looked at once, whatever the pattern (the test's time-out is the assertion)."""
    assert not found(Pattern(pattern), b"a" * 1_000_000)


def test_a_long_line_is_searched_as_far_as_a_block_goes() -> None:
    """What follows it is found, with its number."""
    data = b"x" * 3 * BLOCK_BYTES + b"y\ny\n"
    assert [one.number for one in found(Pattern("y"), data)] == [2]
    assert [one.number for one in found(Pattern("^x"), data)] == [1]


def test_a_search_asks_before_each_block_whether_to_go_on() -> None:
    """However many lines it has found, and however few."""
    asked: list[int] = []
    data = b"y\n" * (5 * BLOCK_BYTES)
    assert not list(Pattern("x").lines(data, lambda: asked.append(1)))
    assert len(asked) >= len(data) // BLOCK_BYTES


def test_bytes_that_are_no_text_are_searched_around() -> None:
    """A broken letter hides nothing behind it, and a line's end may have two letters."""
    assert found(Pattern("^..b$"), b"a\xffb\r\nb\r\n") == [FoundLine(number=1, text="a\ufffdb")]


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("a)", "unexpected ): a)"),
        ("(a", "missing ): (a"),
        ("[a", "missing ]: [a"),
        ("*a", "no argument for repetition operator: *"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=a)", "invalid perl operator: (?="),
        ("(?<=a)", "invalid perl operator: (?<"),
        ("[b-a]", "invalid character class range: b-a"),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("((a{200}){200}){200}", "invalid repetition size: {200}"),
        (r"[\pL\pN\pS]{1000}", "pattern too large - compile failed"),
        ("(" * 2000, "missing ): "),
        ("\ud800", "no argument for repetition operator: ?"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_explained(pattern: str, complaint: str) -> None:
    """The model reads what is wrong."""
    with pytest.raises(PatternInvalid) as raised:
        Pattern(pattern)
    assert str(raised.value).startswith(complaint)
