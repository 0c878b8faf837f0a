"""Takes the screenshots of the README: a real conversation on the real pages, with a scripted model.

    .venv/bin/python -m tests.journeys.picture    writes the pictures under docs/

The process, the pages, the sandbox, the approval and the receipt are the real ones; only the model's
answers are scripted. Needs chromium and bubblewrap, as the tests do.
"""

import asyncio
import os
import re
import tempfile
from functools import partial
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, ViewportSize, expect

from tests.emulators.model_server import ModelServer
from tests.journeys.browsing import browsing, open_browser
from tests.journeys.daemon_process import PROGRAM

PHONES = re.compile(r"http://\S+/")
DOCS = Path(__file__).parents[2] / "docs"
RECEIPT = re.compile(r"zc-receipt-\d+-[\w-]{43}")
NOTES = (
    "Unix time begins on a Thursday: 1 January 1970, 00:00 UTC.",
    "A day of Unix time has 86,400 seconds, whatever the earth does.",
)
PLATFORMS = ("telegram", "discord", "slack", "email")
SCALE = 1.5
"""Device pixels per CSS pixel: crisp on most screens."""
COLOURS = 256
"""Enough for these pages, at half the file size."""


async def picture(page: Page, name: str) -> None:
    """Write a picture of a page under docs/."""
    shot = await page.screenshot(animations="disabled")
    image = Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(DOCS / f"{name}.png", optimize=True)


async def take(directory: Path) -> None:
    """Hold the conversation and take the pictures.

    Args:
        directory: An empty one, for the daemon's data.
    """
    async with open_browser() as browser, browsing(browser, directory) as world:
        page = await world.log_in(size=(920, 1010), scale=SCALE)
        world.model.call(
            "shell", {"command": "date --utc --date=@0 +'%A, %-d %B %Y'"}, round=0, key="weekday"
        )
        world.model.say("It was a **Thursday**, 1 January 1970.", round=1, key="weekday")
        await page.say("On which weekday did Unix time begin?")
        await page.button("Approve once").click()
        await expect(page.answers).to_contain_text("1 January")
        (receipt,) = RECEIPT.findall(str(world.model.requests[-1].messages[-1]["content"]))
        world.model.say(f"I ran `date`: {receipt}", key="Prove it")
        await page.say("Prove it.")
        await expect(page.receipts).to_have_attribute("data-verdict", "valid")
        world.model.call(
            "write_file",
            {"path": "notes.txt", "content": f"{NOTES[0]}\n"},
            text="I'd write this into `notes.txt`.",
            key="Keep it",
        )
        await page.say("Keep it in my notes.")
        await expect(page.button("Approve once")).to_be_visible()
        await expect(page.page.locator("#toast")).to_be_hidden()
        await picture(page.page, "conversation")
        console = await page.page.context.new_page()
        await console.set_viewport_size({"width": 920, "height": 620})
        await console.goto(page.page.url.replace("/web/", "/console/approvals"))
        await expect(console.locator("#connection")).to_have_attribute("data-state", "connected")
        await expect(console.locator("#cards time")).to_contain_text("left")
        await picture(console, "console")


async def take_phones(directory: Path, platform: str) -> None:
    """Hold a conversation on an emulated platform: the operator approves one call and is asked for another.

    Args:
        directory: An empty one, with a short path, since a socket is created below it.
        platform: Its name for `zeroclaw try`.
    """
    async with ModelServer() as model, open_browser() as browser:
        questions = ("Keep in my notes when Unix time began.", "And how long a day is there?")
        for text, note, path in zip(questions, NOTES, ("notes.txt", "days.txt"), strict=True):
            arguments = {"path": path, "content": f"{note}\n"}
            answer = f"I'd write this into `{path}`."
            model.call("write_file", arguments, text=answer, key=text, round=0)
        model.say("It is in `notes.txt`: a **Thursday**.", key=questions[0], round=1)
        config = directory / "zeroclaw.toml"
        config.write_text(
            f'[provider]\nkind = "openai"\nbase_url = "{model.url}"\nmodel = "scripted"\n', "utf-8"
        )
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *("try", platform, "--run", "--config", str(config)),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": str(directory), "TMPDIR": str(directory)},
        )
        try:
            assert process.stdout is not None
            address = PHONES.search((await process.stdout.readline()).decode())
            assert address is not None
            # High enough to show the first card, its outcome and the second card.
            size = ViewportSize(width=1080, height=1230)
            page = await browser.new_page(viewport=size, device_scale_factor=SCALE)
            await page.goto(address[0])
            ann, olga = (page.locator(".phone").nth(number) for number in (0, 1))
            cards = olga.locator(".messages")
            for text, note in zip(questions, NOTES, strict=True):
                if text == questions[1]:
                    # On a platform with slow pacing an immediate press would overtake that note.
                    await expect(ann.locator(".messages")).to_contain_text("Waiting for")
                    await olga.get_by_role("button", name="Approve once").click()
                    await expect(ann.locator(".messages")).to_contain_text("It is in")
                    await expect(cards).to_contain_text("approved by")
                await ann.locator("textarea").fill(text)
                await ann.locator("textarea").press("Enter")
                await expect(cards).to_contain_text(note)
            await expect(ann.get_by_text("Waiting for")).to_have_count(len(questions))
            if platform != "email":
                await expect(ann.locator(".messages")).to_contain_text("days.txt")
            await picture(page, platform)
        finally:
            process.terminate()
            await process.wait()


def main() -> None:
    """Take all screenshots."""
    phones = (partial(take_phones, platform=platform) for platform in PLATFORMS)
    for photograph in (take, *phones):
        with tempfile.TemporaryDirectory() as directory:
            Path(directory).chmod(0o711)  # the mail servers run as users of their own
            asyncio.run(photograph(Path(directory)))


if __name__ == "__main__":
    main()
