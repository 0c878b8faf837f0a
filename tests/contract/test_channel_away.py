"""What every channel promises of the time in which its bot was not there, or not heard."""

from pathlib import Path

import pytest

from tests.contract.channel_adapters import ADAPTERS
from tests.contract.channel_suite import Desk, Placing
from tests.contract.channel_words import looked
from zeroclaw import Address, Channel, ChannelUnavailable, DeliveryUnknown, Outgoing, Said

pytestmark = pytest.mark.slow

placed_channels = pytest.mark.parametrize(
    "placed",
    [
        pytest.param(one.placed, id=one.name, marks=pytest.mark.needs(*one.needs))
        for one in ADAPTERS
        if one.placed is not None
    ],
)
channels_that_tell_repeats = pytest.mark.parametrize(
    "placed",
    [
        pytest.param(one.placed, id=one.name, marks=pytest.mark.needs(*one.needs))
        for one in ADAPTERS
        if one.placed is not None
        and (one.capabilities.can_lookup or one.capabilities.idempotent_send)
    ],
)
SAID = [f"message {number}" for number in range(6)]


@placed_channels
async def test_what_was_written_while_it_was_away_arrives_once_and_in_order(
    placed: Placing, tmp_path: Path
) -> None:
    """A restart loses nothing that was written before, meanwhile or after, and doubles none of it.

    P1, P2, S2-02.
    """
    desk = Desk()
    async with placed(tmp_path) as place:
        async with place.life(desk.admit, {}):
            for text in SAID[:2]:
                await place.write(text)
            await desk.holds(2)
        for text in SAID[2:4]:
            await place.write(text)
        async with place.life(desk.admit, desk.positions):
            for text in SAID[4:]:
                await place.write(text)
            await desk.holds(6)
    assert [one.body for one in desk.stored] == [Said(text=text) for text in SAID]


@placed_channels
async def test_what_could_not_be_stored_arrives_in_the_next_life(
    placed: Placing, tmp_path: Path
) -> None:
    """A bot that ends while it stores had not received it. P1."""
    desk = Desk()
    async with placed(tmp_path) as place:
        async with place.life(desk.admit, {}):
            await place.write(SAID[0])
            await desk.holds(1)
            desk.hold()
            desk.came.clear()
            await place.write(SAID[1])
            await desk.came.wait()
        desk.release()
        async with place.life(desk.admit, desk.positions):
            await desk.holds(2)
    assert [one.body for one in desk.stored] == [Said(text=text) for text in SAID[:2]]


@placed_channels
async def test_a_connection_that_is_cut_loses_and_doubles_nothing(
    placed: Placing, tmp_path: Path
) -> None:
    """Cut before a message, while it is stored, and after it: the channel comes back. P1, P2, S2-02."""
    desk = Desk()
    async with placed(tmp_path) as place, place.life(desk.admit, {}):
        await place.write(SAID[0])
        await desk.holds(1)
        await place.cut()
        await place.write(SAID[1])
        await desk.holds(2)
        desk.hold()
        desk.came.clear()
        await place.write(SAID[2])
        await desk.came.wait()
        await place.cut()
        desk.release()
        await desk.holds(3)
        await place.write(SAID[3])
        await place.cut()
        await place.write(SAID[4])
        await desk.holds(5)
    assert [one.body for one in desk.stored] == [Said(text=text) for text in SAID[:5]]


@channels_that_tell_repeats
async def test_what_is_sent_over_a_connection_that_was_cut_stands_once(
    placed: Placing, tmp_path: Path
) -> None:
    """It arrives, or is sent again once it is known that it did not. P1, P6."""
    desk = Desk()
    async with placed(tmp_path) as place, place.life(desk.admit, {}) as channel:
        await place.write(SAID[0])
        await desk.holds(1)
        for number in range(3):
            await place.cut()
            answer = Outgoing(rendered=channel.render(f"answer {number}"), key=f"key-{number}")
            await arrived(channel, desk.stored[0].address, answer)
        assert await place.shown() == [f"answer {number}" for number in range(3)]


async def arrived(channel: Channel, to: Address, answer: Outgoing) -> None:
    """Send until it stands, as the outbox does."""
    is_sent = False
    while not is_sent:
        since = channel.mark(to) if channel.capabilities.can_lookup else ""
        try:
            await channel.send(to, answer)
            is_sent = True
        except DeliveryUnknown:
            if since:
                is_sent = (await looked(channel, to, answer, since)).ref is not None
        except ChannelUnavailable:
            continue


@placed_channels
async def test_no_log_line_holds_a_secret_or_what_people_write(
    placed: Placing, tmp_path: Path
) -> None:
    """Not in a life that went well, and not in one whose platform is told that it failed. P8."""
    desk = Desk()
    async with placed(tmp_path) as place:
        async with place.life(desk.admit, {}):
            await place.write(SAID[0])
            await desk.holds(1)
            desk.fault = ChannelUnavailable("the store is away")
            desk.came.clear()
            await place.write(SAID[1])
            await desk.came.wait()
        told = "\n".join(place.facts)
        assert not [one for one in (*place.secrets, *SAID) if one in told]
