"""The loopback platform behaves as documented, because all journeys rely on it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from zeroclaw_test_platform.adapter import open_channel
from zeroclaw_test_platform.faults import Hang, Lose, Refuse, TooMany, Unavailable
from zeroclaw_test_platform.platform import Platform

from tests.contract.channel_suite import Desk, receiving
from tests.contract.loopback_harness import loopback_context
from zeroclaw import (
    Address,
    Channel,
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    Edited,
    Membership,
    MessageRef,
    Moved,
    Outgoing,
    RateLimited,
    Rendered,
    Said,
)

ANN = Address(channel="loopback", account="bot", chat="ann", direct=True)


@asynccontextmanager
async def adapter(platform: Platform, desk: Desk) -> AsyncGenerator[Channel]:
    channel = open_channel(loopback_context(platform))
    async with receiving(channel, desk.admit):
        yield channel


def outgoing(text: str, key: str = "k1", *, draft: bool = False) -> Outgoing:
    return Outgoing(rendered=Rendered(body=text, plain=text), key=key, draft=draft)


async def test_events_without_a_bot_are_delivered_to_the_next_one() -> None:
    """Events wait for a bot, and come in order."""
    desk = Desk()
    async with Platform() as platform:
        early = [await platform.say("ann", text) for text in ("one", "two")]
        async with adapter(platform, desk):
            await platform.confirmed(*early)
    assert [envelope.body for envelope in desk.stored] == [Said(text="one"), Said(text="two")]


async def test_an_unconfirmed_event_is_delivered_again_after_a_cut() -> None:
    """A bot that dies before it confirms gets the event again when it is back (P1)."""
    first, second = Desk(), Desk()
    first.hold()
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        async with asyncio.TaskGroup() as group:
            dying = group.create_task(channel.receive(first.admit, lambda: None))
            event = await platform.say("ann", "hello")
            await first.came.wait()
            dying.cancel()
        assert not event.confirmed
        async with adapter(platform, second):
            await platform.confirmed(event)
        assert event.deliveries == 2
    assert first.arrived[0].dedup == second.stored[0].dedup


async def test_a_confirmed_event_stays_away_after_a_cut() -> None:
    desk = Desk()
    async with Platform() as platform:
        async with adapter(platform, desk):
            await platform.confirmed(await platform.say("ann", "hello"))
        async with adapter(platform, desk):
            await platform.confirmed(await platform.say("ann", "again"))
    assert [envelope.body for envelope in desk.arrived] == [Said(text="hello"), Said(text="again")]


async def test_a_cut_connection_makes_the_channel_unavailable() -> None:
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        with pytest.raises(ChannelUnavailable):
            await channel.receive(Desk().admit, platform.cut)


async def test_a_platform_that_is_down_is_unavailable() -> None:
    """Nothing arrives, and the channel knows that."""
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        await platform.down()
        with pytest.raises(ChannelUnavailable):
            await channel.send(ANN, outgoing("hello"))
        with pytest.raises(ChannelUnavailable):
            await channel.receive(Desk().admit, lambda: None)
        await platform.up()
        await channel.send(ANN, outgoing("hello"))
        assert platform.chat("ann").texts == ["hello"]


async def test_one_message_that_comes_as_two_events_shares_a_key() -> None:
    """Like platforms that send two kinds of events for one message. S2-02."""
    desk = Desk()
    async with Platform() as platform, adapter(platform, desk):
        event = await platform.say("ann", "hello")
        again = await platform.redeliver(event, as_new=True)
        await platform.confirmed(event, again)
    assert len(desk.arrived) == 2
    assert len(desk.stored) == 1


async def test_edits_deletions_and_the_rest_arrive() -> None:
    desk = Desk()
    async with Platform() as platform, adapter(platform, desk):
        event = await platform.say("ann", "hello", chat="#room", thread="t", files={"a.txt": b"x"})
        edited = await platform.edit(event, "bye")
        await platform.confirmed(
            edited,
            await platform.delete(event),
            await platform.happen("membership", "ann", chat="#room", present=False),
            await platform.happen("moved", "ann", chat="#room", to={"chat": "#hall"}),
        )
    message, edit, deleted, membership, moved = (envelope.body for envelope in desk.stored)
    assert message == Said(text="hello")
    assert edit == Edited(message=event.message.id, said=Said(text="bye"))
    assert type(deleted).__name__ == "Deleted"
    assert membership == Membership(present=False)
    assert moved == Moved(to=Address(channel="loopback", account="bot", chat="#hall"))
    first = desk.stored[0]
    assert (first.address.thread, first.address.direct) == ("t", False)
    assert [file.name for file in first.attachments] == ["a.txt"]


async def test_a_file_can_be_fetched() -> None:
    desk = Desk()
    async with Platform() as platform, adapter(platform, desk) as channel:
        await platform.confirmed(await platform.say("ann", "see", files={"a.txt": b"\x00\xff"}))
        [file] = desk.stored[0].attachments
        assert await channel.fetch(file, max_bytes=2) == b"\x00\xff"
        with pytest.raises(ChannelRejected):
            await channel.fetch(file, max_bytes=1)


async def test_every_text_of_a_message_is_recorded() -> None:
    """The whole history of a draft can be read, with the draft flag of each text."""
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        ref = await channel.send(ANN, outgoing("he", draft=True))
        await channel.edit(ref, outgoing("hello", draft=True))
        await channel.edit(ref, outgoing("hello"))
        (message,) = platform.chat("ann").messages
        assert (message.texts, message.draft) == (["he", "hello"], False)
        assert [version.draft for version in message.versions] == [True, True]
        await channel.delete(ref)
        assert platform.chat("ann").texts == []
        assert platform.chat("ann").ever == "he\nhello"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (TooMany(retry_after_s=2.5), RateLimited),
        (Unavailable(), ChannelUnavailable),
        (Refuse(), ChannelRejected),
        (Refuse(why="gone"), ChannelRejected),
        (Refuse(why="markup"), ChannelRejected),
        (Refuse(why="unauthorized"), ChannelUnauthorized),
        (Lose(carried_out=False), DeliveryUnknown),
    ],
    ids=str,
)
async def test_a_planned_fault_carries_nothing_out(
    fault: TooMany | Unavailable | Refuse | Lose, error: type[Exception]
) -> None:
    """Each fault is the contract's error, once; the next call passes."""
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        platform.will("send", fault)
        with pytest.raises(error) as raised:
            await channel.send(ANN, outgoing("hello"))
        assert platform.chat("ann").texts == []
        await channel.send(ANN, outgoing("hello"))
        assert platform.chat("ann").texts == ["hello"]
    expected = {
        "retry_after_s": getattr(fault, "retry_after_s", None),
        "gone": fault == Refuse(why="gone") or None,
        "markup": fault == Refuse(why="markup") or None,
    }
    attributes = {name: getattr(raised.value, name, None) or None for name in expected}
    assert attributes == expected


async def test_a_lost_answer_may_have_been_carried_out() -> None:
    """The bot can't tell, and sends again with the same key: there is one message."""
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        platform.will("send", Lose(carried_out=True))
        with pytest.raises(DeliveryUnknown):
            await channel.send(ANN, outgoing("hello"))
        assert platform.chat("ann").texts == ["hello"]
        await channel.send(ANN, outgoing("hello"))
        assert platform.chat("ann").texts == ["hello"]


async def test_without_idempotent_sends_a_repeat_is_posted_twice() -> None:
    async with Platform(idempotent_send=False) as platform:
        channel = open_channel(loopback_context(platform))
        await channel.send(ANN, outgoing("hello"))
        await channel.send(ANN, outgoing("hello"))
        assert platform.chat("ann").texts == ["hello", "hello"]


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_call_hangs_until_it_is_released(carried_out: bool) -> None:
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        hang = Hang(carried_out=carried_out)
        platform.will("send", hang)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(channel.send(ANN, outgoing("hello")))
            await hang.reached()
            assert platform.chat("ann").texts == ["hello"] * carried_out
            assert not sending.done()
            hang.release()
        assert platform.chat("ann").texts == ["hello"]


async def test_faults_find_the_calls_they_are_meant_for() -> None:
    """By chat, by the call's text, and one after another; None lets one pass."""
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        platform.will("send", Refuse(), chat="bob")
        platform.will("send", None, Unavailable(), when=lambda call: "x" in call.text)
        await channel.send(ANN, outgoing("hello", "k1"))
        await channel.send(ANN, outgoing("x1", "k2"))
        with pytest.raises(ChannelUnavailable):
            await channel.send(ANN, outgoing("x2", "k3"))
        bob = Address(channel="loopback", account="bot", chat="bob", direct=True)
        with pytest.raises(ChannelRejected):
            await channel.send(bob, outgoing("hello", "k4"))
        assert platform.chat("ann").texts == ["hello", "x1"]


async def test_too_many_calls_are_refused_and_counted() -> None:
    """The account has a rate limit, as on a real platform."""
    async with Platform(chat_per_s=0.001, chat_burst=2) as platform:
        channel = open_channel(loopback_context(platform))
        for key in ("k1", "k2", "k3"):  # one of them is the grace
            await channel.send(ANN, outgoing("hello", key))
        with pytest.raises(RateLimited):
            await channel.send(ANN, outgoing("4", "k4"))
        assert platform.backend.limits.exceeded == 1


async def test_a_missing_message_can_not_be_edited() -> None:
    async with Platform() as platform:
        channel = open_channel(loopback_context(platform))
        missing = MessageRef(address=ANN, message="m99")
        with pytest.raises(ChannelRejected) as raised:
            await channel.edit(missing, outgoing("hello"))
        assert raised.value.gone


async def test_a_held_event_is_delivered_when_it_is_released() -> None:
    desk = Desk()
    async with Platform() as platform, adapter(platform, desk):
        platform.hold()
        events = [await platform.say("ann", text) for text in ("one", "two")]
        assert [event.deliveries for event in events] == [0, 0]
        platform.release()
        await platform.confirmed(*events)
    assert len(desk.stored) == 2


async def test_waiting_in_vain_reports_the_chats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed journey shows the chats, not a stack of the event loop."""
    monkeypatch.setattr("zeroclaw_test_platform.platform.PATIENCE_S", 0)
    async with Platform() as platform:
        await platform.say("ann", "is anybody there?")
        with pytest.raises(AssertionError, match="is anybody there"):
            await platform.until(lambda: platform.chat("ann").answers)
