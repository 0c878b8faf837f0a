"""Waits under Slack's rate limits: a daemon over fakes, with Slack's capabilities."""

from pathlib import Path

from channels.slack import SlackSettings
from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw import SecretReference

TOKEN = SecretReference(env="X")
CAPABILITIES = SlackSettings(bot_token=TOKEN, app_token=TOKEN).capabilities()
TEXT, ANSWER = "I am about to poke it.", "So be it."


async def ask(house: House) -> None:
    """Let Ben's model announce a tool call that needs an approval, and make it."""
    house.world.model.will(asks_for(("poke", "{}"), saying=TEXT), says(ANSWER))
    await house.say("poke it", "ben")


async def test_a_card_in_the_first_seconds_follows_its_text_at_once(tmp_path: Path) -> None:
    """A chat that was silent for a second accepts a message at once (P6)."""
    world = World(tmp_path)
    world.add_platform("chat", CAPABILITIES)
    async with world.running() as house:
        await house.advance(1.5)
        await ask(house)
        assert house.texts("ben") == [TEXT]
        assert [call.tool for call in house.card().calls] == ["poke"]


async def test_an_answer_follows_the_press_at_once(tmp_path: Path) -> None:
    """Although its chat has just had a message and a note, and has it below them (P6)."""
    world = World(tmp_path)
    world.add_platform("chat", CAPABILITIES)
    async with world.running() as house:
        await house.advance(30)
        await ask(house)
        assert len(house.texts("ben")) == 2
        await house.press()
        assert house.texts("ben")[::2] == [TEXT, ANSWER]
        assert house.endings() == [("approved", "Ada")]
