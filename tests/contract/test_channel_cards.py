"""Every channel's promises for cards: the whole call is shown, pressed and settled."""

from pathlib import Path

import pytest

from tests.contract.channel_suite import Adapter, Desk
from tests.contract.channel_words import (
    APPROVED,
    CARD,
    DENIED,
    FIRST,
    SECOND,
    channels_that,
    every_channel,
)
from zeroclaw import Outcome, Pressed

# Most open real sockets.
pytestmark = pytest.mark.slow


@every_channel
async def test_a_card_shows_the_whole_call(adapter: Adapter, tmp_path: Path) -> None:
    """Tool, summary, arguments, reason and hash of each call are there to be read (P5)."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        await harness.channel.ask(harness.address, CARD)
        (message,) = await harness.messages()
    for call in CARD.calls:
        parts = (str(call.number), call.tool, call.summary, call.arguments, call.why, call.hash8)
        assert [part for part in parts if part not in message.text] == []


@channels_that("has_buttons")
async def test_a_pressed_button_carries_the_call_and_the_card(
    adapter: Adapter, tmp_path: Path
) -> None:
    """The answer names the approval, the choice, and the card that was touched (P5)."""
    desk = Desk()
    async with adapter.opened(desk.admit, tmp_path) as harness:
        ref = await harness.channel.ask(harness.address, CARD)
        (message,) = await harness.messages()
        assert message.buttons == {FIRST, SECOND}
        assert await harness.press(ref, FIRST, "once")
        assert await harness.press(ref, SECOND, "deny", "too early")
    assert [envelope.body for envelope in desk.stored] == [
        Pressed(approval=FIRST, choice="once", card=ref),
        Pressed(approval=SECOND, choice="deny", reason="too early", card=ref),
    ]


@channels_that("has_buttons")
async def test_a_press_that_comes_twice_carries_the_same_keys(
    adapter: Adapter, tmp_path: Path
) -> None:
    """The keys are the press's own, never the card's: two calls of a card can be answered."""
    desk = Desk()
    async with adapter.opened(desk.admit, tmp_path) as harness:
        ref = await harness.channel.ask(harness.address, CARD)
        await harness.press(ref, FIRST, "once")
        await harness.redeliver()
        await harness.press(ref, SECOND, "once")
    first, again, third = desk.arrived
    assert first.dedup == again.dedup
    assert not set(first.dedup) & set(third.dedup)


@every_channel
async def test_a_settled_card_says_how_each_call_ended_and_by_whom(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Ended calls lose their buttons; saying it twice changes nothing (P5)."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.ask(harness.address, CARD)
        await harness.channel.settle(ref, Outcome(card=CARD, endings=(DENIED,)))
        half = await harness.messages()
        assert not any(SECOND in message.buttons for message in half)
        outcome = Outcome(card=CARD, endings=(DENIED, APPROVED))
        await harness.channel.settle(ref, outcome)
        once = await harness.messages()
        await harness.channel.settle(ref, outcome)
        assert await harness.messages() == once
    readable = " ".join(message.text for message in once).lower()
    texts = ("approved", "denied", "the operator", "too early", CARD.calls[0].summary)
    assert [part for part in texts if part not in readable] == []
    assert not any(message.buttons for message in once)
