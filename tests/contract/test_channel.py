"""Every channel's promises for incoming events: acknowledged only once stored, complete, in order."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.channel_suite import Adapter, Desk
from tests.contract.channel_words import AWKWARD, channels_with_files, every_channel
from zeroclaw import Attachment, ChannelRejected, ChannelUnavailable, Command, Said
from zeroclaw.errors import Refused

# Most open real sockets.
pytestmark = pytest.mark.slow


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
async def test_a_file_that_is_not_there_is_refused_for_good(
    adapter: Adapter, tmp_path: Path
) -> None:
    """By a channel that carries files and by one that does not; no retry fetches it."""
    missing = Attachment(reference="never-sent", name="a.txt", media_type="text/plain")
    async with adapter.opened(Desk().admit, tmp_path) as harness:
        with pytest.raises(Refused):
            await harness.channel.fetch(missing, max_bytes=1_000)


@channels_with_files()
async def test_a_file_is_fetched_however_often_and_no_further_than_it_may(
    adapter: Adapter, tmp_path: Path
) -> None:
    """A file above the limit is refused for good, with any stated size (P9)."""
    desk = Desk()
    content = b"milk" * 500
    async with adapter.opened(desk.admit, tmp_path) as harness:
        assert await harness.send_file("a.txt", content, claimed_bytes=1)
        [file] = desk.stored[0].attachments
        assert (file.name, file.size_bytes) == ("a.txt", 1)
        for _ in range(2):
            assert await harness.channel.fetch(file, max_bytes=len(content)) == content
        with pytest.raises(ChannelRejected):
            await harness.channel.fetch(file, max_bytes=len(content) - 1)


@every_channel
async def test_a_slash_and_a_word_is_a_command(adapter: Adapter, tmp_path: Path) -> None:
    """The command's argument stays as it was typed."""
    desk = Desk()
    async with adapter.opened(desk.admit, tmp_path) as harness:
        await harness.say('/tool shell {"command":  "ls"}')
        await harness.say("/stop")
    assert [envelope.body for envelope in desk.stored] == [
        Command(name="tool", rest='shell {"command":  "ls"}'),
        Command(name="stop"),
    ]


@every_channel
async def test_a_message_is_confirmed_only_once_it_is_stored(
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
    first, again, third = desk.arrived
    assert first.dedup == again.dedup
    assert first.message == again.message
    assert not set(first.dedup) & set(third.dedup)
    assert first.message != third.message


@every_channel
async def test_messages_arrive_in_order(adapter: Adapter, tmp_path: Path) -> None:
    """However many come one after another (P2)."""
    desk = Desk()
    texts = [f"message {number}" for number in range(5)]
    async with adapter.opened(desk.admit, tmp_path) as harness:
        for text in texts:
            await harness.say(text)
    assert [envelope.body for envelope in desk.stored] == [Said(text=text) for text in texts]


@every_channel
async def test_a_cancelled_channel_ends_in_the_middle_of_an_admission(
    adapter: Adapter, tmp_path: Path
) -> None:
    """Nothing hangs, and the message was not acknowledged to the platform."""
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
