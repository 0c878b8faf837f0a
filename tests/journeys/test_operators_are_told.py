"""Operators hear in their chat that an approval runs out and that messages fail (P3, P5, P10)."""

from pathlib import Path

import pytest

from tests.journeys.world import world

pytestmark = pytest.mark.slow


async def test_an_approval_that_runs_out_is_told_once(tmp_path: Path) -> None:
    """Three seconds after it was asked, of five minutes; a restart tells it no second time."""
    approvals = {"timeout_s": 300.0, "remind_share": 0.99}
    async with world(tmp_path, approvals=approvals) as here:
        here.model.call("knock", {"what": "the door"}, round=0, key="please knock")
        here.model.say("So be it.", round=1, key="please knock")
        await here.say("ann", "please knock")
        card = await here.carded()

        def reminders() -> list[str]:
            return [text for text in here.chat("olga").texts if text.startswith("Still waiting")]

        await here.until(reminders)
        [told] = reminders()
        assert told.startswith("Still waiting for an answer: `knock` (`/approve 1`, `/deny 1`).")
        await here.daemon.restart()
        await here.until(lambda: here.platform.connected)
        await here.press("olga", card)
        await here.answered("ann", "So be it.")
        assert len(reminders()) == 1


async def test_a_model_that_is_down_is_told_by_one_line(tmp_path: Path) -> None:
    """With who, where and why, and not once for each message."""
    async with world(tmp_path) as here:
        here.model.refuse(401, "invalid api key", times=None)
        for number in range(3):
            await here.say("ann", f"tulip {number}")
            await here.until(lambda number=number: len(here.chat("ann").answers) == number + 1)
        await here.say("olga", "/whoami")
        await here.until(lambda: any("You are" in text for text in here.chat("olga").texts))
        told = [text for text in here.chat("olga").texts if "You are" not in text]
        assert told == [
            "An answer to ann in `loopback` failed: the model refused the key; an operator has "
            "to check `[provider] api_key`."
        ]
