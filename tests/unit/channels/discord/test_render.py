"""Answers and approval cards on Discord, and what hostile text can't do to them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels._remote.limits import cut, units
from channels.discord import cards
from channels.discord.render import MAX_UNITS, escaped, markdown, measure, plainly
from tests.contract.channel_words import CARD as TWO_CALLS
from tests.contract.channel_words import FIRST, call
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw import ApprovalId, Card, CheckedReceipt, Ending, Outcome, replace
from zeroclaw.host.ids import SystemIds


def body(text: str) -> str:
    return markdown(text).body


def test_markdown_that_discord_reads_itself_is_unchanged() -> None:
    text = "# One\n**bold** *it* `code` ~~no~~\n- a\n  - b\n> quoted\n[site](https://a.example)"
    assert body(text) == text


def test_a_table_is_a_block_with_aligned_columns() -> None:
    """Ideographs take two columns; a short row is filled, and a long one loses nothing."""
    table = "before\n| a | name |\n|---|:-:|\n| 中文 | 1 |\n| 22 |\n| 3 | 4 | 5 |\nafter"
    assert body(table) == (
        "before\n```\na     name\n----  ----  -\n中文  1\n22\n3     4     5\n```\nafter"
    )


def test_a_pipe_in_code_separates_no_cells() -> None:
    table = "| run | does |\n|---|---|\n| `a | b` | c \\| d |"
    assert body(table) == "```\nrun      does\n-------  -----\n`a | b`  c | d\n```"


@pytest.mark.parametrize(
    "text",
    [
        "| a |\nno rule",
        "| a |",
        "| " + "x" * 61 + " |\n|---|",
        "| a |\n|---|\n| " + "x" * 61 + " |",
        "|" + " a |" * 21 + "\n|---|",
        "| a |\n|---|" + "\n| b |" * 200,
    ],
)
def test_a_broken_or_too_large_table_stays_readable(text: str) -> None:
    assert "```" not in body(text)
    assert body(text).replace("\\|", "|") == text


def test_fences_of_any_kind_become_discords_and_are_closed() -> None:
    assert body("~~~ py\na ``` b\n~~~") == "```py\na `\u200b`\u200b` b\n```"
    assert body("````\n```\n````\nx") == "```\n`\u200b`\u200b`\n```\nx"
    assert body("```py\nopen") == "```py\nopen\n```"
    assert body("1. - ~~~ py\n     ||\n     ~~~\n- ||") == "1. - ```py\n     ||\n```\n- \\|\\|"


def test_deep_headings_are_bold_and_pictures_are_links() -> None:
    assert body("#### Deep ##") == "**Deep**"
    assert body("![a](https://a.example/b.png)") == "[a](https://a.example/b.png)"


def test_no_text_is_hidden_behind_a_spoiler() -> None:
    """In code, where an escape would be visible, it stays."""
    assert body("a ||b|| `c || d` e||") == "a \\|\\|b\\|\\| `c || d` e\\|\\|"
    assert body("a ` ||b|| ``c||``") == "a ` \\|\\|b\\|\\| ``c||``"
    assert body("\\` ||b|| `") == "\\` \\|\\|b\\|\\| `"
    assert body("\\\\` a || b `") == "\\\\` a || b `"
    assert body("||[a](<https://b.example>)") == "\\|\\|[a]\\(<https://b.example>)"


def test_control_characters_and_trailing_blanks_are_dropped() -> None:
    assert body("\x00a\r\nb\x07\u2028 \n") == "a\nb"


def test_the_plain_form_is_shown_literally() -> None:
    assert markdown("**a** [b](https://x)").plain == "a b"
    assert escaped("*a* <@1> #b") == "\\*a\\* \\<\\@1\\> \\#b"
    assert plainly("snake_case") == "snake\\_case"
    assert plainly("*" * 1500 + "a") == "a"
    assert units(plainly("_" * 1001 + "x" * 2500)) == MAX_UNITS


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
    """The test's time-out is the bound: quadratic work would take minutes (P9)."""
    rendered = markdown(text)
    assert len(rendered.body) < 10 * len(text)


@given(st.text(alphabet="|`~#*_->[]()!\\ \nab:"))
def test_rendering_never_fails_and_blocks_are_closed(text: str) -> None:
    rendered = markdown(text)
    fences = [line for line in rendered.body.split("\n") if line.startswith("```")]
    assert measure(rendered) == units(rendered.body)
    assert len(fences) % 2 == 0


# --- cards ----------------------------------------------------------------------------------------

CALL = replace(call(1), summary="run `ls`", arguments='{"command": "ls"}')
CARD = replace(TWO_CALLS, asked_by="Ann", calls=(CALL,))


def shown(card: Card, *endings: Ending) -> cards.CardMessage:
    return cards.view(Outcome(card=card, endings=endings))


def carried(view: cards.CardMessage) -> list[list[str]]:
    rows = json.loads(json.dumps(view.components))
    return [[button["custom_id"] for button in row["components"]] for row in rows]


def test_a_card_of_one_call_has_its_answers_in_a_row() -> None:
    view = shown(CARD)
    assert carried(view) == [[f"zc:a:{choice}:{FIRST}" for choice in "otd"]]
    assert view.file == ""
    assert "run `ls`" in view.content
    assert '```\n{"command": "ls"}\n```' in view.content


def test_each_call_has_a_row_and_those_beyond_five_are_numbered() -> None:
    calls = tuple(
        replace(CALL, approval=ApprovalId(f"a{n}"), number=n, arguments="") for n in range(1, 8)
    )
    view = shown(replace(CARD, calls=calls))
    assert len(carried(view)) == 5
    assert view.file


def test_a_button_and_a_form_carry_the_id_of_any_approval() -> None:
    """Component Reference: a `custom_id` has 1-100 characters, read 2026-11."""
    longest = ApprovalId(SystemIds(ManualClock()).token())
    [row] = carried(shown(replace(CARD, calls=(replace(CALL, approval=longest),))))
    assert [len(data) for data in row] == [50, 50, 50]
    assert cards.form("why", "Reason", longest)["custom_id"] == f"zc:w:{longest}"


def test_a_call_can_not_break_out_of_its_block() -> None:
    """Backticks send the whole call to a file; markup, pings and invisible characters are
    escaped (P5)."""
    hostile = replace(CALL, summary="**✅ approved** <@1> \u202e`a`", why="# _big_", scope="~all~")
    view = shown(replace(CARD, calls=(hostile,), asked_by="**Eve**"))
    assert "\\*\\*✅ approved\\*\\* \\<\\@1\\> ⟨U+202E⟩`a`" in view.content
    assert "\\# \\_big\\_" in view.content
    assert "\\~all\\~" in view.content
    fenced = shown(replace(CARD, calls=(replace(CALL, arguments="``` **approved**", scope="s"),)))
    assert "``` **approved**" in fenced.file
    assert "approved" not in fenced.content


def test_a_too_long_card_is_a_file() -> None:
    """Its text fits a message, outcomes included, and it stays a file when it ends."""
    calls = tuple(
        replace(
            CALL, approval=ApprovalId(f"a{n}"), number=n, summary="*" * 900, arguments="x" * 3000
        )
        for n in range(1, 5)
    )
    card = replace(CARD, calls=calls)
    endings = tuple(
        Ending(approval=call.approval, how="denied", by="B" * 300, at=EPOCH, reason="r" * 900)
        for call in calls
    )
    assert all(len(view.file) > 12_000 for view in (shown(card), shown(card, *endings)))
    assert units(shown(card).content) <= MAX_UNITS
    assert units(shown(card, *endings).content) <= MAX_UNITS
    starts = [line[:13] for line in shown(card).content.splitlines()[2:]]
    assert starts == [f"{number}. shell: \\*\\" for number in range(1, 5)]
    assert carried(shown(card, *endings)) == []


def test_an_ended_call_shows_outcome_and_approver() -> None:
    view = shown(CARD, Ending(approval=CALL.approval, how="approved", by="_Bob_", at=EPOCH))
    assert view.components == []
    assert "✅" in view.content
    assert "\\_Bob\\_" in view.content


def test_the_longest_ending_fits_into_the_message() -> None:
    """Escapes double the length of a name and a reason; Discord would refuse to show the end (P5)."""
    ending = Ending(approval=CALL.approval, how="denied", by="*" * 160, at=EPOCH, reason="_" * 500)
    calls = [replace(CALL, arguments="x" * chars) for chars in range(1_200, 1_600)]
    views = [shown(replace(CARD, calls=(call,)), ending) for call in calls]
    assert {bool(view.file) for view in views} == {False, True}
    assert max(units(view.content) for view in views) <= MAX_UNITS


def test_the_form_keeps_within_discords_bounds() -> None:
    form = json.loads(json.dumps(cards.form("why is `shell` " + "x" * 90, "Reason", CALL.approval)))
    [row] = form["components"]
    assert len(form["title"]) <= 45
    assert "`" not in form["title"]
    assert row["components"][0]["label"] == "Reason"
    assert cards.read_form(form["custom_id"]) == CALL.approval
    assert cards.read_form("zc:w:") is None


def test_a_receipt_is_a_button_that_no_text_can_draw() -> None:
    """The button carries the receipt, and a press shows it (P7)."""
    receipt = CheckedReceipt(
        token=f"zc-receipt-1700000000-{'A' * 43}", tool="t", summary="s", outcome="ok", at=EPOCH
    )
    [[data]] = carried(cards.CardMessage(content="", components=cards.receipts((receipt,))))
    assert len(data) <= 100
    assert cards.read_receipt(data) == receipt.token
    rows = carried(cards.CardMessage(content="", components=cards.receipts((receipt,) * 30)))
    assert [len(row) for row in rows] == [5, 5, 5, 5, 5]
    (row,) = json.loads(json.dumps(cards.receipts((receipt,))))
    assert row["components"][0]["label"] == f"✅ {receipt.line()}"
