"""A final that the platform refuses is told to the operator, and the conversation goes on (P6)."""

from pathlib import Path

import pytest
from zeroclaw_test_platform.faults import Lose, Refuse

from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_a_final_that_is_refused_is_told_to_the_operator(tmp_path: Path) -> None:
    """Neither as markup nor as plain text does it stand; the next message is answered (P1)."""
    async with world(tmp_path, channels={"loopback": {"stream": False}}) as here:
        here.platform.will(
            "send", Refuse(), chat="ann", times=None, when=lambda call: "secret recipe" in call.text
        )
        here.model.say("The secret recipe.", key="cook")
        await here.say("ann", "cook")
        await here.until(lambda: here.chat("olga").texts)
        assert here.chat("ann").texts == []
        here.model.say("Hello.", key="hi")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        assert len(here.chat("olga").texts) == 1


async def test_a_message_that_is_gone_is_sent_anew(tmp_path: Path) -> None:
    """The draft was deleted under the bot; the final stands as a message of its own."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("One, ", gate, "two.")
        await here.say("ann", "count")
        await gate.reached()
        await here.until(lambda: "One," in here.chat("ann").ever)
        here.chat("ann").said[0].deleted = True
        gate.open()
        await here.answered("ann", "One, two.")


async def test_a_final_whose_answer_was_lost_stands_once(tmp_path: Path) -> None:
    """The platform knows the key, so the repeat is the same message."""
    async with world(tmp_path, platform={"can_edit": False}) as here:
        here.platform.will("send", Lose(carried_out=True), Lose(carried_out=False))
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        assert len(here.chat("ann").said) == 1


async def test_where_a_send_can_not_be_repeated_unseen_the_repeat_says_so(tmp_path: Path) -> None:
    """An answer that may have arrived is sent again, marked as a possible repeat (P1)."""
    platform = {"can_edit": False, "idempotent_send": False}
    async with world(tmp_path, platform=platform) as here:
        here.platform.will("send", Lose(carried_out=True))
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.until(lambda: len(here.chat("ann").answers) == 2)
        first, second = here.chat("ann").answers
        assert (first, second.startswith("Hello.")) == ("Hello.", True)
        assert "possible repeat" in second
