"""A person writes on the web page: with an input method, with keys alone, in two goes."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, Route, expect

from tests.journeys.browsing import browsing
from zeroclaw.host.control import request

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

NOTE = FilePayload(name="note.txt", mimeType="text/plain", buffer=b"a note")
# Safari ends the composition first, and only then reports the key, with this code.
ENDS_THE_WORD = """
message => message.dispatchEvent(new KeyboardEvent(
  "keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true }))
"""
# What a spreadsheet copies: the cells as text and as HTML, and a picture of them.
PASTE_CELLS = """
field => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", "a\tb");
  clipboardData.setData("text/html", "<table><tr><td>a</td><td>b</td></tr></table>");
  clipboardData.items.add(new File(["x"], "image.png", { type: "image/png" }));
  return field.dispatchEvent(
    new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}
"""
HIDE = """
Object.defineProperty(document, "hidden", { value: true, configurable: true });
document.dispatchEvent(new Event("visibilitychange"));
"""
# A browser that discards a hidden tab, or crashes, fires no event at the end.
NO_LAST_EVENT = """
window.addEventListener("pagehide", (event) => event.stopImmediatePropagation());
"""
SHOWN_AGAIN = "window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"


async def test_an_enter_that_ends_a_composed_word_sends_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    """Japanese is written so: one Enter takes the word, the next sends the message."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say("はい。")
        message = page.page.get_by_label("Message", exact=True)
        await message.fill("日本語")
        await message.evaluate(ENDS_THE_WORD)
        assert await message.input_value() == "日本語"
        await message.press("Enter")
        await expect(page.answers).to_have_text(["はい。"])
        await expect(page.own).to_have_text(["日本語"])


async def test_a_half_written_message_is_there_again(browser: Browser, tmp_path: Path) -> None:
    """After a look at the console, and after a reload; but not once it is sent."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        message = page.page.get_by_label("Message", exact=True)
        await message.fill("one\ntwo\nthree")
        height = await message.evaluate("one => one.offsetHeight")
        await page.page.locator("#console").click()
        await expect(page.page).to_have_url(re.compile("/console/"))
        await page.page.go_back()
        await expect(message).to_have_value("one\ntwo\nthree")
        assert await message.evaluate("one => one.offsetHeight") == height
        world.model.say("four")
        await message.press("Enter")
        await expect(page.answers).to_have_text(["four"])
        await page.page.reload()
        await expect(page.answers).to_have_text(["four"])
        await expect(message).to_have_value("")


@pytest.mark.parametrize("place", ["web", "console"])
async def test_who_logs_out_leaves_no_words_behind(
    place: str, browser: Browser, tmp_path: Path
) -> None:
    """The next person in this tab would find the half-written message, and send the unsent one."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.route("**/messages", lambda route: route.abort())
        await page.say("an accusation")
        await expect(page.own).to_have_text(["an accusation"])
        await page.page.get_by_label("Message", exact=True).fill("a confession")
        if place == "console":
            await page.page.locator("#console").click()
            await expect(page.page).to_have_url(re.compile("/console/"))
        await page.button("Log out").click()
        await expect(page.page.locator("h1")).to_have_text("You are logged out")
        stored = str(await page.page.evaluate("JSON.stringify(sessionStorage)"))
        assert "confession" not in stored
        assert "accusation" not in stored
        world.page_errors.clear()  # the browser reports the 401


async def test_the_unfinished_message_of_a_discarded_tab_is_restored(
    browser: Browser, tmp_path: Path
) -> None:
    """But not after it was sent, or it would be sent twice."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.add_init_script(NO_LAST_EVENT)
        await page.page.reload()
        message = page.page.get_by_label("Message", exact=True)
        await message.fill("hello")
        await page.page.evaluate(HIDE)
        await page.page.reload()
        await expect(message).to_have_value("hello")
        world.model.say("Hello.")
        await message.press("Enter")
        await expect(page.answers).to_have_text(["Hello."])
        await page.page.reload()
        await expect(page.answers).to_have_text(["Hello."])
        await expect(message).to_have_value("")


async def test_a_message_that_a_busy_proxy_refuses_is_sent_again(
    browser: Browser, tmp_path: Path
) -> None:
    """It stood there as refused, and was gone with a reload (P1)."""
    statuses = [429, 408, 425]

    async def refuse_at_first(route: Route) -> None:
        if statuses:
            await route.fulfill(status=statuses.pop(), body="later")
        else:
            await route.continue_()

    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.route("**/messages", refuse_at_first)
        world.model.say("Hello.")
        await page.say("hello")
        await expect(page.answers).to_have_text(["Hello."])
        world.page_errors.clear()  # the browser reports the three


async def test_a_refused_message_can_be_changed_and_sent_again(
    browser: Browser, tmp_path: Path
) -> None:
    """Its only copy stood in a list that a reload empties (P1)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.locator("#files").set_input_files([NOTE])
        chosen = page.page.locator("#chosen li[data-state=ready]")
        await expect(chosen).to_have_count(1)
        refusal = {"error": "the message is too long"}
        await page.page.route("**/messages", lambda route: route.fulfill(status=413, json=refusal))
        await page.say("a long letter")
        await expect(page.own.locator("..")).to_contain_text("not sent: the message is too long")
        message = page.page.get_by_label("Message", exact=True)
        await expect(message).to_have_value("a long letter")
        await page.page.unroute("**/messages")
        await page.page.reload()
        await expect(message).to_have_value("a long letter")
        await expect(chosen).to_have_count(1)
        world.model.say("Hello.")
        await message.press("Enter")
        await expect(page.answers).to_have_text(["Hello."])
        await expect(page.page.locator("#log .files li")).to_have_text(["note.txt"])
        world.page_errors.clear()  # the browser reports the 413


async def test_cells_of_a_spreadsheet_are_pasted_as_text(browser: Browser, tmp_path: Path) -> None:
    """The clipboard has a picture of them too, which must not take the place of the text."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        message = page.page.get_by_label("Message", exact=True)
        is_pasted_by_the_browser = await message.evaluate(PASTE_CELLS)
        assert is_pasted_by_the_browser
        await expect(page.page.locator("#chosen li")).to_have_count(0)


async def test_a_refused_answer_leaves_the_card_usable(browser: Browser, tmp_path: Path) -> None:
    """The daemon does not send the card again, so nothing else would enable its buttons."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.call("shell", {"command": "true"}, round=0)
        world.model.say("Then not.", round=1)
        await page.say("look around")
        refusal = {"status": "accepted", "toast": "too many messages"}
        await page.page.route("**/answers", lambda route: route.fulfill(json=refusal))
        await page.button("Deny").click()
        await expect(page.page.locator("#toast")).to_have_text("too many messages")
        await page.page.unroute("**/answers")
        await page.button("Deny").click()
        await expect(page.cards).to_contain_text("denied by operator")


async def test_a_reconnect_leaves_the_focus_in_the_reason(browser: Browser, tmp_path: Path) -> None:
    """Else the next keys would go nowhere, or scroll the page."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.call("shell", {"command": "true"}, round=0)
        world.model.say("Then not.", round=1)
        await page.say("look around")
        await page.button("Deny, because …").click()
        await page.page.keyboard.type("too ")
        await world.daemon.kill()
        await page.connected("reconnecting")
        await world.daemon.start()
        await page.connected()
        await page.page.keyboard.type("much")
        await page.page.keyboard.press("Enter")
        await expect(page.cards.locator("q")).to_have_text("too much")


async def test_another_answer_leaves_the_focus_where_it_is(
    browser: Browser, tmp_path: Path
) -> None:
    """The card is drawn again, with all of its buttons."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        calls = (("shell", {"command": command}) for command in ("echo 1", "echo 2"))
        world.model.calls(*calls, round=0)
        world.model.say("Done.", round=1)
        await page.say("look around")
        second = page.page.get_by_role("group", name="2 shell run `echo 2`")
        toggle = second.get_by_role("button", name="Deny, because …")
        await toggle.focus()
        second_tab = await world.another_tab(page)
        await second_tab.say("/deny 1")
        await expect(page.cards).to_contain_text("denied by operator")
        await expect(toggle).to_be_focused()


async def test_a_button_that_disappears_passes_the_focus_on(
    browser: Browser, tmp_path: Path
) -> None:
    """Stop to Send at the end of an answer, and the way to the newest message to the conversation."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(700, 500))
        gate = world.model.gate()
        world.model.say("Line.\n\n" * 40, gate, "The end.")
        await page.say("count")
        await expect(page.draft).to_contain_text("Line.")
        await page.button("Stop").focus()
        gate.open()
        await expect(page.answers).to_contain_text("The end.")
        await expect(page.button("Send")).to_be_focused()
        await page.page.locator("#scroller").evaluate("scroller => { scroller.scrollTop = 0; }")
        await page.button("newest ↓").focus()
        await page.page.keyboard.press("Enter")
        await expect(page.button("newest ↓")).to_be_hidden()
        await expect(page.page.locator("#scroller")).to_be_focused()


async def test_a_countdown_is_not_read_aloud_every_second(browser: Browser, tmp_path: Path) -> None:
    """The conversation is a live region; a timer in it is none."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.call("shell", {"command": "true"}, round=0)
        await page.say("look around")
        await expect(page.cards.get_by_role("timer")).to_contain_text("left")


async def test_after_an_answer_the_keys_stay_at_its_card(browser: Browser, tmp_path: Path) -> None:
    """The pressed button is gone, and the keyboard would begin again at the top of the page."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.call("shell", {"command": "true"}, round=0)
        world.model.say("Then not.", round=1)
        await page.say("look around")
        await page.button("Deny").focus()
        await page.page.keyboard.press("Enter")
        await expect(page.cards).to_contain_text("denied by operator")
        await expect(page.cards).to_be_focused()
        await page.page.keyboard.press("Tab")
        await expect(page.cards.locator("summary")).to_be_focused()


@pytest.mark.parametrize("place", ["web", "console"])
async def test_going_back_after_logging_out_shows_nothing(
    place: str, browser: Browser, tmp_path: Path
) -> None:
    """Safari keeps whole pages to go back to, in spite of the server's `no-store`."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.goto(page.page.url.replace("/web/", f"/{place}/"))
        await world.follow(page.page)
        await page.page.evaluate(SHOWN_AGAIN)
        await expect(page.page.get_by_role("button", name="Log out")).to_be_visible()
        await request(tmp_path / "data", {"call": "logout"})
        await page.connected("logged out")
        await page.page.evaluate(SHOWN_AGAIN)
        await expect(page.page.locator("h1")).to_have_text("Please log in")
        world.page_errors.clear()  # the browser reports each 401


async def test_a_draft_to_one_bot_does_not_go_to_another(browser: Browser, tmp_path: Path) -> None:
    """Two pages of one daemon, one after the other in one tab: each keeps its own words."""
    pages = {"first": {"kind": "web"}, "second": {"kind": "web"}}
    async with browsing(browser, tmp_path, channels=pages) as world:
        page = await world.log_in()
        first, second = page.page.url, page.page.url.replace("/first/", "/second/")
        message = page.page.get_by_label("Message", exact=True)
        await page.page.route("**/messages", lambda route: route.abort())
        await page.say("sent to the first")
        await message.fill("written to the first")
        await expect(page.page.locator("[data-sending=waiting]")).to_have_count(1)
        await page.page.goto(second)
        await world.follow(page.page)
        await expect(page.log).to_have_count(0)
        await expect(message).to_have_value("")
        await page.page.unroute("**/messages")
        world.model.say("Hello.")
        await page.page.goto(first)
        await expect(page.answers).to_have_text(["Hello."])
        await expect(message).to_have_value("written to the first")


async def test_a_message_whose_request_hangs_is_sent_again_after_a_reconnect(
    browser: Browser, tmp_path: Path
) -> None:
    """A request on a broken tunnel gets no reply and no error, and others wait for it."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        requests: asyncio.Queue[Route] = asyncio.Queue()
        await page.page.route("**/messages", requests.put_nowait, times=1)
        await page.page.clock.install()
        world.model.say("Hello.")
        await page.say("hi")
        hung = await requests.get()
        await page.page.clock.fast_forward(20_000)
        await world.daemon.restart()
        await page.page.evaluate("window.dispatchEvent(new Event('online'))")
        await expect(page.answers).to_have_text(["Hello."])
        await expect(page.own).to_have_text(["hi"])
        await hung.abort()
