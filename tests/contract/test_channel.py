"""What every channel promises: told only once stored, whole, in order, and all that it says it can."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.channel_adapters import ADAPTERS
from tests.contract.channel_suite import Adapter, Desk, Harness
from tests.fakes.manual_clock import EPOCH
from zeroclaw import (
    ApprovalId,
    Card,
    CardCall,
    ChannelRejected,
    ChannelUnavailable,
    Command,
    Ending,
    NotSupported,
    Outcome,
    Outgoing,
    Pressed,
    Said,
)

# Most open real sockets.
pytestmark = pytest.mark.slow

AWKWARD = (
    "Zeilen\nund  Räume\t<b>&amp;</b> *stars* _lines_ `ticks` 👩🏽‍🚀 \u202edrawkcab\u202c \\ end"
)

every_channel = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda one: one.name)


def channels_that(flag: str) -> pytest.MarkDecorator:
    """The channels whose capabilities say yes to a flag."""
    able = [one for one in ADAPTERS if getattr(one.capabilities, flag)]
    return pytest.mark.parametrize("adapter", able, ids=lambda one: one.name)


def channels_without(flag: str) -> pytest.MarkDecorator:
    """The others."""
    unable = [one for one in ADAPTERS if not getattr(one.capabilities, flag)]
    return pytest.mark.parametrize("adapter", unable, ids=lambda one: one.name)


def outgoing(harness: Harness, text: str, key: str = "k1", *, draft: bool = False) -> Outgoing:
    return Outgoing(rendered=harness.channel.render(text), key=key, draft=draft)


async def texts(harness: Harness) -> list[str]:
    return [message.text for message in await harness.messages()]


def call(number: int) -> CardCall:
    return CardCall(
        approval=ApprovalId(f"approval-{number}"),
        number=number,
        tool="shell",
        summary=f"summary {number}",
        arguments=f"command: echo {number}",
        why="the policy asks",
        hash8=f"0000000{number}",
    )


CARD = Card(
    key="card-1",
    asked_by="somebody",
    calls=(call(1), call(2)),
    deadline_at=EPOCH + timedelta(minutes=15),
)
FIRST, SECOND = (one.approval for one in CARD.calls)
DENIED = Ending(approval=SECOND, how="denied", by="the operator", at=EPOCH, reason="too early")
APPROVED = Ending(approval=FIRST, how="approved", by="the operator", at=EPOCH)


# --- coming in -----------------------------------------------------------------------------------


@every_channel
async def test_a_message_arrives_as_it_was_written(adapter: Adapter, tmp_path: Path) -> None:
    """Text, place and sender are whole; the platform vouches for the sender. S3-01."""
    desk = Desk()
    async with adapter.opened(desk.admit, tmp_path) as harness:
        assert await harness.say(AWKWARD)
    (envelope,) = desk.stored
    assert envelope.body == Said(text=AWKWARD)
    assert envelope.address == harness.address
    assert (envelope.sender.id, envelope.sender.verified) == (harness.person, True)
    assert envelope.address.direct
    assert envelope.message


@every_channel
async def test_a_slash_and_a_word_is_a_command(adapter: Adapter, tmp_path: Path) -> None:
    """What follows the word is kept as it was typed."""
    desk = Desk()
    async with adapter.opened(desk.admit, tmp_path) as harness:
        await harness.say('/tool shell {"command":  "ls"}')
        await harness.say("/stop")
    assert [envelope.body for envelope in desk.stored] == [
        Command(name="tool", rest='shell {"command":  "ls"}'),
        Command(name="stop"),
    ]


@every_channel
async def test_the_platform_is_told_only_once_the_message_is_stored(
    adapter: Adapter, tmp_path: Path
) -> None:
    """While the door has not answered, neither has the channel (P1)."""
    desk = Desk()
    desk.hold()
    async with adapter.opened(desk.admit, tmp_path) as harness, asyncio.TaskGroup() as group:
        saying = group.create_task(harness.say("hello"))
        await desk.came.wait()
        assert not saying.done()
        assert desk.stored == []
        desk.release()
        assert await saying


@every_channel
async def test_what_could_not_be_stored_is_delivered_again(
    adapter: Adapter, tmp_path: Path
) -> None:
    """A door that fails confirms nothing; the same event comes again, under the same keys (P1)."""
    desk = Desk()
    desk.fault = ChannelUnavailable("the store is away")
    async with adapter.opened(desk.admit, tmp_path) as harness:
        assert not await harness.say("hello")
        desk.fault = None
        assert await harness.redeliver()
    first, second = desk.arrived
    assert (first.dedup, first.body) == (second.dedup, second.body)
    assert len(desk.stored) == 1


@every_channel
async def test_a_message_that_comes_twice_carries_the_same_keys(
    adapter: Adapter, tmp_path: Path
) -> None:
    """A repeat is known by its keys and confirmed like the first; another message has others.

    S2-02.
    """
    desk = Desk()
    async with adapter.opened(desk.admit, tmp_path) as harness:
        await harness.say("hello")
        assert await harness.redeliver()
        await harness.say("hello")
    first, again, other = desk.arrived
    assert first.dedup == again.dedup
    assert first.message == again.message
    assert not set(first.dedup) & set(other.dedup)
    assert first.message != other.message


@every_channel
async def test_messages_arrive_in_order(adapter: Adapter, tmp_path: Path) -> None:
    desk = Desk()
    said = [f"message {number}" for number in range(5)]
    async with adapter.opened(desk.admit, tmp_path) as harness:
        for text in said:
            await harness.say(text)
    assert [envelope.body for envelope in desk.stored] == [Said(text=text) for text in said]


# --- going out -----------------------------------------------------------------------------------


@every_channel
async def test_it_is_what_it_says_it_is(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        assert harness.channel.capabilities == adapter.capabilities
        assert harness.channel.name == harness.address.channel
        assert harness.channel.direct_address(harness.person) == harness.address


@every_channel
async def test_a_sent_message_stands_whole(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        message = outgoing(harness, AWKWARD)
        ref = await harness.channel.send(harness.address, message)
        assert await texts(harness) == [message.rendered.body]
        assert ref.address == harness.address


@every_channel
async def test_the_plain_form_is_sent_when_it_is_asked_for(
    adapter: Adapter, tmp_path: Path
) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        message = replace(outgoing(harness, "*hello*"), plain=True)
        await harness.channel.send(harness.address, message)
        assert await texts(harness) == [message.rendered.plain]


@channels_that("multi_message")
async def test_a_sequence_of_messages_stands_in_order(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        for number in range(5):
            message = outgoing(harness, f"part {number}", f"k{number}")
            await harness.channel.send(harness.address, message)
        assert await texts(harness) == [f"part {number}" for number in range(5)]


@every_channel
async def test_messages_may_be_sent_at_the_same_time(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                message = outgoing(harness, f"part {number}", f"k{number}")
                group.create_task(harness.channel.send(harness.address, message))
        assert sorted(await texts(harness)) == [f"part {number}" for number in range(5)]


@every_channel
async def test_the_longest_message_passes_and_a_longer_one_is_refused(
    adapter: Adapter, tmp_path: Path
) -> None:
    """`max_length` is true, in the channel's own measure."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        longest = outgoing(harness, "a" * adapter.capabilities.max_length)
        assert harness.channel.measure(longest.rendered) == adapter.capabilities.max_length
        await harness.channel.send(harness.address, longest)
        longer = outgoing(harness, "a" * (adapter.capabilities.max_length + 1), "k2")
        with pytest.raises(ChannelRejected):
            await harness.channel.send(harness.address, longer)
        assert await texts(harness) == [longest.rendered.body]


@channels_that("can_edit")
async def test_an_edit_replaces_the_whole_text(adapter: Adapter, tmp_path: Path) -> None:
    """A draft becomes the final text in place; the same text again is no error. S2-24."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "h", draft=True))
        await harness.channel.send(harness.address, outgoing(harness, "after", "k2"))
        await harness.channel.edit(ref, outgoing(harness, "hel", draft=True))
        await harness.channel.edit(ref, outgoing(harness, "hello"))
        await harness.channel.edit(ref, outgoing(harness, "hello"))
        assert await texts(harness) == ["hello", "after"]


@channels_without("can_edit")
async def test_what_edits_nothing_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        with pytest.raises(NotSupported):
            await harness.channel.edit(ref, outgoing(harness, "bye"))
        assert await texts(harness) == ["hello"]


@channels_that("can_delete")
async def test_a_deleted_message_is_gone(adapter: Adapter, tmp_path: Path) -> None:
    """One that is gone already is no error."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        await harness.channel.send(harness.address, outgoing(harness, "stays", "k2"))
        await harness.channel.delete(ref)
        await harness.channel.delete(ref)
        assert await texts(harness) == ["stays"]


@channels_without("can_delete")
async def test_what_deletes_nothing_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        ref = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        with pytest.raises(NotSupported):
            await harness.channel.delete(ref)
        assert await texts(harness) == ["hello"]


@channels_that("idempotent_send")
async def test_a_repeated_send_shows_one_message(adapter: Adapter, tmp_path: Path) -> None:
    """After an answer that was lost the same key is sent again, safely."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        first = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        again = await harness.channel.send(harness.address, outgoing(harness, "hello"))
        card = await harness.channel.ask(harness.address, CARD)
        assert await harness.channel.ask(harness.address, CARD) == card
        assert first == again
        assert len(await harness.messages()) == 2


@channels_that("has_threads")
async def test_a_thread_is_a_place_of_its_own(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        thread = replace(harness.address, thread=adapter.thread)
        ref = await harness.channel.send(thread, outgoing(harness, "hello"))
        assert ref.address.key() == thread.key()
        assert await texts(harness) == []


@channels_without("has_threads")
async def test_what_has_no_threads_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        thread = replace(harness.address, thread="t")
        with pytest.raises(NotSupported):
            await harness.channel.send(thread, outgoing(harness, "hello"))
        with pytest.raises(NotSupported):
            await harness.channel.ask(thread, CARD)


@channels_that("has_typing")
async def test_a_person_sees_that_the_bot_is_at_work(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        assert not await harness.sees_typing()
        await harness.channel.typing(harness.address)
        assert await harness.sees_typing()


@channels_without("has_typing")
async def test_what_shows_no_typing_says_so(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        with pytest.raises(NotSupported):
            await harness.channel.typing(harness.address)


# --- approvals -----------------------------------------------------------------------------------


@every_channel
async def test_a_card_shows_the_whole_call(adapter: Adapter, tmp_path: Path) -> None:
    """Tool, summary, arguments, reason and hash of each call are there to be read (P5)."""
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        await harness.channel.ask(harness.address, CARD)
        (shown,) = await harness.messages()
    for one in CARD.calls:
        parts = (str(one.number), one.tool, one.summary, one.arguments, one.why, one.hash8)
        assert [part for part in parts if part not in shown.text] == []


@channels_that("has_buttons")
async def test_a_pressed_button_carries_the_call_and_the_card(
    adapter: Adapter, tmp_path: Path
) -> None:
    """The answer names the approval, the choice, and the card that was touched (P5)."""
    desk = Desk()
    async with adapter.opened(desk.admit, tmp_path) as harness:
        ref = await harness.channel.ask(harness.address, CARD)
        (shown,) = await harness.messages()
        assert shown.buttons == {FIRST, SECOND}
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
    first, again, other = desk.arrived
    assert first.dedup == again.dedup
    assert not set(first.dedup) & set(other.dedup)


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
        whole = Outcome(card=CARD, endings=(DENIED, APPROVED))
        await harness.channel.settle(ref, whole)
        once = await harness.messages()
        await harness.channel.settle(ref, whole)
        assert await harness.messages() == once
    readable = " ".join(message.text for message in once).lower()
    said = ("approved", "denied", "the operator", "too early", CARD.calls[0].summary)
    assert [part for part in said if part not in readable] == []
    assert not any(message.buttons for message in once)


# --- ends ----------------------------------------------------------------------------------------


@every_channel
async def test_a_cancelled_channel_ends_in_the_middle_of_an_admission(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Nothing hangs, and the platform was not told that the message was received."""
    desk = Desk()
    desk.hold()
    async with asyncio.TaskGroup() as group:
        async with adapter.opened(desk.admit, tmp_path) as harness:
            saying = group.create_task(harness.say("hello"))
            await desk.came.wait()
        assert not (saying.done() and not saying.cancelled() and saying.result())
        saying.cancel()
    assert desk.stored == []


@every_channel
async def test_closing_twice_is_safe(adapter: Adapter, tmp_path: Path) -> None:
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        await harness.channel.aclose()
        await harness.channel.aclose()
