"""People see which tools a turn has at work, on a platform that can show it."""

import asyncio

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.value import replace


async def test_a_call_is_shown_while_it_runs_and_as_it_ended_and_nothing_of_its_arguments(
    world: World,
) -> None:
    """One that was denied is none: it never ran (P6)."""
    chat = world.add_platform("chat", replace(CAPABILITIES, has_typing=True, names_tools=True))
    tool = world.look
    tool.hold = asyncio.Event()
    calls = asks_for(("look", '{"at": "diary"}'), ("nothing", "{}"), saying="let me see")
    world.model.will(calls, says("done"))
    async with world.running() as house:
        await house.say("look")
        assert [one.text for one in chat.called("typing")] == ["look running"]
        tool.hold.set()
        await house.settle()
        shown = [one.text for one in chat.called("typing")]
        assert shown == ["look running", "look ok"]
        assert house.texts() == ["let me see\n\ndone"]
