"""The operator hears of a final that the platform refuses, and the conversation continues (P6)."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.faults import Lose, Refuse

from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_a_final_that_is_refused_is_reported_to_the_operator(tmp_path: Path) -> None:
    """Neither as markup nor as plain text does it stand; the next message is answered (P1)."""
    async with open_world(tmp_path, channels={"loopback": {"stream": False}}) as world:
        world.platform.will(
            "send", Refuse(), chat="ann", times=None, when=lambda call: "secret recipe" in call.text
        )
        world.model.say("The secret recipe.", key="cook")
        await world.say("ann", "cook")
        await world.until(lambda: world.chat("olga").texts)
        assert world.chat("ann").texts == []
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        assert len(world.chat("olga").texts) == 1


async def test_a_message_that_is_gone_is_sent_anew(tmp_path: Path) -> None:
    """The draft was deleted under the bot; the final becomes a new message."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        await world.say("ann", "count")
        await gate.reached()
        await world.until(lambda: "One," in world.chat("ann").ever)
        world.chat("ann").replies[0].deleted = True
        gate.open()
        await world.expect("ann", "One, two.")


async def test_a_final_whose_answer_was_lost_stands_once(tmp_path: Path) -> None:
    """The platform knows the key, so the repeat is the same message."""
    async with open_world(tmp_path, platform={"can_edit": False}) as world:
        world.platform.will("send", Lose(carried_out=True), Lose(carried_out=False))
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        assert len(world.chat("ann").replies) == 1


async def test_where_a_send_can_not_be_repeated_unseen_the_repeat_says_so(tmp_path: Path) -> None:
    """An answer that may have arrived is sent again, marked as a possible repeat (P1)."""
    platform = {"can_edit": False, "idempotent_send": False}
    async with open_world(tmp_path, platform=platform) as world:
        world.platform.will("send", Lose(carried_out=True))
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.until(lambda: len(world.chat("ann").answers) == 2)
        first, second = world.chat("ann").answers
        assert (first, second.startswith("Hello.")) == ("Hello.", True)
        assert "possible repeat" in second
