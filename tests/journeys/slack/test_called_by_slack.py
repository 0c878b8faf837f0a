"""A bot that Slack calls answers every message once, whenever it is killed, and asks its operator."""

from pathlib import Path

import pytest

from channels._remote.emulator.http import reserve_port
from tests.contract.slack_harness import standing
from tests.journeys.slack.bot import bot

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]


async def test_what_slack_calls_with_is_answered_pressed_and_read_back(tmp_path: Path) -> None:
    """A message, a card with its ending, a slash command; and after a kill the repeats of Slack.

    The real daemon, for the public listener, the settings and the kill are its. S2-02, S2-10, P1, P5.
    """
    async with bot(tmp_path, port=reserve_port()) as world:
        world.model.call("knock", {"what": "on wood"}, round=0)
        world.model.say("So be it.", round=1)
        await world.ann.says("please knock")
        card, place = await world.card(), world.olga.direct
        stranger = await world.mallory.presses(str(card["ts"]), *world.button(card, "Approve once"))
        await stranger.confirmed.wait()
        assert world.bench.ran("knock") == []
        await world.olga.presses(str(card["ts"]), *world.button(card, "Approve once"))
        await world.until(lambda: "So be it." in world.texts(world.ann.direct))
        await world.until(lambda: not standing(world.messages(place)[0]).buttons)
        assert "approved by" in standing(world.messages(place)[0]).text
        await (await world.ann.commands("whoami")).confirmed.wait()
        await world.daemon.kill()
        world.model.say("to one", key="one")
        world.model.say("to two", key="two")
        await world.ann.says("one")
        second = await world.ann.says("two")
        await world.daemon.start()
        await world.slack.verify_url()
        await second.dispatch(retry=1)
        await second.confirmed.wait()
        answers = [
            "to one",
            "to two",
        ]  # beside the command's answer, which the kill may have delayed
        await world.until(
            lambda: [text for text in world.texts(world.ann.direct) if text in answers] == answers
        )
        assert world.bench.ran("knock") == ["on wood"]
