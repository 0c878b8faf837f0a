"""`zeroclaw try` lets a newcomer meet the bot without its platform, and ends without a trace."""

import asyncio
import os
import re
import signal
import sys
import tempfile
import tomllib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.fakes.installed import install
from tests.journeys.daemon_process import PROGRAM
from zeroclaw.cli import root
from zeroclaw.cli.configuration import faults_in

OPEN = re.compile(r"^open +(http://\S+/)$", re.MULTILINE)
SCRIPT = """
[[turn]]
when = "hello"
[[turn.answer]]
steps = [{ say = "Hello, Ann." }]
"""


@dataclass(kw_only=True)
class Trying:
    """The command as it runs."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list[str])

    async def until(self, pattern: re.Pattern[str]) -> str:
        """Read on until there is a line."""
        assert self.process.stdout is not None
        while not (found := pattern.search("".join(self.lines))):
            line = await self.process.stdout.readline()
            assert line, self.lines
            self.lines.append(line.decode())
        return found[1]

    async def interrupt(self, by: signal.Signals = signal.SIGINT) -> tuple[int | None, str]:
        """Press Ctrl-C, or end it by another signal; return the exit code and the last output."""
        self.process.send_signal(by)
        output, _ = await self.process.communicate()
        return self.process.returncode, output.decode()


@pytest.fixture
def short() -> Generator[Path]:
    """An empty directory with a short path: below it comes a sitting's own, with a socket in it."""
    with tempfile.TemporaryDirectory(prefix="zeroclaw-") as directory:
        Path(directory).chmod(0o711)  # the mail servers run as users of their own
        yield Path(directory)


def left_in(directory: Path) -> list[Path]:
    """Return the files that a run of `try` could leave behind."""
    return [*directory.glob("zeroclaw-try-*"), *directory.glob("zc-mail-*")]


@asynccontextmanager
async def trying(
    directory: Path, *arguments: str, platform: str = "telegram"
) -> AsyncGenerator[Trying]:
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("try", platform, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "HOME": str(directory), "XDG_CONFIG_HOME": "", "TMPDIR": str(directory)},
    )
    try:
        yield Trying(process=process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def texts_to(client: httpx.AsyncClient, chat: int | str) -> list[str]:
    """Return the bot's texts in a chat."""
    state = (await client.get("state")).json()
    chats = {entry["id"]: entry["messages"] for entry in state["chats"]}
    return [message["text"] for message in chats[chat] if message["bot"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "by"),
    [
        ("telegram", signal.SIGINT),
        ("discord", signal.SIGTERM),
        pytest.param("email", signal.SIGINT, marks=pytest.mark.needs("dovecot", "postfix")),
        pytest.param("slack", signal.SIGINT, marks=pytest.mark.needs("emulate")),
    ],
)
async def test_with_run_a_daemon_answers_there(
    tmp_path: Path, short: Path, platform: str, by: signal.Signals
) -> None:
    """Ann is answered by the model of the configuration; nothing is left behind at the end."""
    (tmp_path / "script.toml").write_text(SCRIPT, "utf-8")
    config = tmp_path / "config.toml"
    provider = f'[provider]\nkind = "scripted"\nscript = "{tmp_path / "script.toml"}"\n'
    config.write_text(provider, "utf-8")
    async with trying(short, "--run", "--config", str(config), platform=platform) as running:
        page = await running.until(OPEN)
        async with (
            httpx.AsyncClient(base_url=page, timeout=None, trust_env=False) as client,
            client.stream("GET", "events") as events,
        ):
            ann = (await client.get("state")).json()["people"][0]
            await client.post("do", json={"do": "say", "person": ann["id"], "text": "hello"})
            async for _ in events.aiter_lines():
                if "Hello, Ann." in await texts_to(client, ann["chat"]):
                    break
        assert (await running.interrupt(by))[0] == 0
    assert left_in(short) == []


@pytest.mark.slow
async def test_without_run_it_says_how_a_daemon_gets_there(tmp_path: Path) -> None:
    """The lines are a configuration without a fault, and the variable is the one they name."""
    async with trying(tmp_path, "--no-limits") as running:
        await running.until(OPEN)
        variable = await running.until(re.compile(r"^ +(EMULATED_\S+=\S+)$", re.MULTILINE))
        code, last_output = await running.interrupt()
        printed = "".join(running.lines)
    assert (code, "`--run` does all of that by itself" in printed + last_output) == (0, True)
    lines = printed.partition("configuration\n")[2].partition("\nand this")[0]
    name, _, value = variable.partition("=")
    assert await asyncio.to_thread(lambda: faults_in(lines, environment={name: value})) == ()
    channel = tomllib.loads(lines)["channels"]["telegram"]
    assert (channel["token"], channel["limits"]) == ({"env": name}, "off")


@pytest.mark.slow
@pytest.mark.needs("dovecot", "postfix")
async def test_a_directory_that_the_mail_servers_may_not_enter_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest's own directories are closed to others; and the servers lie where `su` does not look."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    async with trying(tmp_path, platform="email") as running:
        output, _ = await running.process.communicate()
        assert running.process.returncode == 2
        assert "is closed to the users of dovecot and postfix" in output.decode()


@pytest.mark.slow
async def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    async with trying(tmp_path) as running:
        page = await running.until(OPEN)
        port = str(httpx.URL(page).port)
        async with trying(tmp_path, "--port", port) as second:
            output, _ = await second.process.communicate()
            assert second.process.returncode == 1
            assert f"can't use port {port} of 127.0.0.1: address already in use" in output.decode()


@pytest.mark.slow
async def test_an_unreadable_configuration_is_reported(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("provider", "utf-8")
    async with trying(tmp_path, "--run", "--config", str(config)) as running:
        output, _ = await running.process.communicate()
        assert running.process.returncode == 2
        assert f"`{config}` can't be read: " in output.decode()


def test_a_channel_without_an_emulator_is_reported() -> None:
    done = CliRunner().invoke(root, ["try", "pigeon"])
    assert (
        done.exit_code,
        "`pigeon` is not installed; installed are `discord`, `email`, `slack`, `telegram`"
        in done.stderr,
    ) == (2, True)


@pytest.mark.parametrize(
    ("platform", "missing", "extras"),
    [
        ("telegram", "telegramify_markdown", "telegram"),
        ("discord", "discord", "discord,try-discord"),
        ("slack", "slack_bolt", "slack,try-slack"),
        ("email", "aioimaplib", "email"),
    ],
)
def test_missing_programs_are_reported_before_anything_opens(
    monkeypatch: pytest.MonkeyPatch, platform: str, missing: str, extras: str
) -> None:
    """All prerequisites at once, instead of a page without answers (P10)."""
    monkeypatch.setitem(sys.modules, missing, None)
    done = CliRunner().invoke(root, ["try", platform, "--run"])
    assert (done.exit_code, done.stderr) == (
        2,
        f"zeroclaw: try: {platform} needs more packages: "
        f".venv/bin/python -m pip install -e '.[{extras}]' in the checkout\n",
    )


def test_a_missing_part_of_an_emulator_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign one; the product's own would have a name."""
    install(tmp_path, monkeypatch, "[zeroclaw.emulators]\npigeon = no_such_module:emulate\n")
    done = CliRunner().invoke(root, ["try", "pigeon"])
    assert (done.exit_code, done.stderr) == (
        2,
        "zeroclaw: try: pigeon needs more packages; its own package names them\n",
    )


def test_the_help_teaches() -> None:
    done = CliRunner().invoke(root, ["try", "--help"])
    assert "zeroclaw try telegram --run" in done.stdout
    assert "\\b" not in done.stdout
