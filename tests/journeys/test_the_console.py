"""An operator at the console, in a real browser: approvals, grants, audit, policy."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.journeys.browsing import SHOTS, ChatPage, WebWorld, browsing
from zeroclaw.host.control import request

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium", "bwrap")]

HOSTILE = "<img src=x onerror=alert(1)>"


@dataclass(frozen=True, kw_only=True)
class Console:
    """An open page of the console."""

    page: Page

    @property
    def cards(self) -> Locator:
        """The open questions."""
        return self.page.locator("#cards > .card")

    @property
    def notice(self) -> Locator:
        """The result of the last form."""
        return self.page.locator("#result")

    def button(self, name: str) -> Locator:
        """Find a button by its label."""
        return self.page.get_by_role("button", name=name, exact=True)

    async def go(self, section: str) -> None:
        """Go to a section by its link, and wait for the line."""
        await self.page.get_by_label("sections").get_by_role("link", name=section).click()
        await self.live()

    async def live(self) -> None:
        """Wait until the page follows what changes."""
        await expect(self.page.locator("#connection")).to_have_attribute("data-state", "connected")

    async def shot(self, name: str) -> None:
        """Take a picture, to be looked at."""
        path = SHOTS / f"console-{name}.png"
        await self.page.screenshot(path=path, animations="disabled", full_page=True)


@asynccontextmanager
async def consoling(
    browser: Browser, directory: Path, **config: object
) -> AsyncGenerator[tuple[WebWorld, ChatPage, Console]]:
    """The chat and the console, in two tabs of one browser; `config` as for `browsing`."""
    async with browsing(browser, directory, **config) as world:
        chat = await world.log_in()
        async with chat.page.context.expect_page() as popup:
            await chat.page.get_by_role("link", name="Console").click(modifiers=["Control"])
        console = Console(page=await popup.value)
        await console.live()
        yield world, chat, console


async def asks(world: WebWorld, chat: ChatPage, command: str, key: str = "look") -> None:
    """Let the model want to run a command."""
    world.model.call("shell", {"command": command}, round=0, key=key)
    world.model.say("Done.", round=1, key=key)
    await chat.say(key)


async def test_a_call_is_approved_from_the_console_while_the_chat_waits(
    browser: Browser, tmp_path: Path
) -> None:
    """It comes up by itself; pressed there, the chat's card says by whom and the call runs (P5)."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await expect(console.page.get_by_text("Nothing waits for you.")).to_be_visible()
        await console.shot("nothing-waits")
        await asks(world, chat, f"echo '{HOSTILE}'")
        await expect(console.cards).to_have_count(1)
        await expect(console.cards.locator("pre")).to_contain_text(HOSTILE)
        await expect(console.cards.locator("time")).to_contain_text("left")
        await expect(console.page.get_by_role("link", name="Approvals")).to_contain_text("1")
        await console.shot("waiting")
        await console.button("Approve once").click()
        await expect(console.notice).to_have_text("approved: shell")
        await expect(console.cards).to_have_count(0)
        await expect(console.page.locator("#endings")).to_contain_text("by operator")
        await expect(chat.cards).to_contain_text("approved by operator")
        await expect(chat.answers).to_contain_text("Done.")
        await console.shot("approved")


async def test_a_reason_that_is_being_typed_survives_what_changes_meanwhile(
    browser: Browser, tmp_path: Path
) -> None:
    """The page refreshes around it; once sent, it appears on the card and reaches the model."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "rm -r all")
        await console.page.get_by_text("Deny, because …").click()
        await console.page.get_by_label("Reason", exact=True).fill("too much")
        world.model.say("What else?", key="meanwhile")
        await chat.say("meanwhile")
        await expect(chat.log.last).to_contain_text("Waiting for")
        await console.shot("denying")
        await console.page.keyboard.press("Enter")
        await expect(console.notice).to_have_text("denied: shell")
        await expect(chat.cards).to_contain_text("too much")
        await expect(console.page.locator("#endings q")).to_have_text("too much")


async def test_an_answer_that_is_being_given_survives_a_kill(
    browser: Browser, tmp_path: Path
) -> None:
    """The page reconnects by itself, with the typed text, and the new process takes the answer (P5)."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "rm -r all")
        await console.page.get_by_text("Deny, because …").click()
        await console.page.get_by_label("Reason", exact=True).fill("too much")
        token = console.cards.locator("input[name=token]").first
        before = await token.input_value()
        await world.daemon.restart()
        await expect(token).not_to_have_value(before)
        await console.page.keyboard.press("Enter")
        await expect(console.notice).to_have_text("denied: shell")
        await chat.connected()
        await expect(chat.cards).to_contain_text("too much")


async def test_a_press_without_a_connection_says_so_and_can_be_repeated(
    browser: Browser, tmp_path: Path
) -> None:
    """In our words, on the card; nothing of it is lost or done twice (P10)."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "true")
        await expect(console.cards).to_have_count(1)
        token = console.cards.locator("input[name=token]").first
        before = await token.input_value()
        await world.daemon.kill()
        await console.button("Approve once").click()
        await expect(console.cards).to_contain_text("the daemon can't be reached; press again")
        await world.daemon.start()
        await console.live()
        await expect(token).not_to_have_value(before)
        await expect(console.cards).to_contain_text("the daemon can't be reached; press again")
        await console.button("Approve once").click()
        await expect(console.notice).to_have_text("approved: shell")


async def test_the_console_goes_on_after_the_next_login(browser: Browser, tmp_path: Path) -> None:
    """A tab that was logged out follows again, as the chat does, with its forms."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "true")
        await request(tmp_path / "data", {"call": "logout"})
        await expect(console.page.locator("#connection")).to_contain_text("logged out")
        login = await chat.page.context.new_page()
        await login.goto(str((await request(tmp_path / "data", {"call": "status"}))["login_url"]))
        await world.follow(login)
        await console.page.evaluate("window.dispatchEvent(new Event('focus'))")
        await console.live()
        await console.button("Approve once").click()
        await expect(console.notice).to_have_text("approved: shell")
        world.page_errors.clear()  # the browser reports each 401


async def test_a_second_press_does_not_answer_the_call_that_slides_under_it(
    browser: Browser, tmp_path: Path
) -> None:
    """It is held once and says so; a second press counts (P5)."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        at = (0.0, 0.0)
        for number, tools in enumerate((["true"], ["echo 1", "echo 2"])):
            key = f"look {number}"
            calls = (("shell", {"command": command}) for command in tools)
            world.model.calls(*calls, round=0, key=key)
            world.model.say("Done.", round=1, key=key)
            await chat.say(key)
            await expect(console.cards).to_have_count(len(tools))
            approve = console.button("Approve once").first
            box = await approve.bounding_box()
            assert box is not None
            at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            await console.page.mouse.click(*at)
            await expect(console.cards).to_have_count(len(tools) - 1)
        await console.page.mouse.click(*at)
        await expect(console.cards).to_contain_text("press again if you mean it")
        await expect(console.cards).to_have_count(1)
        await console.page.mouse.click(*at)
        await expect(console.cards).to_have_count(0)


async def test_everything_can_be_done_with_keys_alone(browser: Browser, tmp_path: Path) -> None:
    """From the top of the page to the button, and the press is heard."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "true")
        await expect(console.cards).to_have_count(1)
        await console.page.keyboard.press("Tab")
        await expect(console.page.get_by_text("to the content")).to_be_focused()
        await console.page.keyboard.press("Enter")
        await console.page.keyboard.press("Tab")  # the whole call, which scrolls
        await console.page.keyboard.press("Tab")  # where it was asked
        await console.page.keyboard.press("Tab")
        await expect(console.button("Approve once")).to_be_focused()
        await console.page.keyboard.press("Enter")
        await expect(chat.cards).to_contain_text("approved by operator")


async def test_the_header_does_not_cover_the_content_it_is_skipped_for(
    browser: Browser, tmp_path: Path
) -> None:
    """It stays at the top of the window (WCAG 2.4.11)."""
    async with consoling(browser, tmp_path) as (_world, _chat, console):
        await console.page.set_viewport_size({"width": 360, "height": 300})
        await console.page.keyboard.press("Tab")
        await console.page.keyboard.press("Enter")
        header = await console.page.locator("body > header").bounding_box()
        title = await console.page.locator("h1").bounding_box()
        assert header is not None
        assert title is not None
        assert title["y"] >= header["y"] + header["height"]


async def test_the_page_works_without_its_script(browser: Browser, tmp_path: Path) -> None:
    """The page is static, and its forms work."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "true")
        await expect(console.cards).to_have_count(1)
        plain = await world.browser.new_context(
            java_script_enabled=False, storage_state=await chat.page.context.storage_state()
        )
        still = Console(page=await plain.new_page())
        await still.page.goto(console.page.url)
        await still.button("Approve once").click()
        await expect(still.notice).to_have_text("approved: shell")
        await expect(chat.cards).to_contain_text("approved by operator")
        await plain.close()


async def test_a_grant_is_revoked_and_the_next_call_asks_again(
    browser: Browser, tmp_path: Path
) -> None:
    """Active grants are listed with their end, and a revocation ends one at once."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "echo once", key="first")
        await console.button("Approve for a time").click()
        await expect(chat.answers).to_contain_text("Done.")
        await console.go("Grants")
        await expect(console.page.locator("#held > li")).to_contain_text("left")
        await console.shot("grants")
        await console.button("Revoke").click()
        await expect(console.page.get_by_text("Nothing is granted")).to_be_visible()
        await asks(world, chat, "echo once", key="second")
        await expect(chat.button("Approve once")).to_be_visible()


async def test_conversations_are_read_and_nothing_written_in_them_is_more_than_text(
    browser: Browser, tmp_path: Path
) -> None:
    """A made-up receipt is marked as in the chat, and has no badge (P7)."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        world.model.say(f"**Sure.** [receipt: zc-receipt-1700000000-{'A' * 43}]", key=HOSTILE)
        await chat.say(HOSTILE)
        await expect(chat.answers).to_contain_text("⚠️ false receipt")
        await expect(chat.receipts).to_have_count(0)
        await console.go("Conversations")
        await console.page.locator("#talks a").first.click()
        await expect(console.page.locator("#talk > .person")).to_contain_text(HOSTILE)
        await expect(console.page.locator("#talk strong")).to_have_text("Sure.")
        await expect(console.page.locator("#talk > .bot")).to_contain_text("⚠️ false receipt")
        await expect(console.page.locator(".receipt")).to_have_count(0)
        await console.shot("conversation")
        await console.go("People")
        await expect(console.page.get_by_text("No pairing requests.")).to_be_visible()
        await console.shot("people")


async def test_a_conversation_has_its_title_and_one_off_the_record_has_none(
    browser: Browser, tmp_path: Path
) -> None:
    """Asked of the model once, behind the third answer, across a kill; of the other nothing is shown.

    S3-31, K23.
    """
    async with consoling(browser, tmp_path, runtime={"titles": True}) as (world, chat, console):
        world.model.say("All about tea", key="person: tea one")
        for text in ("tea one", "tea two", "tea three"):
            await chat.say(text)
            await expect(chat.answers.last).to_contain_text(text)
        await console.go("Conversations")
        await expect(console.page.locator("#talks")).to_contain_text("All about tea")
        await world.daemon.kill()
        await world.daemon.start()
        await chat.connected()
        await chat.say("/otr")
        await expect(chat.answers.last).to_contain_text("Off the record from now on")
        for text in ("hush one", "hush two", "hush three"):
            await chat.say(text)
            await expect(chat.answers.last).to_contain_text(text)
        await chat.say("/otr off")
        await expect(chat.answers.last).to_contain_text("On the record again")
        await chat.say("tea four")
        await expect(chat.answers.last).to_contain_text("tea four")
        await console.live()
        await expect(console.page.locator("#talks")).to_contain_text("All about tea")
        await expect(console.page.locator("body")).not_to_contain_text("hush")
        inputs = [request.last_user for request in world.model.requests]
        assert [text for text in inputs if text.startswith("person: ")] == [
            "person: tea one\nbot: tea one\nperson: tea two\nbot: tea two\nperson: tea three\n"
            "bot: tea three"
        ]
        assert inputs[-1] == "tea four"


async def test_the_policy_explains_itself(browser: Browser, tmp_path: Path) -> None:
    """Typed, explained, with the statements that made it; and all that are in force."""
    async with consoling(browser, tmp_path) as (_, _chat, console):
        await console.go("Tools")
        await console.shot("tools")
        await console.page.get_by_role("link", name="shell").click()
        await expect(console.page.get_by_label("Tool or action")).to_have_value("shell")
        await console.page.get_by_label("Arguments, as JSON").fill('{"command": "ls"}')
        await console.button("Explain").click()
        answer = console.page.locator("#answer")
        await expect(answer).to_contain_text("may do it if an approver says yes")
        await expect(answer).to_contain_text("sandbox:workspace")
        await expect(answer.locator("tr[data-made]")).to_have_count(2)
        await expect(console.page.get_by_label("Tool or action")).to_have_value("shell")
        await expect(console.page.locator("#statements tbody tr").first).to_be_visible()
        await console.live()
        await console.shot("policy")


async def test_a_damaged_chain_is_shown_as_damaged(browser: Browser, tmp_path: Path) -> None:
    """The file was tampered with: the page reports and marks the broken entry."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, "true")
        await console.button("Approve once").click()
        await expect(chat.answers).to_contain_text("Done.")
        await console.go("Audit")
        await expect(console.page.locator("#streams")).to_contain_text("intact")
        await console.shot("audit")
        await world.daemon.kill()
        forge(tmp_path / "data")
        await world.daemon.start()
        await console.live()
        await expect(console.page.locator("#streams")).to_contain_text("damaged")
        await console.page.locator("#streams a").first.click()
        await expect(console.page.locator("#verdict")).to_contain_text("entry 2")
        await expect(console.page.locator("#entry-2")).to_have_attribute("data-broken", "true")
        await console.shot("damaged")


def forge(data: Path) -> None:
    """Make the policy have said yes, as a hand in the file would."""
    [file] = data.glob("*.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        changed = connection.execute(
            "UPDATE log_entry SET body = CAST(replace(body, ?, ?) AS BLOB) WHERE log = 'audit' AND sequence = 2",
            (b'"decision":"ask"', b'"decision":"yes"'),
        )
        assert changed.rowcount == 1


async def test_the_console_reads_well_on_a_phone_in_the_dark(
    browser: Browser, tmp_path: Path
) -> None:
    """Nothing is wider than the screen but tables, which scroll in themselves."""
    async with consoling(browser, tmp_path) as (world, chat, console):
        await asks(world, chat, f"echo {'x' * 300}")
        await expect(console.cards).to_have_count(1)
        context = await world.browser.new_context(
            viewport={"width": 390, "height": 844},
            color_scheme="dark",
            storage_state=await chat.page.context.storage_state(),
        )
        phone = Console(page=await context.new_page())
        root = console.page.url.rpartition("/")[0]
        for name in ("approvals", "grants", "people", "conversations", "audit", "tools", "policy"):
            await phone.page.goto(f"{root}/{name}")
            await phone.live()
            width = await phone.page.locator("main").evaluate("node => node.scrollWidth")
            assert width <= 390, name
            await phone.shot(f"phone-{name}")
        await context.close()
