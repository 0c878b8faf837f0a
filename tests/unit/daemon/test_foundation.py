"""What the daemon is made of."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.fakes.installed import install
from tests.unit.daemon.test_life import start_in
from zeroclaw.config.model import ToolsSettings
from zeroclaw.daemon.foundation import Openers, open_foundation
from zeroclaw.errors import ConfigError, StoreUnusable
from zeroclaw.value import replace


async def test_tools_that_others_bring_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside those that come along."""
    (tmp_path / "brought_tools.py").write_text(
        "from tests.fakes.plain_tool import LOOK, PlainTool\n"
        "def tools():\n    return (PlainTool(LOOK),)\n"
    )
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbrought = brought_tools:tools\n")
    async with AsyncExitStack() as stack:
        parts = await open_foundation(await asyncio.to_thread(start_in, tmp_path), Openers(), stack)
        assert "look" in parts.tools
        assert "read_file" in parts.tools or len(parts.tools) > 1


async def test_a_tool_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, and no traceback of a stranger's code (P10)."""
    (tmp_path / "broken_tools.py").write_text("def tools():\n    raise RuntimeError('x')\n")
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbroken = broken_tools:tools\n")
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match=r"tools\.broken: `broken` can't be opened"):
            await open_foundation(await asyncio.to_thread(start_in, tmp_path), Openers(), stack)


async def test_a_provider_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words when it has some (P10)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    (tmp_path / "script.toml").write_text("this is no script")
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match="script"):
            await open_foundation(start, Openers(), stack)


async def test_a_data_directory_that_cannot_be_is_named_before_the_workspaces(
    tmp_path: Path,
) -> None:
    """They stand beside it unless somebody says otherwise, so it is the one to mend (P10)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    (tmp_path / "file").touch()
    data = tmp_path / "file" / "data"
    beside = replace(start.places, data=data, workspaces=data.with_name("data-workspaces"))
    async with AsyncExitStack() as stack:
        with pytest.raises(StoreUnusable, match=f"`{data}` is not a directory"):
            await open_foundation(replace(start, places=beside), Openers(), stack)


async def test_a_page_needs_a_listener(tmp_path: Path) -> None:
    """And only a page does; a fresh login is handed out for each person who asks."""
    start = await asyncio.to_thread(start_in, tmp_path, "listener = {port = 0}\n[channels.web]\n")
    async with AsyncExitStack() as stack:
        parts = await open_foundation(start, Openers(), stack)
        assert parts.listener is not None
    async with AsyncExitStack() as stack:
        parts = await open_foundation(await asyncio.to_thread(start_in, tmp_path), Openers(), stack)
        assert parts.listener is None
        assert parts.shell_note == ""


async def test_a_channel_that_its_platform_calls_needs_the_public_listener(tmp_path: Path) -> None:
    """And nothing else opens it: it is off by default."""
    called = (
        'public = {port = 0}\n[channels.web]\nenabled = false\n[channels.telegram]\ntoken = {file = "token"}\n'
        'receive = "webhook"\nwebhook_url = "https://bot.example.org/telegram"\n'
    )
    token = tmp_path / "token"
    token.write_text("42:token")
    token.chmod(0o600)
    text = called.replace('"token"', f'"{token}"')
    start = await asyncio.to_thread(start_in, tmp_path, text)
    async with AsyncExitStack() as stack:
        parts = await open_foundation(start, Openers(), stack)
        assert parts.public is not None
    start = await asyncio.to_thread(start_in, tmp_path, text.replace("webhook", "polling", 1))
    async with AsyncExitStack() as stack:
        assert (await open_foundation(start, Openers(), stack)).public is None


async def test_the_configuration_itself_is_out_of_every_tools_reach(tmp_path: Path) -> None:
    """As the data directory and the skills are; the workspaces are not (S3-23)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    config = tmp_path / "config.toml"
    config.write_text("")
    skills = tmp_path / "skills"
    start = replace(start, places=replace(start.places, config=config, skills=skills))
    async with AsyncExitStack() as stack:
        parts = await open_foundation(start, Openers(), stack)
        assert parts.protected.closed == (str(start.places.data), str(config), str(skills))
        assert parts.protected.open == (str(start.places.workspaces),)


async def test_a_tool_that_is_switched_off_is_not_there(tmp_path: Path) -> None:
    """Nothing is left when all are off."""
    start = await asyncio.to_thread(start_in, tmp_path)
    every = ToolsSettings.model_fields
    tools = ToolsSettings.model_validate({name: {"enabled": False} for name in every})
    start = replace(start, config=start.config.model_copy(update={"tools": tools}))
    async with AsyncExitStack() as stack:
        assert (await open_foundation(start, Openers(), stack)).tools == {}
