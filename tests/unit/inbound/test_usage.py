"""What models used, as `/usage` says it, and the daemon over its control socket."""

from datetime import date

import msgspec

from tests.fakes.house import House, World
from tests.fakes.scripted_model import Answer
from zeroclaw.config.model import BudgetSettings, PriceSettings, ProviderSettings
from zeroclaw.host.answers import UsageReport, Used
from zeroclaw.limits.usage import MOST_DAYS, first_day
from zeroclaw.message import Usage
from zeroclaw.provider import Finished, TextDelta, UsageReported

BEN = "ben"
DAY_S = 86_400.0


def uses(tokens: int, output: int, cached: int = 0) -> Answer:
    """An answer of so many tokens."""
    usage = Usage(input_tokens=tokens, output_tokens=output, cached_tokens=cached)
    return (TextDelta(text="so"), UsageReported(usage=usage), Finished(reason="stop"))


async def told(house: House, who: str = "ada", *, room: str = "") -> str:
    await house.say("/usage", who, room=room)
    return house.texts(who, room=room)[-1]


async def test_each_sees_their_own_and_an_operator_all(world: World) -> None:
    """In private; in a group others read along."""
    prices = {"scripted": PriceSettings(input=10, output=100, cached=1)}
    world.configure(budget=BudgetSettings(prices=prices))
    world.model.will(uses(1_000, 10, 200), uses(490, 10), uses(40, 10))
    async with world.running() as house:
        await house.say("one", BEN)
        await house.advance(DAY_S)
        await house.say("two", BEN)
        await house.say("three")
        ben = "you: today 500 tokens for $0.0059; in 30 days 1,510 tokens for $0.0151"
        assert await told(house, BEN) == f"- {ben}"
        mine = "- you: today 50 tokens for $0.0014; in 30 days 50 tokens for $0.0014"
        assert (await told(house)).splitlines() == [
            mine,
            "- everybody: today 550 tokens for $0.0073; in 30 days 1,560 tokens for $0.0165",
            "  - ben: 1,510 tokens for $0.0151",
            "  - ada: 50 tokens for $0.0014",
        ]
        assert await told(house, room="hall") == mine


async def test_it_says_how_far_the_budgets_are(world: World) -> None:
    """A share to whose it is, the day's to operators."""
    world.configure(budget=BudgetSettings(day_tokens=1_000, person_day_tokens=400))
    world.model.will(uses(90, 10))
    async with world.running() as house:
        await house.say("one", BEN)
        assert (await told(house, BEN)).splitlines()[1:] == [
            "- 25 % of your daily budget, 400 tokens, is used"
        ]
        lines = (await told(house)).splitlines()
        assert lines[1] == "- 0 % of your daily budget, 400 tokens, is used"
        assert lines[-1].startswith("- 10 % of what may be used in a day, 1,000 tokens, is used")


async def test_what_has_no_price_is_said(world: World) -> None:
    """Rather than shown as if it were free."""
    provider = ProviderSettings(kind="openai", base_url="https://x.example/v1", model="m")
    world.configure(provider=provider)
    world.model.will(uses(90, 10))
    async with world.running() as house:
        await house.say("one", BEN)
        said = "100 tokens for $0.00 (no price is known for 100 tokens)"
        assert await told(house, BEN) == f"- you: today {said}; in 30 days {said}"


async def test_the_control_socket_tells_it_by_day_person_and_model(world: World) -> None:
    """As far back as it is asked for."""
    world.model.will(uses(100, 5), uses(50, 1), uses(7, 1))
    async with world.running() as house:
        await house.say("one", BEN)
        await house.advance(DAY_S)
        await house.say("two", BEN)
        await house.say("three", BEN)
        await house.say("/tool look {}")
        both = msgspec.convert(await house.ask("usage", days=2), UsageReport).used
        assert both == (
            Used(
                day="2026-01-01",
                person="ben",
                model="scripted",
                turns=1,
                input_tokens=100,
                output_tokens=5,
            ),
            Used(
                day="2026-01-02",
                person="ben",
                model="scripted",
                turns=2,
                input_tokens=57,
                output_tokens=2,
            ),
        )
        today = msgspec.convert(await house.ask("usage"), UsageReport).used
        assert today == both[1:]


def test_days_are_bounded(world: World) -> None:
    """Nobody asks for the time before there was one."""
    now = world.clock.now()
    assert [first_day(now, days) for days in (-5, 0, 1, 2)] == [
        date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 1), date(2025, 12, 31)
    ]  # fmt: skip
    assert first_day(now, 10**9) == first_day(now, MOST_DAYS)
