"""The usage of models, as the console shows it."""

from datetime import date

from tests.fakes.house import World
from tests.fakes.scripted_model import says
from tests.unit.console.parsed import Part, faults
from tests.unit.console.rows import HOSTILE, full_page
from tests.unit.console.visit import visiting
from zeroclaw.console.markup import joined
from zeroclaw.console.usage import MAX_ROWS, usage
from zeroclaw.host.answers import Used

FIRST, LAST = date(2026, 1, 1), date(2026, 1, 5)
USED = (
    Used(day="2026-01-01", person="ann", model="m", turns=1, input_tokens=9, output_tokens=1),
    Used(
        day="2026-01-04",
        person=HOSTILE,
        model="m",
        turns=2,
        input_tokens=1_900,
        cached_tokens=500,
        output_tokens=100,
        micros=1_234_000,
    ),
)


def shown(*used: Used) -> Part:
    return full_page("usage", joined((usage(used, FIRST, LAST),)))


def test_each_day_has_a_bar_with_its_amount() -> None:
    """The busiest day has the highest bar, small amounts stay visible, and an empty day has
    none."""
    page = shown(*USED)
    assert faults(page) == []
    (chart,) = page.every("svg")
    heights = [
        part.attributes["height"]
        for part in chart.every("rect")
        if part.attributes["class"] == "bar"
    ]
    assert heights == ["1", "0", "0", "100", "0"]
    assert [part.words for part in chart.every("title")][2:4] == [
        "2026-01-03: 0 tokens",
        "2026-01-04: 2,000 tokens for $1.23",
    ]
    assert chart.attributes["aria-label"] == (
        "tokens per day; most on 2026-01-04: 2,000 tokens for $1.23"
    )
    assert "2026-01-01 to 2026-01-05, in UTC: 2,010 tokens for $1.23" in page.words


def test_people_and_models_are_summed() -> None:
    """The largest comes first; a name is shown as text."""
    page = shown(*USED)
    assert [part.words for part in page.by_id("person-sums").every("h3")] == [HOSTILE, "ann"]
    assert "2,000 tokens for $1.23 · 2 turns · 1,900 in (500 cached), 100 out" in page.words
    assert "10 tokens · 1 turn · 9 in (0 cached), 1 out" in page.words
    assert [part.words for part in page.by_id("model-sums").every("h3")] == ["m"]


def test_a_long_list_of_people_is_cut_and_says_so() -> None:
    """The command line lists them all."""
    many = [Used(person=f"p{number}", turns=1, input_tokens=1) for number in range(MAX_ROWS + 1)]
    page = shown(*many)
    assert len(page.ids("person-")) == MAX_ROWS + 1
    assert "1 more are not shown; zeroclaw usage lists them." in page.words


def test_an_empty_section_says_what_it_will_show() -> None:
    """It names what will be listed."""
    assert "No model was used in these days." in shown().words


async def test_the_section_reads_the_last_days(world: World) -> None:
    """It sums the rows of finished turns."""
    world.model.will(says("so"))
    async with visiting(world) as visitor:
        await visitor.house.say("hello")
        page = await visitor.page("usage")
        assert "2025-12-03 to 2026-01-01, in UTC: 12 tokens" in page.words
        assert [part.words for part in page.by_id("person-sums").every("h3")] == ["ada"]
