"""A person writes on the web page: with an input method, with keys alone, in two goes."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.journeys.browsing import browsing

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


async def test_after_an_answer_the_keys_stay_at_its_card(tmp_path: Path) -> None:
    """The pressed button is gone, and the keyboard would begin again at the top of the page."""
    async with browsing(tmp_path) as here:
        page = await here.log_in()
        here.model.call("shell", {"command": "true"}, round=0)
        here.model.say("Then not.", round=1)
        await page.say("look around")
        await page.button("Deny").focus()
        await page.page.keyboard.press("Enter")
        await expect(page.cards).to_contain_text("denied by operator")
        await expect(page.cards).to_be_focused()
        await page.page.keyboard.press("Tab")
        await expect(page.cards.locator("summary")).to_be_focused()
