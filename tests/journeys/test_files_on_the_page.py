"""A person sends files on the web page, in a real browser, and the model reads them."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, Route, expect

from tests.journeys.browsing import ChatPage, browsing

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

SUMS: FilePayload = {"name": "sums.csv", "mimeType": "text/csv", "buffer": b"name;sum\nAnn;3\n"}
DROP = """
(name) => {
  const data = new DataTransfer();
  data.items.add(new File(["milk"], name, { type: "text/plain" }));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
}
"""
# Notes the bounds of requests, in milliseconds.
UNBOUNDED = """
window.bounds = [];
AbortSignal.timeout = (most) => {
  bounds.push(most);
  return new AbortController().signal;
};
"""


async def ready(page: ChatPage, count: int) -> None:
    """Wait until so many files have arrived."""
    await expect(page.page.locator("#chosen li[data-state=ready]")).to_have_count(count)


async def test_a_file_is_chosen_sent_and_read(browser: Browser, tmp_path: Path) -> None:
    """It appears above the composer until it is sent, and under the message afterwards."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.locator("#files").set_input_files([SUMS])
        await ready(page, 1)
        await page.shot("file-chosen")
        world.model.call("read_attachment", {"id": 1})
        world.model.say("Ann has 3", round=1)
        await page.say("sum it up")
        await expect(page.answers).to_have_text(["Ann has 3"])
        result = str(world.model.requests[-1].messages[-1]["content"])
        assert "row | name | sum\n1 | Ann | 3" in result
        await expect(page.page.locator("#chosen")).to_be_hidden()
        sent = page.page.locator("#log .files li")
        await expect(sent).to_have_text(["sums.csv"])
        await page.shot("file-sent")
        await page.page.reload()
        await expect(sent).to_have_text(["sums.csv"])


async def test_a_dropped_file_alone_is_a_message(browser: Browser, tmp_path: Path) -> None:
    """Nothing has to be written; a mistake is taken away again, and the rest survives a reload."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.evaluate(DROP, "wrong.txt")
        await page.page.evaluate(DROP, "right.txt")
        await ready(page, 2)
        await page.button("Remove wrong.txt").click()
        await page.page.reload()
        await ready(page, 1)
        world.model.say("seen")
        await page.button("Send").click()
        await expect(page.answers).to_have_text(["seen"])
        content = str(world.model.requests[-1].messages[-1]["content"])
        assert "1. `right.txt`: text, 4 bytes]" in content
        assert "wrong" not in content


async def test_a_removed_file_passes_the_focus_on(browser: Browser, tmp_path: Path) -> None:
    """To the next file, and from the last one to the message."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        for name in ("a.txt", "b.txt"):
            await page.page.evaluate(DROP, name)
        await ready(page, 2)
        await page.button("Remove a.txt").focus()
        await page.page.keyboard.press("Enter")
        await expect(page.button("Remove b.txt")).to_be_focused()
        await page.page.keyboard.press("Enter")
        await expect(page.page.get_by_label("Message", exact=True)).to_be_focused()


async def test_a_message_waits_for_its_upload_and_says_so(browser: Browser, tmp_path: Path) -> None:
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        released = asyncio.Event()

        async def hold(route: Route) -> None:
            await released.wait()
            await route.continue_()

        await page.page.route("**/files/*", hold)
        await page.page.evaluate(DROP, "a.txt")
        await page.say("read it")
        await expect(page.page.locator("#toast")).to_contain_text("being uploaded")
        await expect(page.own).to_have_count(0)
        released.set()
        await ready(page, 1)
        world.model.say("seen")
        await page.page.keyboard.press("Enter")
        await expect(page.answers).to_have_text(["seen"])


async def test_an_upload_that_a_reload_cut_off_is_named(browser: Browser, tmp_path: Path) -> None:
    """Else its message, which is still there, would go without it unnoticed."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.evaluate("() => { window.fetch = () => new Promise(() => {}); }")
        await page.page.evaluate(DROP, "a.txt")
        await expect(page.page.locator("[data-state=sending]")).to_have_count(1)
        await page.page.reload()
        await expect(page.page.locator("#chosen li")).to_contain_text("a.txt: the page was left")


async def test_a_large_file_may_take_its_time(browser: Browser, tmp_path: Path) -> None:
    """Cut off and sent again from the beginning, it would never arrive through a slow tunnel."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.add_init_script(UNBOUNDED)
        await page.page.reload()
        await page.connected()
        photo: FilePayload = {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": b"x" * 8_000_000}
        await page.page.locator("#files").set_input_files([photo])
        await ready(page, 1)
        assert await page.page.evaluate("Math.max(...bounds)") > 1_000_000


async def test_a_file_that_is_too_large_says_so_before_it_is_sent(
    browser: Browser, tmp_path: Path
) -> None:
    """And does not keep the message from going."""
    async with browsing(browser, tmp_path, channels={"web": {"max_file_bytes": 1_000}}) as world:
        page = await world.log_in()
        large: FilePayload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"x" * 1_001}
        await page.page.locator("#files").set_input_files([large])
        refused = page.page.locator("#chosen li[data-state=refused]")
        await expect(refused).to_contain_text("a.txt: it is larger than 1,000 bytes")
        world.model.say("hello")
        await page.say("hi")
        await expect(page.answers).to_have_text(["hello"])
        assert "Files" not in str(world.model.requests[-1].messages[-1]["content"])
        world.page_errors.clear()  # the browser reports the 413
