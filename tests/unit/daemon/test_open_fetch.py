"""The fetch tool as the daemon opens it."""

import asyncio
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.fakes.plain_tool import tool_context
from tests.unit.daemon.test_life import start_in
from tests.unit.tools.fetch.pages import Pages, answer
from zeroclaw.config.model import FetchSettings, ShellSettings, ToolsSettings
from zeroclaw.config.validate import parse
from zeroclaw.daemon.foundation import Openers, open_foundation
from zeroclaw.errors import ConfigError, ToolFailed
from zeroclaw.value import replace


async def test_fetch_opens_only_configured_addresses(tmp_path: Path) -> None:
    """An opened address is fetched, with our user agent; others stay closed."""
    start = await asyncio.to_thread(start_in, tmp_path)
    async with Pages() as server, AsyncExitStack() as stack:
        server.pages["/"] = answer("milk")
        tools = ToolsSettings(
            shell=ShellSettings(enabled=False),
            fetch=FetchSettings(allow=("localhost",), ports=(server.port,)),
        )
        start = replace(start, config=start.config.model_copy(update={"tools": tools}))
        tool = (await open_foundation(start, Openers(), stack)).tools["fetch"]
        context = tool_context(tmp_path)
        opened = tool.check({"url": f"http://localhost:{server.port}/"})
        closed = tool.check({"url": f"http://127.0.0.1:{server.port}/"})
        assert (await tool.run(opened, context)).text.endswith("\n\nmilk")
        assert f"user-agent: zeroclaw/{version('zeroclaw')}\r\n" in server.heads[0].lower()
        with pytest.raises(ToolFailed, match="is a loopback address"):
            await tool.run(closed, context)


@pytest.mark.parametrize(
    "entry", ["192.168.1.10", "10.0.0.0/8", "::1", "fd00::/8", "wiki.lan", "my_host", "wiki.lan."]
)
def test_addresses_networks_and_names_can_be_opened(entry: str) -> None:
    """In the notation used elsewhere."""
    text = f'tools.fetch.allow = ["{entry}"]'
    assert parse(text).tools.fetch.allow == (entry,)


@pytest.mark.parametrize(
    "entry", ["", "http://wiki.lan", "*.lan", "a b", "300.1.1.1", "10.0.0.0/99", "wiki.lan:80"]
)
def test_an_entry_that_would_open_nothing_is_a_fault(entry: str) -> None:
    """The fault names its key and the allowed forms (P10)."""
    with pytest.raises(ConfigError, match=r"tools\.fetch\.allow\[0\]: .* is no address"):
        parse(f'tools.fetch.allow = ["{entry}"]')
