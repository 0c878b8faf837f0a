"""Operators hear in their chat that an approval runs out and that messages fail (P3, P5, P10)."""

from pathlib import Path

import pytest

from tests.journeys.world import open_world

pytestmark = pytest.mark.slow


async def test_an_approval_that_runs_out_is_reported_once(tmp_path: Path) -> None:
    """Three seconds after the request, of five minutes; a restart does not repeat the reminder."""
    approvals = {"timeout_s": 300.0, "remind_share": 0.99}
    async with open_world(tmp_path, approvals=approvals) as world:
        world.model.call("knock", {"what": "the door"}, round=0, key="please knock")
        world.model.say("So be it.", round=1, key="please knock")
        await world.say("ann", "please knock")
        card = await world.card()

        def reminders() -> list[str]:
            return [text for text in world.chat("olga").texts if text.startswith("Still waiting")]

        await world.until(reminders)
        [reminder] = reminders()
        assert reminder.startswith(
            "Still waiting for an answer: `knock` (`/approve 1`, `/deny 1`)."
        )
        await world.daemon.restart()
        await world.until(lambda: world.platform.connected)
        await world.press("olga", card)
        await world.expect("ann", "So be it.")
        assert len(reminders()) == 1


async def test_a_model_that_is_down_is_reported_in_one_line(tmp_path: Path) -> None:
    """With who, where and why, and not once for each message."""
    async with open_world(tmp_path) as world:
        world.model.refuse(401, "invalid api key", times=None)
        for number in range(3):
            await world.say("ann", f"tulip {number}")
            await world.until(lambda number=number: len(world.chat("ann").answers) == number + 1)
        await world.say("olga", "/whoami")
        await world.until(lambda: any("You are" in text for text in world.chat("olga").texts))
        notices = [text for text in world.chat("olga").texts if "You are" not in text]
        assert notices == [
            "An answer to ann in `loopback` failed: the model refused the key; an operator has "
            "to check `[provider] api_key`."
        ]
