"""A newcomer answers the questions of `zeroclaw init`, and the daemon runs with the written file."""

import asyncio
import os
import pty
import signal
from pathlib import Path

import pytest

from tests.emulators.model_server import ModelServer
from tests.journeys.daemon_process import PROGRAM

pytestmark = pytest.mark.slow

KEY = "sk-typed-and-seen-by-nobody"


class Sitting:
    """A person at a terminal, who answers when asked."""

    def __init__(self, screen: int) -> None:
        self.shown = ""
        self._screen = screen
        self._read = 0

    async def question(self) -> str:
        """Return the output since the last answer, once it ends like a question."""
        while not (new := self.shown[self._read :]).endswith(": "):
            self.shown += (await asyncio.to_thread(os.read, self._screen, 4096)).decode()
        return new

    async def number_of(self, offer: str) -> str:
        """Return the number in front of an offer of the next question."""
        (line,) = [row for row in (await self.question()).splitlines() if offer in row]
        return line.split()[0]

    async def answer(self, question: str, typed: str) -> None:
        """Wait for a question, and type a line."""
        displayed = await self.question()
        assert question in displayed, displayed
        self._read = len(self.shown)
        os.write(self._screen, f"{typed}\n".encode())

    async def read_rest(self) -> None:
        """Read to the end."""
        while True:
            try:
                output = await asyncio.to_thread(os.read, self._screen, 4096)
            except OSError:  # the terminal's other end is closed
                return
            self.shown += output.decode()


async def test_a_newcomer_answers_questions_and_the_daemon_runs(tmp_path: Path) -> None:
    """A model behind a typed key, asked before anything is written; the key shows nowhere (P8)."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.endswith("_API_KEY") and key != "ZEROCLAW_CONFIG"
    } | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path)}
    directory = tmp_path / "config" / "zeroclaw"
    async with ModelServer() as server:
        server.say("Hello.")
        screen, terminal = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(PROGRAM, "init"),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment,
            start_new_session=True,  # so that the key is asked for here, not where the tests run
        )
        os.close(terminal)
        person = Sitting(screen)
        # The last of the offers, which depend on what listens on the machine that tests.
        await person.answer("Model [1]:", await person.number_of("another OpenAI-compatible"))
        await person.answer("up to and with /v1:", server.url)
        await person.answer("name there:", "scripted")
        await person.answer("Key (env, file, keyring, type, none)", "type")
        await person.answer("(not shown):", KEY)
        await person.answer("file it goes into", "")
        await person.answer("readable by you alone?", "y")
        await person.answer("`terminal`? [Y/n]:", "")
        await person.answer("`web`? [Y/n]:", "n")
        while "Autonomy" not in await person.question():
            await person.answer("? [y/N]:", "")  # a channel that is installed for tests
        await person.answer("Autonomy", "readonly")
        await person.answer("More questions", "")
        await person.read_rest()
        os.close(screen)
        assert await process.wait() == 0, person.shown
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        text = (directory / "config.toml").read_text(encoding="utf-8")
        assert (KEY in person.shown + text, "`scripted` answers" in person.shown) == (False, True)
        assert f"wrote {directory / 'config.toml'}" in person.shown
        assert (directory / "model.key").stat().st_mode & 0o777 == 0o600

        daemon = await asyncio.create_subprocess_exec(
            *(PROGRAM, "run"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
        )
        assert daemon.stdout is not None
        output = await daemon.stdout.readuntil(b"zeroclaw chat\n")
        daemon.terminate()
        assert await daemon.wait() == 0
    assert b"zeroclaw is ready: terminal\n  model     scripted\n" in output


@pytest.mark.parametrize("leaves", ["at the end of input", "while a model is tried"])
async def test_a_newcomer_who_leaves_reads_that_nothing_was_written(
    tmp_path: Path, leaves: str
) -> None:
    """At the end of input as at Ctrl-C, in one line (P10)."""
    screen, terminal = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "init", "--config", str(tmp_path / "c.toml")),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    person = Sitting(screen)
    async with ModelServer() as server:
        gate = server.gate()
        server.say(gate, "too late")
        if leaves == "at the end of input":
            assert "Model [1]" in await person.question()
            os.write(screen, b"\x04")
        else:
            await person.answer("Model [1]:", await person.number_of("another OpenAI-compatible"))
            await person.answer("up to and with /v1:", server.url)
            await person.answer("name there:", "scripted")
            await person.answer("Key (env, file, keyring, type, none)", "none")
            await gate.reached()
            process.send_signal(signal.SIGINT)
        await person.read_rest()
    os.close(screen)
    assert await process.wait() == 1
    message = f"zeroclaw: `{tmp_path}/c.toml` was not written; `"
    assert person.shown.splitlines()[-1].startswith(message), person.shown
    assert person.shown.splitlines()[-1].endswith(f"init --config {tmp_path}/c.toml` asks again")
