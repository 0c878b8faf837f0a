"""A newcomer with an empty Debian follows the README, and everything works as it says."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest
from playwright.async_api import Error, async_playwright, expect

from tests.conftest import LONG_TIMEOUT_S
from tests.journeys.browsing import ARGUMENTS, CHROMIUM, LINK, ChatPage
from tests.journeys.empty_root import ROOT, EmptyRoot, Running, empty_root
from tests.journeys.package_sources import outermost, paths_in

# Its first section, as far as there is nothing to configure.
SECTION = (ROOT / "README.md").read_text("utf-8").split("\n## Run it\n", 1)[1]
FIRST_STEPS = SECTION.split("\n**A configuration of your own.**", 1)[0]
MODEL_PATIENCE_MS = 180_000  # a model on a machine that has much else to do
# The arguments and input of commands that do not end by themselves.
WITH_A_PERSON = {
    ".venv/bin/zeroclaw demo": (" --auto", ""),
    ".venv/bin/zeroclaw chat": ("", "hi\n"),
}


def needed() -> list[str]:
    """The packages that the README asks for."""
    sentence = FIRST_STEPS.partition("needs Linux with")[2].partition(";")[0]
    return re.findall(r"`([\w-]+)`", sentence)


def commands() -> list[str]:
    """Return the commands that the README shows, without their comments."""
    lines = [line.strip() for line in FIRST_STEPS.splitlines() if line.startswith("    ")]
    return [re.split(r" {2,}", line)[0] for line in lines]


def tool_call() -> str:
    """Return the tool call that the README tells a newcomer to write."""
    found = re.search(r"`(/tool [^`]+)`", " ".join(FIRST_STEPS.split()))
    assert found is not None
    return found[1]


async def talk(page: ChatPage) -> None:
    """Write something; call a tool, approve it, and read the receipt."""
    await page.connected()
    await page.say("Hi.")
    await expect(page.answers).to_have_count(1, timeout=MODEL_PATIENCE_MS)
    await page.say(tool_call())
    await page.button("Approve once").click(timeout=MODEL_PATIENCE_MS)
    await expect(page.receipts).to_have_count(1, timeout=MODEL_PATIENCE_MS)
    await expect(page.draft).to_have_count(0, timeout=MODEL_PATIENCE_MS)


async def try_out(root: EmptyRoot, command: str) -> None:
    """Run another command of the README; it prints something and exits with 0."""
    arguments, stdin = WITH_A_PERSON.get(command, ("", ""))
    running = await root.start(command + arguments, stdin=stdin)
    assert (await running.wait(), bool(running.lines)) == (0, True), running.report()


async def follow(root: EmptyRoot, page: ChatPage, runs: list[Running]) -> None:
    """Follow the README."""
    run, *others = commands()
    runs.append(await root.start(run))
    link = await runs[0].until(LINK)
    assert "setup: installing bubblewrap" in "\n".join(runs[0].lines)
    assert "no shell" not in "\n".join(runs[0].lines)
    await page.page.goto(link[0])
    async with asyncio.TaskGroup() as group:
        group.create_task(talk(page))
        for command in others:
            group.create_task(try_out(root, command))
    own, answers = await page.own.all_inner_texts(), await page.answers.all_inner_texts()

    os.kill(runs[0].pid_of(".venv/bin/zeroclaw", "run"), signal.SIGKILL)
    await runs[0].wait()
    runs.append(await root.start(run))
    await runs[1].until(LINK)
    assert not [line for line in runs[1].lines if line.startswith(("setup:", "model:"))]
    await page.page.reload()
    await expect(page.own).to_have_text(own, use_inner_text=True)
    await expect(page.answers).to_have_text(answers, use_inner_text=True)
    await expect(page.receipts).to_have_count(1)

    os.kill(runs[1].pid_of(".venv/bin/zeroclaw", "run"), signal.SIGINT)  # as Ctrl-C does
    assert await runs[1].wait() == 0, runs[1].report()


def test_the_readme_says_what_is_needed_and_what_to_type() -> None:
    """The journey below takes both from there, on machines where it can run."""
    assert {"python3", "make"} <= set(needed())
    assert commands()[0] == "make run"
    assert WITH_A_PERSON.keys() <= set(commands())
    assert tool_call().startswith("/tool ")


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("https://index.example/simple", ()),
        ("{0}/a.pem", ("a.pem",)),
        ("{0}:{0}/a.pem:/nowhere", ("", "a.pem")),
        ("file://{0}/more/simple https://x.example file:///nowhere", ("more",)),
        ("file://{0}/more", ("more",)),
        ("/ 180 true", ()),
    ],
)
def test_the_paths_of_a_setting_are_found(
    setting: str, found: tuple[str, ...], tmp_path: Path
) -> None:
    """Plain paths, lists of them, and `file:` URLs; an index with the files next to its pages."""
    (tmp_path / "a.pem").touch()
    (tmp_path / "more" / "simple").mkdir(parents=True)
    expected = [tmp_path / name if name else tmp_path for name in found]
    assert list(paths_in(setting.format(tmp_path))) == expected


def test_a_path_within_another_is_not_bound_again() -> None:
    """The outer one holds it."""
    bundle, certificates, hosts = Path("/a/certs/b.pem"), Path("/a/certs"), Path("/a/hosts")
    assert outermost((bundle, hosts, certificates, bundle)) == (certificates, hosts)


@pytest.mark.long("makes an empty Debian and installs everything in it")
@pytest.mark.needs("root", "debootstrap", "git", "chromium", "default port")
async def test_the_readme_works_for_a_newcomer() -> None:
    """Nothing is missing on a machine with the README's prerequisites, the sandbox included.

    The link logs in, the small model answers, a call waits for approval and has a receipt, every
    command of the README works, and after kill -9 the conversation is there (P1, P7).
    """
    runs: list[Running] = []
    async with (
        empty_root(*needed()) as root,
        async_playwright() as player,
        await player.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS]) as browser,
    ):
        try:
            async with asyncio.timeout(LONG_TIMEOUT_S * 0.8):
                await follow(root, ChatPage(page=await browser.new_page()), runs)
        except (AssertionError, Error, TimeoutError) as error:
            error.add_note("\n".join(run.report() for run in runs))
            raise
