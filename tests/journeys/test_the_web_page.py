"""A person talks to the bot on the web page, in a real browser."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.emulators.pages import Page, Pages
from tests.fakes.german import english_in
from tests.journeys.browsing import EXECUTED, ChatPage, WebWorld, browsing
from zeroclaw.host.control import request

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

TOKEN = re.compile(r"zc-receipt-\d+-[\w-]{43}")
HAS_A_SIGN = """
one => getComputedStyle(one).backgroundColor !== getComputedStyle(one.firstChild).backgroundColor
"""
FORGED = "zc-receipt-1700000000-" + "A" * 43


async def asks_to_run(world: WebWorld, page: ChatPage, command: str) -> None:
    """Let the model want to run a command, and wait for the card."""
    world.model.call("shell", {"command": command}, text="I look.", round=0, key="look")
    await page.say("look around")
    await expect(page.cards).to_have_count(1)


async def test_the_login_link_opens_once(browser: Browser, tmp_path: Path) -> None:
    """The first browser is logged in; the link works for no second one, and leaves the address bar."""
    async with browsing(browser, tmp_path, EXECUTED) as world:
        link = await world.link()
        page = await world.log_in()
        assert "login" not in page.page.url
        late = await (await world.new_browser()).new_page()
        answer = await late.goto(link)
        assert answer is not None
        assert answer.status == 401
        await expect(late.locator("body")).to_contain_text("zeroclaw status")
        await ChatPage(page=late).shot("login-refused")
        await page.page.goto(link)
        await world.follow(page.page)
        async with Pages() as another_port:
            another_port.pages["/web/"] = Page(body=b"whoever listens here")
            elsewhere = await page.page.context.new_page()
            await elsewhere.goto(f"{another_port.url}/web/")
            assert "cookie" not in another_port.requests[0][1]
        world.page_errors.clear()  # the browser reports the 401


@pytest.mark.parametrize("dark", [False, True])
async def test_a_login_that_has_ended_is_shown_and_loses_nothing(
    dark: bool, browser: Browser, tmp_path: Path
) -> None:
    """Messages written meanwhile stay visible, and are sent after the next login, in any tab. P1."""
    data = tmp_path / "data"
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(390, 700), dark=dark)
        world.model.say("Hello.", key="hi")
        world.model.say("Yes.", key="still there?")
        await page.say("hi")
        await expect(page.answers).to_have_text(["Hello."])
        await page.shot(f"logged-in-{dark}")
        assert await request(data, {"call": "logout"}) == {"sessions": 1}
        await page.connected("logged out")
        await page.say("still there?")
        await expect(page.page.locator("[data-sending=waiting]")).to_have_text(
            re.compile("still there?")
        )
        await expect(page.page.get_by_role("alert")).to_contain_text("zeroclaw status")
        await expect(page.button("Log out")).to_be_hidden()
        await page.shot(f"logged-out-{dark}")
        second_tab = await page.page.context.new_page()
        await second_tab.goto(str((await request(data, {"call": "status"}))["login_url"]))
        await world.follow(second_tab)
        await page.page.evaluate("window.dispatchEvent(new Event('focus'))")
        await page.connected()
        await expect(page.answers).to_have_text(["Hello.", "Yes."])
        await expect(page.page.locator("[data-sending=waiting]")).to_have_count(0)
        await expect(page.page.get_by_role("alert")).to_be_hidden()
        await ChatPage(page=second_tab).button("Log out").click()
        await expect(second_tab.locator("h1")).to_have_text("You are logged out")
        await ChatPage(page=second_tab).shot(f"logged-out-by-itself-{dark}")
        await page.connected("logged out")
        world.page_errors.clear()  # the browser reports each 401


async def test_a_draft_grows_before_ones_eyes(browser: Browser, tmp_path: Path) -> None:
    """The answer is one message, written in place, never shown ahead of the model (P6)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(390, 480))
        first, second, third = (world.model.gate() for _ in range(3))
        world.model.say(first, "One, ", second, "**two**, ", third, "three.")
        await page.say("count, and count well. " * 40)
        await first.reached()
        await expect(page.page.locator("#typing")).to_be_visible()
        # The chat is longer than a screen, and it alone scrolls; the page is as tall as its window.
        assert await page.page.evaluate("scroller.scrollHeight > scroller.clientHeight")
        assert await page.page.evaluate("document.documentElement.scrollHeight") == 480
        await page.shot("waiting")
        first.open()
        await expect(page.draft).to_have_text("One,")
        second.open()
        await expect(page.draft).to_have_text("One, two,")
        await page.shot("draft")
        third.open()
        await expect(page.answers).to_have_text(["One, two, three."])
        await expect(page.draft).to_have_count(0)
        await expect(page.page.locator("#typing")).to_be_hidden()
        await expect(page.log).to_have_count(2)


async def test_a_reload_shows_the_whole_draft_and_then_goes_on(
    browser: Browser, tmp_path: Path
) -> None:
    """Nothing that was shown is lost, and the answer ends on the new page (§1 of the page)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        middle, end = world.model.gate(), world.model.gate()
        world.model.say("One, ", middle, "two, ", end, "three.")
        await page.say("count")
        await expect(page.draft).to_have_text("One,")
        await page.page.reload()
        await expect(page.own).to_have_text(["count"])
        await expect(page.draft).to_have_text("One,")
        middle.open()
        await expect(page.draft).to_have_text("One, two,")
        await page.shot("reloaded")
        end.open()
        await expect(page.answers).to_have_text(["One, two, three."])
        await page.page.reload()
        await expect(page.answers).to_have_text(["One, two, three."])
        await expect(page.log).to_have_count(2)


@pytest.mark.needs("bwrap")
async def test_an_approved_command_runs_and_leaves_a_receipt(
    browser: Browser, tmp_path: Path
) -> None:
    """The card shows the whole call; pressed, it says by whom, and the receipt is checked.

    S2-12, S2-15, S2-16.
    """
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await asks_to_run(world, page, "echo from the sandbox")
        card = page.cards
        await expect(card).to_contain_text("echo from the sandbox")
        await expect(card.locator("time")).to_contain_text("left")
        await expect(page.page.locator("#typing")).to_be_hidden()
        await page.shot("card")
        world.model.say("Here it is.", round=1, key="look")
        await page.button("Approve once").click()
        await expect(card).to_contain_text("approved by operator")
        await expect(page.button("Approve once")).to_have_count(0)
        await expect(page.answers).to_have_text(["I look.\n\nHere it is."], use_inner_text=True)
        await expect(page.log.last).to_contain_text("Here it is.")
        result = str(world.model.requests[-1].messages[-1]["content"])
        assert "from the sandbox" in result
        world.model.say(f"It ran: {TOKEN.findall(result)[0]}", key="prove")
        await page.say("prove it")
        await expect(page.receipts).to_have_attribute("data-verdict", "valid")
        await expect(page.receipts).to_contain_text("shell · ok")
        await expect(page.page.locator("body")).not_to_contain_text("zc-receipt-")
        await page.shot("receipt")


@pytest.mark.needs("bwrap")
async def test_an_operator_runs_a_tool_without_a_model(browser: Browser, tmp_path: Path) -> None:
    """`/tool` goes the same way: card, run, receipt; the model is not asked."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.say('/tool shell {"command": "echo by hand"}')
        await page.button("Approve once").click()
        await expect(page.answers).to_contain_text("by hand")
        await expect(page.receipts).to_have_attribute("data-verdict", "valid")
        await page.shot("by-hand")
        assert world.model.requests == []


async def test_a_call_is_denied_with_a_reason(browser: Browser, tmp_path: Path) -> None:
    """The card keeps the reason, the model reads it, and nothing ran (P3). S2-10, K2."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await asks_to_run(world, page, "rm -r everything")
        world.model.say("Then not.", round=1, key="look")
        await page.button("Deny, because …").click()
        await page.page.get_by_label("Reason").fill("that is too much")
        await page.shot("denying")
        await page.page.keyboard.press("Enter")
        await expect(page.cards).to_contain_text("denied by operator")
        await expect(page.cards).to_contain_text("that is too much")
        await expect(page.answers).to_contain_text("Then not.")
        await page.shot("denied")
        result = str(world.model.requests[-1].messages[-1]["content"])
        assert "that is too much" in result
        assert "did not run" in result


@pytest.mark.parametrize("place", ["web", "console"])
async def test_nothing_of_a_long_call_is_out_of_sight(
    place: str, browser: Browser, tmp_path: Path
) -> None:
    """A box that scrolls hides its rest where scroll bars are drawn late, as on phones (P5)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await asks_to_run(world, page, "true; " * 2000 + "rm -r everything")
        await page.page.goto(page.page.url.replace("/web/", f"/{place}/"))
        call = page.page.locator("pre", has_text="rm -r everything")
        await expect(call).to_have_count(1)
        assert await call.evaluate("call => call.scrollHeight === call.clientHeight")


async def test_a_press_does_not_answer_the_card_that_slides_under_it(
    browser: Browser, tmp_path: Path
) -> None:
    """It is held once and says so; a second press counts (P5)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(500, 600))
        approve = page.button("Approve once")
        for key in ("first", "second"):
            world.model.call("shell", {"command": f"echo {key}"}, round=0, key=key)
            world.model.say("Done.", round=1, key=key)
        await page.say("first" + "\n" * 30)
        box = await approve.bounding_box()
        assert box is not None
        at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        await page.page.mouse.click(*at)
        await expect(page.answers).to_have_text(["Done."])
        await page.say("second" + "\n" * 30)
        await expect(approve).to_have_count(1)
        await page.page.mouse.click(*at)
        await expect(page.page.locator("#toast")).to_contain_text("press again if you mean it")
        await expect(approve).to_have_count(1)
        await page.page.mouse.click(*at)
        await expect(page.answers).to_have_text(["Done.", "Done."])


async def test_a_tap_does_not_answer_the_card_that_has_just_come_under_the_finger(
    browser: Browser, tmp_path: Path
) -> None:
    """A finger rests nowhere before it taps: the card has to have stood there for a second (P5)."""
    async with browsing(browser, tmp_path) as world:
        page = replace(await world.log_in(size=(390, 700), touch=True), sends="Control+Enter")
        await page.page.evaluate("performance.now = () => 0")
        approve = page.button("Approve once")
        for key in ("first", "second"):
            world.model.call("shell", {"command": f"echo {key}"}, round=0, key=key)
            world.model.say("Done.", round=1, key=key)
        await page.say("first")
        await approve.tap()
        await expect(page.page.locator("#toast")).to_contain_text("press again if you mean it")
        await expect(approve).to_have_count(1)
        await approve.tap()
        await expect(page.answers).to_have_text(["Done."])
        await page.say("second")
        await expect(approve).to_have_count(1)
        await page.page.evaluate("performance.now = () => 1000")
        await approve.tap()
        await expect(page.answers).to_have_text(["Done.", "Done."])


async def test_on_a_phone_enter_begins_a_line_and_the_button_sends(
    browser: Browser, tmp_path: Path
) -> None:
    """Its keyboard has no Shift and Enter; an attached keyboard sends with Ctrl and Enter."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(390, 700), touch=True)
        world.model.say("Hello.", key="one")
        world.model.say("Hello again.", key="three")
        message = page.page.get_by_label("Message", exact=True)
        await message.press_sequentially("one\ntwo")
        await page.button("Send").tap()
        await expect(page.answers).to_have_text(["Hello."])
        assert await page.own.inner_text() == "one\ntwo"
        await message.fill("three")
        await message.press("Control+Enter")
        await expect(page.answers).to_have_text(["Hello.", "Hello again."])


async def test_with_keys_alone_each_button_is_of_a_call_and_stays_in_reach(
    browser: Browser, tmp_path: Path
) -> None:
    """A screen reader names the call of a button, and another's answer does not take it away."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        calls = (("shell", {"command": command}) for command in ("echo 1", "echo 2"))
        world.model.calls(*calls, round=0, key="look")
        world.model.say("Done.", round=1, key="look")
        await page.say("look around")
        second = page.page.get_by_role("group", name="2 shell run `echo 2`")
        approve = second.get_by_role("button", name="Approve once")
        await approve.focus()
        second_tab = await world.another_tab(page)
        await second_tab.say("/approve 1")
        await expect(page.cards).to_contain_text("approved by operator")
        await expect(approve).to_be_focused()
        await page.page.keyboard.press("Enter")
        await expect(page.answers.last).to_have_text("Done.")


@pytest.mark.needs("bwrap")
async def test_a_german_card_is_german_on_the_page(browser: Browser, tmp_path: Path) -> None:
    """Visible texts, titles and labels for screen readers, while the card is open and when it has ended."""
    async with browsing(browser, tmp_path, language="de") as world:
        page = await world.log_in()
        await asks_to_run(world, page, "true")
        world.model.say("Dann nicht.", round=1, key="look")
        article = page.cards.locator("article")
        await expect(article).to_have_attribute("lang", "de")
        await expect(article.locator("time")).to_contain_text("noch")
        await page.button("Ablehnen, weil …").click()
        await page.shot("german-card")
        texts = await texts_of_card(page)
        assert (
            english_in(texts.replace("supervised.effects", "").replace("supervised.risk", ""))
            == set()
        )
        await page.page.get_by_label("Grund").fill("nein")
        await page.page.keyboard.press("Enter")
        await expect(page.cards).to_contain_text("abgelehnt von operator")
        await expect(page.answers).to_contain_text("Dann nicht.")
        await page.page.locator("#log > .card summary").click()
        await page.shot("german-card-ended")
        texts = await texts_of_card(page)
        assert (
            english_in(texts.replace("supervised.effects", "").replace("supervised.risk", ""))
            == set()
        )


async def texts_of_card(page: ChatPage) -> str:
    """All the words of a card: its text, without the call itself, titles, labels, hints."""
    texts = [
        await element.inner_text()
        for element in await page.cards.locator(":not(:has(*)):not(code)").all()
    ]
    for name in ("title", "aria-label", "placeholder"):
        found = await page.cards.locator(f"[{name}]").all()
        texts += [str(await element.get_attribute(name)) for element in found]
    return "\n".join(texts)


async def test_a_conversation_survives_a_kill(browser: Browser, tmp_path: Path) -> None:
    """The open page reconnects by itself; messages written meanwhile are answered, once.

    P1; a new page finds the same conversation.
    """
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say("Hello.", key="hi")
        world.model.say("I am back.", key="are you there?")
        await page.say("hi")
        await expect(page.answers).to_have_text(["Hello."])
        await world.daemon.kill()
        await page.connected("reconnecting")
        await page.say("are you there?")
        await expect(page.page.locator("[data-sending=waiting]")).to_be_visible()
        await page.shot("away")
        await world.daemon.start()
        await page.connected()
        await expect(page.answers).to_have_text(["Hello.", "I am back."])
        await page.page.reload()
        await expect(page.log).to_have_text(
            [re.compile(text) for text in ("hi", "Hello", "are you there", "I am back")]
        )


async def test_a_draft_survives_a_kill(browser: Browser, tmp_path: Path) -> None:
    """The daemon dies in the middle of an answer; the page ends with one whole answer (§4)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        gate = world.model.gate()
        world.model.say("One, ", gate, "lost.")
        world.model.say("One, two, three.")
        await page.say("count")
        await expect(page.draft).to_have_text("One,")
        await expect(page.page.locator("#stop")).to_be_visible()
        await world.daemon.kill()
        await page.connected("reconnecting")
        await expect(page.page.locator("#stop")).to_be_hidden()  # no turn is running
        await world.daemon.start()
        await expect(page.answers).to_have_text(["One, two, three."])
        await expect(page.log).to_have_count(2)


@pytest.mark.needs("bwrap")
async def test_a_card_survives_a_kill(browser: Browser, tmp_path: Path) -> None:
    """The card is there after the restart, and is answered once (P5)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await asks_to_run(world, page, "echo still here")
        world.model.say("Done.", round=1, key="look")
        await world.daemon.kill()
        await page.connected("reconnecting")
        await world.daemon.start()
        await page.connected()
        await page.button("Approve once").click()
        await expect(page.cards).to_contain_text("approved by operator")
        await expect(page.answers).to_contain_text("Done.")
        assert "still here" in str(world.model.requests[-1].messages[-1]["content"])
        await expect(page.log).to_have_count(3)


@pytest.mark.needs("bwrap")
async def test_a_question_stands_between_what_was_said_and_what_follows(
    browser: Browser, tmp_path: Path
) -> None:
    """One message has both (K4): it appears above its card until that is answered, then below."""
    pending = [re.compile(text) for text in ("look around", "I look", "needs your answer")]
    settled = [re.compile(text) for text in ("look around", "approved", "I look.*Done")]
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await asks_to_run(world, page, "true")
        world.model.say("Done.", round=1, key="look")
        await expect(page.log).to_have_text(pending)
        await page.page.reload()
        await expect(page.log).to_have_text(pending)
        await page.button("Approve once").click()
        await expect(page.log).to_have_text(settled)
        await page.page.reload()
        await expect(page.log).to_have_text(settled)


async def test_a_false_receipt_is_marked(browser: Browser, tmp_path: Path) -> None:
    """Its reader sees that it is forged (P7)."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say(f"I deleted it. [receipt: {FORGED}] Trust me.", size=3)
        await page.say("did you?")
        await expect(page.answers).to_contain_text("Trust me.")
        await expect(page.answers).to_contain_text("⚠️ false receipt")
        await expect(page.receipts).to_have_count(0)
        await expect(page.page.locator("body")).not_to_contain_text("zc-receipt-")
        await page.shot("false-receipt")


async def test_markup_is_text(browser: Browser, tmp_path: Path) -> None:
    """Neither a model nor a person can put an element, a script or a script's address in the page."""
    nasty = '<script>document.title = "owned"</script><img src="x" onerror="alert(1)">'
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        world.model.say(f"{nasty} [a](javascript:alert(1)) `<b>` and **bold**", size=4)
        await page.say(f"see {nasty}")
        await expect(page.answers).to_contain_text(nasty)
        await expect(page.own).to_contain_text(nasty)
        await expect(page.answers.locator("strong")).to_have_text("bold")
        await expect(page.answers.locator("code")).to_have_text("<b>")
        await expect(page.log.locator("script, img, a")).to_have_count(0)
        await expect(page.page).to_have_title("zeroclaw")
        await page.shot("markup")


async def test_two_tabs_show_the_same(browser: Browser, tmp_path: Path) -> None:
    """Messages, drafts, cards and answers of one tab appear in the other."""
    async with browsing(browser, tmp_path) as world:
        first = await world.log_in()
        two = await world.another_tab(first)
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.", key="count")
        await first.say("count")
        await expect(two.own).to_have_text(["count"])
        await expect(two.draft).to_have_text("One,")
        gate.open()
        await expect(two.answers).to_have_text(["One, two."])
        await asks_to_run(world, two, "true")
        world.model.say("Then not.", round=1, key="look")
        await first.button("Deny").click()
        await expect(two.cards).to_contain_text("denied by operator")
        await expect(two.answers).to_have_count(2)
        await expect(first.answers).to_have_count(2)
        await expect(first.log).to_have_count(5)
        await expect(two.log).to_have_count(5)


HIDE = """
Object.defineProperty(document, 'hidden', { value: true, configurable: true });
document.hasFocus = () => false;
"""
# Each carries the first event of the daemon, and then those of the test alone.
SILENT_LINES = """
window.lines = [];
window.EventSource = class extends EventSource {
  constructor(address) {
    super(address);
    lines.push(this);
  }
  addEventListener(name, act) {
    super.addEventListener(name, (event) => {
      if (this.hasBegun && event.isTrusted && name !== "error") return;
      this.hasBegun = true;
      act(event);
    });
  }
};
"""
PING = "lines[0].dispatchEvent(new MessageEvent('ping', { data: '{}' }))"
SHOW = "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"


async def test_many_pages_of_one_browser_do_not_stop_each_other(
    browser: Browser, tmp_path: Path
) -> None:
    """It has six connections: the oldest pages out of sight wait, and go on once they are seen."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.evaluate(HIDE)
        world.model.say("Hello.", key="hi")
        for place in ("/web/", "/console/approvals") * 3:
            tab = await page.page.context.new_page()
            await tab.goto(page.page.url.replace("/web/", place))
            await world.follow(tab)
            await tab.evaluate(HIDE)
        last = await world.another_tab(page)
        await last.say("hi")
        await expect(last.answers).to_have_text(["Hello."])
        await page.connected("reconnecting")
        await expect(page.answers).to_have_count(0)
        await page.page.evaluate(SHOW)
        await page.connected()
        await expect(page.answers).to_have_text(["Hello."])


@pytest.mark.parametrize("place", ["web", "console"])
async def test_a_page_beside_the_one_in_use_waits_for_a_while(
    place: str, browser: Browser, tmp_path: Path
) -> None:
    """Five pages in sight would take each other's place all the time, and flicker."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        beside = await page.page.context.new_page()
        await beside.clock.install(time=0)
        await beside.clock.pause_at(1_000)
        await beside.goto(page.page.url.replace("/web/", f"/{place}/"))
        await world.follow(beside)
        await beside.evaluate("document.hasFocus = () => false")
        streams: list[str] = []
        for _ in range(3):
            await world.another_tab(page)
        beside.on("request", lambda sent: streams.append(sent.url.rpartition("/")[2]))
        await world.another_tab(page)
        await ChatPage(page=beside).connected("reconnecting")
        await beside.clock.run_for(4_900)
        assert "events" not in streams
        await beside.clock.run_for(2_500)
        await world.follow(beside)


async def on_a_silent_line(world: WebWorld, place: str) -> ChatPage:
    """Open a page whose clock the test moves, and whose lines bring no ping of the daemon's own."""
    page = await world.log_in()
    await page.page.add_init_script(SILENT_LINES)
    await page.page.clock.install(time=0)
    await page.page.clock.pause_at(1_000)
    await page.page.goto(page.page.url.replace("/web/", f"/{place}/"))
    await page.connected()
    return page


@pytest.mark.parametrize("place", ["web", "console"])
async def test_a_line_that_falls_silent_is_opened_again(
    place: str, browser: Browser, tmp_path: Path
) -> None:
    """A laptop that slept keeps a tunnel that carries nothing; the page must not say "connected"."""
    async with browsing(browser, tmp_path) as world:
        page = await on_a_silent_line(world, place)
        await page.page.clock.run_for(35_000)
        await page.page.evaluate(PING)
        await page.page.clock.run_for(35_000)
        assert await page.page.evaluate("lines.length") == 1
        await page.page.clock.run_for(5_000)
        await page.connected("reconnecting")
        assert await page.page.evaluate("lines[0].readyState === EventSource.CLOSED")
        await page.page.clock.run_for(8_000)
        await page.connected()


@pytest.mark.parametrize("place", ["web", "console"])
async def test_a_computer_that_wakes_has_its_page_right_at_once(
    place: str, browser: Browser, tmp_path: Path
) -> None:
    """While it slept no timer ran; a page that was hidden does not wait for its next try either."""
    async with browsing(browser, tmp_path) as world:
        page = await on_a_silent_line(world, place)
        await page.page.clock.set_system_time(3_600_000)
        await page.page.clock.run_for(1_000)
        await page.connected("reconnecting")
        await page.page.evaluate(HIDE)
        await world.daemon.kill()
        await page.page.clock.run_for(20_000)
        await world.daemon.start()
        await world.link(1)
        await page.page.evaluate(SHOW)
        await page.connected()


async def test_a_page_out_of_sight_looks_again_whether_something_came(
    browser: Browser, tmp_path: Path
) -> None:
    """Its title says so; a stream may be cut by a proxy, by a laptop's sleep, or for other pages."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        await page.page.clock.install()
        await page.page.evaluate(HIDE)
        *_, last = [await world.another_tab(page) for _ in range(4)]
        await page.connected("reconnecting")
        world.model.say("Hello.", key="hi")
        await last.say("hi")
        await expect(last.answers).to_have_text(["Hello."])
        await page.page.clock.fast_forward(60_000)
        await expect(page.page).to_have_title(re.compile("^● "))


async def test_an_answer_is_stopped_by_a_button(browser: Browser, tmp_path: Path) -> None:
    """While the bot is at work the send button stops it; the text so far stays, marked."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in()
        gate = world.model.gate()
        world.model.say("One, ", gate, "two.")
        await page.say("count")
        await expect(page.draft).to_have_text("One,")
        # In a high-contrast theme every background is the theme's.
        await page.page.emulate_media(forced_colors="active")
        assert await page.button("Stop").evaluate(HAS_A_SIGN)
        await page.button("Stop").click()
        await expect(page.answers).to_contain_text("One,")
        await expect(page.answers).to_contain_text("topped")
        await expect(page.button("Stop")).to_be_hidden()
        await expect(page.button("Send")).to_be_visible()
        await page.shot("stopped")


async def test_a_long_word_and_a_small_screen_are_no_trouble(
    browser: Browser, tmp_path: Path
) -> None:
    """The page never scrolls sideways, down to 320 px (WCAG 1.4.10); code and tables do by themselves."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(320, 740), dark=True)
        wide = "x" * 300
        world.model.say(f"{wide}\n\n```\n{wide}\n```\n\n| a | b |\n|---|---|\n| {wide} | 2 |\n")
        await page.say(wide)
        await expect(page.answers.locator("table")).to_be_visible()
        await asks_to_run(world, page, f"echo {wide}")
        await expect(page.button("Approve once")).to_be_in_viewport()
        await page.page.set_viewport_size({"width": 320, "height": 420})
        await expect(page.button("Approve once")).to_be_in_viewport()
        await page.shot("small-and-dark")
        widths = await page.page.evaluate(
            "() => [document.documentElement.scrollWidth, document.getElementById('scroller').scrollWidth]"
        )
        assert max(widths) <= 320


@pytest.mark.parametrize("place", ["web", "console"])
async def test_a_small_screen_without_a_connection_does_not_scroll_sideways(
    place: str, browser: Browser, tmp_path: Path
) -> None:
    """The state of the connection is then the longest text of the header."""
    async with browsing(browser, tmp_path) as world:
        page = await world.log_in(size=(320, 740))
        await page.page.goto(page.page.url.replace("/web/", f"/{place}/"))
        await page.connected()
        await world.daemon.kill()
        await page.connected("reconnecting")
        await expect(page.button("Log out")).to_be_in_viewport(ratio=1)
        assert await page.page.evaluate("document.documentElement.scrollWidth") == 320
