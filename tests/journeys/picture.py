"""Takes the pictures of the README: a real conversation on the real pages, with a scripted model.

    .venv/bin/python -m tests.journeys.picture    writes docs/conversation.png, docs/console.png

The process, the pages, the sandbox, the approval and the receipt are the real ones; only the words of
the model are written down here. Needs chromium and bubblewrap, as the tests do.
"""

import asyncio
import re
import tempfile
from pathlib import Path

from playwright.async_api import expect

from tests.journeys.browsing import browsing

DOCS = Path(__file__).parents[2] / "docs"
RECEIPT = re.compile(r"zc-receipt-\d+-[\w-]{43}")
NOTES = "Unix time begins on a Thursday: 1 January 1970, 00:00 UTC."


async def take(directory: Path) -> None:
    """Hold the conversation and take the pictures.

    Args:
        directory: An empty one, for the daemon's data.
    """
    async with browsing(directory) as here:
        page = await here.log_in(size=(920, 1010))
        here.model.call(
            "shell",
            {"command": "date --utc --date=@0 +'%A, %-d %B %Y'"},
            round=0,
            key="weekday",
        )
        here.model.say("It was a **Thursday**, 1 January 1970.", round=1, key="weekday")
        await page.say("On which weekday did Unix time begin?")
        await page.button("Approve").click()
        await expect(page.answers).to_contain_text("1 January")
        (receipt,) = RECEIPT.findall(str(here.model.requests[-1].messages[-1]["content"]))
        here.model.call(
            "write_file",
            {"path": "notes.txt", "content": f"{NOTES}\n"},
            text=f"I ran `date`, and this is its receipt: {receipt}\n\nNow the note:",
            key="Prove it",
        )
        await page.say("Prove it, and keep it in my notes.")
        await expect(page.button("Approve")).to_be_visible()
        await expect(page.receipts).to_have_attribute("data-verdict", "valid")
        await expect(page.page.locator("#toast")).to_be_hidden()
        await page.page.screenshot(path=DOCS / "conversation.png", animations="disabled")
        console = await page.page.context.new_page()
        await console.set_viewport_size({"width": 920, "height": 620})
        await console.goto(page.page.url.replace("/web/", "/console/approvals"))
        await expect(console.locator("#connection")).to_have_attribute("data-state", "connected")
        await expect(console.locator("#cards time")).to_contain_text("left")
        await console.screenshot(path=DOCS / "console.png", animations="disabled")


def main() -> None:
    """Take it."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(take(Path(directory)))


if __name__ == "__main__":
    main()
