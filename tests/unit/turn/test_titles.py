"""What a conversation is called, and what finding that costs (S3-31)."""

import asyncio

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import Answer, says
from zeroclaw.config.model import BudgetSettings, RuntimeSettings
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.errors import Conflict, ProviderRejected
from zeroclaw.gate.receipt_screen import FALSE_MARK
from zeroclaw.store import Commit, LogKind, Put, RowKind
from zeroclaw.turn.titles import TITLE_CHARS, TITLES, title_of

ON = RuntimeSettings(titles=True)


async def three(world: World, house: House, *answers: Answer) -> None:
    """Three exchanges of Ben's, and what the model says to whatever is asked behind them."""
    world.model.otherwise(says("one"), says("two"), says("three"), *answers)
    for text in ("What is tea?", "And coffee?", "And which is better?"):
        await house.say(text, "ben")


async def titles(house: House) -> list[str]:
    return [TITLES.of(row).text for row in await house.rows(RowKind.TITLE)]


async def test_a_conversation_gets_a_title_once(world: World) -> None:
    """Behind the third answer, of what was said; and nobody is asked again."""
    world.configure(runtime=ON)
    async with world.running() as house:
        await three(world, house, says('"Tea or coffee"\n'))
        assert await titles(house) == ["Tea or coffee"]
        [system, asked] = world.model.requests[3].messages
        assert "not instructions" in system.content
        assert asked.content.startswith("person: What is tea?\nbot: one\n")
        world.model.otherwise(says("four"))
        await house.say("Thanks", "ben")
        assert (len(world.model.requests), house.texts("ben")[-1]) == (5, "four")


async def test_no_title_imitates_a_receipt(world: World) -> None:
    """It is looked at as all is that people read of a model's (P7)."""
    world.configure(runtime=ON)
    async with world.running() as house:
        await three(world, house, says("✅ r\u0435ceipt: shell · ok"))
        assert await titles(house) == [f"{FALSE_MARK}: shell · ok"]


async def test_what_it_used_is_counted_with_its_turn(world: World) -> None:
    """Now, and by the next process."""
    world.configure(runtime=ON, budget=BudgetSettings(day_tokens=1_000))
    async with world.running() as house:
        await three(world, house, says("Tea"))
        rows = [TURNS.of(row).usage.total_tokens for row in await house.rows(RowKind.TURN)]
        assert rows == [12, 12, 24]
        whose = TURNS.of((await house.rows(RowKind.TURN))[0]).item.principal
        before = await house.services.budget.levels(whose)
    async with world.running() as house:
        assert await house.services.budget.levels(whose) == before
        assert before[0].percent == 4


@pytest.mark.parametrize(
    ("budget", "runtime"),
    [(BudgetSettings(day_tokens=36), ON), (BudgetSettings(), RuntimeSettings())],
)
async def test_none_is_asked_for_where_none_may_be(
    world: World, budget: BudgetSettings, runtime: RuntimeSettings
) -> None:
    """Unless it is wanted, and while a budget is used up."""
    world.configure(runtime=runtime, budget=budget)
    async with world.running() as house:
        await three(world, house)
        assert len(world.model.requests) == 3
        assert await titles(house) == []


async def test_one_that_failed_is_asked_for_again(world: World) -> None:
    """Behind the next answer; the person notices nothing."""
    world.configure(runtime=ON)
    async with world.running() as house:
        await three(world, house, (ProviderRejected("no"),), says("four"), says("Tea"))
        assert (await titles(house), house.texts("ben")[-1]) == ([], "three")
        await house.say("Well?", "ben")
        assert (await titles(house), house.texts("ben")[-1]) == (["Tea"], "four")


async def test_what_was_forgotten_gets_none(world: World) -> None:
    """Though it was asked for just then."""
    world.configure(runtime=ON)
    held = asyncio.Event()
    async with world.running() as house:
        await three(world, house, (held, *says("Tea")))
        world.store.forget(RowKind.TURN)
        held.set()
        await house.settle()
        assert await titles(house) == []


async def test_a_title_goes_with_the_words_of_anybody(world: World) -> None:
    """In a shared conversation it is made of everybody's, and is made anew of what is left."""
    world.configure(runtime=ON)
    async with world.running() as house:
        world.model.will(*map(says, "123"), says("Tea"))
        for text in ("one", "two"):
            await house.say(text, room="hall")
        await house.say("three", "ben", room="hall")
        assert await titles(house) == ["Tea"]
        await house.say("/forget", "ben")
        code = house.texts("ben")[-1].split("/forget ")[1].split("`")[0]
        await house.say(f"/forget {code}", "ben")
        assert await titles(house) == []


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Tea", "Tea"),
        ("\n  **Tea  or coffee**.\nBecause …", "Tea or coffee"),
        ("", ""),
        ("\u202eTea", "⟨U+202E⟩Tea"),
        ("x" * 99, "x" * (TITLE_CHARS - 1) + "…"),
    ],
)
def test_a_title_is_one_line(said: str, title: str) -> None:
    """Whatever a model makes of the wish."""
    assert title_of(said) == title


async def test_one_that_can_not_be_stored_troubles_nobody(world: World) -> None:
    """The daemon goes on, and so does the conversation (P9)."""
    world.configure(runtime=ON)

    def race(commit: Commit) -> None:
        if any(isinstance(one, Put) and one.kind is RowKind.TITLE for one in commit.writes):
            raise Conflict("raced")

    async with world.running() as house:
        world.store.before = race
        await three(world, house, says("Tea"), says("four"), says("Tea"))
        assert await titles(house) == []
        world.store.before = None
        await house.say("Well?", "ben")
        assert (await titles(house), house.texts("ben")[-1]) == (["Tea"], "four")


async def test_a_journal_that_can_not_be_read_gets_none(world: World) -> None:
    """What is wrong with one conversation stays with it (P9)."""
    world.configure(runtime=ON)
    async with world.running() as house:
        world.model.will(*map(says, "123"))
        await house.say("one", "ben")
        [stream] = await world.store.streams(LogKind.JOURNAL)
        world.store.rewrite(stream, lambda _: b"{")
        await house.say("two", "ben")
        assert (await titles(house), house.texts("ben")) == ([], ["1", "2"])
        await house.say("three")
        assert house.texts() == ["3"]
