"""What people wait for under Slack's limits: a house over fakes, with what Slack can and bears."""

from pathlib import Path

from channels.slack import SlackSettings
from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw import SecretReference

TOKEN = SecretReference(env="X")
CAPABILITIES = SlackSettings(bot_token=TOKEN, app_token=TOKEN).capabilities()
SAID, ANSWER = "I am about to poke it.", "So be it."


async def ask(house: House) -> None:
    """Let Ben's model say what it is about to do, and want what must be approved."""
    house.world.model.will(asks_for(("poke", "{}"), saying=SAID), says(ANSWER))
    await house.say("poke it", "ben")


async def test_a_card_of_the_first_seconds_is_there_with_the_words_before_it(
    tmp_path: Path,
) -> None:
    """Chats that were silent for a second take a message each (P6)."""
    world = World(tmp_path)
    world.add_platform("chat", CAPABILITIES)
    async with world.running() as house:
        await house.advance(1.5)
        await ask(house)
        assert house.texts("ben") == [SAID]
        assert [one.tool for one in house.card().calls] == ["poke"]


async def test_an_answer_follows_the_press_at_once(tmp_path: Path) -> None:
    """Though its chat has just had words, an edit of them and a note: edits have limits of their own.

    P6.
    """
    world = World(tmp_path)
    world.add_platform("chat", CAPABILITIES)
    async with world.running() as house:
        await house.advance(30)
        await ask(house)
        assert len(house.texts("ben")) == 2
        await house.press()
        assert house.texts("ben")[0] == f"{SAID}\n\n{ANSWER}"
        assert house.endings() == [("approved", "Ada")]
