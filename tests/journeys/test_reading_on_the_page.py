"""A person reads the web page: in any direction, without markup, days later, by keys."""

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.journeys.browsing import browsing
from zeroclaw.host.clock import SystemClock

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

MASKED = "https://user:secret1@a.example/"
ARABIC = "مرحبا بالعالم"
DIRECTIONS = """
nodes => nodes.map(one => [one.tagName, getComputedStyle(one).direction])
"""
BEGIN_TO_SCROLL = """
(one, key) => {
  one.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, ...key }));
  return one.scrollTop;
}
"""
SWIPE_SIDEWAYS = """
one => { one.dispatchEvent(new WheelEvent("wheel", { deltaX: 60, deltaY: -2, bubbles: true })); }
"""
TELL_WHEN_SCROLLED = (
    "one => one.addEventListener('scrollend', () => { one.dataset.scrolled = ''; })"
)


async def test_a_message_that_lost_its_markup_keeps_its_lines(
    browser: Browser, tmp_path: Path
) -> None:
    """A masked answer is shown without its markup, and a long one was a single paragraph."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say(f"# One\n\ntwo\nthree {MASKED}\n")
        await page.say("count")
        text = "One\n\ntwo\nthree [redacted]"
        await expect(page.answers).to_contain_text("[redacted]")
        assert await page.answers.inner_text() == text


async def test_each_paragraph_reads_in_its_own_direction(browser: Browser, tmp_path: Path) -> None:
    """Arabic and Hebrew begin at the right, code and English at the left."""
    paragraphs = (
        f"{ARABIC}.\n\nEnglish.\n\n- {ARABIC}\n\n```\n# {ARABIC}\n```\n\n| {ARABIC} |\n|---|\n| a |"
    )
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(390, 700))
        world.model.say(paragraphs)
        await page.say(ARABIC)
        await expect(page.answers.locator("td")).to_have_text("a")
        directions = await page.answers.locator("p, ul, pre, table").evaluate_all(DIRECTIONS)
        assert directions == [
            ["P", "rtl"],
            ["P", "ltr"],
            ["UL", "rtl"],
            ["PRE", "ltr"],
            ["TABLE", "rtl"],
        ]
        assert await page.own.evaluate_all(DIRECTIONS) == [["DIV", "rtl"]]
        await page.page.get_by_label("Message", exact=True).fill(ARABIC)
        assert await page.page.locator("textarea").evaluate_all(DIRECTIONS) == [["TEXTAREA", "rtl"]]
        await page.shot("right-to-left")


async def test_an_old_message_tells_its_day(browser: Browser, tmp_path: Path) -> None:
    """Of today's the hour is enough."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say("Hello.")
        await page.page.clock.install()
        await page.say("hi")
        await expect(page.answers).to_have_text(["Hello."])
        year = str(SystemClock().now().year)
        await expect(page.log.locator("time").last).not_to_contain_text(year)
        await page.page.clock.set_fixed_time(SystemClock().now() + timedelta(days=2))
        await page.page.reload()
        await expect(page.log.locator("time").last).to_contain_text(year)


async def test_the_conversation_is_a_list_that_keys_can_scroll(
    browser: Browser, tmp_path: Path
) -> None:
    """A screen reader counts its messages; without a mouse it scrolls once it has the focus."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say("Line.\n\n" * 100)
        await page.say("hi")
        conversation = page.page.get_by_role("log", name="conversation")
        await expect(conversation.get_by_role("list").first).to_have_role("list")
        await expect(conversation.get_by_role("listitem")).to_have_count(2)
        # The connection, and short notes: those are read aloud only in a place that was there before.
        await expect(page.page.get_by_role("status")).to_have_count(2)
        # An answer that still grows may take the page back to its end.
        await expect(page.answers.locator("p")).to_have_count(100)
        await expect(page.page.locator("#typing")).to_be_hidden()
        await page.button("Log out").focus()
        await page.page.keyboard.press("Tab")
        await page.page.keyboard.press("Home")
        await expect(page.own).to_be_in_viewport()


async def test_on_a_phone_a_table_scrolls_before_it_cuts_words(
    browser: Browser, tmp_path: Path
) -> None:
    """Each short cell stays on one line; only a word longer than a screen is cut.

    A cell with a sentence is not squeezed to a word a line by its neighbours.
    """
    rows = f"| Name | Qty | Price |\n|---|---|--:|\n| {'lobster ' * 8} | 12 | 1,234.00 |\n"
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(360, 700))
        notes = f"| a | b | c | d |\n|---|---|---|---|\n{'| a seventh ' * 3}| {'word ' * 12}|\n"
        world.model.say(f"{rows}| {'x' * 300} | 1 | 2 |\n\n{notes}")
        await page.say("prices")
        await expect(page.answers.locator("tr")).to_have_count(5)
        sentence = page.answers.locator("td").last
        assert await sentence.evaluate("cell => cell.offsetWidth") > 150
        prices = page.answers.locator("table").first
        heights = await prices.locator("th, td:not(:first-child)").evaluate_all(
            "cells => cells.map(one => { const range = document.createRange();"
            " range.selectNodeContents(one); return range.getClientRects().length; })"
        )
        assert heights == [1] * 7
        widths = await page.answers.locator("td").first.evaluate(
            "cell => [cell.offsetWidth < 400, cell.offsetWidth > 0]"
        )
        assert widths == [True, True]


@pytest.mark.parametrize("key", [{"key": "PageUp"}, {"key": " ", "shiftKey": True}])
async def test_an_answer_that_grows_leaves_a_reader_where_they_scroll(
    key: dict[str, object], browser: Browser, tmp_path: Path
) -> None:
    """One notch of a wheel or one key is enough; at the end the page follows again."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(700, 500))
        gates = [world.model.gate() for _ in range(4)]
        pieces = ("Line.\n\n" * 40, gates[0], "two. ", gates[1], "three. ")
        world.model.say(*pieces, gates[2], "four. ", gates[3], "five.")
        await page.say("hi")
        await expect(page.draft.locator("p")).to_have_count(40)
        scroller = page.page.locator("#scroller")
        # A key's smooth scrolling has only begun when the next piece comes.
        position = await scroller.evaluate(BEGIN_TO_SCROLL, key)
        gates[0].open()
        await expect(page.draft).to_contain_text("two")
        assert await scroller.evaluate("one => one.scrollTop") == position
        await page.button("newest ↓").click()
        await expect(page.button("newest ↓")).to_be_hidden()
        await scroller.hover()
        await scroller.evaluate(TELL_WHEN_SCROLLED)
        await page.page.mouse.wheel(0, -60)
        await expect(scroller).to_have_attribute("data-scrolled", "")
        position = await scroller.evaluate("one => one.scrollTop")
        gates[1].open()
        await expect(page.draft).to_contain_text("three")
        assert await scroller.evaluate("one => one.scrollTop") == position
        await page.button("newest ↓").click()
        await expect(page.button("newest ↓")).to_be_hidden()
        # As over a wide block of code; no finger moves quite level.
        await scroller.evaluate(SWIPE_SIDEWAYS)
        gates[2].open()
        await expect(page.draft).to_contain_text("four")
        await expect(page.button("newest ↓")).to_be_hidden()
        assert await scroller.evaluate(
            "one => one.scrollHeight - one.scrollTop - one.clientHeight < 2"
        )
        gates[3].open()
        await expect(page.answers).to_contain_text("five")


async def test_a_block_of_code_is_copied_by_its_button(browser: Browser, tmp_path: Path) -> None:
    """As it was written, without the name of its language; the page says that it was done."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(390, 500))
        await page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        code = "def f():\n    return '<b>'  # ä" + "a" * 99
        world.model.say(f"Take it:\n\n```python\n{code}\n```\n")
        await page.say("write f")
        await expect(page.answers.locator("pre")).to_have_text(code)
        await page.button("Copy").click()
        await expect(page.page.get_by_role("status").last).to_have_text("copied")
        await page.shot("copied")
        assert await page.page.evaluate("navigator.clipboard.readText()") == code


async def test_a_conversation_is_printed_whole(browser: Browser, tmp_path: Path) -> None:
    """On paper nothing scrolls, and there is no composer."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(700, 500))
        world.model.say("Line.\n\n" * 40)
        await page.say("hi")
        await expect(page.answers.locator("p")).to_have_count(40)
        await page.page.emulate_media(media="print")
        for written in ("#composer", "#connection"):
            await expect(page.page.locator(written)).to_be_hidden()
        tall = await page.page.evaluate(
            "[document.documentElement, log].map(one => one.scrollHeight)"
        )
        assert tall[0] >= tall[1] > 500
