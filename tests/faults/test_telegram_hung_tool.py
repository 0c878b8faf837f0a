"""A tool hangs in a Telegram chat: it ends at its time-out or at `/stop`, and nobody else waits."""

from pathlib import Path

import pytest

from channels.telegram.emulator import Actor
from tests.journeys.bench import Holds
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

HUNG = 20


def tool_results(here: Bot) -> list[str]:
    """Return what tools told the model, in its newest request."""
    messages = here.model.requests[-1].messages
    return [str(one["content"]) for one in messages if one["role"] == "tool"]


def hang(here: Bot, who: Actor) -> None:
    """Let somebody ask for what a tool never comes back from."""
    key = f"look, says {who.id}"
    here.bench.will("peek", Holds())
    here.model.call("peek", {"what": str(who.id)}, round=0, key=key)
    who.says(key)


async def stopped(here: Bot, who: Actor) -> None:
    """Wait until somebody reads that their turn was stopped."""
    await here.until(lambda: any("topped by" in text for text in who.chat.texts))


async def test_it_ends_at_its_time_out_and_the_model_tells_the_chat(tmp_path: Path) -> None:
    """The model reads that it took too long, its answer stands, and the next message is taken.

    S1-16, S1-21, P1.
    """
    async with bot(tmp_path) as here:
        here.bench.will("nap", Holds())
        here.model.call("nap", {"what": "it"}, text="Let me look.", round=0, key="look")
        here.model.say("It took too long.", round=1, key="look")
        here.ann.says("look")
        await here.expect(here.ann.chat, "Let me look.\n\nIt took too long.")
        (result,) = tool_results(here)
        assert "took longer than 0.5 s" in result
        await here.until(lambda: here.bench.runs[0].ended)
        here.ann.says("hello")
        await here.expect(here.ann.chat, "Let me look.\n\nIt took too long.", "hello")


async def test_one_of_two_that_hangs_takes_nothing_from_the_other(tmp_path: Path) -> None:
    """Both have a result, in the order asked for: one whole, the other too late. S1-17, S1-20."""
    async with bot(tmp_path) as here:
        here.bench.will("nap", Holds())
        here.model.calls(("nap", {"what": "long"}), ("peek", {"what": "short"}), round=0)
        here.model.say("Half of it.", round=1)
        here.ann.says("look twice")
        await here.expect(here.ann.chat, "Half of it.")
        late, whole = tool_results(here)
        assert "took longer than 0.5 s" in late
        assert "peek: short" in whole


async def test_many_that_hang_delay_nobody_else_and_stop_ends_each_at_once(tmp_path: Path) -> None:
    """Others talk and use the same tool meanwhile; what hangs has not even been timed out.

    P9, K24.
    """
    async with bot(tmp_path, channel={"allowed_users": ["*"]}) as here:
        people = [here.telegram.person(f"P{number}") for number in range(HUNG)]
        for one in people:
            hang(here, one)
        await here.until(lambda: len(here.bench.runs) == HUNG)
        here.model.call("peek", {"what": "the sky"}, round=0, key="sky")
        here.model.say("Blue.", round=1, key="sky")
        here.bob.says("what about the sky?")
        await here.expect(here.bob.chat, "Blue.")
        assert not any(run.ended for run in here.bench.runs[:HUNG])
        for one in people:
            one.says("/stop")
        for one in people:
            await stopped(here, one)
        await here.until(lambda: all(run.ended for run in here.bench.runs))
        people[0].says("hello")
        await here.until(lambda: people[0].chat.texts[-1] == "hello")
        (result,) = tool_results(here)
        assert "may have run" in result


async def test_what_was_written_while_it_hung_is_answered_when_it_is_stopped(
    tmp_path: Path,
) -> None:
    """Only what runs ends; the queue behind it goes on, in order. P1, P2."""
    async with bot(tmp_path) as here:
        hang(here, here.ann)
        await here.until(lambda: here.bench.runs)
        waiting = [here.ann.says("one"), here.ann.says("two")]
        await here.telegram.confirmed(*waiting)
        here.ann.says("/stop")
        await here.until(lambda: here.ann.chat.texts[-2:] == ["one", "two"])
        assert "topped by" in here.ann.chat.texts[0]
        assert len(here.ann.chat.texts) == 3
