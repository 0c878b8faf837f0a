"""A receipt that a model made up is marked before a person sees it."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.mutant import mutant
from zeroclaw.envelope import CheckedReceipt
from zeroclaw.gate import receipt_screen as room
from zeroclaw.gate.receipt_screen import (
    FALSE_MARK,
    Lookup,
    Screening,
    feed,
    flush,
    screen,
    screen_shown,
    take_out,
)
from zeroclaw.redact import CHECKED, DOT, MARKER, Redactor, folded
from zeroclaw.text.escape import in_a_mark

AT = datetime(2026, 11, 21, 12, 3, 59, tzinfo=UTC)
MAC = "A-_b" * 10 + "xyz"
TRUE = f"zc-receipt-1700000000-{MAC}"
OLD = f"zc-receipt-1600000000-{MAC}"
FALSE = f"zc-receipt-1700000001-{MAC}"
VALID = CheckedReceipt(token=TRUE, tool="shell", outcome="ok", at=AT, summary="run `ls`")
EARLIER = CheckedReceipt(token=OLD, tool="shell", outcome="denied", at=AT, summary="", earlier=True)
TRUE_MARK = f"[receipt: {TRUE}]"
OLD_MARK = f"[receipt: {OLD}]"


def lookup(token: str) -> CheckedReceipt | None:
    return {TRUE: VALID, OLD: EARLIER}.get(token)


def streamed(pieces: list[str]) -> str:
    state, out = Screening(), ""
    for piece in pieces:
        state, shown = feed(state, piece, lookup)
        out += shown
        assert len(state.text) < 300
    return out + flush(state, lookup)


ANSWERS = {
    "true": (f"Done. {TRUE}.", f"Done. {TRUE_MARK}."),
    "earlier": (f"Done. {OLD}\n", f"Done. {OLD_MARK}\n"),
    "false": (f"Done. {FALSE}", f"Done. {FALSE_MARK}"),
    "whole line": (f"a\n[receipt: {TRUE}]\nb", f"a\n{TRUE_MARK}\nb"),
    "whole line in code": (f"[Receipt: `{TRUE}`]", TRUE_MARK),
    "code": (f"`{TRUE}` and `{FALSE}` x", f"{TRUE_MARK} and {FALSE_MARK} x"),
    "code that goes on": (f"`{TRUE} x`", f"`{TRUE_MARK} x`"),
    "open bracket": (f"[receipt: {TRUE}, x", f"[receipt: {TRUE_MARK}, x"),
    "other bracket": (f"[x {TRUE}]", f"[x {TRUE_MARK}]"),
    "shortened": ("zc-receipt-1700000000-A-_b...", f"{FALSE_MARK}..."),
    "one character more": (f"{TRUE}x", FALSE_MARK),
    "a leading zero": (f"zc-receipt-01700000000-{MAC}", FALSE_MARK),
    "capitals": (f"ZC-Receipt-1700000000-{MAC}", TRUE_MARK),
    "other dashes": (f"zc\u2011receipt\u20131700000000\u2212{MAC}", TRUE_MARK),
    "two in a row": (f"{TRUE} {TRUE}", f"{TRUE_MARK} {TRUE_MARK}"),
    "nested": (f"zc-receipt-{TRUE}", FALSE_MARK),
    "very long": (f"x zc-receipt-{'y' * 5000} z", f"x {FALSE_MARK} z"),
    "very long to the end": (f"[receipt: zc-receipt-{'y' * 300}", f"[receipt: {FALSE_MARK}"),
    "a word": ("a zc-receipt- is a receipt", "a zc-receipt- is a receipt"),
    "a beginning": ("[receipt: zc-rec", "[receipt: zc-rec"),
    "imitation": ("✅ receipt: shell · ok", f"{FALSE_MARK}: shell · ok"),
    "imitation, bold": ("✔️ **Receipt**: ok", f"{FALSE_MARK}: ok"),
    "imitation of an earlier": ("🕓 receipt · old", f"{FALSE_MARK}· old"),
    "an honest line": ("✅ Receipt uploaded: see it", "✅ Receipt uploaded: see it"),
    "introduced": (f"✅ Receipt: `{TRUE}` x", f"{TRUE_MARK}` x"),
    "introduced and very long": (
        f"✅ receipt {'zc-receipt-' * 30} x",
        f"✅ receipt {FALSE_MARK} x",
    ),
    "a tick": ("✅ done, ✅ re", "✅ done, ✅ re"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_receipt_is_marked_at_every_split_point(name: str) -> None:
    """Each receipt becomes its mark, wherever the stream was cut. P7, S2-18."""
    text, expected = ANSWERS[name]
    every = range(len(text)) if len(text) < 1000 else range(0, len(text), 97)
    outs = {streamed([text[:at], text[at:]]) for at in every}
    assert {screen(text, lookup), streamed(list(text)), *outs} == {expected}


PARTS = st.one_of(
    st.sampled_from([TRUE, FALSE, OLD, TRUE[:15], "[receipt: ", "`", "]", "✅", " ", "receipt"]),
    st.sampled_from(
        ["zc-receipt-", "zc", "-", "✅ receipt", ": ", "·", "y" * 190, "zc-rec", "\ufe0f"]
    ),
    st.text("zc-receipt[: `]x✅", max_size=6),
)


@given(text=st.lists(PARTS, max_size=9).map("".join), points=st.lists(st.integers(0, 999)))
def test_where_an_answer_is_cut_makes_no_difference(text: str, points: list[int]) -> None:
    """Any answer, cut anywhere, is screened as the whole is. P7."""
    ends = sorted(point % (len(text) + 1) for point in points)
    pieces = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
    assert streamed(pieces) == screen(text, lookup)
    assert streamed(list(text)) == screen(text, lookup)


@given(text=st.lists(PARTS, max_size=9).map("".join))
def test_nothing_that_looks_like_a_token_is_left(text: str) -> None:
    """Once the true ones are taken out no token stands in the text. P7."""
    assert "zc-receipt-1" not in take_out(screen(text, lookup), lookup, "(below)")[0]


def test_ordinary_text_is_not_held() -> None:
    """Nothing waits that can't be the beginning of a receipt. P6."""
    state, shown = feed(Screening(), "Well, [this] is `fine`, z", lookup)
    assert (state, shown) == (Screening(text="z"), "Well, [this] is `fine`, ")


def test_what_is_proven_stands_beside_the_text_each_once() -> None:
    """A mark names the call: tool, outcome, time, and the call's own line; the clock is UTC (P7)."""
    screened = screen(f"I ran {TRUE}, `{TRUE}` and {OLD}; {FALSE}.", lookup)
    shown, receipts = take_out(screened, lookup, "(below)")
    assert shown == f"I ran (below), (below) and (below); {FALSE_MARK}."
    assert [receipt.token for receipt in receipts] == [TRUE, OLD]
    assert [receipt.line() for receipt in receipts] == [
        "receipt: shell · ok · 12:03 UTC · run `ls`",
        "receipt of an earlier run: shell · denied · 2026-11-21 12:03 UTC",
    ]


WORDS = st.text(
    st.sampled_from("·・•✅✓🕓☑ \u2800\u3164\u00a0\n\u2028\u202e") | st.characters(), max_size=50
)
NEST = "x" * 30 + "\u2800" * 30 + "✅ receipt: rm · ok · 12:03 UTC · delete everything"


@given(tool=WORDS | st.just(NEST), summary=WORDS | st.just(NEST))
def test_no_words_in_a_mark_are_a_part_of_it(tool: str, summary: str) -> None:
    """What a model called a tool, and wrote to it, divides no mark and begins none; its end is seen. P7."""
    mark = CheckedReceipt(token="t", tool=tool, summary=summary, outcome="failed", at=AT)
    line = folded(mark.line())
    assert line.count(DOT) == 2 + bool(in_a_mark(summary))
    assert line.split(f" {DOT} ")[1:3] == ["failed", "12:03 UTC"]
    assert CHECKED not in line
    assert line.index("failed") < 80 - len("receipt of an earlier run")
    assert "\u2800" not in mark.line()
    assert len(mark.line().splitlines()) == 1


def test_a_receipt_that_is_not_known_after_all_is_false() -> None:
    assert take_out(f"a [receipt: {FALSE}]", lookup, "(below)") == (f"a {FALSE_MARK}", ())
    assert take_out("nothing", lookup, "(below)") == ("nothing", ())


MUTANTS = {
    "a beginning is not held": (
        "limit = start.start() if start else len(buffer)",
        "limit = len(buffer)",
    ),
    "a malformed token is looked up": (
        "issued_at(token) is None or lookup(token) is None",
        "len(token) >= 40 and lookup(token) is None",
    ),
    "a long run is shown": ('match["long"] is not None', "False"),
}


def comes_out(planted: Mapping[str, object], text: str) -> str:
    """What a mutant makes of an answer that comes by characters."""
    step = cast("Callable[[Screening, str, Lookup], tuple[Screening, str]]", planted["feed"])
    end = cast("Callable[[Screening, Lookup], str]", planted["flush"])
    state, out = Screening(), ""
    for piece in text:
        state, shown = step(state, piece, lookup)
        out += shown
    return out + end(state, lookup)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_tests_bite(name: str) -> None:
    """A planted fault changes what comes out of some answer."""
    planted = mutant(room, *MUTANTS[name])
    assert any(comes_out(planted, text) != expected for text, expected in ANSWERS.values())


SECRET = "hunter-2-hunter-2"
REDACTOR = Redactor([SECRET, "p@ss-word!"])
READ = {
    "as it is": (f"a {SECRET} b", f"a {MARKER} b"),
    "in other letters": ("a hunt\u0435r-\uff12-hun\u00adter-2 b", f"a {MARKER} b"),
    "spread": ("a h-u-n-t-e-r\n2 hunter 2, b", f"a {MARKER}, b"),
    "a password is no word": (
        "the password, p@ss-\u0440assword!",
        "the password, p@ss-\u0440assword!",
    ),
    "a short one": ("the p@ss-w\u043erd! b", f"the {MARKER} b"),
    "a shape": ("x gh\u0440_" + "a1" * 20 + " y", f"x {MARKER} y"),
    "a key": (
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n\u0430 b",
        f"{MARKER}\n\u0430 b",
    ),
    "two in one": (f"{SECRET}{SECRET}", MARKER),
    "a receipt": (f"a {TRUE}. b", f"a {FALSE_MARK}. b"),
    "a receipt in other letters": ("a z\u0441 rec\u00e9ipt: 17\u0430 b", f"a {FALSE_MARK} b"),
    "an imitation": ("\u2714\ufe0f R\u0435ceipt: x", f"{FALSE_MARK}: x"),
    "an imitation of an earlier": (
        "✅ r·eceipt of an e\u0430rlier run",
        f"{FALSE_MARK} of an e\u0430rlier run",
    ),
    "an imitation with dashes": (
        "✅ receipt \u2013 shell \u2013 ok",
        f"{FALSE_MARK} \u2013 shell \u2013 ok",
    ),
    "an imitation with dots": ("☑ rece\u0456pt\n\u2022 shell", f"{FALSE_MARK}\n\u2022 shell"),
    "an imitation of an earlier in other words": (
        "✅ Receipt from the previous run, \U0001f553 receipt of earlier run: x",
        f"{FALSE_MARK} from the previous run, {FALSE_MARK} of earlier run: x",
    ),
    "an imitation with brackets": ("✅ receipt (shell) ok", f"{FALSE_MARK} (shell) ok"),
    "an imitation for a call": ("✅ Receipt for shell: ok", f"{FALSE_MARK} for shell: ok"),
    "an imitation with a time": (
        "✅ Receipt \u2192 shell \u0456s ok at 12:03",
        f"{FALSE_MARK} \u2192 shell \u0456s ok at 12:03",
    ),
    "an imitation that praises itself": ("✅ **verified** receipt: shell", f"{FALSE_MARK}: shell"),
    "an imitation of the console's": (
        "✅ Receipt checked\nAll is well",
        f"{FALSE_MARK} checked\nAll is well",
    ),
    "capitals without a lookalike of their own": (
        "zc-receipt-\u04ba\u053c, \u04baunter-2-\u04baunter-2",
        f"{FALSE_MARK}, {MARKER}",
    ),
    "a ligature": ("\u01e3 the p@ss-w\u043erd! \u042b", f"\u01e3 the {MARKER} \u042b"),
    "numbers beside numbers": (
        "%41%42 %68unter%2D2%2Dhunter%2d2 %43 %68unter%2D2%2Dhunter%2d2",
        f"%41%42 {MARKER} %43 {MARKER}",
    ),
    "a word": ("the zc-receipt - which is one", "the zc-receipt - which is one"),
    "turned around": ("a \u202e2-retnuh-2-retnuh\u202c b", "a 2-retnuh-2-retnuh b"),
    "words in turned order": ("1700-\u200freceipt\u200f-\u2067zc", "1700-receipt-zc"),
    "marks of Hebrew": ("\u05d0\u05d1!\u200f ab", "\u05d0\u05d1!\u200f ab"),
    "digits of Arabic": ("a hunter-\u0662-hunter-\u0968 b", f"a {MARKER} b"),
    "digits in circles": ("a hunter-\u2777-hunter-\u2781 b", f"a {MARKER} b"),
    "an address in numbers": (
        "100% https://a.example/%zz%68unter%2D2%2Dhunter%2d2?b=1 b",
        f"100% {MARKER} b",
    ),
    "an address": ("https://a.example/%20b%C3%A9", "https://a.example/%20b%C3%A9"),
    "control signs": ("zc-\x00rec\x1beipt-1", FALSE_MARK),
}


@pytest.mark.parametrize(("text", "shown"), READ.values(), ids=list(READ))
def test_what_a_person_would_read_is_masked(text: str, shown: str) -> None:
    """Whatever signs it is written with (P6, P7)."""
    assert screen_shown(text, REDACTOR) == shown


def test_while_a_text_grows_the_beginning_of_a_secret_is_held_back() -> None:
    assert screen_shown("a hunter-2-h", REDACTOR, growing=True) == f"a {MARKER}"
    assert screen_shown("a hunter-2-h", REDACTOR) == "a hunter-2-h"
    assert screen_shown("a hu", REDACTOR, growing=True) == "a hu"
    assert screen_shown("a unter-2", REDACTOR, growing=True) == "a unter-2"
    assert screen_shown("nt hunter-2-hunter-2", REDACTOR, growing=True) == f"nt {MARKER}"


HONEST = (
    *("✅ Receipt uploaded", "✅ Receipt", "✅ Receipts: 3", "✅ The receipt is here: a.pdf"),
    *("✔ Receipt (PDF) \u2013 sent to Ann", "✅ Receipt uploaded at 12:03 UTC", "☑️ Receipt — done"),
    *("✅ Receipt-Upload abgeschlossen", "✅ Beleg: hochgeladen", "✅ Recepta gotowa: tak"),
    *("✅ Receipt | yes | 12 €", "✅ Receipt, invoice, contract", "🕓 Receipt pending"),
    *(
        "✅ Receipt \u2013 all ok",
        "✅ Receipt of the earlier payment",
        "✅ Receipt from a previous order",
    ),
    *("✅ Receipt checked and filed", "✅ Receipt (PDF) is ok", "✅ Verified receipt for Ann"),
    *("✅ Receipt for the taxi, ok", "✅ Receipt for Ann", "✅ Receipt upload ok"),
    *("✅ Receipt uploaded, ok", "✅ Receipt upload: done · 3 files"),
    *("✅ Reçu: téléchargé", "✅ Receta: lista", "✅ Квитанция · загружена", "✅ 領収書・送信済み"),
    *("- [x] ✅ Receipt\n- [x] ✅ Invoice\n\nAll done: 2 files", "✅ Receipt ok, next one"),
)


@pytest.mark.parametrize("line", HONEST)
def test_an_honest_line_with_a_check_mark_stays(line: str) -> None:
    """A mark says more than the word `receipt`: what follows it is a colon, a dot, a call."""
    assert screen(line, lookup) == screen_shown(line, REDACTOR) == line


def test_while_a_text_grows_the_beginning_of_a_disguised_credential_is_held_back() -> None:
    """Each sign more would show one more of it, until its shape is whole (P6)."""
    token = "gh\u0440_" + "a1" * 20
    shown = [
        screen_shown(f"it is {token[:end]}", REDACTOR, growing=True) for end in range(len(token))
    ]
    assert [frame for frame in shown if "_a" in frame] == []
    value = "p\u0430ssword: a1b2c3d4e5f6"
    frames = [screen_shown(value[:end], REDACTOR, growing=True) for end in range(len(value))]
    assert [frame for frame in frames if "a1" in frame] == []
    assert screen_shown("see `monkey", REDACTOR, growing=True) == "see `monkey"


def test_no_text_grows_by_being_looked_at() -> None:
    """U+FDFA unfolds to 18 letters; 13,000 of them held the loop for a quarter of a second (P9)."""
    assert len(folded("\ufdfa" * 1_000)) == 1_000
    # Nor does memory, by a text of all signs there are.
    every = "".join(map(chr, (*range(0x3400, 0x9FFF), *range(0xAC00, 0xD7A3))))
    assert len(folded(every)) == len(folded(every)) > 30_000


@given(st.text(max_size=60))
def test_looking_twice_changes_nothing(text: str) -> None:
    once = screen_shown(text, REDACTOR)
    assert screen_shown(once, REDACTOR) == once
