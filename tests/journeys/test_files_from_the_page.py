"""The bot gives a file to the person at the page, in a real browser: a link that saves it."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.journeys.browsing import browsing

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PAGE = "<script>alert(1)</script>\nÄnne;3,50 €\n"


async def test_a_file_is_a_link_that_saves_it_and_stays(browser: Browser, tmp_path: Path) -> None:
    """Byte for byte, under its name, never as a page of ours; also after a reload."""
    async with browsing(browser, tmp_path, autonomy="full") as world:
        page = await world.log_in()
        world.model.call("write_file", {"path": "sums.html", "content": PAGE}, round=0)
        sent = {"path": "sums.html", "caption": "the *sums*", "name": "sums of Änne.html"}
        world.model.call("send_file", sent, round=1)
        world.model.say("There it is.", round=2)
        await page.say("make it")
        link = page.page.locator("#log .files a")
        await expect(link).to_have_text(["sums of Änne.html"])
        await expect(
            page.page.locator("#log .bot", has=page.page.locator(".files a"))
        ).to_contain_text("the *sums*")
        await page.shot("file-from-the-bot")
        for _ in range(2):
            async with page.page.expect_download() as saving:
                await link.click()
            saved = await saving.value
            assert saved.suggested_filename == "sums of Änne.html"
            body = await asyncio.to_thread((await saved.path()).read_bytes)
            assert body == PAGE.encode()
            await page.page.reload()
            await expect(link).to_have_text(["sums of Änne.html"])
        address = await link.get_attribute("href")
        answer = await page.page.request.get(f"{page.page.url}{address}")
        headers = answer.headers
        assert headers["content-type"] == "application/octet-stream"
        assert headers["content-disposition"].startswith("attachment;")
        assert headers["x-content-type-options"] == "nosniff"
        missing = await page.page.request.get(f"{page.page.url}sent/01NEVER")
        assert (missing.status, await missing.text()) == (404, "this file is no longer kept\n")


async def test_a_file_needs_the_login(browser: Browser, tmp_path: Path) -> None:
    async with browsing(browser, tmp_path, autonomy="full") as world:
        page = await world.log_in()
        world.model.call("write_file", {"path": "a.txt", "content": "milk"}, round=0)
        world.model.call("send_file", {"path": "a.txt"}, round=1)
        world.model.say("There it is.", round=2)
        await page.say("make it")
        link = page.page.locator("#log .files a")
        await expect(link).to_have_text(["a.txt"])
        address = f"{page.page.url}{await link.get_attribute('href')}"
        await page.page.context.clear_cookies()
        answer = await page.page.request.get(address)
        assert answer.status == 401
        assert "milk" not in await answer.text()
