"""What each line of the daemon adds to a screen, and how typed text becomes lines."""

import io
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
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
from zeroclaw.cli.chat.pipe import Pipe, lines_from
from zeroclaw.cli.chat.screen import MARK, StyledText, View

Line = Mapping[str, object]
SCREEN, PIPE = "screen", "pipe"
AT = "2026-01-01T12:00:00+00:00"


def item(text: str, *, key: str = "k1", draft: bool = False, kind: str = "bot") -> Line:
    return {
        "type": "item",
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


def card(*calls: Line) -> Line:
    deadline = datetime(2026, 1, 1, 12, 15, tzinfo=UTC).isoformat()
    shown = {
        "asked_by": "ann",
        "deadline_at": deadline,
        "choices": ["once", "for_a_time", "deny"],
        "calls": list(calls),
    }
    return {**item("", key="c1", kind="card"), "card": shown}


def ended(outcome: str, by: str = "ann", reason: str = "") -> Line:
    return {
        "how": outcome,
        "said": f"{outcome} by {by}" if by else outcome,
        "at": AT,
        "reason": reason,
    }


def live_view(
    where: str, *before: Line, history: int = 10, columns: int = 40, max_rows: int = 6
) -> View:
    view = View(is_terminal=where == SCREEN, history=history, columns=columns, max_rows=max_rows)
    view.take({"type": "snapshot"})
    for line in before:
        view.take(line)
    view.take({"type": "live"})
    return view


def added(view: View, *lines: Line) -> list[str]:
    """The text that each line prints permanently, without styles."""
    written = text_of if view.is_terminal else in_a_pipe
    return [written(view.take(line)) for line in lines]


def text_of(shown: StyledText) -> str:
    return "".join(text for _, text in shown)


def in_a_pipe(shown: StyledText) -> str:
    output = io.StringIO()
    Pipe(0, output).show(shown)
    return output.getvalue()


def marks(shown: StyledText) -> list[str]:
    return [text for style, text in shown if style == MARK]


def test_an_answer_grows_and_ends() -> None:
    """A growing answer is printed once, when it ends."""
    view = live_view(SCREEN)
    assert added(view, item("Hel", draft=True)) == [""]
    assert view.growing() == "● Hel"
    assert added(view, item("Hello", draft=True)) == [""]
    assert view.growing() == "● Hello"
    assert added(view, item("Hello")) == ["● Hello\n"]
    assert (view.growing(), view.is_drafting, view.answered) == ("", False, 1)


def test_a_changed_answer_is_redrawn() -> None:
    """No part of it was printed yet."""
    view = live_view(SCREEN)
    view.take(item("a" * 50 + "\n日本", draft=True))
    assert added(view, item("b", draft=True)) == [""]
    assert view.growing() == "● b"


def test_rows_of_a_long_answer_that_do_not_fit_are_printed() -> None:
    """So scrolled rows can be read while the rest grows, and are printed once."""
    view = live_view(SCREEN, max_rows=4)
    first = added(view, item("\n\none\ntwo\nthree", draft=True), item("\n\none\ntwo\nthree 4"))
    assert first == ["● \n\none\n", "two\nthree 4\n"]


def test_a_printed_answer_that_changed_is_printed_below() -> None:
    """Printed text stays."""
    view = live_view(SCREEN)
    view.take(item("x\n" * 20, draft=True))
    assert added(view, item("b")) == ["● b\n"]


def test_a_message_between_does_not_tear_an_answer() -> None:
    """The rest of it follows below, marked as the rest."""
    view = live_view(SCREEN)
    view.take(item("One.", draft=True))
    assert text_of(view.take(card(call(1)))).startswith("● One.\n┌ ann asks; answer until")
    assert view.growing() == ""
    shown = added(view, item("One. Two."), item("One. Two."))
    assert shown == ["● … Two.\n", ""]


@pytest.mark.parametrize("blanks", ["", " ", "\n\n"])
def test_blanks_alone_do_not_continue_an_answer(blanks: str) -> None:
    """After a stop or a restart an empty line `● …` used to appear."""
    view = live_view(SCREEN)
    view.take(item("Let me look.", draft=True))
    assert text_of(view.note("stopping it")) == "● Let me look.\n· stopping it\n"
    assert added(view, item(f"Let me look.{blanks}", draft=True)) == [""]
    assert view.growing() == ""
    assert added(view, item("Let me look.\n\n_Stopped._")) == ["● … _Stopped._\n"]
    assert added(view, item("Let me look.\n\n_Stopped._ ")) == [""]


def test_a_pipe_gets_whole_messages_once_each() -> None:
    view = live_view(PIPE)
    shown = added(view, item("Hel", draft=True), {"type": "typing"}, item("Hello"), item("Hello"))
    assert shown == ["", "", "● Hello\n", ""]
    assert (view.entered("hi"), view.settled()) == ([], [])


def proven(text: str, *marks: str) -> Line:
    return {**item(text), "receipts": list(marks)}


RECEIPT = "receipt: shell · ok · 12:03 UTC"
IMITATED = (
    f"Done.\n✅ {RECEIPT}",
    f"Done.\u2028✅ {RECEIPT}",
    f"Done.\r\n🕓 {RECEIPT}\v✅ {RECEIPT}\x85✅ {RECEIPT}\x1c✅ {RECEIPT}",
    f"{'x' * 80}✅ {RECEIPT}",
    f"\n\n{RECEIPT}\n[x] {RECEIPT}\n🟢 {RECEIPT}\n✅ Beleg: shell",
)


@pytest.mark.parametrize("text", IMITATED)
def test_in_a_pipe_no_text_begins_a_line_or_has_the_sign_of_a_true_mark(text: str) -> None:
    """There only its position and its sign distinguish it, however long the lines (P7)."""
    shown = in_a_pipe(live_view(PIPE).take(proven(text, RECEIPT)))
    body, mark = shown.removesuffix("\n").rsplit("\n", 1)
    assert mark == f"✅ {RECEIPT}"
    assert body.startswith("● ")
    assert [line for line in body.splitlines()[1:] if line.strip() and line[:2] != "  "] == []
    assert [mark_sign for mark_sign in "✅☑🕓🕗" if mark_sign in body] == []


@given(
    st.text(st.sampled_from("✅✔🕓🟢[x]\n\r\v\f\x1c\x85\u2028\u2029 \ufe0f·│┌»✓") | st.characters())
)
def test_in_a_pipe_only_the_bots_own_marks_begin_a_line(text: str) -> None:
    """P7, for any answer."""
    printed = in_a_pipe(live_view(PIPE).take(item(text)))
    first, *rest = printed.removesuffix("\n").splitlines()
    assert first.startswith("● ")
    assert [line for line in rest if line and line[:2] != "  "] == []
    assert not {"✅", "🕓"} & set(printed)


def test_in_a_pipe_another_clients_text_begins_no_line_either() -> None:
    printed = added(live_view(PIPE), item(f"a\n✅ {RECEIPT}", key="person/1", kind="person"))
    assert printed == [f"» a\n  ✓ {RECEIPT}\n"]


EVIL = f"x\n✅ {RECEIPT}\u2028┌ olga"


@pytest.mark.parametrize("where", [PIPE, SCREEN])
def test_no_word_on_a_card_begins_a_line(where: str) -> None:
    """Neither the call's own words nor the reason of a denial, whoever wrote them (P5, P7)."""
    texts = dict.fromkeys(("tool", "summary", "why", "scope", "arguments"), EVIL)
    card_line = card({**call(1), **texts})
    denied = card({**call(1), **texts, "ending": ended("denied", EVIL, EVIL)})
    view = live_view(where)
    lines = "".join(added(view, card_line, denied)).splitlines()
    unindented = [line for line in lines if not line.startswith(" " * 5)]
    assert [line for line in unindented if not line.startswith(("│ ", "┌", "└", "❌ 1"))] == []
    assert len(unindented) == 9


# Text that overwrites, reverses, fills a row, or looks like one of our signs.
ANY_TEXT = st.text(
    st.sampled_from("┌└│┏╔✅✓❌✗⏹■·●» \n\r\b\t\v\x1b\x9b[7m\x85\u2028\u202e\u200d日e\u0301")
    | st.characters(),
    max_size=60,
) | st.sampled_from(
    [
        f"{'x' * 40}{forged}\n{forged}\x1b[7m{forged}\r{forged}"
        for forged in (
            "┌ ann asks; answer until 12:15:00",
            "└ a = Approve once · d = Deny",
            "✅ 1  shell approved by olga",
            "\x1b[7m✅ 1\x1b[27m  shell approved by olga",
            "✅ receipt: shell · ok · 12:03 UTC",
        )
    ]
)


def written_by(words: list[str], *, reason: str) -> tuple[Line, Line, Line]:
    """A message that proves something, a card and its ending, as the daemon sends them."""
    text, requester, tool, summary, reason_shown, scope = words
    call = CardCall(
        approval=ApprovalId("a1"),
        number=1,
        tool=tool,
        summary=summary,
        arguments=json.dumps({"command": text}, ensure_ascii=False, indent=2),
        why=reason_shown,
        scope=scope,
        hash8="0a1b2c3d",
    )
    card_shown = Card(key="c1", asked_by=requester, calls=(call,), deadline_at=EPOCH)
    proof = CheckedReceipt(token="zc", tool="ls", summary=summary, outcome="ok", at=EPOCH)
    answer = Outgoing(rendered=render.markdown(text), key="k", receipts=(proof,))
    denied = Ending(approval=ApprovalId("a1"), how="denied", by=requester, at=EPOCH, reason=reason)
    items = (
        local.bot("m1", answer, EPOCH),
        local.card("c1", Outcome(card=card_shown, endings=()), EPOCH),
        local.card("c1", Outcome(card=card_shown, endings=(denied,)), EPOCH),
    )
    answered, card, ended = map(render.line, items)
    return answered, card, ended


@given(words=st.lists(ANY_TEXT, min_size=6, max_size=6), reason=ANY_TEXT)
def test_on_a_terminal_only_our_own_signs_are_inverse(words: list[str], reason: str) -> None:
    """So no text is a card, an ending or a mark, wherever a row begins (P5, P7)."""
    view = live_view(SCREEN)
    answered, card_line, ended = written_by(words, reason=reason)
    assert marks(view.take(answered)) == ["✅ receipt:"]
    assert marks(view.take(card_line)) == ["┌", "└"]
    assert marks(view.take(ended)) == ["❌ 1"]
    assert marks(view.take(item(render.visible(words[0]), kind="person"))) == []
    assert marks(view.entered(words[0])) == []


@given(words=st.lists(ANY_TEXT, min_size=6, max_size=6), reason=ANY_TEXT)
def test_in_a_pipe_our_signs_are_only_at_the_beginning_of_a_line(
    words: list[str], reason: str
) -> None:
    """So too in a terminal's rows; and the card still shows the same call (P5)."""
    view = live_view(PIPE)
    shown = "".join(added(view, *written_by(words, reason=reason)))
    signs = [(line, sign.start()) for line in shown.splitlines() for sign in OURS.finditer(line)]
    assert [line[at] + str(at) for line, at in signs] == ["✅0", "┌0", "└0", "❌0"]
    _reason, *arguments = [line[5:] for line in shown.splitlines() if line.startswith("│    ")]
    first, last = arguments.index("{"), arguments.index("}")
    assert json.loads("\n".join(arguments[first : last + 1])) == {"command": seen(words[0])}


OURS = re.compile("[┌┍┎┏╒╓╔└┕┖┗╘╙╚✅✔☑❌❎⏹🕓]")


def seen(text: str) -> str:
    """Escape a text as a card does."""
    return json.loads(escape_invisible(json.dumps(text, ensure_ascii=False)))


def test_in_a_pipe_no_remark_of_the_daemon_begins_a_second_line() -> None:
    """A remark may hold a person's words."""
    shown = added(live_view(PIPE), {"type": "received", "toast": f"a\n✅ {RECEIPT}"})
    assert shown == [f"· a\n  ✓ {RECEIPT}\n"]


def test_the_snapshot_shows_the_last_messages_and_open_cards() -> None:
    """Older messages are known, but not shown."""
    view = View(is_terminal=True, history=1)
    view.take({"type": "snapshot"})
    for line in (
        item("old", key="k0"),
        item("hi", key="person/1", kind="person"),
        card(call(1), call(2, ended("denied"))),
        item("grow", key="k2", draft=True),
    ):
        assert view.take(line) == []
    shown = text_of(view.take({"type": "live"}))
    assert shown.startswith("» hi\n─── now ───\n┌ ann asks; answer until")
    assert "old" not in shown
    assert (view.growing(), view.earlier) == ("● grow", ["hi"])
    assert ([call.approval for call in view.cards.open_calls], view.answered) == (["a1"], 0)


def test_after_a_lost_connection_only_new_messages_are_shown() -> None:
    """Earlier messages are not shown again."""
    view = live_view(SCREEN)
    view.take(item("one"))
    view.take(item("tw", key="k2", draft=True))
    view.take({"type": "snapshot"})
    assert not view.is_live
    for line in (item("one"), item("two", key="k2"), item("three", key="k3")):
        view.take(line)
    assert added(view, {"type": "live"}) == ["● two\n● three\n"]
    assert view.answered == 3


def test_a_card_shows_the_call_and_how_to_answer() -> None:
    """A single open call takes a letter, several take numbers (P5)."""
    view = live_view(SCREEN, columns=80)
    shown = text_of(view.take(card(call(1))))
    assert [line.partition(" until")[0] for line in shown.splitlines()] == [
        "┌ ann asks; answer",
        "│ 1  shell  run `ls`  #0a1b2c3d",
        "│    it does more than read",
        "│    {",
        '│      "command": "ls"',
        "│    }",
        "└ a = Approve once · t = Approve for a time · d = Deny · /deny 1 because …",
    ]
    two = text_of(live_view(SCREEN).take(card(call(1), call(2))))
    assert two.splitlines()[-1] == "└ /approve 1 2 · /deny 1 because …"


def test_a_card_names_the_calls_that_are_still_open() -> None:
    """A chat that attaches later finds a card of which a part has been answered."""
    shown = text_of(
        live_view(SCREEN, columns=80).take(card(call(1, ended("approved")), call(2), call(3)))
    )
    assert "└ /approve 2 3 · /deny 2 because …" in shown
    last = text_of(live_view(SCREEN, columns=80).take(card(call(1, ended("approved")), call(2))))
    assert "· d = Deny · /deny 2 because …" in last


def test_a_card_is_wrapped_between_words_and_its_arguments_are_not() -> None:
    """The rows that follow are indented without an edge, and so do not look like lines of a card
    (P5)."""
    view = live_view(SCREEN, columns=24)
    long_call = {**call(1), "arguments": "git commit --message whole"}
    shown = text_of(view.take(card(long_call)))
    assert shown.splitlines()[2:] == [
        "│ 1  shell  run",
        "     `ls`  #0a1b2c3d",
        "│    it does more",
        "     than read",
        "│    git commit --message whole",
        "└ a = Approve once",
        "     · t = Approve for a",
        "     time · d = Deny ·",
        "     /deny 1 because …",
    ]
    denied = card({**long_call, "ending": ended("denied", reason="not today, please")})
    assert added(view, denied) == ["❌ 1  shell denied\n     by ann: not today,\n     please\n"]


def test_each_outcome_is_shown_once() -> None:
    """With approver and reason; then no call of the card is open (P5)."""
    view = live_view(SCREEN)
    view.take(card(call(1), call(2)))
    calls = (call(1, ended("approved")), call(2, ended("denied", "bob", "no")))
    shown = added(view, card(calls[0], call(2)), card(*calls), card(*calls))
    assert shown == ["✅ 1  shell approved by ann\n", "❌ 2  shell denied by bob: no\n", ""]
    assert view.cards.open_calls == ()


def test_a_card_that_ended_while_away_shows_its_ending_only() -> None:
    shown = live_view(SCREEN).take(card(call(1, ended("expired", ""))))
    assert (marks(shown), text_of(shown)) == (["❌ 1"], "❌ 1  shell expired\n")


def test_a_message_typed_here_is_not_repeated() -> None:
    """It is already on the screen; another client's is shown."""
    view = live_view(SCREEN)
    assert text_of(view.entered("hi\nthere")) == "» hi\n  there\n"
    view.sent("mine")
    mine, other = (
        item("hi", key=f"person/{writer}", kind="person") for writer in ("mine", "other")
    )
    assert added(view, mine, other, other) == ["", "» hi\n", ""]


def test_the_bot_is_shown_at_work_until_it_answers() -> None:
    view = live_view(SCREEN)
    view.take({"type": "typing"})
    assert view.growing() == "…"
    view.take(item("Hi", draft=True))
    assert view.growing() == "● Hi"
    view.take({"type": "typing"})
    assert view.growing() == "● Hi"
    view.take(item("Hi"))
    assert view.growing() == ""


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ({"type": "received", "id": "i", "toast": ""}, ""),
        ({"type": "received", "id": "i", "toast": "done"}, "· done\n"),
        ({"type": "refused", "id": "i", "why": "no", "again": False}, "· not taken: no\n"),
        (
            {"type": "refused", "id": "i", "why": "no", "again": True},
            "· not taken: no; it is tried again\n",
        ),
        ({"type": "trouble", "why": "closing"}, "· closing\n"),
        ({"type": "news from a later daemon"}, ""),
        ({"type": "gone", "id": "k1"}, ""),
    ],
)
def test_minor_events_are_short_remarks(line: Line, shown: str) -> None:
    assert added(live_view(SCREEN), line) == [shown]


def test_a_deleted_draft_is_no_longer_shown() -> None:
    view = live_view(SCREEN)
    view.take(item("Hel", draft=True))
    view.take({"type": "gone", "id": "k1"})
    assert (view.is_drafting, view.growing()) == (False, "")


@given(st.lists(st.text(alphabet="ab\n", max_size=12), max_size=8), st.text(alphabet="ab\n"))
def test_after_any_frames_the_final_text_is_shown(frames: list[str], final: str) -> None:
    """P6: the screen ends with exactly the final answer, except for trailing blanks."""
    view = live_view(SCREEN, columns=500, max_rows=3)
    growing = [item(frame, draft=True) for frame in frames]
    shown = "".join(added(view, *growing, item(final)))
    assert shown.rstrip().endswith(f"● {final}".rstrip())
    assert view.growing() == ""


@given(st.lists(st.text(alphabet="ab   \n", max_size=30), min_size=1, max_size=8))
@example(parts=["\n aaaaaaaaaaaa"])
def test_no_word_is_cut_at_the_end_of_a_row_however_the_answer_grows(parts: list[str]) -> None:
    """A word keeps its indentation: a row of blanks above it would look like the end of a
    paragraph."""
    view = live_view(SCREEN, columns=12, max_rows=4)
    texts = ["".join(parts[: number + 1]) for number in range(len(parts))]
    growing = [item(text, draft=True) for text in texts]
    shown = "".join(added(view, *growing, item(texts[-1])))
    whole = f"● {texts[-1]}"
    assert shown.replace("\n", " ").rstrip() == whole.replace("\n", " ").rstrip()
    for line in shown.splitlines():
        assert len(line) <= 12 or max(map(len, re.findall(r"^ *[^ ]+|[^ ]+", line))) > 12


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        (["one two thr"], "● one two\nthr"),
        (["one two th", "one two three"], "● one two\nthree"),
        (["one two", "one two t", "one two th"], "● one two\nth"),
        (["x\none two thr", "x\none two thre"], "● x\none two\nthre"),
        (["one https://a.example/b c"], "● one https://a.example/b c"),
        (["ab 👩", "ab 👩\u200d👩", "ab 👩\u200d👩 cde"], "● ab 👩\u200d👩\ncde"),
        (
            ["```\necho one two three\n```\none two three"],
            "● ```\necho one two three\n```\none two\nthree",
        ),
        (
            ["```\necho one", "```\necho one two thr", "```\necho one two three"],
            "● ```\necho one two three",
        ),
        (
            ["- ```\n  echo one two three\n  ```\none two three"],
            "● - ```\n  echo one two three\n  ```\none two\nthree",
        ),
        (
            ["1. a\n   ~~~", "1. a\n   ~~~\n   echo ```\n   echo one two three"],
            "● 1. a\n   ~~~\n   echo ```\n   echo one two three",
        ),
    ],
)
def test_an_answer_is_wrapped_between_words_and_its_code_is_not(
    frames: list[str], shown: str
) -> None:
    """A command is copied from the screen as it is, so only the terminal wraps it."""
    view = live_view(SCREEN, columns=11)
    for frame in frames:
        view.take(item(frame, draft=True))
    assert view.growing() == shown
    assert added(view, item(frames[-1])) == [f"{shown}\n"]


# --- the pipe -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"gr\xc3\xbc\xc3\x9fe\r\n", ["grüße"]),
        (b"first \\\nsecond\nlast", ["first \nsecond", "last"]),
        (b"one\rline\n\n", ["one\rline", ""]),
        (b"open \\\n", ["open \n"]),
        (b"\xff\n", ["\ufffd"]),
        (b"", []),
    ],
)
async def test_bytes_become_lines(written: bytes, lines: list[str]) -> None:
    """A backslash at the end goes on; a line without an end counts at the end of the input."""
    out, into = os.pipe()
    os.write(into, written)
    os.close(into)
    assert [line async for line in lines_from(out)] == lines
    os.close(out)


async def test_a_line_is_returned_as_soon_as_it_is_complete() -> None:
    """The reader does not wait for the next one."""
    out, into = os.pipe()
    lines = lines_from(out)
    os.write(into, b"one\ntw")
    assert await anext(lines) == "one"
    os.write(into, b"o\n")
    assert await anext(lines) == "two"
    os.close(into)
    assert await anext(lines, None) is None
    os.close(out)


async def test_a_pipe_is_read_to_its_end() -> None:
    """More lines than may wait are not lost: the reader waits."""
    out, into = os.pipe()
    os.write(into, b"".join(b"%d\n" % number for number in range(500)))
    os.close(into)
    lines = [line async for line in lines_from(out)]
    os.close(out)
    assert lines == [str(number) for number in range(500)]
