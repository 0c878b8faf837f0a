"""A bot that Slack calls answers every message once, whenever it is killed, and asks its operator."""

from pathlib import Path

import pytest

from channels._remote.emulator.http import reserve_port
from tests.contract.slack_harness import standing
from tests.journeys.slack.bot import bot

pytestmark = [pytest.mark.slow, pytest.mark.needs("emulate")]


async def test_what_slack_calls_with_is_answered_pressed_and_read_back(tmp_path: Path) -> None:
    """A message, a card with its ending, a slash command; and after a kill what Slack tells again.

    The real daemon, for the public listener, the settings and the kill are its. S2-02, S2-10, P1, P5.
    """
    async with bot(tmp_path, port=reserve_port()) as here:
        here.model.call("knock", {"what": "on wood"}, round=0)
        here.model.say("So be it.", round=1)
        await here.ann.says("please knock")
        card, place = await here.card(), here.olga.direct
        stranger = await here.mallory.presses(str(card["ts"]), *here.button(card, "Approve once"))
        await stranger.confirmed.wait()
        assert here.bench.ran("knock") == []
        await here.olga.presses(str(card["ts"]), *here.button(card, "Approve once"))
        await here.until(lambda: "So be it." in here.texts(here.ann.direct))
        await here.until(lambda: not standing(here.messages(place)[0]).buttons)
        assert "approved by" in standing(here.messages(place)[0]).text
        await (await here.ann.commands("whoami")).confirmed.wait()
        await here.daemon.kill()
        here.model.say("to one", key="one")
        here.model.say("to two", key="two")
        await here.ann.says("one")
        second = await here.ann.says("two")
        await here.daemon.start()
        await here.slack.verify_url()
        await second.dispatch(retry=1)
        await second.confirmed.wait()
        said = ["to one", "to two"]  # beside the command's answer, which the kill may have delayed
        await here.until(
            lambda: [text for text in here.texts(here.ann.direct) if text in said] == said
        )
        assert here.bench.ran("knock") == ["on wood"]
