"""What each line of the daemon adds to a screen, and how what is typed becomes lines."""

import json
import os
import pty
import re
import signal
import termios
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._local import render as local
from channels.terminal import render
from tests.fakes.manual_clock import EPOCH
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    CheckedReceipt,
    Ending,
    Outcome,
    Outgoing,
    escape_invisible,
)
from zeroclaw.cli.chat.keyboard import Ended, Event, Interrupted, Resized, Typed, lines_in, typed
from zeroclaw.cli.chat.screen import Cards, Ink, View

Line = Mapping[str, object]
SCREEN = Ink(moves=True, colours=False, columns=40, rows=10)
PIPE = Ink(moves=False, colours=False)
AT = "2026-01-01T12:00:00+00:00"
CLEAR = "\r\x1b[K"
HEAD, FOOT, REMARK = map(SCREEN.badge, "┌└·")


def item(
    text: str, *, key: str = "k1", draft: bool = False, kind: str = "bot", number: int = 1
) -> Line:
    return {
        "type": "item",
        "number": number,
        "id": key,
        "kind": kind,
        "text": text,
        "at": AT,
        "draft": draft,
        "cursor": "",
    }


def call(number: int, ending: Line | None = None) -> Line:
    return {
        "approval": f"a{number}",
        "number": number,
        "tool": "shell",
        "summary": "run `ls`",
        "arguments": '{\n  "command": "ls"\n}',
        "why": "it does more than read",
        "hash8": "0a1b2c3d",
        "ending": ending,
    }


def card(*calls: Line, number: int = 1) -> Line:
    deadline = datetime(2026, 1, 1, 12, 15, tzinfo=UTC).isoformat()
    shown = {
        "asked_by": "ann",
        "deadline_at": deadline,
        "choices": ["once", "for_a_time", "deny"],
        "calls": list(calls),
    }
    return {**item("", key="c1", kind="card", number=number), "card": shown}


def ended(how: str, by: str = "ann", reason: str = "") -> Line:
    return {"how": how, "said": f"{how} by {by}" if by else how, "at": AT, "reason": reason}


def live_view(ink: Ink, *before: Line, history: int = 10) -> View:
    view = View(cards=Cards(ink=ink), history=history)
    view.take({"type": "snapshot", "number": 0})
    for line in before:
        view.take(line)
    view.take({"type": "live", "number": 0})
    return view


def test_an_answer_grows_and_ends() -> None:
    """What is new is appended; nothing is written twice."""
    view = live_view(SCREEN)
    added = [
        view.take(item("Hel", draft=True)),
        view.take(item("Hello", draft=True, number=2)),
        view.take(item("Hello", number=3)),
    ]
    assert added == ["● Hel", "lo", "\n"]
    assert (view.is_drafting, view.answered) == (False, 1)


def test_an_answer_that_changed_is_written_anew() -> None:
    """Its rows are counted, so that exactly they are taken away."""
    view = live_view(SCREEN)
    view.take(item("a" * 50 + "\n日本", draft=True))
    assert view.take(item("b", draft=True, number=2)) == "\r\x1b[2A\x1b[J● b"


def test_an_answer_that_is_out_of_reach_is_written_below() -> None:
    """What has scrolled away can't be taken back."""
    view = live_view(SCREEN)
    view.take(item("x\n" * 20, draft=True))
    assert view.take(item("b", number=2)) == "\n● b\n"


@pytest.mark.parametrize(
    "sign",
    ["\t", "\u200b", "\u200d", "\ufe0f", "\u0301", "👩\u200d", "\u1161", "\U0001f3fd", "\u0605"],
)
def test_what_a_terminal_may_draw_narrower_takes_nothing_away_above_an_answer(sign: str) -> None:
    """There may stand a card: 200 tabs end on the row where they began, and it was 40 rows up (P5)."""
    view = live_view(Ink(moves=True, colours=False, columns=40, rows=99))
    view.take(item(f"Hi{sign * 200}", draft=True))
    assert view.take(item("b", draft=True, number=2)) == "\n● b"


@given(st.text(st.sampled_from("ab\t\n日🇦\u200d\u0301·")))
def test_of_a_text_no_more_rows_are_taken_away_than_it_has(text: str) -> None:
    """Where every sign that may be drawn as nothing is drawn so."""
    erased = Ink(moves=True, colours=False, columns=4, rows=99).erase(text) or ""
    up = re.search(r"\d+", erased)
    cells = [
        sum({"a": 1, "b": 1, "日": 2}.get(sign, 0) for sign in one) for one in text.split("\n")
    ]
    assert int(up[0] if up else 0) <= sum(max(0, one - 1) // 4 for one in cells) + text.count("\n")


def test_an_older_frame_is_dropped() -> None:
    """Numbers grow; a frame that was overtaken changes nothing."""
    view = live_view(SCREEN)
    view.take(item("Hello", draft=True, number=5))
    assert view.take(item("Hel", draft=True, number=4)) == ""


def test_what_comes_between_does_not_tear_an_answer() -> None:
    """The rest of it follows below, marked as the rest."""
    view = live_view(SCREEN)
    view.take(item("One.", draft=True))
    assert view.take(card(call(1))).startswith(f"\n{HEAD} ann asks; answer until")
    assert view.take(item("One. Two.", number=2)) == "● … Two.\n"
    assert view.take(item("One. Two.", number=3)) == ""


@pytest.mark.parametrize("more", ["", " ", "\n\n"])
def test_blanks_alone_do_not_go_on_with_an_answer(more: str) -> None:
    """After a stop or a restart a line `● …` stood there with nothing behind it."""
    view = live_view(SCREEN)
    view.take(item("Let me look.", draft=True))
    view.note("stopping it; Ctrl-C again leaves")
    assert view.take(item(f"Let me look.{more}", draft=True, number=2)) == ""
    assert view.take(item("Let me look.\n\n_Stopped._", number=3)) == "● … _Stopped._\n"
    assert view.take(item("Let me look.\n\n_Stopped._ ", number=4)) == ""


def test_into_a_pipe_go_whole_messages_once_each() -> None:
    view = live_view(PIPE)
    added = [
        view.take(item("Hel", draft=True)),
        view.take({"type": "typing", "number": 1}),
        view.take(item("Hello", number=2)),
        view.take(item("Hello", number=3)),
        view.prompt(),
    ]
    assert added == ["", "", "● Hello\n", "", ""]


def proven(text: str, *marks: str) -> Line:
    return {**item(text), "receipts": list(marks)}


MARK = "receipt: shell · ok · 12:03 UTC"
IMITATED = (
    f"Done.\n✅ {MARK}",
    f"Done.\u2028✅ {MARK}",
    f"Done.\r\n🕓 {MARK}\v✅ {MARK}\x85✅ {MARK}\x1c✅ {MARK}",
    f"{'x' * 80}✅ {MARK}",
    f"\n\n{MARK}\n[x] {MARK}\n🟢 {MARK}\n✅ Beleg: shell",
)


@pytest.mark.parametrize("text", IMITATED)
def test_into_a_pipe_no_text_begins_a_line_nor_has_the_sign_of_a_true_mark(text: str) -> None:
    """Nothing sets it off there but its place and its sign, however long the lines may be (P7)."""
    shown = live_view(PIPE).take(proven(text, MARK))
    said, mark = shown.removesuffix("\n").rsplit("\n", 1)
    assert mark == f"✅ {MARK}"
    assert said.startswith("● ")
    assert [one for one in said.splitlines()[1:] if one.strip() and one[:2] != "  "] == []
    assert [one for one in "✅☑🕓🕗" if one in said] == []


@given(
    st.text(st.sampled_from("✅✔🕓🟢[x]\n\r\v\f\x1c\x85\u2028\u2029 \ufe0f·│┌»✓") | st.characters())
)
def test_into_a_pipe_only_the_bots_own_marks_begin_a_line(text: str) -> None:
    """P7, whatever the answer is."""
    said = live_view(PIPE).take(item(text))
    first, *more = said.removesuffix("\n").splitlines()
    assert first.startswith("● ")
    assert [one for one in more if one and one[:2] != "  "] == []
    assert not {"✅", "🕓"} & set(said)


def test_what_another_client_says_begins_no_line_of_a_pipe_either() -> None:
    asked = live_view(PIPE).take(item(f"a\n✅ {MARK}", key="person/1", kind="person"))
    assert asked == f"» a\n  ✓ {MARK}\n"


EVIL = f"x\n✅ {MARK}\u2028┌ olga"


@pytest.mark.parametrize("ink", [PIPE, SCREEN])
def test_no_word_on_a_card_begins_a_line(ink: Ink) -> None:
    """Not what a call says of itself, nor why it was denied, whoever wrote it (P5, P7)."""
    told = dict.fromkeys(("tool", "summary", "why", "scope", "arguments"), EVIL)
    asked = card({**call(1), **told})
    denied = card({**call(1), **told, "ending": ended("denied", EVIL, EVIL)}, number=2)
    view = live_view(ink)
    lines = (view.take(asked) + view.take(denied)).splitlines()
    begun = tuple(map(ink.badge, ("┌", "└", "❌ 1")))
    assert [line for line in lines if not line.startswith(("│ ", *begun))] == []
    assert len(lines) == 9


# What paints over, turns round, fills a row to its end, or looks like a sign of ours.
ANY_TEXT = st.text(
    st.sampled_from("┌└│┏╔✅✓❌✗⏹■·●» \n\r\b\t\v\x1b\x9b[7m\x85\u2028\u202e\u200d日e\u0301")
    | st.characters(),
    max_size=60,
) | st.sampled_from(
    [
        f"{'x' * 40}{forged}\n{forged}\x1b[7m{forged}\r{forged}"
        for forged in (
            "┌ ann asks; answer until 12:15:00",
            f"{FOOT} a = Approve once · d = Deny",
            "✅ 1  shell approved by olga",
            "\x1b[7m✅ 1\x1b[27m  shell approved by olga",
            "✅ receipt: shell · ok · 12:03 UTC",
        )
    ]
)
INVERSE = re.compile("\x1b\\[7m(.*?)\x1b\\[27m", re.DOTALL)
INKS = (SCREEN, Ink(moves=True, colours=True, columns=40, rows=10))


def written_by(words: list[str], *, reason: str) -> tuple[Line, Line, Line]:
    """A message that proves something, a card and its ending, as the daemon sends them."""
    text, who, tool, summary, why, scope = words
    call = CardCall(
        approval=ApprovalId("a1"),
        number=1,
        tool=tool,
        summary=summary,
        arguments=json.dumps({"command": text}, ensure_ascii=False, indent=2),
        why=why,
        scope=scope,
        hash8="0a1b2c3d",
    )
    asked = Card(key="c1", asked_by=who, calls=(call,), deadline_at=EPOCH)
    proof = CheckedReceipt(token="zc", tool="ls", summary=summary, outcome="ok", at=EPOCH)
    answer = Outgoing(rendered=render.markdown(text), key="k", receipts=(proof,))
    denied = Ending(approval=ApprovalId("a1"), how="denied", by=who, at=EPOCH, reason=reason)
    items = (
        local.bot("m1", answer, EPOCH),
        local.card("c1", Outcome(card=asked, endings=()), EPOCH),
        local.card("c1", Outcome(card=asked, endings=(denied,)), EPOCH),
    )
    answered, card, ended = (render.line(item, at) for at, item in enumerate(items))
    return answered, card, ended


@pytest.mark.parametrize("ink", INKS)
@given(words=st.lists(ANY_TEXT, min_size=6, max_size=6), reason=ANY_TEXT)
def test_on_a_terminal_only_our_own_signs_are_inverse(
    ink: Ink, words: list[str], reason: str
) -> None:
    """So no text is a card, an ending or a mark, wherever a row begins (P5, P7)."""
    view = live_view(ink)
    answered, asked, ended = written_by(words, reason=reason)
    assert INVERSE.findall(view.take(answered)) == ["✅ receipt:"]
    assert INVERSE.findall(view.take(asked)) == ["┌", "└"]
    assert INVERSE.findall(view.take(ended)) == ["❌ 1"]
    assert "\x1b[7m" not in view.take(item(render.visible(words[0]), kind="person"))


@given(words=st.lists(ANY_TEXT, min_size=6, max_size=6), reason=ANY_TEXT)
def test_into_a_pipe_a_sign_of_ours_stands_where_a_line_begins_and_nowhere_else(
    words: list[str], reason: str
) -> None:
    """Likewise for who reads it in rows; and the call on the card is still the same call (P5)."""
    view = live_view(PIPE)
    shown = "".join(map(view.take, written_by(words, reason=reason)))
    found = [(line, sign.start()) for line in shown.splitlines() for sign in OURS.finditer(line)]
    assert [line[at] + str(at) for line, at in found] == ["✅0", "┌0", "└0", "❌0"]
    _why, *arguments = [line[5:] for line in shown.splitlines() if line.startswith("│    ")]
    first, last = arguments.index("{"), arguments.index("}")
    assert json.loads("\n".join(arguments[first : last + 1])) == {"command": seen(words[0])}


OURS = re.compile("[┌┍┎┏╒╓╔└┕┖┗╘╙╚✅✔☑❌❎⏹🕓]")


def seen(text: str) -> str:
    """What a card spells out of a text stands as it is spelled out."""
    return json.loads(escape_invisible(json.dumps(text, ensure_ascii=False)))


def test_into_a_pipe_no_remark_of_the_daemon_begins_a_second_line() -> None:
    """It may hold a person's words."""
    shown = live_view(PIPE).take({"type": "received", "toast": f"a\n✅ {MARK}"})
    assert shown == f"· a\n  ✓ {MARK}\n"


def test_on_a_terminal_a_true_mark_is_inverse_even_without_colours() -> None:
    """It is a style, which no text has (no-color.org asks for no colours, not for no styles). P7."""
    shown = live_view(SCREEN).take(proven("Done. ✅", MARK))
    assert shown == "● Done. ✅\n\x1b[7m✅ receipt:\x1b[27m shell · ok · 12:03 UTC\n"


def test_the_snapshot_shows_the_last_messages_and_what_is_still_going_on() -> None:
    """Older ones are known, but not shown."""
    view = View(cards=Cards(ink=SCREEN), history=1)
    view.take({"type": "snapshot", "number": 0})
    for line in (
        item("old", key="k0"),
        item("hi", key="person/1", kind="person"),
        card(call(1), call(2, ended("denied"))),
        item("grow", key="k2", draft=True),
    ):
        assert view.take(line) == ""
    shown = view.take({"type": "live", "number": 0})
    assert shown.startswith(f"» hi\n─── now ───\n{HEAD} ann asks; answer until")
    assert shown.endswith("● grow")
    assert "old" not in shown
    assert ([one.approval for one in view.cards.open_calls], view.answered) == (["a1"], 0)


def test_after_a_lost_connection_only_news_is_shown() -> None:
    """The daemon's numbers begin anew, and what was seen is not shown again."""
    view = live_view(SCREEN)
    view.take(item("one", number=900))
    view.take(item("tw", key="k2", draft=True, number=901))
    view.take({"type": "snapshot", "number": 0})
    assert not view.is_live
    for line in (item("one", number=0), item("two", key="k2", number=0), item("three", key="k3")):
        view.take(line)
    assert view.take({"type": "live", "number": 0}) == "o\n● three\n"
    assert view.answered == 3


def test_a_card_shows_the_call_and_how_to_answer() -> None:
    """A single open call takes a letter, several take numbers (P5)."""
    view = live_view(SCREEN)
    shown = view.take(card(call(1)))
    assert [line.partition(" until")[0] for line in shown.splitlines()] == [
        f"{HEAD} ann asks; answer",
        "│ 1  shell  run `ls`  #0a1b2c3d",
        "│    it does more than read",
        "│    {",
        '│      "command": "ls"',
        "│    }",
        f"{FOOT} a = Approve once · t = Approve for a time · d = Deny · /deny 1 because …",
    ]
    two = live_view(SCREEN).take(card(call(1), call(2)))
    assert two.splitlines()[-1] == f"{FOOT} /approve 1 2 · /deny 1 because …"


def test_each_ending_is_told_once() -> None:
    """With whom and why; then nothing of the card waits any more (P5)."""
    view = live_view(SCREEN)
    view.take(card(call(1), call(2)))
    first = view.take(card(call(1, ended("approved")), call(2), number=2))
    second = view.take(
        card(call(1, ended("approved")), call(2, ended("denied", "bob", "no")), number=3)
    )
    again = view.take(
        card(call(1, ended("approved")), call(2, ended("denied", "bob", "no")), number=4)
    )
    assert (first, second, again) == (
        f"{SCREEN.badge('✅ 1')}  shell approved by ann\n",
        f"{SCREEN.badge('❌ 2')}  shell denied by bob: no\n",
        "",
    )
    assert view.cards.open_calls == ()


def test_a_card_that_ended_while_away_shows_its_ending_only() -> None:
    view = live_view(SCREEN)
    assert (
        view.take(card(call(1, ended("expired", "")))) == f"{SCREEN.badge('❌ 1')}  shell expired\n"
    )


def test_ones_own_message_is_not_repeated() -> None:
    """It stands where it was typed; another client's is shown."""
    view = live_view(SCREEN)
    view.said("mine")
    assert view.take(item("hi", key="person/mine", kind="person")) == ""
    assert view.take(item("yo", key="person/other", kind="person")) == "» yo\n"
    assert view.take(item("yo", key="person/other", kind="person", number=2)) == ""


def test_a_prompt_is_taken_away_by_what_comes() -> None:
    view = live_view(SCREEN)
    assert view.prompt() == f"{CLEAR}» "
    assert view.take(item("Hi")) == f"{CLEAR}● Hi\n"
    view.prompt()
    view.entered()
    assert view.take(item("Hi", key="k2")) == "● Hi\n"


def test_the_bot_is_shown_at_work_until_it_speaks() -> None:
    view = live_view(SCREEN)
    assert view.take({"type": "typing", "number": 1}) == "…"
    assert view.take(item("Hi", draft=True)) == f"{CLEAR}● Hi"
    assert view.take({"type": "typing", "number": 3}) == ""


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ({"type": "received", "id": "i", "toast": ""}, ""),
        ({"type": "received", "id": "i", "toast": "done"}, f"{REMARK} done\n"),
        ({"type": "refused", "id": "i", "why": "no", "again": False}, f"{REMARK} not taken: no\n"),
        (
            {"type": "refused", "id": "i", "why": "no", "again": True},
            f"{REMARK} not taken: no; it is tried again\n",
        ),
        ({"type": "trouble", "why": "closing"}, f"{REMARK} closing\n"),
        ({"type": "news from a later daemon"}, ""),
        ({"type": "gone", "id": "k1", "number": 3}, ""),
    ],
)
def test_small_things_are_small_remarks(line: Line, shown: str) -> None:
    assert live_view(SCREEN).take(line) == shown


def test_a_draft_that_is_taken_away_is_no_longer_written() -> None:
    view = live_view(SCREEN)
    view.take(item("Hel", draft=True))
    view.take({"type": "gone", "id": "k1", "number": 2})
    assert not view.is_drafting


def test_colours_only_where_they_are_wanted() -> None:
    plain, coloured = (Ink(moves=True, colours=wanted) for wanted in (False, True))
    assert (plain.dim("a"), plain.bold("a"), plain.warm("a")) == ("a", "a", "a")
    assert [coloured.dim("a"), coloured.bold("a"), coloured.warm("a")] == [
        "\x1b[2ma\x1b[22m",
        "\x1b[1ma\x1b[22m",
        "\x1b[33ma\x1b[39m",
    ]
    assert PIPE.clear_line() == ""
    assert PIPE.erase("a") is None


class Screen:
    """A terminal that is high enough, and knows the five things that the view uses.

    After a sign in a row's last cell the cursor stays on it until the next sign, as on a VT100.
    """

    def __init__(self, columns: int = 500) -> None:
        self.columns = columns
        self.lines = [""]

    def write(self, text: str) -> None:
        while text:
            if text.startswith(("\x1b[K", "\x1b[J")):
                text = text[3:]
            elif back := re.match(r"\x1b\[(\d+)D", text):
                signs = len(self.lines[-1])
                is_in_last = signs > 0 and signs % self.columns == 0
                self.lines[-1] = self.lines[-1][: signs - is_in_last - int(back[1])]
                text = text[back.end() :]
            elif text.startswith("\x1b["):
                up, _, text = text[2:].partition("A")
                del self.lines[len(self.lines) - int(up) :]
                self.lines[-1] = ""
            elif text[0] == "\r":
                self.lines[-1], text = "", text[1:]
            elif text[0] == "\n":
                self.lines.append("")
                text = text[1:]
            else:
                self.lines[-1] += text[0]
                text = text[1:]


@given(st.lists(st.text(alphabet="ab\n", max_size=12), max_size=8), st.text(alphabet="ab\n"))
def test_whatever_the_frames_were_the_final_text_stands(frames: list[str], final: str) -> None:
    """P6: the screen ends as exactly the final answer."""
    view, screen = live_view(Ink(moves=True, colours=False, columns=500, rows=500)), Screen()
    for number, frame in enumerate(frames):
        screen.write(view.take(item(frame, draft=True, number=number)))
    screen.write(view.take(item(final, number=len(frames))))
    assert "\n".join(screen.lines) == f"● {final}\n"


@given(st.lists(st.text(alphabet="ab   \n", max_size=30), min_size=1, max_size=8))
def test_no_word_is_cut_at_the_end_of_a_row_however_the_answer_grows(parts: list[str]) -> None:
    view, screen = live_view(Ink(moves=True, colours=False, columns=12, rows=500)), Screen(12)
    for number in range(len(parts)):
        screen.write(view.take(item("".join(parts[: number + 1]), draft=True, number=number)))
    whole = f"● {''.join(parts)}"
    assert "\n".join(screen.lines).replace("\n", " ") == whole.replace("\n", " ")
    words = [one for line in screen.lines for one in line.split()]
    assert words == whole.split()
    for line in screen.lines:
        assert len(line) <= 12 or max(map(len, line.split(" "))) > 12 or line.startswith("● ")


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        (["one two thr"], "● one two\nthr"),
        (["one two th", "one two three"], "● one two\nthree"),
        (["one two", "one two ", "one two t"], "● one two\nt"),
        (["x\none two thr", "x\none two thre"], "● x\none two\nthre"),
        (["one https://a.example/b c"], "● one https://a.example/b c"),
        (["ab 👩", "ab 👩\u200d👩", "ab 👩\u200d👩 cde"], "● ab 👩\u200d👩 cde"),
        (
            ["```\necho one two three\n```\none two three"],
            "● ```\necho one two three\n```\none two\nthree",
        ),
        (
            ["```\necho one", "```\necho one two thr", "```\necho one two three"],
            "● ```\necho one two three",
        ),
    ],
)
def test_an_answer_is_wrapped_between_words_and_its_code_is_not(
    frames: list[str], shown: str
) -> None:
    """A command is copied from the screen as it is, so only the terminal itself may wrap it."""
    view, screen = live_view(Ink(moves=True, colours=False, columns=11, rows=500)), Screen(11)
    for number, frame in enumerate(frames):
        screen.write(view.take(item(frame, draft=True, number=number)))
    assert "\n".join(screen.lines) == shown


# --- the keyboard ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((b"one\ntwo\n",), ("one", "two")),
        ((b"gr\xc3", b"\xbc\xc3\x9fe\r\n"), ("grüße",)),
        ((b"first \\\nsecond\nlast",), ("first \nsecond", "last")),
        ((b"open \\\n",), ("open \n",)),
        ((b"\xff\n",), ("\ufffd",)),
        ((), ()),
    ],
)
def test_bytes_become_lines(chunks: tuple[bytes, ...], lines: tuple[str, ...]) -> None:
    """A backslash at the end goes on; a line without an end counts at the end of the input."""
    assert tuple(lines_in(chunks)) == lines


@given(st.text(alphabet="aü\n", max_size=30), st.integers(0, 40))
def test_the_cut_does_not_matter(text: str, at: int) -> None:
    data = text.encode()
    assert list(lines_in([data])) == list(lines_in([data[:at], data[at:]]))


def test_a_line_is_there_as_soon_as_it_is_whole() -> None:
    """The next one is not waited for."""
    found = lines_in(iter([b"one\ntw", b"o\n"]))
    assert (next(found), next(found)) == ("one", "two")


async def test_a_pipe_is_read_to_its_end() -> None:
    """More lines than may wait are not lost: the reader waits."""
    out, into = os.pipe()
    os.write(into, b"".join(b"%d\n" % number for number in range(500)))
    os.close(into)
    events = [event async for event in typed(out)]
    os.close(out)
    assert events == [*(Typed(text=str(number)) for number in range(500)), Ended()]


async def test_on_a_terminal_an_interrupt_is_an_event_and_ends_nothing() -> None:
    """Ctrl-C stops an answer; only the second leaves."""
    outer, inner = pty.openpty()
    events: list[Event] = []
    os.write(outer, b"hi\n")
    async for event in typed(inner):
        events.append(event)
        if event == Typed(text="hi"):
            os.kill(os.getpid(), signal.SIGINT)
        if event == Interrupted():
            os.write(outer, b"\x04")
    os.close(outer)
    os.close(inner)
    assert events == [Typed(text="hi"), Interrupted(), Ended()]


async def test_on_a_terminal_lines_that_come_at_once_were_pasted() -> None:
    """The first and the last of them too; one that comes alone was typed."""
    outer, inner = pty.openpty()
    events: list[Event] = []
    os.write(outer, b"one\na\nthree\n")
    async for event in typed(inner):
        events.append(event)
        if event == Typed(text="three", is_pasted=True):
            os.write(outer, b"a\n")
        if event == Typed(text="a"):
            os.write(outer, b"\x04")
    os.close(outer)
    os.close(inner)
    pasted = [Typed(text=text, is_pasted=True) for text in ("one", "a", "three")]
    assert events == [*pasted, Typed(text="a"), Ended()]


@pytest.mark.parametrize("number", [signal.SIGWINCH, signal.SIGCONT])
async def test_a_terminal_tells_of_its_new_size(number: signal.Signals) -> None:
    """Also of one that it got while the program was stopped."""
    outer, inner = pty.openpty()
    os.write(outer, b"hi\n")
    async for event in typed(inner):
        if event == Typed(text="hi"):
            termios.tcsetwinsize(inner, (30, 100))
            os.kill(os.getpid(), number)
        if event == Resized(columns=100, rows=30):
            os.write(outer, b"\x04")
    os.close(outer)
    os.close(inner)
