"""What Slack is sent: no mention, no disguised link, and cards whole."""

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack import cards, decode, render
from tests.contract.channel_words import APPROVED, CARD, DENIED, call
from tests.fakes.manual_clock import EPOCH
from zeroclaw import Address, ApprovalId, CheckedReceipt, MessageRef, Outcome, replace

OPEN = Outcome(card=CARD, endings=())


@pytest.mark.parametrize("ping", ["<!channel>", "<!here|x>", "<@U1>", "<https://a.example|bank>"])
def test_a_text_pings_nobody_and_hides_no_link(ping: str) -> None:
    rendered = render.markdown(f"so {ping}")
    assert "<" not in rendered.body
    assert "<" not in render.escaped(rendered.plain)


@given(st.text(max_size=300))
def test_no_text_holds_a_mark_of_slacks(text: str) -> None:
    rendered = render.markdown(text)
    assert "<" not in rendered.body
    assert "\x00" not in rendered.body
    assert render.measure(rendered) >= len(rendered.body)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "[",
            "[a\n",
            "> [",
            "> ",
            "](",
            "](a",
            "](a ",
            "]( ",
            "![",
            "![a](https://",
            "&",
            "&a",
            "<",
        ),
        *("&#1;", "`", "\\", "[\\]", "- [x] ", "**_", "|-|\n", "```\n~~~\n", "\n", "\x00", " "),
    ],
)
def test_hostile_markdown_is_rendered_in_one_pass(piece: str) -> None:
    """The test's time-out is the bound: what grows with the square would take minutes (P9)."""
    rendered = render.markdown(piece * (100_000 // len(piece)))
    assert render.measure(rendered) <= 500_000


def test_markdown_is_left_to_slack() -> None:
    text = "**bold**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```"
    assert render.markdown(text).body == text
    assert render.markdown("![a](https://a.example/b.png)").body == "[a](https://a.example/b.png)"


def test_code_stays_as_it_was_written() -> None:
    code = "`a[0][1]` `f[0](x, y)` `a && b`\n```py\nx: dict[int, str] = {a[0]: b}\n```\n- [x] done"
    assert render.markdown(code).body == code


def test_length_counts_as_slack_does() -> None:
    assert render.measure(render.markdown("👩🏽‍🚀")) == 7


def test_a_receipt_stands_in_a_block_of_its_own() -> None:
    receipt = CheckedReceipt(token="t", tool="shell", summary="ls", outcome="ok", at=EPOCH)
    earlier = replace(receipt, earlier=True)
    text, context = render.blocks("done", (receipt, earlier), plain=False)
    assert text == {"type": "markdown", "text": "done"}
    lines = [one["text"] for one in cast("list[dict[str, str]]", context["elements"])]
    assert lines == [f"✅ {receipt.line()}", f"🕓 {earlier.line()}"]
    assert render.blocks("", (), plain=False) == []
    assert render.blocks("*x*", (), plain=True) == [render.text_block("*x*")]


def texts(blocks: list[dict[str, object]]) -> str:
    """All that is read of rich text, letter by letter."""
    shown = [one for one in blocks if one["type"] == "rich_text"]
    return "\n".join(
        part["text"]
        for one in cast("list[dict[str, list[dict[str, list[dict[str, str]]]]]]", shown)
        for element in one["elements"]
        for part in element["elements"]
    )


@given(st.text(max_size=200))
def test_a_card_shows_what_the_call_is_letter_by_letter(arguments: str) -> None:
    """P5."""
    from zeroclaw import escape_invisible

    card = replace(CARD, calls=(replace(call(1), arguments=arguments),))
    shown = texts(cards.view(Outcome(card=card, endings=())))
    assert (escape_invisible(arguments) or " ") in shown


def test_each_open_call_has_its_buttons_and_each_ended_one_its_end() -> None:
    blocks = cards.view(Outcome(card=CARD, endings=(DENIED,)))
    (row,) = [one for one in blocks if one["type"] == "actions"]
    buttons = cast("list[dict[str, str]]", row["elements"])
    assert [one["value"] for one in buttons] == [APPROVED.approval] * 3
    assert [one["action_id"] for one in buttons] == ["zc-once:1", "zc-time:1", "zc-deny:1"]
    shown = texts(blocks)
    assert "⛔" in shown
    assert "too early" in shown
    assert "✅" in texts(cards.view(Outcome(card=CARD, endings=(APPROVED, DENIED))))


def test_a_card_of_one_call_says_what_its_buttons_do() -> None:
    card = replace(CARD, calls=(replace(call(1), scope="any command for 1 hour"),))
    (row,) = [one for one in cards.view(Outcome(card=card, endings=())) if one["type"] == "actions"]
    labels = [
        one["text"]["text"] for one in cast("list[dict[str, dict[str, str]]]", row["elements"])
    ]
    assert labels[0] == "Approve once"
    assert "any command for 1 hour" in texts(cards.view(Outcome(card=card, endings=())))


def test_a_card_that_is_too_long_has_its_calls_in_a_file() -> None:
    """P5: all of them whole there, a line of each on the card, and buttons for each."""
    long = replace(CARD, calls=(replace(call(1), arguments="x" * 11_001, tool="y" * 9_000),))
    many = replace(CARD, calls=tuple(map(call, range(1, 2 * cards.MAX_ROWS))))
    assert [cards.is_file(one) for one in (CARD, long, many)] == [False, True, True]
    for card in (long, many):
        blocks = cards.view(Outcome(card=card, endings=()), "https://files.slack.com/f")
        rows = [one for one in blocks if one["type"] == "actions"]
        assert len(rows) == min(len(card.calls), cards.MAX_ROWS)
        assert len(blocks) <= 50
        assert len(texts(blocks)) <= cards.MAX_CHARS
        assert render.link_in(blocks) == "https://files.slack.com/f"
        whole = cards.card_text(card)
        assert all(one.arguments in whole and one.hash8 in whole for one in card.calls)
        assert len(cards.summary(card)) < cards.MAX_CHARS
    assert f"/approve {2 * cards.MAX_ROWS - 1}" in texts(cards.view(Outcome(card=many, endings=())))


def test_a_call_that_has_ended_says_so_on_a_card_with_a_file() -> None:
    calls = (replace(CARD.calls[0], arguments="x" * 11_001), CARD.calls[1])
    blocks = cards.view(Outcome(card=replace(CARD, calls=calls), endings=(DENIED,)))
    (row,) = [one for one in blocks if one["type"] == "actions"]
    assert APPROVED.approval in str(row)
    assert f"{CARD.calls[1].number}. ⛔" in texts(blocks)
    assert render.link_in(blocks) == ""


def test_a_card_with_all_its_ends_is_no_longer_than_a_message() -> None:
    """However long the reasons are: a card that can't be edited would keep its buttons (P5)."""
    numbers = range(1, cards.MAX_CALLS + 1)
    calls = tuple(replace(call(one), arguments="x" * 650) for one in numbers)
    ends = tuple(
        replace(DENIED, approval=one.approval, reason="y" * cards.MAX_REASON) for one in calls
    )
    card = replace(CARD, calls=calls)
    assert not cards.is_file(card)
    assert len(texts(cards.view(Outcome(card=card, endings=ends)))) < 11_000


def test_a_form_carries_what_it_is_about() -> None:
    address = Address(channel="slack", account="T-U", chat="@UANN", direct=True)
    card = MessageRef(address=address, message="1700000000.000100")
    asked = "Why is `shell` denied? Everybody who asked reads it."
    form = cast("dict[str, object]", cards.form(asked, ApprovalId("a1"), card, "D1"))
    carried = json.loads(str(form["private_metadata"]))
    assert carried == {"approval": "a1", "channel": "D1", "ts": card.message, "thread": ""}
    assert form["callback_id"] == decode.FORM
    assert form["title"] == render.plain_text("Why is shell denied? Ev…")
    (field,) = cast("list[dict[str, object]]", form["blocks"])
    assert field["label"] == render.plain_text(asked.replace("`", ""))
    short = cast("dict[str, object]", cards.form("Why?", ApprovalId("a1"), card, "D1"))
    assert short["title"] == render.plain_text("Why?")
