"""Messages that come while an answer is being written do what their chat chose."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_messages_in_a_row_are_answered_together(tmp_path: Path) -> None:
    """Three lines of one thought are one question. P1."""
    async with open_world(tmp_path, channels={"loopback": {"collect_s": 2.0}}) as world:
        await world.say("ann", "/queue collect")
        await world.until(lambda: world.chat("ann").answers)
        world.model.say("So it is.")
        world.platform.hold()
        for text in ("I wonder", "whether this", "is one question"):
            await world.say("ann", text)
        world.platform.release()
        await world.until(lambda: world.chat("ann").answers[-1] == "So it is.")
        assert len(world.model.requests) == 1
        last = world.model.requests[0].messages[-1]
        assert last["content"] == "I wonder\n\nwhether this\n\nis one question"


async def test_a_running_turn_is_steered(tmp_path: Path) -> None:
    """What Ann adds while the tool runs is read with its result, by the same turn. P1, K4."""
    async with open_world(tmp_path, channels={"loopback": {"while_busy": "steer"}}) as world:
        hold = Holds()
        world.bench.will("peek", hold)
        world.model.call("peek", {"what": "the sky"}, round=0, key="look up")
        world.model.say("Blue, and the sea too.", key="the sea too")
        await world.say("ann", "look up")
        await world.until(lambda: world.bench.runs)
        await world.platform.confirmed(await world.say("ann", "the sea too"))
        hold.release()
        await world.expect("ann", "Blue, and the sea too.")
        roles = [message["role"] for message in world.model.requests[-1].messages[1:]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_newer_message_interrupts_and_is_answered(tmp_path: Path) -> None:
    """The text so far stays, with a note. S4-17."""
    async with open_world(tmp_path, channels={"loopback": {"while_busy": "interrupt"}}) as world:
        gate = world.model.gate()
        world.model.say("Once upon ", gate, key="a story")
        world.model.say("At noon.", key="never mind")
        await world.say("ann", "a story")
        await gate.reached()
        await world.until(lambda: "Once upon" in world.chat("ann").ever)
        await world.say("ann", "never mind, when is lunch?")
        await world.until(lambda: world.chat("ann").answers[-1:] == ["At noon."])
        assert "Interrupted by a newer message" in world.chat("ann").answers[0]
        assert world.chat("ann").answers[0].startswith("Once upon")
