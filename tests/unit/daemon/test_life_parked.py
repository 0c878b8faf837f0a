"""The daemon's end while a person is waited for."""

import asyncio

from tests.fakes.house import World
from tests.fakes.scripted_calls import Call
from tests.fakes.scripted_model import asks_for, says

POKE = asks_for(("poke", "{}"))


def is_over(world: World) -> bool:
    return "stopped" in world.facts.events()


async def test_a_stop_does_not_wait_for_a_person(world: World) -> None:
    """The grace time is for what is at work; the card is good after the next start (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.stop()
        assert is_over(world)
    async with world.running() as house:
        await house.press()
        assert world.poke.runs == [{}]
        assert house.texts("ben")[-1] == "ok"


async def test_a_stop_waits_for_what_is_at_work_beside_a_question(world: World) -> None:
    """Every other turn gets its time (P1)."""
    held = asyncio.Event()
    world.model.will(POKE, (held, *says("done")))
    async with world.running() as house:
        await house.say("poke it")
        await house.say("hello", "ben")
        await house.stop()
        assert not is_over(world)
        assert not house.services.ingress.open
        held.set()
        await house.settle()
        assert house.texts("ben") == ["done"]
        assert is_over(world)


async def test_a_turn_that_comes_to_a_question_is_waited_for_until_then(world: World) -> None:
    """The card is put before the end, not after the next start (P5)."""
    held = asyncio.Event()
    world.model.will((held, *POKE))
    async with world.running() as house:
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        held.set()
        await house.settle()
        assert house.card().calls[0].tool == "poke"
        assert is_over(world)


async def test_a_card_that_is_on_its_way_arrives_before_the_end(world: World) -> None:
    """Else it might stand there twice after the next start (P5)."""
    arrives = asyncio.Event()

    async def slowly(call: Call) -> None:
        if call.name == "ask":
            await arrives.wait()

    world.model.will(POKE)
    async with world.running() as house:
        world.platforms["chat"].before = slowly
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        arrives.set()
        await house.settle()
        assert is_over(world)


async def test_what_new_began_does_not_wait_for_the_question_of_the_old(world: World) -> None:
    """No turn starts any more, so there is nothing to wait for (P2)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben", room="lobby")
        await house.say("/new", "cleo", room="lobby")
        await house.say("hello", "cleo", room="lobby")
        await house.stop()
        assert is_over(world)
    async with world.running() as house:
        await house.press()
        assert house.texts(room="lobby")[-2:] == ["ok", "ok"]
