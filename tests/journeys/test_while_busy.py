"""Messages that come while an answer is being written do what their chat chose."""

from pathlib import Path

import pytest

from tests.journeys.bench import Holds
from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_messages_in_a_row_are_answered_together(tmp_path: Path) -> None:
    """Three lines of one thought are one question. P1."""
    async with world(tmp_path, channels={"loopback": {"collect_s": 2.0}}) as here:
        await here.say("ann", "/queue collect")
        await here.until(lambda: here.chat("ann").answers)
        here.model.say("So it is.")
        here.platform.hold()
        for text in ("I wonder", "whether this", "is one question"):
            await here.say("ann", text)
        here.platform.release()
        await here.until(lambda: here.chat("ann").answers[-1] == "So it is.")
        assert len(here.model.requests) == 1
        last = here.model.requests[0].messages[-1]
        assert last["content"] == "I wonder\n\nwhether this\n\nis one question"


async def test_a_running_turn_is_steered(tmp_path: Path) -> None:
    """What Ann adds while the tool runs is read with its result, by the same turn. P1, K4."""
    async with world(tmp_path, channels={"loopback": {"while_busy": "steer"}}) as here:
        hold = Holds()
        here.bench.will("peek", hold)
        here.model.call("peek", {"what": "the sky"}, round=0, key="look up")
        here.model.say("Blue, and the sea too.", key="the sea too")
        await here.say("ann", "look up")
        await here.until(lambda: here.bench.runs)
        await here.platform.confirmed(await here.say("ann", "the sea too"))
        hold.release()
        await here.answered("ann", "Blue, and the sea too.")
        roles = [message["role"] for message in here.model.requests[-1].messages[1:]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_newer_message_interrupts_and_is_answered(tmp_path: Path) -> None:
    """What was shown stays and says so. S4-17."""
    async with world(tmp_path, channels={"loopback": {"while_busy": "interrupt"}}) as here:
        gate = here.model.gate()
        here.model.say("Once upon ", gate, key="a story")
        here.model.say("At noon.", key="never mind")
        await here.say("ann", "a story")
        await gate.reached()
        await here.until(lambda: "Once upon" in here.chat("ann").ever)
        await here.say("ann", "never mind, when is lunch?")
        await here.until(lambda: here.chat("ann").answers[-1:] == ["At noon."])
        assert "Interrupted by a newer message" in here.chat("ann").answers[0]
        assert here.chat("ann").answers[0].startswith("Once upon")
