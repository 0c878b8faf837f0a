"""Every channel's promises for messages of the time in which its bot was away."""

from pathlib import Path

import pytest

from tests.contract.channel_adapters import ADAPTERS
from tests.contract.channel_suite import Desk, Placing
from zeroclaw import ChannelUnavailable, Said

pytestmark = pytest.mark.slow

placed_channels = pytest.mark.parametrize(
    "placed",
    [
        pytest.param(envelope.placed, id=envelope.name, marks=pytest.mark.needs(*envelope.needs))
        for envelope in ADAPTERS
        if envelope.placed is not None
    ],
)
SAID = [f"message {number}" for number in range(6)]


@placed_channels
async def test_messages_while_it_was_away_arrive_once_and_in_order(
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
    assert [envelope.body for envelope in desk.stored] == [Said(text=text) for text in SAID]


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
    assert [envelope.body for envelope in desk.stored] == [Said(text=text) for text in SAID[:2]]


@placed_channels
async def test_no_log_line_holds_a_secret_or_what_people_write(
    placed: Placing, tmp_path: Path
) -> None:
    """Neither when all goes well nor when storing fails. P8."""
    desk = Desk()
    async with placed(tmp_path) as place:
        async with place.life(desk.admit, {}):
            await place.write(SAID[0])
            await desk.holds(1)
            desk.fault = ChannelUnavailable("the store is away")
            desk.came.clear()
            await place.write(SAID[1])
            await desk.came.wait()
        log = "\n".join(place.facts)
        assert not [envelope for envelope in (*place.secrets, *SAID) if envelope in log]
