"""Long texts are cut where it hurts least, and nothing is lost."""

import re
import sys
import threading
import unicodedata
from types import FrameType
from typing import SupportsIndex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.fakes.loop_steps import calls_made
from tests.fakes.manual_clock import LoopClock
from tests.fakes.scripted_channel import ScriptedChannel
from tests.unit.delivery.cuts import contents_of, split
from tests.unit.delivery.rig import CAPABILITIES, running
from zeroclaw.delivery.posting import split_text
from zeroclaw.delivery.split import (
    BREAK,
    MAX_HEAD_CHARS,
    Fits,
    Outline,
    closed,
    head_of,
    in_one,
    pieces,
)
from zeroclaw.envelope import Rendered
from zeroclaw.value import replace

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
THUMB = "\U0001f44d\U0001f3fd"
FLAGS = "\U0001f1e6\U0001f1ff\U0001f1ff\U0001f1e6"
ACCENT = "e\u0301"


def at_most(limit: int) -> Fits:
    return lambda text: len(text) <= limit


def in_utf16(limit: int) -> Fits:
    return lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2 <= limit


def escaped(limit: int) -> Fits:
    """Not monotone: a pair of stars renders to nothing, a lone one is escaped."""
    return lambda text: len(re.sub(r"\*\*|[-*.]", "xx", text.replace("****", ""))) <= limit


words = st.sampled_from(
    [
        "a",
        "word",
        "longer-word",
        "1.",
        "-",
        "#",
        "**",
        FAMILY,
        WALES,
        THUMB,
        FLAGS,
        ACCENT,
        "x" * 70,
    ]
)


def a_line(lead: str, inside: list[str]) -> str:
    return lead + " ".join(inside)


lines = st.builds(
    a_line,
    st.sampled_from(
        [
            "",
            "",
            "",
            "- ",
            "  - ",
            "      - ",
            "12. ",
            "> ",
            "# ",
            "\t",
            "    ",
            "```",
            "~~~",
            "  ```",
            "> ```",
        ]
    ),
    st.lists(words, max_size=8),
)
markdown_texts = st.lists(lines, max_size=40).map("\n".join)
fence_free = markdown_texts.map(lambda text: text.replace("`", "").replace("~", ""))


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        pytest.param("", 10, (), id="nothing"),
        pytest.param(" \n\n ", 1, (), id="white space only"),
        pytest.param("fits", 10, ("fits",), id="as it is"),
        pytest.param("one two\n\nthree", 10, ("one two", "three"), id="between blocks"),
        pytest.param("one two\nthree", 10, ("one two", "three"), id="between lines"),
        pytest.param("one two three", 10, ("one two", "three"), id="between words"),
        pytest.param("onetwothree", 10, ("onetwothre", "e"), id="inside a word"),
        pytest.param("a\n\nbbbb cc dd ee", 14, ("a\n\nbbbb cc dd", "ee"), id="no tiny first part"),
        pytest.param("a\n\nbbbbbbbbbbb", 10, ("a", "bbbbbbbbbb", "b"), id="tiny before torn"),
        pytest.param("text\n# head\nmore", 12, ("text", "# head\nmore"), id="before a heading"),
        pytest.param("one two - x", 8, ("one", "two - x"), id="no word that reads as an item"),
        pytest.param("\n\none two", 4, ("one", "two"), id="white space before the first part"),
        pytest.param("ab\r\ncde", 3, ("ab", "cde"), id="between Windows' lines"),
        pytest.param("one\n\n\n   \ntwo", 3, ("one", "two"), id="white space between parts"),
    ],
)
def test_a_text_is_cut_at_the_best_place(text: str, limit: int, parts: tuple[str, ...]) -> None:
    """Blocks before lines before words before characters (S2-20)."""
    assert split(text, at_most(limit)) == parts


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        pytest.param(
            "```py\nfirst = 1\nsecond = 2\n```\nafter",
            22,
            ("```py\nfirst = 1\n```", "```py\nsecond = 2\n```", "after"),
            id="with its language",
        ),
        pytest.param(
            "~~~\naaaa\nbbbb\n~~~", 14, ("~~~\naaaa\n~~~", "~~~\nbbbb\n~~~"), id="of tildes"
        ),
        pytest.param(
            "````\n```\naaaa\nbbbb\n````",
            18,
            ("````\n```\naaaa\n````", "````\nbbbb\n````"),
            id="longer than the one inside",
        ),
        pytest.param(
            "> ```\n> aaaa\n> bbbb\n> ```",
            20,
            ("> ```\n> aaaa\n> ```", "> ```\n> bbbb\n> ```"),
            id="in a quotation",
        ),
        pytest.param(
            "- a\n  ```\n  aaaa\n  bbbb\n  ```",
            26,
            ("- a\n  ```\n  aaaa\n  ```", "```\nbbbb\n```"),
            id="in a list, without the list",
        ),
        pytest.param(
            "- ```\n  aaaa\n  bbbb\n  ```\n- c",
            18,
            ("- ```\n  aaaa\n  ```", "```\nbbbb\n```\n- c"),
            id="at the beginning of an item",
        ),
        pytest.param(
            "> - ```\n>   aaaa\n>   bbbb\n>   ```",
            28,
            ("> - ```\n>   aaaa\n>   ```", ">   ```\n>   bbbb\n>   ```"),
            id="at the beginning of an item of a quotation",
        ),
        pytest.param(
            "```py\naaaaaaaaaaaaaaaa",
            17,
            ("```py\naaaaaaa\n```", "```py\naaaaaaaaa"),
            id="still open",
        ),
        pytest.param("```\naaaaaa\n```", 6, ("```", "aaaaaa", "```"), id="no room for fences"),
        pytest.param(
            "```" + "x" * 33 + "\naaaa\nbbbb\n```",
            45,
            ("```" + "x" * 33 + "\naaaa\n```", "```\nbbbb\n```"),
            id="without what is no language",
        ),
    ],
)
def test_a_cut_fence_is_closed_and_opened_again(
    text: str, limit: int, parts: tuple[str, ...]
) -> None:
    """Code stays code on both sides of a cut (S2-20)."""
    assert split(text, at_most(limit)) == parts


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        pytest.param(
            "- aaaa\n      - bbbb\n      - cccc\n   - dddd\n- eeee",
            22,
            ("- aaaa\n      - bbbb", "- cccc\n- dddd\n- eeee"),
            id="deep items move to the margin",
        ),
        pytest.param(
            "- aaaa\n      - bbbb\n      - cccc\n   - dddd\n      - eeee",
            24,
            ("- aaaa\n      - bbbb", "- cccc\n- dddd\n   - eeee"),
            id="an item stays below its parent",
        ),
        pytest.param(
            "1. aaaa bbbb\n   cccc\n\n   dddd",
            8,
            ("1. aaaa", "bbbb", "cccc", "dddd"),
            id="inside an item",
        ),
        pytest.param(
            "aa\n\n    code\n    more", 11, ("aa", "    code", "    more"), id="code is no list"
        ),
        pytest.param(
            "- aa\n\nbb\n\n    code", 8, ("- aa\n\nbb", "    code"), id="a list ends at the margin"
        ),
    ],
)
def test_a_part_that_begins_in_a_list_begins_at_the_margin(
    text: str, limit: int, parts: tuple[str, ...]
) -> None:
    """Items don't turn into code when their parents are in the part before (S2-20)."""
    assert split(text, at_most(limit)) == parts


@pytest.mark.parametrize(
    "character", [FAMILY, WALES, THUMB, FLAGS[:2], ACCENT, "\r\n", "\ud83d\ude00"]
)
@pytest.mark.parametrize("limit", [15, 16, 17, 18, 19, 20])
def test_a_grapheme_is_never_torn(character: str, limit: int) -> None:
    """No part begins or ends inside of a cluster (S2-20)."""
    found = pieces("x" + character * 30, in_utf16(limit))
    contents = contents_of(found, "x" + character * 30)
    assert {content.removeprefix("x").replace(character, "") for content in contents} == {""}


def test_endless_marks_on_one_letter_are_cut_between_marks() -> None:
    """A cluster longer than any language has does not stop the cutting."""
    parts = split("e" + "\u0301" * 100, at_most(40))
    assert [len(part) for part in parts] == [40, 40, 21]
    assert len(split("e" + "\u0301" * 100, at_most(33))) == 4


def test_marks_that_leave_no_room_are_cut_one_by_one() -> None:
    """A letter with more marks than a part has room for loses none of them."""
    text = "e" + "\u0301" * 20
    assert "".join(split(text, at_most(10))) == text


def test_a_good_place_that_does_not_fit_is_passed_over() -> None:
    """Where less text measures more, the next best place is taken."""
    refused = "aa bb cc dd"
    parts = split("aa bb cc dd eeeeee", lambda text: text != refused and len(text) <= 17)
    assert parts == ("aa bb cc dd eeeee", "e")


def test_a_line_of_nothing_but_marks_is_cut_anywhere() -> None:
    """The search for a word that may begin a line is bounded."""
    parts = split("- " * 20, at_most(30))
    assert "".join("".join(parts).split()) == "-" * 20


def test_a_character_that_does_not_fit_by_itself_is_a_part() -> None:
    """Cutting ends even where nothing fits."""
    assert split("ab", at_most(0)) == ("a", "b")


@given(markdown_texts, st.integers(12, 200))
@example("```\n" + "x" * 70 + "\n```", 12)
def test_every_part_fits_and_nothing_is_lost(text: str, limit: int) -> None:
    """The contents joined are the text; each part fits its channel (S2-20)."""
    for fits in (at_most(limit), in_utf16(limit), escaped(limit)):
        found = pieces(text, fits)
        assert "".join(contents_of(found, text)) == text
        assert [piece.text for piece in found if not fits(piece.text)] == []


@given(fence_free, st.integers(12, 200))
def test_parts_without_fences_hold_every_character_in_order(text: str, limit: int) -> None:
    """Only white space is taken away, and nothing is added (S2-20)."""
    shown = "".join(split(text, at_most(limit)))
    assert "".join(shown.split()) == "".join(text.split())


@given(markdown_texts, st.integers(12, 200))
def test_no_part_begins_with_a_mark_of_the_part_before(text: str, limit: int) -> None:
    """Marks stay with their letters (S2-20)."""
    contents = contents_of(pieces(text, at_most(limit)), text)
    starts = [content[0] for content in contents[1:]]
    assert [start for start in starts if unicodedata.category(start) in {"Mn", "Cf"}] == []


@given(markdown_texts, st.integers(12, 200), st.integers(0, 5))
def test_cutting_goes_on_from_an_earlier_cut(text: str, limit: int, cut_at: int) -> None:
    """What was cut before needs no second look."""
    fits = at_most(limit)
    found = pieces(text, fits)
    start = found[min(cut_at, len(found) - 1)].end if found else 0
    rest = pieces(text, fits, start=start)
    assert "".join(contents_of(rest, text, start)) == text[start:]
    assert [piece.text for piece in rest if not fits(piece.text)] == []


@given(markdown_texts, markdown_texts, st.integers(12, 200))
@example(above="```py\na", below="b", limit=50)
def test_what_follows_a_break_is_cut_as_a_text_of_its_own(
    above: str, below: str, limit: int
) -> None:
    """However short both are; an open list or fence above does not reach it."""
    fits, text = at_most(limit), f"{above}{BREAK}{below}"
    assert split(text, fits) == (*split(above, fits), *split(below, fits))
    assert pieces(text, fits, start=len(text) - len(below)) == tuple(
        replace(piece, end=len(text) - len(below) + piece.end) for piece in pieces(below, fits)
    )
    assert in_one(text) == "\n\n".join((*filter(None, [closed(above)]), below.lstrip(chr(10))))


@pytest.mark.parametrize(
    ("above", "fence"),
    [
        pytest.param("```py\na", "\n```", id="open"),
        pytest.param("```py\na\n", "```", id="open, on a new line"),
        pytest.param("````\n```\na", "\n````", id="a shorter fence is code"),
        pytest.param("~~~\n```\na", "\n~~~", id="another fence is code"),
        pytest.param("1. a\n\n   ```\n   b", "\n   ```", id="in a list"),
        pytest.param("1. a\n\n2. ```\n   b", "\n   ```", id="at the beginning of an item"),
        pytest.param("```\na\n```", "", id="closed"),
        pytest.param("- ```\n  a\n  ```", "", id="closed in an item"),
        pytest.param("```\r\na\r\n```\r\n", "", id="closed, with other ends of lines"),
        pytest.param("> ```\n> a", "", id="in a quote, which a blank line ends"),
        pytest.param("> ```\n> a\n\n```py\nb", "\n```", id="after a quote that leaves one open"),
        pytest.param("a ``` b", "", id="no fence"),
    ],
)
def test_in_one_message_open_code_above_a_card_does_not_swallow_the_text_below(
    above: str, fence: str
) -> None:
    assert closed(above) == f"{above}{fence}"
    below = MarkdownIt().render("**b**")
    assert MarkdownIt().render(in_one(f"{above}{BREAK}**b**")).endswith(below)


def test_in_one_message_any_number_of_cards_is_one_blank_line() -> None:
    """Also above a note of the runtime: a mail shows its text as it is, blank lines included."""
    text = f"a{BREAK}{BREAK}b{BREAK}\n\n_stopped_"
    assert in_one(text) == "a\n\nb\n\n_stopped_"
    assert in_one(f"a{BREAK}\n\n{BREAK}b") == "a\n\nb"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("word " * 20_000, id="words"),
        pytest.param("x" * 100_000, id="one word"),
        pytest.param("- item\n" * 14_000, id="items"),
        pytest.param("```\n" + "code\n" * 20_000, id="code"),
        pytest.param("\n" * 100_000 + "x", id="blank lines"),
        pytest.param(FLAGS * 25_000, id="flags"),
    ],
)
def test_work_grows_with_the_text_and_no_faster(text: str) -> None:
    """100 KB are measured about a dozen times over, not once for each part."""
    measured = 0

    def fits(part: str) -> bool:
        nonlocal measured
        measured += len(part)
        return len(part) <= 4096

    parts = split(text, fits)
    assert all(len(part) <= 4096 for part in parts)
    assert measured < 30 * len(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("**dense** _markup_ `here` [link](https://example.org) and ~~more~~ " * 450),
        pytest.param("word " * 6000),
        pytest.param("- item with **one** mark\n" * 1200),
        pytest.param("```python\n" + "print(1)  # and so on\n" * 1300 + "```"),
    ],
    ids=["dense", "words", "items", "code"],
)
def test_a_long_answer_is_rendered_a_few_times_over_and_never_all_at_once(text: str) -> None:
    """Rendering 30 KB full of markup takes too long for others to wait, and for itself (P9)."""
    measured: list[int] = []

    def fits(part: str) -> bool:
        measured.append(len(part))
        return len(re.sub(r"[*_`~\[\]]|\(.*?\)", "", part)) <= 4096

    found = split(text, fits)
    assert all(fits(part) for part in found)
    assert sum(sorted(measured)[:-1]) < 10 * len(text)
    assert len(measured) < 10 * len(found)
    # The whole is asked once, and the renderer may refuse it unseen.
    assert sorted(measured)[-2] < 2 * 1.5 * max(map(len, found))


def test_an_empty_line_costs_few_steps() -> None:
    """An answer of nothing but line ends is cut for each frame of its draft (P9)."""
    text = "\n" * 4000 + "end"
    assert split(text, at_most(500)) == ("end",)
    assert calls_made(lambda: split(text, at_most(500))) <= 6 * 4000


def test_a_text_above_a_break_is_not_read_again() -> None:
    """What grows below a card is cut on the event loop, however much stands above it (P9)."""
    above = f"{'- a' * 9}\n" * 400 + BREAK
    start = pieces(above, at_most(500))[-1].end
    assert calls_made(lambda: pieces(f"{above}word", at_most(500), start=start)) <= 100


@given(
    st.lists(
        st.one_of(lines, st.sampled_from(["\n", "```\n", "| a | b |\n|--|--|\n", BREAK])),
        max_size=30,
    ),
    st.lists(st.integers(0, 300), max_size=8),
)
def test_a_text_that_grows_is_cut_as_one_that_is_read_whole(
    written: list[str], cuts: list[int]
) -> None:
    """However it came, and also where it began anew meanwhile (P6)."""
    text, reading = "\n".join(written), Outline()
    for end in [*sorted(cuts), len(text), *cuts, len(text)]:
        shown = text[:end]
        for start in {0, end // 2}:
            again = pieces(shown, at_most(60), start=start, outline=reading)
            assert again == pieces(shown, at_most(60), start=start)


@pytest.mark.parametrize("line", ["\n", "- a\n", "| a | b |\n", "word word word\n", "```\n"])
def test_a_text_that_grows_is_read_once(line: str) -> None:
    """A draft is cut for each of its frames: twice the frames are twice the work (P9)."""

    def lines_read(frames: int) -> int:
        reading, text, read = Outline(), "", 0

        def count(frame: FrameType, event: str, _about: object) -> None:
            nonlocal read
            read += event == "call" and frame.f_code.co_name == "_read"

        sys.setprofile(count)
        try:
            for _ in range(frames):
                text += line * 50
                reading.read(text)
        finally:
            sys.setprofile(None)
        return read

    assert lines_read(40) <= 2 * lines_read(20)
    assert lines_read(20) <= 20 * 52


# --- a table that goes on has its head there too --------------------------------------------------

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
        assert all(part.startswith("```\n") and part.count("---") <= 1 for part in found)
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
    """And the contents joined are the text, without the heads shown above them."""
    text = table(*rows)
    found = pieces(text, lambda part: len(part) <= limit)
    assert "".join(contents_of(found, text)) == text
    shown = [part.text.removeprefix(f"{HEAD}") for part in found]
    assert "\n".join(row.strip("\n") for row in shown).strip().split("\n") == (rows or [""])
    assert all(part.text.startswith(HEAD) for part in found)
    assert all(len(part.text) <= limit for part in found)


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
        (f"| {'a' * MAX_HEAD_CHARS} |", "|---|"),
    ],
)
def test_a_line_without_a_table_shape_is_no_head(above: str, line: str) -> None:
    assert head_of(above, line) == ""


def test_a_head_begins_at_the_margin() -> None:
    assert head_of(r"  | a \| b | c |", "  |--|--|") == "| a \\| b | c |\n|--|--|"


# --- a long text is cut while others go on --------------------------------------------------------


@pytest.mark.parametrize("text", ["**word** " * 400, "[" * 1_000])
async def test_a_long_text_is_cut_as_a_short_one_and_off_the_event_loop(text: str) -> None:
    """However often it has to be measured, no chat waits for it (P9)."""
    in_loop: set[bool] = set()

    def fits(part: str) -> bool:
        in_loop.add(threading.current_thread() is threading.main_thread())
        return len(part) <= 500

    parts = await split_text(text, fits)
    assert in_loop == {False}
    assert parts == split(text, lambda part: len(part) <= 500)
    assert len(parts) > 1


async def test_a_blank_text_has_no_parts() -> None:
    assert await split_text(" \n", lambda _: True) == ()


class Counting(ScriptedChannel):
    """Remembers how long each text was that it rendered."""

    lengths: tuple[int, ...] = ()

    def render(self, markdown: str) -> Rendered:
        self.lengths = (*self.lengths, len(markdown))
        return super().render(markdown)


async def test_a_long_text_is_never_rendered_whole() -> None:
    """Nor much more of it than a message holds, nor very often (P9)."""
    large = replace(CAPABILITIES, max_length=4096)
    channel = Counting(clock=LoopClock(), capabilities=large)
    async with running(channel) as rig:
        text = "**word** and _more_ " * 1500
        parts = await split_text(text, rig.accounts["chat"].fits)
        assert "".join("".join(parts).split()) == "".join(text.split())
        assert max(channel.lengths) <= 2 * 4096
        assert sum(channel.lengths) < 10 * len(text)


class Watched(str):
    """Remembers in which thread its lines were read."""

    __slots__ = ("read_in",)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        if not hasattr(self, "read_in"):
            self.read_in = threading.current_thread()
        return super().__getitem__(key)


async def test_the_lines_of_a_long_text_are_read_off_the_event_loop() -> None:
    """A text of 40,000 line ends takes no time of another conversation (P9)."""
    text = Watched("\n" * 40_000 + "end")
    assert await split_text(text, lambda part: len(part) <= 4096) == ("end",)
    assert text.read_in is not threading.main_thread()
