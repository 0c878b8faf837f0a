"""What models may use: of a turn, a conversation, a person's day and a day (S4-17, S4-20)."""

import asyncio
import sqlite3
from contextlib import aclosing, closing
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from tests.fakes.house import House, World
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_model import Answer
from tests.unit.turn.parts import answer, call, streaming
from zeroclaw.config.model import (
    BudgetSettings,
    Config,
    CurrentConfig,
    PriceSettings,
    ProviderSettings,
)
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import ConversationId, Principal
from zeroclaw.limits.budget import MARKS, UsageBudget, price_of
from zeroclaw.limits.prices import FREE, PRICES, Dollars, Price
from zeroclaw.message import ToolCall, Usage
from zeroclaw.provider import Finished, TextDelta, ToolCallReady, UsageReported
from zeroclaw.store import Commit, DurablePoint, Put, Query, Row, RowKind, Store, Write
from zeroclaw.stores.sqlite import statements
from zeroclaw.stores.sqlite.files import FILE_NAME
from zeroclaw.stores.sqlite.store import open_store
from zeroclaw.turn.machine import limit_warning, step
from zeroclaw.turn.states import Done, Progress, TurnLimits

DEAR = Price(input=1.0, cached=0.1, output=10.0)
OPENAI = ProviderSettings(kind="openai", base_url="https://api.openai.com/v1", model="gpt-5")
DAY_S = 86_400.0
BEN = "ben"


def uses(tokens: int, *calls: ToolCall) -> Answer:
    """An answer of so many tokens, two or more: what is not reported is estimated."""
    usage = UsageReported(usage=Usage(input_tokens=tokens - 1, output_tokens=1))
    made = tuple(ToolCallReady(call=call) for call in calls)
    return (TextDelta(text="so"), *made, usage, Finished(reason="tool_calls" if made else "stop"))


LOOK = call("look")


async def left(house: House, who: str = "person:ben") -> list[int]:
    """How many percent of the budgets are used, the house's first."""
    person = Principal(id=who, roles=frozenset(), channel="chat", sender=BEN)
    return [level.percent for level in await house.services.budget.levels(person)]


# --- prices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "micros"),
    [
        (Usage(), 0),
        (Usage(input_tokens=1_000_000), 1_000_000),
        (Usage(input_tokens=10, cached_tokens=10), 1),
        (Usage(input_tokens=3, cached_tokens=1), 3),
        (Usage(output_tokens=7), 70),
        (Usage(cached_tokens=7), 0),
    ],
)
def test_what_tokens_cost_is_rounded_up(usage: Usage, micros: int) -> None:
    """In whole millionths, so that sums are exact; what came from a cache is part of the input."""
    assert DEAR.micros(usage) == micros


@pytest.mark.parametrize(
    ("model", "provider", "price"),
    [
        ("gpt-5", OPENAI, PRICES["gpt-5"]),
        ("openai/gpt-5", OPENAI, PRICES["gpt-5"]),
        ("gpt-5-2025-08-07", OPENAI, PRICES["gpt-5"]),
        ("claude-haiku-4-5-20251001", OPENAI, PRICES["claude-haiku-4-5"]),
        ("gpt-5-turbo", OPENAI, None),
        ("own", OPENAI, Price(input=2, output=3, cached=2)),
        ("cached", OPENAI, Price(input=2, output=3, cached=1)),
        ("any", ProviderSettings(), FREE),
        ("any", OPENAI.model_copy(update={"base_url": "http://127.0.0.1:1/v1"}), FREE),
        ("any", OPENAI.model_copy(update={"base_url": "http://localhost:1/v1"}), FREE),
        ("any", OPENAI.model_copy(update={"base_url": "http://192.168.1.2/v1"}), None),
    ],
)
def test_a_price_is_known_or_it_is_not(
    model: str, provider: ProviderSettings, price: Price | None
) -> None:
    """The configuration first, then nothing for what runs here, then the table; never a guess."""
    own = PriceSettings(input=2, output=3)
    bounds = BudgetSettings(prices={"own": own, "cached": own.model_copy(update={"cached": 1})})
    assert price_of(model, bounds, provider) == price


@pytest.mark.parametrize(
    ("micros", "english", "german"),
    [
        (0, "$0.00", "0,00 $"),
        (1_234, "$0.0012", "0,0012 $"),
        (1_234_567_890, "$1,234.57", "1.234,57 $"),
    ],
)
def test_money_is_formatted_for_each_language(micros: int, english: str, german: str) -> None:
    """A little of it is not nothing."""
    assert (Dollars(micros=micros).to("en"), Dollars(micros=micros).to("de")) == (english, german)


# --- a turn --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "note"),
    [
        (
            TurnLimits(max_micros=30, price=DEAR),
            "stopped at $0.0000, the limit of one turn is $0.0000",
        ),
        (TurnLimits(max_micros=31, price=DEAR), ""),
        (TurnLimits(max_micros=1), ""),
        (TurnLimits(max_tokens=13), ""),
    ],
)
def test_a_turn_ends_at_its_money(limits: TurnLimits, note: str) -> None:
    """As at its tokens; without a price nothing is counted (S4-17, S4-20)."""
    state, _ = step(streaming(limits), answer("so", call()))
    assert isinstance(state, Done) is bool(note)
    assert not note or (isinstance(state, Done) and state.note.startswith(note))


async def test_a_turn_has_a_bound_unless_it_is_taken_away(world: World) -> None:
    """Fifty rounds without one are a runaway turn."""
    world.model.will(uses(999_998, LOOK), uses(2, LOOK), uses(2))
    async with world.running() as house:
        await house.say("look")
        assert "Stopped at 1,000,000 tokens, the limit of one turn" in house.texts()[0]
        assert len(world.model.requests) == 2


async def test_a_turn_near_its_bound_is_announced_once_before_it_ends(world: World) -> None:
    """While it runs, of whichever bound is nearest; then it stops there (S4-17, K1)."""
    world.configure(budget=BudgetSettings(turn_tokens=1000))
    world.model.will(*(uses(spent, LOOK) for spent in (100, 100, 600, 90, 110)))
    async with world.running() as house:
        await house.say("look", BEN)
        answered, warned = house.texts(BEN)
        assert warned == (
            "_80 % of the budget for one answer, 1,000 tokens, is used; I stop there._"
        )
        assert "Stopped at 1,000 tokens, the limit of one turn" in answered


@pytest.mark.parametrize(
    ("progress", "warning"),
    [
        (Progress(limits=TurnLimits(max_rounds=5), rounds=2), None),
        (Progress(limits=TurnLimits(max_rounds=5), rounds=3), "80 % of … 5 rounds of tool calls"),
        (Progress(limits=TurnLimits(max_rounds=5), rounds=4), None),
        (Progress(limits=TurnLimits(max_rounds=5), rounds=3, warned=True), None),
        (Progress(limits=TurnLimits(max_tokens=100), usage=Usage(input_tokens=49)), None),
        (
            Progress(limits=TurnLimits(max_tokens=100), usage=Usage(output_tokens=50)),
            "50 % of … 100 tokens",
        ),
        (Progress(limits=TurnLimits(max_tokens=100), usage=Usage(input_tokens=79), rounds=9), None),
        (Progress(limits=TurnLimits(max_micros=100), usage=Usage(input_tokens=99)), None),
        (
            Progress(
                limits=TurnLimits(max_micros=100, price=DEAR),
                usage=Usage(output_tokens=8),
                rounds=9,
            ),
            "80 % of … $0.0001",
        ),
    ],
)
def test_a_turn_nears_a_bound_or_does_not(progress: Progress, warning: str | None) -> None:
    """At 80 % of rounds, tokens or money, or where one more such round would be the last."""
    near = limit_warning(progress)
    text = None if near is None else near.to("en").replace("the budget for one answer,", "…")
    assert text == (None if warning is None else f"{warning}, is used; I stop there")


@pytest.mark.parametrize(
    "point", [DurablePoint.CALL_FINISHED, DurablePoint.HOUSEKEEPING, DurablePoint.FINISHED]
)
async def test_a_kill_neither_hides_the_warning_nor_repeats_it(
    world: World, point: DurablePoint
) -> None:
    """It is committed with the results that it follows (P1)."""
    world.configure(budget=BudgetSettings(turn_tokens=4_000))
    world.model.will(uses(2_000, LOOK), uses(2))
    world.store.cut_after(point)
    async with world.running() as house:
        await house.say_and_die("look")
    world.store.heal()
    world.model.otherwise(uses(2))
    async with world.running() as house:
        # A request that may have been under way counts as well.
        near = " % of the budget for one answer, 4,000 tokens, is used; I stop there._"
        await house.advance(60.0)
        assert sum(near in text for text in house.texts()) == 1


@pytest.mark.parametrize(
    ("budget", "warning"),
    [
        (
            BudgetSettings(person_day_tokens=100),
            "_85 % of your daily budget, 100 tokens, is used._",
        ),
        (
            BudgetSettings(conversation_tokens=100),
            "_85 % of the budget of this conversation, 100 tokens, is used._",
        ),
    ],
)
async def test_a_long_turn_is_warned_before_it_is_stopped(
    world: World, budget: BudgetSettings, warning: str
) -> None:
    """Of what several turns share, too: behind the results of the round that brought it so far."""
    world.configure(budget=budget)
    world.model.will(uses(40, LOOK), uses(45, LOOK), uses(20, LOOK), uses(2))
    async with world.running() as house:
        await house.say("look", BEN)
        texts = house.texts(BEN)
        assert (len(texts), texts.count(warning)) == (2, 1)
        assert sum("is used up" in text for text in texts) == 1


async def test_operators_hear_of_the_day_while_a_long_turn_uses_it(world: World) -> None:
    """And once more when it is over."""
    world.configure(budget=BudgetSettings(day_tokens=100))
    world.model.will(uses(85, LOOK), uses(20, LOOK), uses(2))
    async with world.running() as house:
        await house.say("look", BEN)
        assert [text[:4] for text in house.texts()] == ["85 %", "105 "]


# --- a day ---------------------------------------------------------------------------------------


async def test_a_day_that_is_used_up_ends_with_the_day(world: World) -> None:
    """The writer reads when it goes on, operators once; the next day has a new budget (P10)."""
    world.configure(budget=BudgetSettings(day_tokens=1000))
    world.model.will(uses(790), uses(20), uses(200), uses(7))
    async with world.running() as house:
        await house.say("one", BEN)
        assert (house.texts(BEN), house.texts()) == (["so"], [])
        await house.say("two", BEN)
        assert house.texts()[-1].startswith("81 % of what may be used in a day, 1,000 tokens,")
        await house.say("three", BEN)
        assert house.texts()[-1].startswith("101 % of what may be used in a day")
        for text in ("four", "five"):
            await house.say(text, BEN)
        refused = "_The daily budget for everybody, 1,000 tokens, is used up; I go on at 00:00 UTC, in 12 h._"
        assert house.texts(BEN) == ["so", "so", f"so\n\n{refused}", refused, refused]
        assert len(house.texts()) == 2
        assert len(world.model.requests) == 3
        assert (await house.states())[-1] == "failed"
        await house.advance(DAY_S / 2)
        await house.say("/retry", BEN)
        assert house.texts(BEN)[-1] == "so"
        assert await left(house) == [0]


async def test_a_day_is_counted_after_a_moment_of_a_wrong_clock(world: World) -> None:
    """It had begun a day that is far ahead; what was used then counts for that day alone."""
    world.configure(budget=BudgetSettings(day_tokens=100))
    world.model.will(uses(99), uses(99), uses(1), uses(2))
    async with world.running() as house:
        world.clock.leap(timedelta(days=400))
        await house.say("one", BEN)
        world.clock.leap(timedelta(days=-400))
        await house.say("two", BEN)
    async with world.running() as house:
        await house.say("three", BEN)
        await house.say("four", BEN)
        assert house.texts(BEN)[:2] == ["so", "so"]
        assert "is used up; I go on at 00:00 UTC, in 12 h" in house.texts(BEN)[-1]
        assert len(world.model.requests) == 3


async def test_a_persons_share_is_theirs_alone(world: World) -> None:
    """Another's goes on; a person near their share reads that once, and again when it is used up."""
    world.configure(budget=BudgetSettings(person_day_tokens=100))
    world.model.will(uses(85), uses(2), uses(20), uses(2))
    async with world.running() as house:
        for text in ("one", "two", "three", "four"):
            await house.say(text, BEN)
        assert house.texts(BEN) == [
            "so\n\n_85 % of your daily budget, 100 tokens, is used._",
            "so",
            "so\n\n_Your daily budget, 100 tokens, is used up; I go on at 00:00 UTC, in 12 h._",
            "_Your daily budget, 100 tokens, is used up; I go on at 00:00 UTC, in 12 h._",
        ]
        assert house.texts() == [
            "Ben has used up what one person may use in a day, 100 tokens (`[budget]`)."
        ]
        await house.say("one")
        assert house.texts()[-1] == "so"


async def test_an_operator_reads_once_of_their_own_share_and_of_the_day(world: World) -> None:
    """What they read as its person they don't read as an operator, in the same chat."""
    world.configure(budget=BudgetSettings(day_tokens=120, person_day_tokens=100))
    world.model.will(uses(101))
    async with world.running() as house:
        await house.say("one")
        assert [text.partition(",")[0] for text in house.texts()] == [
            "so\n\n_Your daily budget",
            "84 % of what may be used in a day",
        ]


async def test_a_conversation_ends_and_another_begins(world: World) -> None:
    """`/new` goes on with what a new one may use; what one used is read from its rows."""
    world.configure(budget=BudgetSettings(conversation_tokens=100))
    world.model.will(uses(90), uses(20), uses(2))
    async with world.running() as house:
        await house.say("one", BEN)
        assert "90 % of the budget of this conversation" in house.texts(BEN)[-1]
    async with world.running() as house:
        await house.say("two", BEN)
        await house.say("three", BEN)
        assert house.texts(BEN)[-1] == (
            "_The budget of this conversation, 100 tokens, is used up; `/new` begins another._"
        )
        assert house.texts() == [
            "A conversation of Ben has used up what one may use, 100 tokens (`[budget]`)."
        ]
        await house.say("/new", BEN)
        await house.say("four", BEN)
        assert house.texts(BEN)[-1] == "so"


async def test_a_turn_that_waits_counts_in_its_own_conversation_alone(world: World) -> None:
    """Others may use as much meanwhile; after a restart it still counts once."""
    world.configure(budget=BudgetSettings(conversation_tokens=100))
    world.model.will(uses(90, call("poke")), uses(2), uses(2))
    async with world.running() as house:
        await house.say("one", BEN)
        await house.say("one")
        assert house.texts()[-1] == "so"
    async with world.running() as house:
        await house.press()
        assert house.texts(BEN)[-1].startswith("so")


class _QueryLog:
    """A store without rows that logs its queries."""

    def __init__(self) -> None:
        self.queries: list[Query] = []

    async def select(self, query: Query) -> tuple[Row, ...]:
        self.queries.append(query)
        return ()


async def test_what_a_conversation_used_is_read_without_looking_at_others(tmp_path: Path) -> None:
    """Else each conversation's first turn after a start reads every turn of the whole store."""
    log, conversation = _QueryLog(), ConversationId("here")
    settings = CurrentConfig(Config(budget=BudgetSettings(conversation_tokens=100)))
    budget = UsageBudget(cast("Store", log), ManualClock(), settings, "any")
    await budget.levels(Principal(id="", roles=frozenset(), channel="", sender=""), conversation)
    (query,) = log.queries

    async def steps(place: Path, others: int) -> int:
        keys = [(conversation, "a"), *((ConversationId(f"o{n}"), f"b{n}") for n in range(others))]
        rows = [
            Put(kind=RowKind.TURN, key=key, body=b"", conversation=person, state="closed")
            for person, key in keys
        ]
        async with aclosing(await open_store(place, clock=ManualClock())) as store:
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=tuple(rows)))
        return await asyncio.to_thread(counted, place)

    def counted(place: Path) -> int:
        steps = list[None]()
        with closing(sqlite3.connect(place / FILE_NAME)) as connection:
            connection.set_progress_handler(lambda: steps.append(None), 1)
            assert len(statements.select(connection, query)) == 1
        return len(steps)

    assert await steps(tmp_path / "few", 1) == await steps(tmp_path / "many", 200)


async def test_money_counts_as_tokens_do(world: World) -> None:
    """At the configured price; the notice names what runs out first."""
    prices = {"scripted": PriceSettings(input=1_000, output=1_000)}
    world.configure(
        budget=BudgetSettings(person_day_usd=1, person_day_tokens=99_999, prices=prices)
    )
    world.model.will(uses(900), uses(100), uses(2))
    async with world.running() as house:
        for text in ("one", "two", "three"):
            await house.say(text, BEN)
        assert house.texts(BEN)[0].endswith("_90 % of your daily budget, $1.00, is used._")
        assert house.texts(BEN)[2].startswith("_Your daily budget, $1.00, is used up")
        rows = await house.rows(RowKind.TURN)
        assert [TURNS.of(row).micros for row in rows] == [900_000, 100_000, None]


async def test_without_a_price_only_tokens_count(world: World) -> None:
    """Money is not guessed."""
    provider = ProviderSettings(kind="openai", base_url="https://x.example/v1", model="m")
    world.configure(budget=BudgetSettings(day_usd=0.01, day_tokens=1000), provider=provider)
    world.model.will(uses(500))
    async with world.running() as house:
        await house.say("one", BEN)
        assert await left(house) == [50]
        [row] = await house.rows(RowKind.TURN)
        turn = TURNS.of(row)
        assert (turn.usage.total_tokens, turn.model, turn.micros) == (500, "scripted", None)


async def test_a_turn_stops_where_the_day_ends(world: World) -> None:
    """Between two requests; a request that is under way is paid for."""
    world.configure(budget=BudgetSettings(day_tokens=100))
    world.model.will(uses(150, LOOK), uses(2))
    async with world.running() as house:
        await house.say("look", BEN)
        assert house.texts(BEN) == [
            "so\n\n_The daily budget for everybody, 100 tokens, is used up; I go on at 00:00 UTC, in 12 h._"
        ]
        assert (len(world.look.runs), len(world.model.requests)) == (1, 1)


async def test_turns_at_once_count_together(world: World) -> None:
    """One that is still under way has used what it used, of its own person's share (P2)."""
    world.configure(budget=BudgetSettings(day_tokens=100, person_day_tokens=200))
    world.model.will(uses(98, call("poke")), uses(2))
    async with world.running() as house:
        await house.say("poke", BEN)
        assert await left(house) == [98, 49]
        assert await left(house, "person:ada") == [98, 0]
        await house.say("one")
        assert await left(house) == [100, 49]
        await house.say("two")
        assert "is used up" in house.texts()[-1]


# --- across restarts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point", [DurablePoint.CALL_STARTED, DurablePoint.FINISHED, DurablePoint.DELIVERED]
)
async def test_a_kill_loses_nothing_that_was_spent(world: World, point: DurablePoint) -> None:
    """What is in the journal counts on, and what is in a row counts once (P1)."""
    world.configure(budget=BudgetSettings(day_tokens=1000, person_day_tokens=500))
    world.model.will(uses(100, LOOK), uses(50))
    world.store.cut_after(point)
    async with world.running() as house:
        await house.say_and_die("look")
    world.store.heal()
    world.model.otherwise(uses(50))
    async with world.running() as house:
        assert house.texts()[0].startswith("so")
        assert await left(house, "person:ada") == [15, 30]
        assert await left(house, "person:ben") == [15, 0]


async def test_a_notice_is_not_sent_twice(world: World) -> None:
    """Nor by the next process."""
    world.configure(budget=BudgetSettings(day_tokens=100))
    world.model.will(uses(90), uses(2))
    async with world.running() as house:
        await house.say("one", BEN)
    async with world.running() as house:
        await house.say("two", BEN)
        assert len(house.texts()) == 1


async def test_a_damaged_record_of_a_notice_holds_up_no_answer(world: World) -> None:
    """The one for everybody's day would hold up everybody; the notice is given again."""
    world.configure(budget=BudgetSettings(day_tokens=1000))
    world.model.will(uses(850), uses(20))
    async with world.running() as house:
        await house.say("one", BEN)
        (row,) = await house.rows(RowKind.BUDGET)
        world.store.damage(row)
        await house.say("two", BEN)
        assert house.texts(BEN) == ["so", "so"]
        assert [text[:4] for text in house.texts()] == ["85 %", "87 %"]


async def test_two_turns_that_end_at_once_send_one_notice(world: World) -> None:
    """The second turn sees that the notice was sent (P2)."""
    world.configure(budget=BudgetSettings(day_tokens=100))
    world.model.will(uses(90))
    notes: list[Put] = []

    async def first(writes: tuple[Write, ...]) -> None:
        if not notes:
            notes.extend(
                write for write in writes if isinstance(write, Put) and write.kind is MARKS.kind
            )
            if notes:
                await world.store.write(notes[0])

    world.store.meanwhile = first
    async with world.running() as house:
        await house.say("one", BEN)
        assert (len(notes), house.texts(BEN), house.texts()) == (1, ["so"], [])


async def test_an_endpoint_that_reports_nothing_is_not_for_free(world: World) -> None:
    """Its tokens are estimated, rather too many than too few."""
    world.configure(budget=BudgetSettings(day_tokens=100))
    world.model.will((TextDelta(text="so"), Finished(reason="stop")))
    async with world.running() as house:
        await house.say("one", BEN)
        [row] = await house.rows(RowKind.TURN)
        usage = TURNS.of(row).usage
        assert (usage.input_tokens > 100, usage.output_tokens > 0) == (True, True)
        await house.say("two", BEN)
        assert "is used up" in house.texts(BEN)[-1]
        assert len(world.model.requests) == 1
