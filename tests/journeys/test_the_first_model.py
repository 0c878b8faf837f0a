"""A daemon without a configured model takes an available one, and says which and why."""

import asyncio
import os
import pty
from pathlib import Path

import pytest

from tests.emulators.model_server import ModelServer
from tests.journeys.daemon_process import PROGRAM

pytestmark = pytest.mark.slow

KEY = "sk-a-key-that-nobody-may-see"


def left_open(directory: Path) -> Path:
    """A configuration that leaves the server open; the model is one that none here offers."""
    path = directory / "c.toml"
    text = f'''
data_dir = "{directory}/data"

[provider]
kind = "auto"
model = "found-nowhere"

[channels.web]
enabled = false
'''
    path.write_text(text, encoding="utf-8")
    return path


async def start_at_terminal(typed: str, directory: Path, **environment: str) -> str:
    """Start a daemon at a terminal, type an answer, and return all text of the screen.

    It is ended once it is ready.
    """
    screen, terminal = pty.openpty()
    os.write(screen, typed.encode())  # a terminal keeps input that is typed before it is read
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "run", "--config", str(left_open(directory))),
        stdin=terminal,
        stdout=asyncio.subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "XDG_DATA_HOME": str(directory), **environment},
    )
    os.close(terminal)
    assert process.stdout is not None
    output = await process.stdout.readline()
    output += await process.stdout.readuntil(b"zeroclaw chat --config")
    process.terminate()
    output += await process.stdout.read()
    assert await process.wait() == 0
    screen_text = os.read(screen, 65536)
    os.close(screen)
    return (output + screen_text).decode()


async def test_a_key_is_taken_after_a_yes_at_the_terminal(tmp_path: Path) -> None:
    """The question says where conversations go; the key itself is shown nowhere (P8)."""
    async with ModelServer() as server:
        screen_text = await start_at_terminal(
            "y\n", tmp_path, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url
        )
        assert f"Send conversations to {server.url} and let `found-nowhere` answer" in screen_text
        assert (
            "  model     found-nowhere\n            taken because you said yes to OPENAI_A"
            in screen_text
        )
    assert KEY not in screen_text


async def test_a_key_is_left_alone_after_a_no(tmp_path: Path) -> None:
    """An empty line is a no; then the model of this machine answers."""
    screen_text = await start_at_terminal("\n", tmp_path, OPENAI_API_KEY=KEY)
    assert "and you said no to OPENAI_API_KEY" in screen_text
    assert "  model     SmolLM2" in screen_text


async def test_a_key_is_left_alone_without_a_terminal(tmp_path: Path) -> None:
    """A daemon that an init system starts reports its choice in its greeting and in its log."""
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "run", "--config", str(left_open(tmp_path))),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "OPENAI_API_KEY": KEY},
    )
    assert process.stdout is not None
    output = await process.stdout.readuntil(b"zeroclaw chat --config")
    process.terminate()
    _, log = await process.communicate()
    assert b"(OPENAI_API_KEY) is taken only after a yes on a terminal" in output
    assert b"provider_chosen" in log
    assert KEY.encode() not in output + log
