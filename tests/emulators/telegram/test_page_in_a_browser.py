"""The page in a real browser: both people see messages grow, and press their buttons."""

import pytest
from playwright.async_api import Browser, FilePayload, Locator, Page, Route, expect
from telegram import Bot, ForceReply, InlineKeyboardButton, InlineKeyboardMarkup

from tests.emulators.telegram.test_page import ANN, OLGA, open_page
from tests.journeys.browsing import SHOTS

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


def phone(tab: Page, number: int) -> Locator:
    return tab.locator(".phone").nth(number)


async def write(where: Locator, text: str) -> None:
    await where.locator("textarea").fill(text)
    await where.locator("textarea").press("Enter")


async def answer(bot: Bot, text: str) -> None:
    """Answer the next message, with an edit."""
    (update,) = await bot.get_updates(timeout=20)
    assert update.effective_chat is not None
    sent = await bot.send_message(update.effective_chat.id, text[:3])
    await bot.edit_message_text(text, update.effective_chat.id, sent.message_id)
    await bot.get_updates(offset=update.update_id + 1, timeout=0)


async def test_a_message_without_a_connection_stays_to_be_sent(browser: Browser) -> None:
    """Nothing of it is lost, nor which message it replies to."""
    async with open_page() as (page, bot), await browser.new_page() as tab:
        await tab.goto(page.emulated.page)
        ann = phone(tab, 0)
        await bot.send_message(ANN, "why?", reply_markup=ForceReply())
        await expect(ann.locator(".answering")).to_be_visible()
        await tab.context.set_offline(offline=True)
        await write(ann, "a long text")
        await expect(ann.locator(".toast")).to_be_visible()
        await expect(ann.locator("textarea")).to_have_value("a long text")
        await tab.context.set_offline(offline=False)
        await ann.locator("textarea").press("Enter")
        await expect(ann.locator("li.own .text")).to_have_text("a long text")
        await expect(ann.locator("li.own .quoted")).to_have_text("Zero: why?")
        await expect(ann.locator("textarea")).to_have_value("")


async def test_two_people_talk_with_a_bot(browser: Browser) -> None:
    """One writes and gets an answer; the other presses a button, sees a toast, and gives a reason."""
    async with (
        open_page() as (page, bot),
        await browser.new_page(viewport={"width": 1200, "height": 780}) as tab,
    ):
        troubles: list[str] = []
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("console", lambda line: troubles.append(line.text))
        await tab.goto(page.emulated.page)
        ann, olga = phone(tab, 0), phone(tab, 1)
        await expect(ann.locator("h2")).to_have_text("Ann")

        await write(ann, "hello <b>there</b>")
        await answer(bot, "Good morning.")
        await expect(ann.locator("li.own .text")).to_have_text("hello <b>there</b>")
        await expect(ann.locator("li.bot .text")).to_have_text("Good morning.")
        await expect(ann.locator(".edited")).to_contain_text("edited 1")
        await expect(ann.get_by_role("list")).to_have_count(1)

        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Approve", callback_data="yes")]])
        card = await bot.send_message(OLGA, "*May* it `run`?", "MarkdownV2", reply_markup=keyboard)
        await expect(olga.locator("strong")).to_have_text("May")
        await olga.get_by_role("button", name="Approve").click()
        (update,) = await bot.get_updates(timeout=20)
        assert update.callback_query is not None
        await update.callback_query.answer("noted")
        await expect(olga.locator(".toast")).to_have_text("noted")
        await bot.edit_message_text("it ran", OLGA, card.message_id)
        await expect(olga.get_by_role("button", name="Approve")).to_have_count(0)

        await bot.send_message(OLGA, "why?", reply_markup=ForceReply())
        await expect(olga.locator(".answering")).to_be_visible()
        await write(olga, "because")
        await expect(olga.locator("li.own .quoted")).to_have_text("Zero: why?")

        await bot.send_message_draft(ANN, 1, "I am writ")
        await expect(ann.locator(".draft")).to_have_text("I am writ")
        SHOTS.mkdir(parents=True, exist_ok=True)
        await tab.screenshot(path=SHOTS / "telegram-emulated.png")
        await bot.send_message(ANN, "I am done")
        await expect(ann.locator(".draft")).to_have_count(0)

        for person in (ann, olga):
            await person.get_by_role("button", name="Room").click()
        await write(ann, "hello Olga")
        await expect(olga.locator(".name")).to_have_text("Ann")
        assert troubles == []


RICH = (
    '<h2>Head</h2><table bordered><tr><th>what</th><th align="right">much</th></tr><tr><td><b>milk</b>'
    '</td><td align="right">1</td></tr></table><ol start="3"><li>a<ul><li>b</li></ul></li></ol>'
    '<pre><code class="language-py">x = 1</code></pre><hr/><blockquote>q</blockquote>'
    '<p><a href="https://e.x">link</a> <tg-math>x</tg-math> <a href="tel:+1">call</a></p>'
    '<ul><li><input type="checkbox" checked>done</li></ul><details><summary>More</summary>m</details>'
    "<table><caption>C</caption></table><tg-math-block>y</tg-math-block>"
)


async def test_a_rich_message_is_drawn_as_what_it_is(browser: Browser) -> None:
    """A table as a table, also while it is written; links only to pages. S2-06."""
    async with open_page() as (page, bot), await browser.new_page() as tab:
        troubles: list[str] = []
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("console", lambda line: troubles.append(line.text))
        await tab.goto(page.emulated.page)
        ann = phone(tab, 0)
        request: dict[str, object] = {"chat_id": ANN, "rich_message": {"html": RICH}}
        await bot.do_api_request("sendRichMessageDraft", {**request, "draft_id": 1})
        await expect(ann.locator(".draft td strong")).to_have_text("milk")
        await bot.do_api_request("sendRichMessage", request)
        await expect(ann.locator(".draft")).to_have_count(0)
        message = ann.locator("li.bot .rich")
        await expect(message.locator("th")).to_have_text(["what", "much"])
        await expect(message.locator("td.right")).to_have_text("1")
        await expect(message.locator("h2")).to_have_text("Head")
        await expect(message.locator(".label")).to_have_text(["3.", "•", "☑"])
        await expect(message.locator("pre")).to_have_text("x = 1")
        await expect(message.locator("a[href]")).to_have_count(1)
        await expect(message.locator("summary")).to_have_text("More")
        await expect(message.locator("caption")).to_have_text("C")
        await expect(message.locator(".formula")).to_have_text("y")
        assert troubles == []


async def test_a_long_text_is_cut_and_pictures_chosen_together_are_an_album(
    browser: Browser,
) -> None:
    """As the app of the sender does it; other files come one by one. S2-01."""
    async with open_page() as (page, bot), await browser.new_page() as tab:
        await tab.goto(page.emulated.page)
        ann = phone(tab, 0)
        await write(ann, "word " * 1000)
        await expect(ann.locator("li.own")).to_have_count(2)
        chosen = ann.locator("input[type=file]")
        await chosen.set_input_files([_file("a.png", "image/png"), _file("b.png", "image/png")])
        await expect(ann.locator("li.own")).to_have_count(4)
        await chosen.set_input_files([_file("a.png", "image/png"), _file("b.txt", "text/plain")])
        await expect(ann.locator("li.own")).to_have_count(6)
        updates = await bot.get_updates(timeout=20)
        groups = [update.message.media_group_id for update in updates if update.message]
        assert groups == [None, None, "album-1", "album-1", None, None]


async def test_a_caption_is_sent_once_and_a_text_typed_meanwhile_stays(browser: Browser) -> None:
    """The caption of two files stayed to be sent if the second one was refused."""

    async def refuse_the_second(route: Route) -> None:
        if (route.request.post_data_json or {})["name"] == "b.txt":
            await route.fulfill(status=422, json={"error": "too large"})
        else:
            await route.continue_()

    async def type_meanwhile(route: Route) -> None:
        await text.fill("and another thing")
        await route.continue_()

    async with open_page() as (page, _), await browser.new_page() as tab:
        await tab.goto(page.emulated.page)
        ann = phone(tab, 0)
        text, chosen = ann.locator("textarea"), ann.locator("input[type=file]")
        await tab.route("**/do", refuse_the_second)
        await text.fill("my papers")
        await chosen.set_input_files([_file("a.png", "image/png"), _file("b.txt", "text/plain")])
        await expect(ann.locator(".toast")).to_have_text("too large")
        await expect(ann.locator("li.own .text")).to_have_text("my papers")
        await expect(text).to_have_value("")
        await tab.route("**/do", type_meanwhile)
        await chosen.set_input_files([_file("c.png", "image/png")])
        await expect(ann.locator("li.own")).to_have_count(2)
        await expect(text).to_have_value("and another thing")


def _file(name: str, kind: str) -> FilePayload:
    return FilePayload(name=name, mimeType=kind, buffer=b"bytes")


async def test_a_page_whose_emulator_ended_says_so(browser: Browser) -> None:
    async with await browser.new_page() as tab:
        async with open_page() as (page, _):
            await tab.goto(page.emulated.page)
            await expect(tab.locator("#bot")).to_have_text("no bot asks for messages")
        await expect(tab.locator("#bot")).to_have_text("the emulator has ended")
