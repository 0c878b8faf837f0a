"""The memory of conversations that have gone quiet."""

import gc

from tests.fakes.house import World
from zeroclaw.turn.session import KEPT_S, LOOK_S, ConversationSession

ROOMS = 5


def open_sessions() -> list[ConversationSession]:
    """Return all sessions in memory, of this test or not."""
    gc.collect()
    return [value for value in gc.get_objects() if isinstance(value, ConversationSession)]


async def test_a_quiet_conversation_leaves_memory(world: World) -> None:
    """The store has all of it, and the next message reads it from there."""
    others = open_sessions()  # referenced, so that their number is constant

    async with world.running() as house:
        for number in range(ROOMS):
            await house.say("hello", room=f"room {number}")
        assert len(open_sessions()) == len(others) + ROOMS
        await house.advance(KEPT_S + 2 * LOOK_S)
        assert len(open_sessions()) == len(others)
        await house.say("hello again", room="room 0")
        assert len(house.texts(room="room 0")) == 2
