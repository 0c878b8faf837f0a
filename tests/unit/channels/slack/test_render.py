"""Texts and cards for Slack: without mentions or disguised links, and cards complete."""

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
def test_no_text_contains_slacks_own_markup(text: str) -> None:
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
    """The test's timeout is the limit: quadratic rendering would take minutes (P9)."""
    rendered = render.markdown(piece * (100_000 // len(piece)))
    assert render.measure(rendered) <= 500_000


def test_markdown_is_passed_on_to_slack() -> None:
    text = "**bold**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```"
    assert render.markdown(text).body == text
    assert render.markdown("![a](https://a.example/b.png)").body == "[a](https://a.example/b.png)"


def test_code_is_unchanged() -> None:
    code = "`a[0][1]` `f[0](x, y)` `a && b`\n```py\nx: dict[int, str] = {a[0]: b}\n```\n- [x] done"
    assert render.markdown(code).body == code


def test_length_counts_as_slack_does() -> None:
    assert render.measure(render.markdown("👩🏽‍🚀")) == 7


def test_a_receipt_is_in_a_block_of_its_own() -> None:
    receipt = CheckedReceipt(token="t", tool="shell", summary="ls", outcome="ok", at=EPOCH)
    earlier = replace(receipt, earlier=True)
    text, context = render.blocks("done", (receipt, earlier), plain=False)
    assert text == {"type": "markdown", "text": "done"}
    lines = [element["text"] for element in cast("list[dict[str, str]]", context["elements"])]
    assert lines == [f"✅ {receipt.line()}", f"🕓 {earlier.line()}"]
    assert render.blocks("", (), plain=False) == []
    assert render.blocks("*x*", (), plain=True) == [render.text_block("*x*")]


def texts(blocks: list[dict[str, object]]) -> str:
    """Return all literal text of rich text blocks."""
    rich = [block for block in blocks if block["type"] == "rich_text"]
    return "\n".join(
        part["text"]
        for block in cast("list[dict[str, list[dict[str, list[dict[str, str]]]]]]", rich)
        for element in block["elements"]
        for part in element["elements"]
    )


@given(st.text(max_size=200))
def test_a_card_shows_the_call_literally(arguments: str) -> None:
    """P5."""
    from zeroclaw import escape_invisible

    card = replace(CARD, calls=(replace(call(1), arguments=arguments),))
    text = texts(cards.view(Outcome(card=card, endings=())))
    assert (escape_invisible(arguments) or " ") in text


def test_open_calls_have_buttons_and_ended_ones_their_ending() -> None:
    blocks = cards.view(Outcome(card=CARD, endings=(DENIED,)))
    (row,) = [block for block in blocks if block["type"] == "actions"]
    buttons = cast("list[dict[str, str]]", row["elements"])
    assert [button["value"] for button in buttons] == [APPROVED.approval] * 3
    assert [button["action_id"] for button in buttons] == ["zc-once:1", "zc-time:1", "zc-deny:1"]
    text = texts(blocks)
    assert "⛔" in text
    assert "too early" in text
    assert "✅" in texts(cards.view(Outcome(card=CARD, endings=(APPROVED, DENIED))))


def test_a_card_of_one_call_has_full_button_labels() -> None:
    card = replace(CARD, calls=(replace(call(1), scope="any command for 1 hour"),))
    blocks = cards.view(Outcome(card=card, endings=()))
    (row,) = [block for block in blocks if block["type"] == "actions"]
    buttons = cast("list[dict[str, dict[str, str]]]", row["elements"])
    labels = [button["text"]["text"] for button in buttons]
    assert labels[0] == "Approve once"
    assert "any command for 1 hour" in texts(blocks)


def test_a_card_that_is_too_long_has_its_calls_in_a_file() -> None:
    """P5: the file has the complete calls, and the card one line and the buttons of each."""
    long = replace(CARD, calls=(replace(call(1), arguments="x" * 11_001, tool="y" * 9_000),))
    many = replace(CARD, calls=tuple(map(call, range(1, 2 * cards.MAX_ROWS))))
    assert [cards.is_file(card) for card in (CARD, long, many)] == [False, True, True]
    for card in (long, many):
        blocks = cards.view(Outcome(card=card, endings=()), "https://files.slack.com/f")
        rows = [block for block in blocks if block["type"] == "actions"]
        assert len(rows) == min(len(card.calls), cards.MAX_ROWS)
        assert len(blocks) <= 50
        assert len(texts(blocks)) <= cards.MAX_CHARS
        assert render.link_in(blocks) == "https://files.slack.com/f"
        text = cards.card_text(card)
        assert all(shown.arguments in text and shown.hash8 in text for shown in card.calls)
        assert len(cards.summary(Outcome(card=card, endings=()))) < cards.MAX_CHARS
    shown = texts(cards.view(Outcome(card=many, endings=())))
    assert f"/approve {cards.MAX_ROWS}`" not in shown
    assert f"/approve {cards.MAX_ROWS + 1}" in shown
    assert f"/approve {2 * cards.MAX_ROWS - 1}" in shown


def test_a_card_with_a_file_shows_the_ending_of_a_call() -> None:
    calls = (replace(CARD.calls[0], arguments="x" * 11_001), CARD.calls[1])
    blocks = cards.view(Outcome(card=replace(CARD, calls=calls), endings=(DENIED,)))
    (row,) = [block for block in blocks if block["type"] == "actions"]
    assert APPROVED.approval in str(row)
    assert f"{CARD.calls[1].number}. ⛔" in texts(blocks)
    assert render.link_in(blocks) == ""


def test_a_card_with_all_its_endings_fits_into_a_message() -> None:
    """Even with long reasons: a card that is too long to edit would keep its buttons (P5)."""
    numbers = range(1, cards.MAX_CALLS + 1)
    calls = tuple(replace(call(number), arguments="x" * 650) for number in numbers)
    endings = tuple(
        replace(DENIED, approval=denied.approval, reason="y" * cards.MAX_REASON) for denied in calls
    )
    card = replace(CARD, calls=calls)
    assert not cards.is_file(card)
    assert len(texts(cards.view(Outcome(card=card, endings=endings)))) < 11_000


def test_a_form_carries_its_approval_and_card() -> None:
    address = Address(channel="slack", account="T-U", chat="@UANN", direct=True)
    card = MessageRef(address=address, message="1700000000.000100")
    prompt = "Why is `shell` denied? Everybody who asked reads it."
    form = cast("dict[str, object]", cards.form(prompt, ApprovalId("a1"), card, "D1"))
    data = json.loads(str(form["private_metadata"]))
    assert data == {"approval": "a1", "channel": "D1", "ts": card.message, "thread": ""}
    assert form["callback_id"] == decode.FORM
    assert form["title"] == render.plain_text("Why is shell denied? Ev…")
    (field,) = cast("list[dict[str, object]]", form["blocks"])
    assert field["label"] == render.plain_text(prompt.replace("`", ""))
    short = cast("dict[str, object]", cards.form("Why?", ApprovalId("a1"), card, "D1"))
    assert short["title"] == render.plain_text("Why?")
