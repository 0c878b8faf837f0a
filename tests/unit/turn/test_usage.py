"""The tokens of each request count once, for every end and every kill (S4-20)."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import Answer, ScriptedModel, says
from tests.unit.turn.parts import call
from tests.unit.turn.test_compaction import TOO_LONG, talk, with_notes
from tests.unit.turn.test_titles import ON, three
from zeroclaw.config.model import BudgetSettings
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.errors import ProviderUnreachable, StreamBroken
from zeroclaw.message import ToolMessage, Usage
from zeroclaw.provider import (
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.store import DurablePoint, RowKind

UNIT = 10_000
"""Tokens that one unit is reported as; the estimates of a turn together stay below one."""
CUT: Answer = (TextDelta(text="so f"), StreamBroken("cut"))
FEW = 100
"""Tokens that no request here takes fewer than, by estimate."""


class Rounds(ScriptedModel):
    """A model that makes tool calls before it answers, and reports 1, 2, 4 … units for its requests.

    Attributes:
        tool_calls: How many.
        hangs: The request that it doesn't end, by the results that it holds; None for none.
    """

    def __init__(self, tool_calls: int) -> None:
        super().__init__()
        self.tool_calls = tool_calls
        self.hangs: int | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        done = sum(isinstance(message, ToolMessage) for message in request.messages)
        usage = UsageReported(usage=Usage(input_tokens=(UNIT << done) - 1, output_tokens=1))
        yield TextDelta(text="so")
        if done == self.hangs:
            await asyncio.Event().wait()
        if done < self.tool_calls:
            yield ToolCallReady(call=call("look", arguments=f'{{"at": {done}}}'))
        yield usage
        yield Finished(reason="tool_calls" if done < self.tool_calls else "stop")


async def used(house: House) -> tuple[int, int]:
    """The usage of the newest turn: the reported part, in units, and the estimate."""
    rows = [TURNS.of(row) for row in await house.rows(RowKind.TURN)]
    usage = max(rows, key=lambda row: row.turn).usage
    return divmod(usage.total_tokens, UNIT)


@pytest.mark.parametrize(
    ("point", "is_asked"),
    [
        (DurablePoint.TURN_STARTED, True),
        (DurablePoint.CALL_STARTED, False),
        (DurablePoint.CALL_FINISHED, True),
        (DurablePoint.FINISHED, False),
        (DurablePoint.DELIVERED, False),
    ],
)
async def test_wherever_a_kill_comes_each_request_counts_once(
    world: World, point: DurablePoint, is_asked: bool
) -> None:
    """Of one that may have been under way then, an estimate of what it was sent."""
    world.model = Rounds(2)
    world.store.cut_after(point)
    async with world.running() as house:
        await house.say_and_die("look twice")
    world.store.heal()
    async with world.running() as house:
        assert house.texts()[-1].endswith("so")
        units, estimated = await used(house)
        assert (units, estimated > FEW) == (1 + 2 + 4, is_asked)


async def test_a_kill_in_the_seventh_round_loses_none_of_the_six_before(world: World) -> None:
    """Nor the request that it cut off; the budgets have both before the next request."""
    world.model = rounds = Rounds(7)
    rounds.hangs = 6
    world.configure(budget=BudgetSettings(person_day_tokens=63 * UNIT + 2_000))
    async with world.told("look seven times") as house:
        assert len(rounds.requests) == 7
    async with world.running() as house:
        assert len(rounds.requests) == 8
    async with world.running() as house:
        # Both processes that were killed had asked for the seventh.
        assert len(rounds.requests) == 8
        assert "Your daily budget" in "".join(house.texts())
        units, estimated = await used(house)
        assert (units, estimated > 2_000) == (63, True)


async def test_a_stream_that_breaks_off_is_paid_for(world: World) -> None:
    """At once, and once: the next answer, and a kill while it is written, change nothing of it."""
    async with world.told("hello", CUT, says("so")) as house:
        _, cut = await used(house)
        assert cut > 2 * FEW
        await house.say("/new")
        world.model.will(CUT, CUT)
        await house.say("hello")
        assert 2 * cut - FEW < (await used(house))[1] < 2 * cut
        await house.say("/new")
        world.model.will(CUT, (asyncio.Event(),))
        await house.say("hello")
    async with world.running() as house:
        assert 2 * cut - FEW < (await used(house))[1] < 2 * cut


@pytest.mark.parametrize(
    ("reported", "text", "end"),
    [
        (Usage(output_tokens=UNIT), "so", Finished(reason="stop")),
        (Usage(input_tokens=UNIT), "so it is " * FEW, Finished(reason="stop")),
        (Usage(input_tokens=UNIT), "so it is " * FEW, StreamBroken("cut")),
    ],
)
async def test_an_endpoint_that_reports_one_side_alone_is_paid_for_the_other(
    world: World, reported: Usage, text: str, end: Finished | StreamBroken
) -> None:
    """An answer costs several times what its request does, and counted as nothing."""
    world.model.will((TextDelta(text=text), UsageReported(usage=reported), end), says("so"))
    async with world.told("hello") as house:
        units, estimated = await used(house)
        assert (units, estimated > FEW) == (1, True)


async def test_a_summary_whose_request_alone_is_reported_is_paid_for(world: World) -> None:
    """A summary of hundreds of tokens, for each long conversation."""
    async with world.running() as house:
        await talk(house, world, 3)
        world.model.otherwise((TextDelta(text="tulips " * FEW), *answer_end(1)))
        await house.say("/compact")
        units, estimated = await used(house)
        assert (units, estimated > FEW) == (1, True)


async def test_an_answer_that_fails_after_it_began_is_paid_for(world: World) -> None:
    """One that was never begun costs nothing; what the endpoint reported is taken as it says."""
    away = ProviderUnreachable("`h:9` can't be reached")
    report = UsageReported(usage=Usage(input_tokens=UNIT, output_tokens=7))
    async with world.running() as house:
        for answer, expected in (((away,), (0, 0)), ((TextDelta(text="so"), report, away), (1, 7))):
            world.model.otherwise(answer)
            await house.say("hello")
            assert await used(house) == expected


async def test_a_request_that_a_person_stops_is_paid_for(world: World) -> None:
    """Its input, and the shown part of its answer; a stopped call costs nothing more."""
    async with world.told("hello", (TextDelta(text="so " * 99), asyncio.Event())) as house:
        await house.say("/stop")
        _, long = await used(house)
        await house.say("/new")
        world.model.otherwise((TextDelta(text="so"), asyncio.Event()))
        await house.say("hello")
        await house.say("/stop")
        _, short = await used(house)
        assert FEW < short < long


async def test_a_summary_that_breaks_off_is_paid_for(world: World) -> None:
    """As are the facts before it, whether a person asked for it, or stops it."""
    with_notes(world)
    world.configure(autonomy="full")
    async with world.running() as house:
        await talk(house, world, 3)
        facts = (TextDelta(text='"Ada likes'), StreamBroken("cut"))
        world.model.otherwise(facts, CUT)
        await house.say("/compact")
        assert house.texts()[-1] == "The model made no summary; nothing has changed."
        _, with_facts = await used(house)
        world.model.otherwise(facts, (ProviderUnreachable("`h:9` can't be reached"),))
        await house.say("/compact")
        _, alone = await used(house)
        assert with_facts > alone + FEW > 2 * FEW
        world.model.otherwise(facts, (asyncio.Event(),))
        await house.say("/compact")
        await house.say("/stop")
        _, stopped = await used(house)
        assert stopped > alone + FEW


async def test_a_kill_behind_a_summary_that_failed_loses_nothing_of_it(world: World) -> None:
    """It is on record before the next request is made."""
    async with world.running() as house:
        await talk(house, world, 3)
        world.model.otherwise(TOO_LONG, (*says("")[:-2], *answer_end(1)), (asyncio.Event(),))
        await house.say("and now?")
    world.model.otherwise(*[answer_end(2)])
    async with world.running() as house:
        units, estimated = await used(house)
        assert (units, estimated > FEW) == (3, True)


async def test_a_title_that_breaks_off_is_paid_for(world: World) -> None:
    """With the turn that it follows."""
    world.configure(runtime=ON)
    async with world.running() as house:
        await three(world, house, CUT)
        assert (await used(house))[1] > FEW


def answer_end(units: int) -> Answer:
    """The end of an answer that took so much."""
    usage = UsageReported(usage=Usage(input_tokens=units * UNIT))
    return (usage, Finished(reason="stop"))
