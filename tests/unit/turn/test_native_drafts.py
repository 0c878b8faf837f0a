"""What a platform shows before it is sent becomes a message before anybody waits for it."""

import asyncio

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.text.language import Sentence
from zeroclaw.value import replace

POKE = asks_for(("poke", '{"a": 1}'), saying="let me ")


@pytest.fixture
def world(world: World) -> World:
    """The usual one, on a platform that shows unsent text."""
    world.add_platform("chat", replace(CAPABILITIES, native_draft=True))
    return world


def called(world: World) -> list[tuple[str, str]]:
    """The calls that showed something, in order."""
    calls = world.platforms["chat"].called("preview", "send", "edit", "ask")
    return [(call.name, call.text) for call in calls]


async def test_an_answer_without_tools_is_sent_once(world: World) -> None:
    """It is previewed while it grows, and stands as the final only (S2-06)."""
    held = asyncio.Event()
    world.model.will((*says("so ")[:1], held, *says("it is")))
    async with world.running() as house:
        await house.say("hello")
        assert (called(world), house.texts()) == ([("preview", "so")], [])
        held.set()
        await house.settle()
        assert house.texts() == ["so it is"]
        assert [name for name, _ in called(world) if name != "preview"] == ["send"]


async def test_what_is_said_before_a_card_stands_above_it(world: World) -> None:
    """In the operator's own chat the card comes below, and the answer goes on above (K4)."""
    world.model.will(POKE, says("done"))
    async with world.running() as house:
        await house.say("poke it")
        shown = [one for one in called(world) if one[0] != "preview"]
        assert [name for name, _ in shown[:2]] == ["send", "ask"]
        assert shown[0][1] == "let me"
        await house.event(house.pressed())
        await house.settle()
        assert house.texts()[0] == "let me \n\ndone"


async def test_a_house_that_pauses_leaves_a_message(world: World) -> None:
    """A preview would vanish while nobody is there; the note below it stands (K4)."""
    held = asyncio.Event()
    world.model.will((*says("so ")[:1], held, *says("it is")))
    async with world.running() as house:
        await house.say("hello")
        house.services.runner.pause(Sentence(en="_paused_", de="_Pause_"))
        await house.settle()
        assert house.texts() == ["so \n\n_paused_"]
        held.set()
        await house.settle()
        assert house.texts() == ["so it is"]
