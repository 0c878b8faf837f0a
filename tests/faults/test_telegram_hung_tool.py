"""A tool hangs in a Telegram chat: it ends at its time-out or at `/stop`, and no other chat waits."""

from pathlib import Path

import pytest

from channels.telegram.emulator import Actor
from tests.journeys.bench import Holds
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

HUNG = 20


def tool_results(world: Bot) -> list[str]:
    """Return the tools' results in the newest request to the model."""
    messages = world.model.requests[-1].messages
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def hang(world: Bot, who: Actor) -> None:
    """Have a person's turn make a tool call that hangs."""
    key = f"look, says {who.id}"
    world.bench.will("peek", Holds())
    world.model.call("peek", {"what": str(who.id)}, round=0, key=key)
    who.says(key)


async def stopped(world: Bot, who: Actor) -> None:
    """Wait until a person reads that their turn was stopped."""
    await world.until(lambda: any("topped by" in text for text in who.chat.texts))


async def test_a_hung_call_ends_at_its_time_out_and_the_model_says_so(tmp_path: Path) -> None:
    """The model reads that it took too long, its answer stands, and the next message is taken.

    S1-16, S1-21, P1.
    """
    async with bot(tmp_path) as world:
        world.bench.will("nap", Holds())
        world.model.call("nap", {"what": "it"}, text="Let me look.", round=0, key="look")
        world.model.say("It took too long.", round=1, key="look")
        world.ann.says("look")
        await world.expect(world.ann.chat, "Let me look.\n\nIt took too long.")
        (result,) = tool_results(world)
        assert "took longer than 0.5 s" in result
        await world.until(lambda: world.bench.runs[0].ended)
        world.ann.says("hello")
        await world.expect(world.ann.chat, "Let me look.\n\nIt took too long.", "hello")


async def test_one_hung_call_of_two_takes_nothing_from_the_other(tmp_path: Path) -> None:
    """Both have a result, in the order asked for: one whole, the other too late. S1-17, S1-20."""
    async with bot(tmp_path) as world:
        world.bench.will("nap", Holds())
        world.model.calls(("nap", {"what": "long"}), ("peek", {"what": "short"}), round=0)
        world.model.say("Half of it.", round=1)
        world.ann.says("look twice")
        await world.expect(world.ann.chat, "Half of it.")
        late, whole = tool_results(world)
        assert "took longer than 0.5 s" in late
        assert "peek: short" in whole


async def test_many_hung_calls_delay_no_other_chat_and_stop_ends_each_at_once(
    tmp_path: Path,
) -> None:
    """Others talk and use the same tool meanwhile; what hangs has not even been timed out.

    P9, K24.
    """
    async with bot(tmp_path, channel={"allowed_users": ["*"]}) as world:
        people = [world.telegram.person(f"P{number}") for number in range(HUNG)]
        for person in people:
            hang(world, person)
        await world.until(lambda: len(world.bench.runs) == HUNG)
        world.model.call("peek", {"what": "the sky"}, round=0, key="sky")
        world.model.say("Blue.", round=1, key="sky")
        world.bob.says("what about the sky?")
        await world.expect(world.bob.chat, "Blue.")
        assert not any(run.ended for run in world.bench.runs[:HUNG])
        for person in people:
            person.says("/stop")
        for person in people:
            await stopped(world, person)
        await world.until(lambda: all(run.ended for run in world.bench.runs))
        people[0].says("hello")
        await world.until(lambda: people[0].chat.texts[-1] == "hello")
        (result,) = tool_results(world)
        assert "may have run" in result


async def test_messages_during_a_hung_call_are_answered_when_it_is_stopped(tmp_path: Path) -> None:
    """Only what runs ends; the queue behind it goes on, in order. P1, P2."""
    async with bot(tmp_path) as world:
        hang(world, world.ann)
        await world.until(lambda: world.bench.runs)
        waiting = [world.ann.says("one"), world.ann.says("two")]
        await world.telegram.confirmed(*waiting)
        world.ann.says("/stop")
        await world.until(lambda: world.ann.chat.texts[-2:] == ["one", "two"])
        assert "topped by" in world.ann.chat.texts[0]
        assert len(world.ann.chat.texts) == 3
