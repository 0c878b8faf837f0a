"""A person at the web page: a real browser, the real daemon, a scripted model.

    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say("Hello.")
        await page.say("hi")
        await expect(page.answers).to_have_text(["Hello."])

The page's content security policy forbids evaluated code, and with it playwright's `wait_for_function`:
tests wait with locators and `expect`.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    async_playwright,
    expect,
)

from channels._remote.emulator.http import reserve_port
from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import PRODUCT, fork
from tests.journeys.configuration import merged, toml
from tests.journeys.daemon_process import PROGRAM, DaemonProcess, Launch, spawn

CHROMIUM = "/usr/bin/chromium-headless-shell"
ARGUMENTS = (
    "--headless",
    "--no-sandbox",  # root, on machines made for tests
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SHOTS = Path(__file__).parents[2] / "build" / "pages"
"""Where screenshots go, for people to look at; not kept in git."""
PATIENCE_MS = 60_000
LINK = re.compile(r"http://\S+\?login=\S+")
T = TypeVar("T")
Start = tuple[tuple[str, ...], Launch]
FORKED: Start = (PRODUCT, fork)
EXECUTED: Start = ((PROGRAM,), spawn)
"""As people start it; for one journey, since it takes longer (`tests/faults/fork_client.py`)."""

expect.set_options(timeout=PATIENCE_MS)


@dataclass(frozen=True, kw_only=True)
class ChatPage:
    """One open page of the chat; `sends` is the key that sends."""

    page: Page
    sends: str = "Enter"

    @property
    def log(self) -> Locator:
        """All entries of the chat."""
        return self.page.locator("#log > li")

    @property
    def own(self) -> Locator:
        """The person's messages."""
        return self.page.locator("#log > .person .body")

    @property
    def draft(self) -> Locator:
        """The answer that is being written."""
        return self.page.locator("#log > .bot.draft .body")

    @property
    def answers(self) -> Locator:
        """The bot's finished answers."""
        return self.page.locator("#log > .bot:not(.draft) .body")

    @property
    def cards(self) -> Locator:
        """The approval cards."""
        return self.page.locator("#log > .card")

    @property
    def receipts(self) -> Locator:
        """The badges of receipts."""
        return self.page.locator(".receipt")

    def button(self, name: str) -> Locator:
        """Find a button by its label."""
        return self.page.get_by_role("button", name=name, exact=True)

    async def say(self, text: str) -> None:
        """Type a message and send it."""
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.keyboard.press(self.sends)

    async def connected(self, state: str = "connected") -> None:
        """Wait until the page shows this state of its connection."""
        await expect(self.page.locator("#connection")).to_have_attribute("data-state", state)

    async def shot(self, name: str) -> None:
        """Take a screenshot, for people to look at."""
        await self.page.screenshot(path=SHOTS / f"{name}.png", animations="disabled")


@dataclass(eq=False, kw_only=True)
class WebWorld:
    """One journey's person, browser, model and daemon.

    Attributes:
        page_errors: Script errors on the pages, and refusals by their content security policy.
    """

    browser: Browser
    model: ModelServer
    daemon: DaemonProcess
    directory: Path
    page_errors: list[str] = field(default_factory=list[str])
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Check again what `until` waits for."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until `holds` returns a true value, checked at each line of the daemon; fail when it dies."""
        while not (found := condition()):
            self.daemon.check()
            await self._changed.wait()
        return found

    async def link(self, process: int = 0) -> str:
        """Return the login link that the n-th process of the daemon printed."""

        def found() -> str:
            links = [match[0] for line in self.daemon.stdout if (match := LINK.search(line))]
            return links[process] if len(links) > process else ""

        return await self.until(found)

    async def new_browser(
        self,
        *,
        size: tuple[int, int] = (1100, 800),
        dark: bool = False,
        scale: float = 1,
        touch: bool = False,
    ) -> BrowserContext:
        """Open a browser without cookies."""
        context = await self.browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            device_scale_factor=scale,
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            reduced_motion="reduce",
        )
        # A click waits for its button, and so for the daemon, as `expect` does; the default is 30 s.
        context.set_default_timeout(PATIENCE_MS)
        context.on("weberror", lambda error: self.page_errors.append(str(error.error)))
        context.on("console", self._record_error)
        return context

    async def log_in(
        self,
        *,
        size: tuple[int, int] = (1100, 800),
        dark: bool = False,
        scale: float = 1,
        touch: bool = False,
    ) -> ChatPage:
        """Open the daemon's link in a new browser, and wait for the conversation."""
        context = await self.new_browser(size=size, dark=dark, scale=scale, touch=touch)
        page = await context.new_page()
        await page.goto(await self.link())
        return await self.follow(page)

    async def follow(self, page: Page) -> ChatPage:
        """Wait until a page follows the conversation."""
        chat = ChatPage(page=page)
        await chat.connected()
        return chat

    async def another_tab(self, chat: ChatPage) -> ChatPage:
        """Open the same page a second time in the same browser."""
        page = await chat.page.context.new_page()
        await page.goto(chat.page.url)
        return await self.follow(page)

    def _record_error(self, message: ConsoleMessage) -> None:
        # The browser reports a connection that breaks when the daemon is killed; that is expected.
        if message.type == "error" and "net::ERR" not in message.text:
            self.page_errors.append(message.text)


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    """Start playwright's driver and a browser without pages."""
    async with (
        async_playwright() as player,
        await player.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS]) as browser,
    ):
        yield browser


@asynccontextmanager
async def browsing(
    browser: Browser, directory: Path, start: Start = FORKED, /, **config: object
) -> AsyncGenerator[WebWorld]:
    """Open everything and start the daemon; kill it at the end, and close every page.

    Args:
        browser: Without pages; a person's cookies and cache end with this world.
        directory: An empty directory of this test's own.
        start: The daemon's program, and how it is started.
        config: Tables of the configuration, merged over the usual ones.
    """
    SHOTS.mkdir(parents=True, exist_ok=True)
    async with ModelServer() as model, asyncio.TaskGroup() as group:
        path = directory / "zeroclaw.toml"
        path.write_text(toml(merged(_usual(directory, model), config)), encoding="utf-8")
        daemon = DaemonProcess(
            group=group,
            config=path,
            log=directory / "stderr.log",
            environment=_environment(directory),
            changed=lambda: world.wake(),  # noqa: PLW0108  it is created below
            command=start[0],
            launch=start[1],
        )
        world = WebWorld(browser=browser, model=model, daemon=daemon, directory=directory)
        try:
            await daemon.start()
            await world.link()
            yield world
            assert world.page_errors == []
        except (AssertionError, Error) as error:
            error.add_note("\n".join((*world.page_errors, daemon.report())))
            raise
        finally:
            await daemon.kill()
            for context in browser.contexts:
                await context.close()


def _usual(directory: Path, model: ModelServer) -> dict[str, object]:
    return {
        "data_dir": str(directory / "data"),
        "workspace_dir": str(directory / "workspaces"),
        "provider": {"kind": "openai", "base_url": model.url, "model": "scripted", "stall_s": 20.0},
        "runtime": {"grace_s": 1.0},
        # The same port after a restart, for the page reconnects to it.
        "listener": {"port": reserve_port()},
        "channels": {"terminal": {"enabled": False}},
    }


def _environment(directory: Path) -> Mapping[str, str]:
    return {
        "HOME": str(directory / "home"),
        "XDG_CONFIG_HOME": str(directory / "home" / "config"),
        "XDG_DATA_HOME": str(directory / "home" / "data"),
    }
