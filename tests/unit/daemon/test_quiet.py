"""What is left in memory of people who have stopped writing."""

import gc

from tests.fakes.house import World
from zeroclaw.turn.session import KEPT_S, LOOK_S, ConversationSession

ROOMS = 5


def desks() -> list[ConversationSession]:
    """Return all desks that there are, whoever holds them."""
    gc.collect()
    return [value for value in gc.get_objects() if isinstance(value, ConversationSession)]


async def test_nothing_of_a_quiet_conversation_stays_in_memory(world: World) -> None:
    """It is all in the store, and whoever comes back finds it there."""
    others = desks()  # held here, so that their number stays

    async with world.running() as house:
        for number in range(ROOMS):
            await house.say("hello", room=f"room {number}")
        assert len(desks()) == len(others) + ROOMS
        await house.advance(KEPT_S + 2 * LOOK_S)
        assert len(desks()) == len(others)
        await house.say("hello again", room="room 0")
        assert len(house.texts(room="room 0")) == 2
