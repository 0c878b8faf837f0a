"""How an approval card looks, what its buttons carry, and what a hostile call can't make of it."""

import json
from datetime import timedelta

from channels._remote.limits import units
from channels.discord import cards
from channels.discord.render import MOST_UNITS
from tests.fakes.manual_clock import EPOCH
from zeroclaw import ApprovalId, Card, CardCall, CheckedReceipt, Ending, Outcome, replace

CALL = CardCall(
    approval=ApprovalId("a1"),
    number=1,
    tool="shell",
    summary="run `ls`",
    arguments='{"command": "ls"}',
    why="the policy asks",
    hash8="0a1b2c3d",
)
CARD = Card(key="k", asked_by="Ann", calls=(CALL,), deadline_at=EPOCH + timedelta(minutes=15))


def shown(card: Card, *endings: Ending) -> cards.Shown:
    return cards.view(Outcome(card=card, endings=endings))


def carried(view: cards.Shown) -> list[list[str]]:
    rows = json.loads(json.dumps(view.components))
    return [[one["custom_id"] for one in row["components"]] for row in rows]


def test_a_card_of_one_call_has_its_answers_in_a_row() -> None:
    view = shown(CARD)
    assert carried(view) == [["zc:a:o:a1", "zc:a:t:a1", "zc:a:d:a1"]]
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


def test_a_call_whose_id_has_no_room_in_a_button_is_numbered() -> None:
    view = shown(replace(CARD, calls=(replace(CALL, approval=ApprovalId("x" * 95)),)))
    assert carried(view) == []
    assert "/approve 1" in view.content.replace("\\", "")


def test_a_call_can_break_out_of_nothing() -> None:
    """Backticks send it to a file whole; markup, pings and what can't be seen stand as letters (P5)."""
    hostile = replace(CALL, summary="**✅ approved** <@1> \u202e`a`", why="# _big_", scope="~all~")
    view = shown(replace(CARD, calls=(hostile,), asked_by="**Eve**"))
    assert "\\*\\*✅ approved\\*\\* \\<\\@1\\> ⟨U+202E⟩`a`" in view.content
    assert "\\# \\_big\\_" in view.content
    assert "\\~all\\~" in view.content
    fenced = shown(replace(CARD, calls=(replace(CALL, arguments="``` **approved**", scope="s"),)))
    assert "``` **approved**" in fenced.file
    assert "approved" not in fenced.content


def test_what_is_too_long_stands_whole_in_a_file() -> None:
    """Its text keeps within a message, endings included, and it stays a file when it ends."""
    calls = tuple(
        replace(
            CALL, approval=ApprovalId(f"a{n}"), number=n, summary="*" * 900, arguments="x" * 3000
        )
        for n in range(1, 5)
    )
    card = replace(CARD, calls=calls)
    endings = tuple(
        Ending(approval=one.approval, how="denied", by="B" * 300, at=EPOCH, reason="r" * 900)
        for one in calls
    )
    assert all(len(view.file) > 12_000 for view in (shown(card), shown(card, *endings)))
    assert units(shown(card).content) <= MOST_UNITS
    assert units(shown(card, *endings).content) <= MOST_UNITS
    assert carried(shown(card, *endings)) == []


def test_an_ended_call_says_how_and_by_whom() -> None:
    view = shown(CARD, Ending(approval=CALL.approval, how="approved", by="_Bob_", at=EPOCH))
    assert view.components == []
    assert "✅" in view.content
    assert "\\_Bob\\_" in view.content


def test_the_form_asks_within_discords_bounds() -> None:
    form = json.loads(json.dumps(cards.form("why is `shell` " + "x" * 90, "Reason", CALL.approval)))
    [row] = form["components"]
    assert len(form["title"]) <= 45
    assert "`" not in form["title"]
    assert row["components"][0]["label"] == "Reason"
    assert cards.read_form(form["custom_id"]) == CALL.approval
    assert cards.read_form("zc:w:") is None


def test_a_receipt_is_a_button_that_no_text_can_draw() -> None:
    """It carries the receipt, which a press shows (P7)."""
    receipt = CheckedReceipt(
        token=f"zc-receipt-1700000000-{'A' * 43}", tool="t", summary="s", outcome="ok", at=EPOCH
    )
    [[data]] = carried(cards.Shown(content="", components=cards.receipts((receipt,))))
    assert len(data) <= cards.MOST_CUSTOM_ID
    assert cards.read_receipt(data) == receipt.token
    rows = carried(cards.Shown(content="", components=cards.receipts((receipt,) * 30)))
    assert [len(row) for row in rows] == [5, 5, 5, 5, 5]
    (row,) = json.loads(json.dumps(cards.receipts((receipt,))))
    assert row["components"][0]["label"] == f"✅ {receipt.line()}"
